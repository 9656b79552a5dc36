"""What changed between two states of a table: the cells that say something else, with both quotations.

Knows: when a cell counts as changed. Does not know: how cells are found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from quoth.datasets.judging import normalise_answer
from quoth.tables.cells import UNREADABLE, Cell, Row
from quoth.tables.columns import Column
from quoth.text.folding import fold
from quoth.text.passages import sentences


@dataclass(frozen=True, slots=True)
class Change:
    """A cell that changed: its document and column, what it was and what it is."""

    document_id: str
    column: str
    old: Cell
    new: Cell

    def to_dict(self) -> dict[str, Any]:
        """The change as JSON has it."""
        cells = {"old": self.old.to_dict(), "new": self.new.to_dict()}
        return {"document_id": self.document_id, "column": self.column, "outcome": "changed", **cells}


Texts = tuple[Callable[[], str], Callable[[], str]]
"""What the documents of a row said before, and what they say now."""


def changes_of(columns: list[Column], old: Row, new: Row, texts: Texts) -> Iterator[Change]:
    """The cells of a row that changed: what they say differs, and the sentence of one of both quotations is not in the
    other documents; what both say, and only one cell shows, is no change."""
    folded = [cache(lambda text=text: fold(text())) for text in texts]  # read only if cells differ
    for column in columns:
        before, after = (row.cells.get(column.name, Cell()) for row in (old, new))
        if UNREADABLE in (before.status, after.status) or _same(before, after, column):
            continue
        moved = (
            cell.text and _sentence(cell) not in other() for cell, other in ((before, folded[1]), (after, folded[0]))
        )
        if any(moved):
            yield Change(new.document_id, column.name, before, after)


def _same(one: Cell, other: Cell, column: Column) -> bool:
    if not (one.text and other.text):
        return one.text == other.text
    if column.kind not in ("text", "list") and None not in (one.value, other.value):
        return bool(one.value == other.value)
    return normalise_answer(one.text) == normalise_answer(other.text)


def _sentence(cell: Cell) -> str:
    """The sentence of a cell's best place, folded."""
    place = cell.evidence[0]
    start, end = (place[each] - place["context_start"] for each in ("start", "end"))
    around = [place["context"][a:b] for a, b in sentences(place["context"]) if a <= start and end <= b]
    return fold((around or [place["context"]])[0]).strip()
