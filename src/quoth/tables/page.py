"""A table as a page that stands alone: sorted, filtered and corrected in the browser, every quotation in its sentence.

Knows: HTML; what the browser does is in page.js, how it looks in page.css. Does not know: other forms.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

from quoth.storage import create
from quoth.tables.cells import CONFIRMED, UNREADABLE, Cell, Row
from quoth.tables.columns import Column
from quoth.tables.told import Look, Place, Rows, chance_of, link_of, place_key, place_of, quoted, sentence_of, shown

HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:; \
script-src 'unsafe-inline'">
"""
BAR = """<label>Find <input type="search" id="find"></label>
<label>Rows with <select id="state"><option value="">any cells</option><option value="open">cells to confirm</option>
<option value="confirmed">confirmed cells</option><option value="filled">filled cells</option>
<option value="empty">empty cells</option><option value="gone">confirmations that are gone</option></select></label>
<output id="count"></output><output id="told"></output><button id="save" hidden></button></header>
"""


def write_page(part: Path, columns: Sequence[Column], rows: Rows, look: Look) -> None:
    """The page, row by row; an empty cell shows what came nearest."""
    with create(part) as stream:
        for piece in _pieces(columns, rows, look):
            stream.write(piece.encode("utf-8", "replace"))


def _pieces(columns: Sequence[Column], rows: Rows, look: Look) -> Iterator[str]:
    style, script = (Path(__file__).with_suffix(each).read_text(encoding="utf-8") for each in (".css", ".js"))
    name = escape(look.name)
    yield f"{HEAD}<title>{name}</title><style>\n{style}</style></head><body><header><h1>{name}</h1>\n{BAR}<main>"
    yield f'<table data-name="{name}"><thead><tr>'
    for heading, kind in [("Document", "text"), *((each.name, each.kind) for each in columns)]:
        yield f'<th scope="col" data-name="{escape(heading)}" data-kind="{kind}"><button>{_text(heading)}</button>'
        yield '<details class="facet" name="facet"><summary aria-label="filter">▾</summary></details></th>'
    yield "</tr></thead><tbody>\n"
    for row in rows():
        pictures = look.pictures(row)
        yield f'<tr data-id="{escape(row.document_id)}" data-digest="{look.digest(row)}">{_document(row)}'
        yield "".join(_cell(row.cells[each.name], pictures) for each in columns)
        yield "</tr>\n"
    yield f"</tbody></table></main><aside hidden></aside><script>\n{script}</script></body></html>\n"


def _document(row: Row) -> str:
    title = f"<br><small>{_text(row.title)}</small>" if row.title != row.document_id else ""
    error = f'<br><span class="error">{_text(row.error)}</span>' if row.error else ""
    return f'<td data-v="{escape(row.document_id)}">{_text(row.document_id)}{title}{error}</td>'


def _cell(cell: Cell, pictures: Mapping[Place, bytes]) -> str:
    if cell.status == UNREADABLE:
        return f'<td data-v="" data-s="{UNREADABLE}"></td>'
    said = _text(_said(cell)) if cell.text else f'<span class="empty">{_empty(cell)}</span>'
    inside = "".join(_quoted(each, pictures, each is cell) for each in cell.shown())
    if cell.gone is not None:
        was = f"was confirmed as “{_text(cell.gone)}”" if cell.gone else "was confirmed as not stated"
        said += ' <span class="gone">⚠</span>'
        inside = f'<p class="gone">{was} before the document changed: confirm it again</p>{inside}'
    return (
        f'<td data-v="{_sorted_by(cell)}" data-s="{cell.status}"><button>{said}</button>'
        f"<template>{inside}</template></td>"
    )


def _empty(cell: Cell) -> str:
    return "not stated" if cell.status == CONFIRMED else "–"


def _said(cell: Cell) -> str:
    return cell.text if cell.value is None else shown(cell.value)


def _sorted_by(cell: Cell) -> str:
    value = cell.value["amount"] if isinstance(cell.value, dict) else cell.value
    return escape(cell.text if value is None else shown(value))


def _quoted(cell: Cell, pictures: Mapping[Place, bytes], is_own: bool) -> str:
    before, quotation, after = map(_text, quoted(cell))
    place, link, start, picture = f"{chance_of(cell)} · {_text(place_of(cell))}", link_of(cell), "", ""
    if cell.evidence:
        start = f' data-start="{cell.evidence[0]["start"]}" data-sentence="{escape(sentence_of(cell))}"'
        if drawn := pictures.get(place_key(cell.evidence[0])):
            uri = f"data:image/png;base64,{b64encode(drawn).decode()}"
            picture = f'<img loading="lazy" alt="the lines around it" src="{uri}">'
    means = f"<br>= {_text(_said(cell))}" if _said(cell) != cell.text else ""
    where = f'<a href="{escape(link)}">{place}</a>' if link else place
    own = ' data-own="yes"' if is_own else ""
    return (
        f'<blockquote data-v="{_sorted_by(cell)}"{start}{own}>{before}<mark>{quotation}</mark>{after}{means}'
        f"{picture or '<br>'}<small>{where}</small> </blockquote>"
    )


def _text(text: str) -> str:
    """Text of a document: no markup, nothing that turns the rest of the line around."""
    return f"<bdi>{escape(text)}</bdi>" if text else ""
