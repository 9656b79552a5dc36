"""A table as a workbook: values in the cells, quotations in their notes, what was not sure on a second sheet.

Knows: the sheets, and a workbook's bounds. Does not know: other forms.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from quoth.errors import InputError
from quoth.tables.cells import Cell
from quoth.tables.columns import Column
from quoth.tables.told import Rows, chance_of, link_of, place_of, quoted, shown

MOST_ROWS = 1_048_575
MOST_CHARACTERS = 32_000
"""Of a cell, or of its note."""
MOST_LINKS = 65_000
"""Of a sheet."""
LISTED = ("document_id", "column", "quotation", "value", "chance", "sentence", "place", "link")


def write_workbook(part: Path, columns: Sequence[Column], rows: Rows) -> None:
    """Three sheets: the table, what nearly filled its empty cells, and where every quotation stands. Nothing that a
    document says is taken for a formula or a link."""
    from xlsxwriter import Workbook

    plain = {"strings_to_formulas": False, "strings_to_urls": False, "constant_memory": True, "in_memory": False}
    with Workbook(part, plain) as book:
        sheets = [book.add_worksheet(name) for name in ("Table", "Candidates", "Places")]
        head = book.add_format({"bold": True, "text_wrap": True, "valign": "top"})
        wrapped = book.add_format({"text_wrap": True, "valign": "top"})
        formats = {"date": book.add_format({"num_format": "yyyy-mm-dd", "valign": "top"}), "": wrapped}
        headings = (["document_id", "title", *(each.name for each in columns), "error"], LISTED, LISTED)
        for sheet, names in zip(sheets, headings, strict=True):
            sheet.freeze_panes(1, 1)
            sheet.set_column(0, len(names) - 1, 24)
            for place, name in enumerate(names):
                sheet.write_string(0, place, _cut(name), head)
        at, links = [0, 0, 0], 0
        for row in rows():
            at[0] += 1
            if at[0] > MOST_ROWS:
                raise InputError(f"a workbook has at most {MOST_ROWS:,} rows; write .csv, .jsonl or .parquet")
            sheets[0].write_string(at[0], 0, _cut(row.document_id), wrapped)
            sheets[0].write_string(at[0], 1, _cut(row.title), wrapped)
            for place, column in enumerate(columns, 2):
                cell = row.cells[column.name]
                known = cell if cell.text else cell.candidate
                if known is not None and known.evidence:
                    sheet = 2 if cell.text else 1
                    at[sheet] += 1
                    _list(sheets[sheet], at[sheet], row.document_id, column.name, known, wrapped)
                if cell.text:
                    links += bool(link := link_of(cell)) if links < MOST_LINKS else 0
                    _write(sheets[0], at[0], place, cell, link if links < MOST_LINKS else "", formats)
                    sheets[0].write_comment(at[0], place, _note(cell), {"x_scale": 2, "y_scale": 2})
            if row.error:
                sheets[0].write_string(at[0], len(columns) + 2, _cut(row.error), wrapped)


def _write(sheet: Any, row: int, column: int, cell: Cell, link: str, formats: dict[str, Any]) -> None:
    """The value of a cell, or its quotation if it has none."""
    value = cell.value["amount"] if isinstance(cell.value, dict) else cell.value
    if link:
        target = link if "://" in link else f"external:{unquote(link)}"
        sheet.write_url(row, column, target, formats[""], "link")  # the value takes its place, the link stays
    if isinstance(value, bool):
        sheet.write_boolean(row, column, value, formats[""])
    elif isinstance(value, (int, float)):
        sheet.write_number(row, column, value, formats[""])
    elif isinstance(value, str) and (day := _day(value)):
        sheet.write_datetime(row, column, day, formats["date"])
    else:
        sheet.write_string(row, column, _cut(cell.text if value is None else shown(value)), formats[""])


def _day(value: str) -> date | None:
    """The day of a date as ISO 8601 writes it, from 1900 on, where a workbook's days begin."""
    try:
        return day if len(value) == 10 and (day := date.fromisoformat(value)).year > 1900 else None
    except ValueError:
        return None


def _note(cell: Cell) -> str:
    before, quotation, after = quoted(cell)
    around = f"\n\n{before}»{quotation}«{after}"
    return _cut(f"{quotation}\n{chance_of(cell)}, {place_of(cell)}{around}")


def _list(sheet: Any, row: int, document_id: str, name: str, cell: Cell, wrapped: Any) -> None:
    sentence, link = "".join(quoted(cell)), link_of(cell)
    said = (document_id, name, cell.text, shown(cell.value), "", sentence, place_of(cell), link)
    for at, text in enumerate(said):
        if LISTED[at] == "chance":
            sheet.write_number(row, at, round(cell.probability, 3), wrapped)
        else:
            sheet.write_string(row, at, _cut(text), wrapped)


def _cut(text: str) -> str:
    """A text as a cell takes it."""
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"
