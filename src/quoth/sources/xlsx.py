"""Spreadsheets: a row is a line, each value with the heading of its column, its sheet and its cell.

Knows values as they were last computed, not formulas. Does not know charts, or how a sheet looks.
"""

from collections.abc import Iterator
from datetime import date, datetime, time
from itertools import groupby, islice
from typing import Any

from quoth.sources.office import facts, opened
from quoth.sources.source import Cell, Piece, Source, Text

_MOST_EMPTY = 1000
"""Empty rows in a row after which a sheet is over: some have a million of them."""


def read(content: bytes, name: str) -> Source:
    """The text of a workbook. Raises ValueError if it cannot be opened."""
    from openpyxl import load_workbook

    book = load_workbook(opened(content), read_only=True, data_only=True)
    text = Text("cell")
    for sheet in book.worksheets:
        if sheet.sheet_state == "visible":
            for number, table in enumerate(_tables(sheet)):
                if not number:
                    text.gap()
                    text.add(sheet.title)
                text.table(*table)
    return text.source(facts(book.properties))


def _tables(sheet: Any) -> Iterator[tuple[list[list[Cell]], bool]]:
    """What stands between empty rows: its rows, and whether the first has headings."""
    sheet.reset_dimensions()  # a file may say anything
    rows = ([(cell, _said(cell.value)) for cell in row] for row in sheet.iter_rows())
    for is_filled, group in groupby(rows, lambda row: any(said for _, said in row)):
        if is_filled:
            table = [*group]
            places = [[(said, (sheet.title, getattr(cell, "coordinate", ""))) for cell, said in row] for row in table]
            values = [[cell.value for cell, _ in row] for row in table]
            yield [[[Piece(*each)] for each in row] for row in places], _is_headed(values)
        elif sum(1 for _ in islice(group, _MOST_EMPTY + 1)) > _MOST_EMPTY:
            return


def _is_headed(values: list[list[Any]]) -> bool:
    """Whether the first row has headings: two texts or more, all different, over every column that is filled below."""
    first = [value for value in values[0] if value is not None]
    widest = max(number for row in values for number, value in enumerate(row) if value is not None)
    return 1 < len({*map(str, first)}) == len(first) > widest and all(isinstance(value, str) for value in first)


def _said(value: Any) -> str:
    """A value as a person reads it, in ISO's form if it is a date; one without a fraction as a whole number."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat(" ")
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return " ".join(str(value).split())
