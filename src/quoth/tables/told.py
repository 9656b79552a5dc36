"""How a cell is told to people: its value, where it stands, what is around it.

Knows: cells. Does not know: the forms that tables are written in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from quoth.tables.cells import CONFIRMED, Cell, Row
from quoth.text.passages import sentences

Rows = Callable[[], Iterator[Row]]
"""Gives the rows of a table anew, one at a time."""
Place = tuple[str, int, int]
"""A document's id and characters."""
Pictures = Callable[[Row], Mapping[Place, bytes]]
"""The pictures, as PNG, of the places of a row that have one."""


@dataclass(frozen=True, slots=True)
class Look:
    """What a table's form may show besides its rows: the table's name, pictures of places, digests of documents."""

    name: str = "table"
    pictures: Pictures = lambda row: {}
    digest: Callable[[Row], str] = lambda row: ""


def place_key(place: Mapping[str, Any]) -> Place:
    """What a place is known by."""
    return place["document_id"], place["start"], place["end"]


def shown(value: Any) -> str:
    """A value as people read it."""
    if isinstance(value, dict):
        return f"{value['amount']} {value['currency'] or ''}".strip()
    if isinstance(value, list):
        return "; ".join(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else f"{value}"


def chance_of(cell: Cell) -> str:
    """How sure a cell is, in words."""
    return "confirmed" if cell.status == CONFIRMED else f"{100 * cell.probability:.0f} %"


def place_of(cell: Cell) -> str:
    """Where a cell's quotation stands, in words."""
    if not cell.evidence:
        return "given by hand"
    place = cell.evidence[0]
    location = place.get("location", {})
    named = [f"{name} {location[name]}" for name in ("page", "sheet", "cell", "slide", "line") if name in location]
    return ", ".join([place["document_id"], *(named or [f"characters {place['start']:,}–{place['end']:,}"])])


def link_of(cell: Cell) -> str:
    """The link to a cell's best place, "" if there is none."""
    return str(cell.evidence[0].get("link", "")) if cell.evidence else ""


def sentence_of(cell: Cell) -> str:
    """The sentence of a cell's best place; what a person typed, if it has none."""
    if not cell.evidence:
        return cell.text
    place = cell.evidence[0]
    start, end = (place[each] - place["context_start"] for each in ("start", "end"))
    around = [place["context"][a:b] for a, b in sentences(place["context"]) if a <= start and end <= b]
    return str((around or [place["context"]])[0])


def quoted(cell: Cell, around: int = 160) -> tuple[str, str, str]:
    """A quotation as it stands: what is before it, itself, what is after it."""
    if not cell.evidence:
        return "", cell.text, ""
    place = cell.evidence[0]
    start, end = (place[each] - place["context_start"] for each in ("start", "end"))
    context, first = place["context"], max(start - around, 0)
    before, after = context[first:start], context[end : end + around]
    return ("…" if first else "") + before, context[start:end], after + ("…" if end + around < len(context) else "")
