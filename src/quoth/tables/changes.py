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
from quoth.tables.told import sentence_of
from quoth.text.folding import fold


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
        if UNREADABLE in (before.status, after.status) or same(before, after, column):
            continue
        moved = (
            cell.text and fold(sentence_of(cell)).strip() not in other()
            for cell, other in ((before, folded[1]), (after, folded[0]))
        )
        if any(moved):
            yield Change(new.document_id, column.name, before, after)


def same(one: Cell, other: Cell, column: Column) -> bool:
    """Whether two cells of a column say the same."""
    if not (one.text and other.text):
        return one.text == other.text
    if column.kind not in ("text", "list") and None not in (one.value, other.value):
        return bool(one.value == other.value)
    return normalise_answer(one.text) == normalise_answer(other.text)
