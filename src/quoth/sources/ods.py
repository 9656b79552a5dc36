"""OpenDocument spreadsheets, as `xlsx` reads its own: values as they are shown, dates in ISO's form."""

from collections.abc import Iterator
from typing import Any

from quoth.sources.office import Archive, kind_of
from quoth.sources.opendocument import CELLS, Characters, attribute, body_of, counted, finished, styled
from quoth.sources.sheets import MOST_EMPTY, Row, written
from quoth.sources.source import Piece, Source
from quoth.sources.tables import COVERED, EMPTY, Box, boxed


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

    number, goes_on = 0, dict[int, tuple[int, Box]]()
    for row in table.iter("{*}table-row"):
        boxes: Row = []
        empty, times = 0, counted(row, "number-rows-repeated")
        for cell in row.iterchildren(*CELLS):
            said, columns = _said(cell, characters), counted(cell, "number-columns-repeated")
            if kind_of(cell) != "covered-table-cell" and not said:
                empty += columns
                continue
            boxes += [EMPTY] * empty
            empty = 0
            down, across = (counted(cell, f"number-{of}-spanned") for of in ("rows", "columns"))
            for _ in range(min(columns, MOST_EMPTY)):
                c = len(boxes)
                box = boxed([Piece(said, (title, f"{get_column_letter(c + 1)}{number + 1}"))], min(across, MOST_EMPTY))
                if not said:
                    down, box = goes_on.pop(c, (1, COVERED))
                goes_on |= {c + at: (down - 1, COVERED if at else box) for at in range(max(box.across, 1)) if down > 1}
                boxes.append(box)
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
