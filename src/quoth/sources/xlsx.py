"""Workbooks of Excel: values as they were last computed, not formulas; dates in ISO's form."""

import re
from collections.abc import Iterator
from datetime import date, datetime, time
from typing import Any

from quoth.sources.office import facts, opened
from quoth.sources.sheets import Row, Value, written
from quoth.sources.source import Source

_PERCENT = re.compile(r"0(?:\.(0+))?%")


def read(content: bytes) -> Source:
    """The text of a workbook. Raises ValueError if it cannot be opened."""
    from openpyxl import load_workbook

    book = load_workbook(opened(content), read_only=True, data_only=True)
    shown = [sheet for sheet in book.worksheets if sheet.sheet_state == "visible"]
    return written([(sheet.title, _rows(sheet)) for sheet in shown], facts(book.properties))


def _rows(sheet: Any) -> Iterator[Row]:
    sheet.reset_dimensions()  # a file may say anything
    for row in sheet.iter_rows():
        yield [Value(_said(each), isinstance(each.value, str), getattr(each, "coordinate", "")) for each in row]


def _said(cell: Any) -> str:
    """A cell's value as a person reads it: a date in ISO's form, per cent where they are shown, a number without a
    fraction as a whole number."""
    value = cell.value
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat(" ")
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, (int, float)) and (percent := _PERCENT.fullmatch(cell.number_format)):
        return f"{value:.{len(percent[1] or '')}%}"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return " ".join(str(value).split())
