"""OpenDocument spreadsheets, as `xlsx` reads its own: values as they are shown, dates in ISO's form."""

from collections.abc import Iterator
from typing import Any

from quoth.sources.opendocument import CELLS, attribute, body_of, characters, repeated
from quoth.sources.sheets import MOST_EMPTY, Row, Value, written
from quoth.sources.source import Source


def read(content: bytes) -> Source:
    """The text of an OpenDocument spreadsheet. Raises ValueError if it cannot be opened, or is another kind."""
    body, facts = body_of(content, "spreadsheet")
    styles = body.getroottree().iterfind("{*}automatic-styles/{*}style")
    hidden = {
        attribute(style, "name")
        for style in styles
        if any(attribute(each, "display") == "false" for each in style.iterchildren("{*}table-properties"))
    }
    shown = [each for each in body.iterchildren("{*}table") if attribute(each, "style-name") not in hidden]
    return written([(attribute(table, "name"), _rows(table)) for table in shown], facts)


def _rows(table: Any) -> Iterator[Row]:
    from openpyxl.utils import get_column_letter

    number = 0
    for row in table.iter("{*}table-row"):
        cells: list[tuple[str, bool]] = []
        empty, times = 0, repeated(row, "rows")
        for cell in row.iterchildren(*CELLS):
            said, columns = _said(cell), repeated(cell, "columns")
            if said:
                value = (said, attribute(cell, "value-type") == "string")
                cells += [*[("", False)] * empty, *[value] * min(columns, MOST_EMPTY)]
            empty = 0 if said else empty + columns
        for at in range(number + 1, number + 1 + min(times, MOST_EMPTY + 1)):
            yield [Value(*cell, f"{get_column_letter(column)}{at}") for column, cell in enumerate(cells, 1)]
        number += times


def _said(cell: Any) -> str:
    if date := attribute(cell, "date-value"):
        return date.removesuffix("T00:00:00").replace("T", " ")
    return " ".join(" ".join(characters(each) for each in cell.iterchildren("{*}p")).split())
