"""How a cell is told to people: its value, where it stands, what is around it.

Knows: cells. Does not know: the forms that tables are written in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from quoth.tables.cells import Cell, Row

Rows = Callable[[], Iterator[Row]]
"""Gives the rows of a table anew, one at a time."""


def shown(value: Any) -> str:
    """A value as people read it."""
    if isinstance(value, dict):
        return f"{value['amount']} {value['currency'] or ''}".strip()
    if isinstance(value, list):
        return "; ".join(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else f"{value}"


def place_of(cell: Cell) -> str:
    """Where a cell's quotation stands, in words."""
    place = cell.evidence[0]
    location = place.get("location", {})
    named = [f"{name} {location[name]}" for name in ("page", "sheet", "cell", "slide", "line") if name in location]
    return ", ".join([place["document_id"], *(named or [f"characters {place['start']:,}–{place['end']:,}"])])


def sentence_of(cell: Cell, around: int = 160) -> tuple[str, str, str]:
    """A quotation as it stands: what is before it, itself, what is after it."""
    place = cell.evidence[0]
    start, end = (place[each] - place["context_start"] for each in ("start", "end"))
    context, first = place["context"], max(start - around, 0)
    before, after = context[first:start], context[end : end + around]
    return ("…" if first else "") + before, context[start:end], after + ("…" if end + around < len(context) else "")
