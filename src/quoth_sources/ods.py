"""OpenDocument spreadsheets, as `xlsx` reads its own: values as they are shown, dates in ISO's form."""

from collections.abc import Iterator
from typing import Any

from quoth_sources.office import Archive
from quoth_sources.opendocument import (
    CELLS,
    Characters,
    attribute,
    body_of,
    counted,
    finished,
    is_covered,
    spans,
    styled,
)
from quoth_sources.sheets import MOST_EMPTY, Row, written
from quoth_sources.source import Piece, Source
from quoth_sources.tables import COVERED, EMPTY, Box, Grid, boxed


def read(content: bytes) -> Source:
    """The text of an OpenDocument spreadsheet. Raises ValueError if it cannot be opened, or is another kind."""
    archive = Archive(content)
    body = body_of(archive, "spreadsheet")
    hidden = styled(body, "display", "false")
    shown = [each for each in body.iterchildren("{*}table") if attribute(each, "style-name") not in hidden]
    titles = [attribute(table, "name") for table in shown]
    characters = Characters(archive)
    sheets = [(title, _rows(table, title, characters)) for table, title in zip(shown, titles, strict=True)]
    return finished(written(sheets), archive)


def _rows(table: Any, title: str, characters: Characters) -> Iterator[Row]:
    """What the cells of a sheet say; a value that covers several rows is repeated in each."""
    from openpyxl.utils import get_column_letter

    number, grid = 0, Grid()
    for row in table.iter("{*}table-row"):
        grid.begin()
        column, times = 0, counted(row, "number-rows-repeated")
        for cell in row.iterchildren(*CELLS):
            said, columns = _said(cell, characters), counted(cell, "number-columns-repeated")
            column += columns
            if not said and not is_covered(cell):
                continue
            while len(grid.row) < column - columns:
                grid.add(EMPTY)
            across, down = spans(cell, MOST_EMPTY)
            while len(grid.row) < column - max(columns - MOST_EMPTY, 0):
                place = title, f"{get_column_letter(len(grid.row) + 1)}{number + 1}"
                grid.add(boxed([Piece(said, place)], across) if said else COVERED, across, down)
        boxes = grid.end()
        for at in range(min(times, MOST_EMPTY + 1)):
            yield [_moved(box, number + 1, number + 1 + at) for box in boxes] if at else boxes
        number += times


def _moved(box: Box, here: int, there: int) -> Box:
    """A cell of a row that is repeated further below."""
    pieces = [Piece(said, (title, name.removesuffix(str(here)) + str(there))) for said, (title, name) in box.pieces]
    return box._replace(pieces=pieces)


def _said(cell: Any, characters: Characters) -> str:
    if date := attribute(cell, "date-value"):
        return date.removesuffix("T00:00:00").replace("T", " ")
    return " ".join(" ".join(characters.of(each) for each in cell.iterchildren("{*}p")).split())
