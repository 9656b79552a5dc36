"""What the papers report: figures of NPM, REALM and Zero-NeR, each with its table and what it was measured on.

Knows: the file of figures, and when a set is the same as ours. Does not know: how ours were measured.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Figure:
    """A published mean, in percent: paper and table, task and measure by our names, number of examples (None: not
    stated here), what was searched. `macro` is the dimension of groups that have the same weight, whatever their sizes;
    "": every example has the same weight."""

    source: str
    table: str
    measure: str
    corpus: str
    note: str
    macro: str
    task: str
    system: str
    value: float
    num_examples: int | None


@cache
def published() -> tuple[Figure, ...]:
    """All figures, in the file's order."""
    text = files("quoth_eval").joinpath("published.json").read_text(encoding="utf-8")
    return tuple(
        Figure(
            told["source"], told["table"], told["measure"], told["corpus"], told["note"], told.get("macro", ""), *row
        )
        for told in json.loads(text)
        for row in told["rows"]
    )


def published_for(task: str) -> list[Figure]:
    """The figures of a task, by its name here."""
    return [figure for figure in published() if figure.task == task]
