"""Spreadsheets: a row is a line, each value with the heading of its column, its sheet and its cell. Of several sheets
each has its name in every row.

Knows values as they were last computed, not formulas. Does not know charts, or how a sheet looks.
"""

from collections.abc import Iterator
from datetime import date, datetime, time
from itertools import groupby, islice
from typing import Any

from quoth.sources.office import facts, opened
from quoth.sources.source import Cell, Piece, Source, Text

Row = list[tuple[Any, str]]
"""Cells, and what they say."""
_MOST_EMPTY = 1000
"""Empty rows in a row after which a sheet is over: some have a million of them."""


def read(content: bytes) -> Source:
    """The text of a workbook. Raises ValueError if it cannot be opened."""
    from openpyxl import load_workbook

    book = load_workbook(opened(content), read_only=True, data_only=True)
    text, sheets = Text("cell"), [sheet for sheet in book.worksheets if sheet.sheet_state == "visible"]
    for sheet in sheets:
        for number, table in enumerate(_tables(sheet)):
            if not number:
                text.gap()
                text.add(sheet.title)
            text.table(*table, name=f"Sheet: {sheet.title}" if len(sheets) > 1 else "")
    return text.source(facts(book.properties))


def _tables(sheet: Any) -> Iterator[tuple[list[list[Cell]], bool]]:
    """The tables, which empty rows and columns separate: rows, and whether the first has headings."""
    sheet.reset_dimensions()  # a file may say anything
    rows = ([(cell, _said(cell.value)) for cell in row] for row in sheet.iter_rows())
    for is_filled, group in groupby(rows, _is_filled):
        if is_filled:
            for block in _blocks([*group]):
                places = [
                    [(said, (sheet.title, getattr(cell, "coordinate", ""))) for cell, said in row] for row in block
                ]
                yield [[[Piece(*each)] for each in row] for row in places], _is_headed(block)
        elif sum(1 for _ in islice(group, _MOST_EMPTY + 1)) > _MOST_EMPTY:
            return


def _is_filled(row: Row) -> bool:
    return any(said for _, said in row)


def _blocks(rows: list[Row]) -> Iterator[list[Row]]:
    """The tables among cells that empty columns separate. If none has headings, all stay together, as a form's labels
    and values do. A column behind a gap belongs to the table before it if it is in the same rows and has a heading."""
    filled = {number for row in rows for number, (_, said) in enumerate(row) if said}
    starts = sorted(number for number in filled if number - 1 not in filled)
    ends = sorted(number + 1 for number in filled if number + 1 not in filled)
    blocks = [[row[start:end] for row in rows] for start, end in zip(starts, ends, strict=True)]
    parts = [[*group] for block in blocks for is_filled, group in groupby(block, _is_filled) if is_filled]
    headed = [*map(_is_headed, parts)]
    if len(blocks) == 1 or not any(headed):
        yield [row[starts[0] :] for row in rows]
        return
    joined = [[cell for row in across for cell in row] for across in zip(*blocks, strict=True)]
    in_same_rows = len({tuple(map(_is_filled, block)) for block in blocks}) == 1
    if in_same_rows and not all(headed) and _is_headed(joined):
        yield joined
    else:
        for part in parts:
            yield from _blocks(part)


def _is_headed(rows: list[Row]) -> bool:
    """Whether the first row has headings: two texts or more, all different, over every column that is filled below."""
    first = [cell.value for cell, said in rows[0] if said]
    widest = max(number for row in rows for number, (_, said) in enumerate(row) if said)
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
