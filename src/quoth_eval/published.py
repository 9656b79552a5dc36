"""The papers' tables as they were published, and what was measured here for the same columns.

Knows: the file of the numbers (`published.json`), which of our measures a column is. Does not know: runs, how a table
is shown.
"""

import json
from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

from quoth_eval.report import Result
from quoth_eval.statistics import Interval

SPEED = "examples_per_second"
Numbers = tuple[float | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table, by its name in the paper: our measure of it by task (none: not measured here), of which
    groups of examples it is, the dimension over whose groups it is the mean ("": all examples weigh the same), and the
    paper's number of examples (None: not stated)."""

    name: str
    measures: Mapping[str, str] = field(default_factory=dict)
    groups: Mapping[str, str] = field(default_factory=dict)
    macro: str = ""
    examples: int | None = None

    def of(self, result: Result, task: str) -> Interval | float | None:
        """The column's number of a system: a mean with its interval, or examples per second; None if it has none."""
        measure = self.measures[task]
        if measure == SPEED:
            return result.per_second
        return result.macro(self.macro, measure) if self.macro else result.score(**self.groups).interval(measure)


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A table: paper, name ("table 8"), what was searched, columns, the paper's rows and ours, each of which names the
    page that tells more. Numbers are percentages unless the note says otherwise."""

    source: str
    item: str
    corpus: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, Numbers], ...]
    ours: tuple[tuple[str, str, Numbers], ...]
    note: str = ""

    @property
    def where(self) -> str:
        """The paper and the table's name."""
        return f"{self.source.split(',')[0]}, {self.item}"


@cache
def published() -> tuple[Published, ...]:
    """All tables of NPM, REALM and Zero-NeR, in the file's order."""
    text = files("quoth_eval").joinpath("published.json").read_text(encoding="utf-8")
    return tuple(
        Published(
            **{
                **told,
                "columns": tuple(Column(**each) for each in told["columns"]),
                "rows": tuple((system, tuple(values)) for system, *values in told["rows"]),
                "ours": tuple((system, page, tuple(values)) for system, page, *values in told.get("ours", ())),
            }
        )
        for told in json.loads(text)
    )


def printed(value: float | None) -> str:
    """A number as the paper prints it, "–" for none."""
    return "–" if value is None else str(value)


def published_for(task: str) -> list[tuple[Published, list[Column]]]:
    """The tables that have columns of a task, by its name here, and these columns; without those that a run of the task
    does not tell apart: several of one measure in a table (LAMA's), or of one name in two of a paper (by language)."""
    every = [(table, column) for table in published() for column in table.columns if task in column.measures]

    def measured(column: Column) -> Hashable:
        return column.measures[task], (*column.groups.items(),), column.macro

    alike = Counter[tuple[str, str, Hashable]]((table.where, "", measured(column)) for table, column in every)
    alike.update((table.source, column.name, measured(column)) for table, column in every)
    unclear = {key for (*_, key), count in alike.items() if count > 1}
    found = [
        (table, [column for of, column in every if of is table and measured(column) not in unclear])
        for table in published()
    ]
    return [(table, columns) for table, columns in found if columns]
