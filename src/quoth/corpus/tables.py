"""Tables of text, CSV and TSV: a row is a record.

Knows cells, headers, and what a row without a text says. Does not know files or compression.
"""

import csv
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING

from quoth.corpus.checks import ID_FIELDS, TITLE_FIELDS
from quoth.errors import FileWarning, InputError, few
from quoth.records import Document
from quoth.source_map import encode
from quoth.sources.files import bare, tell, text_stream

if TYPE_CHECKING:
    from quoth.corpus.documents import Records


_DELIMITERS = ",;\t|"
_SAMPLE = 20
"""Lines that tell how cells are separated."""


def read(stream: IO[bytes], name: str, delimiter: str | None = None) -> "Records":
    """Rows under a header; bytes that its encoding lacks become lone surrogates, which `check_document` refuses."""
    csv.field_size_limit(sys.maxsize)
    header, names = list[str](), list[str]()
    with text_stream(stream) as (characters, encoding):
        tell(name, encoding)
        lines = _lines(characters, name)
        first = [*islice(lines, _SAMPLE)]
        table = csv.reader(chain(first, lines), delimiter=delimiter or _delimiter(first))
        while True:
            characters.taken = 0
            try:
                cells = next(table, None)
            except csv.Error as error:
                yield table.line_num, ValueError(f"not a table row ({error})")
                continue
            if cells is None:
                return
            if not cells:
                continue
            if not header:
                header, names = cells, distinct(cells)
                if told := _told(names):
                    warnings.warn(FileWarning(f"{name} {told}"), stacklevel=2)
            elif len(cells) == len(header):
                row = {own: cell for own, name, cell in zip(names, header, cells, strict=True) if cell or name}
                yield table.line_num, _whole(row, bare(Path(name)).stem)
            else:
                yield table.line_num, ValueError(f"{len(cells)} cells under a header of {len(header)}")


def distinct(header: Iterable[str]) -> list[str]:
    """The names of columns, with a number behind those that an earlier one has, so that no cell takes another's place.

    >>> distinct(["name", "phone", "phone"])
    ['name', 'phone', 'phone (2)']
    """
    names, repeated = dict[str, None](), Counter[str]()
    for name in header:
        own = name
        while own in names:
            repeated[name] += 1
            own = f"{name} ({repeated[name] + 1})".strip()
        names[own] = None
    return list(names)


def _lines(characters: Iterable[str], name: str) -> Iterator[str]:
    number = 1
    try:
        for line in characters:
            yield line
            number += 1
    except UnicodeDecodeError as error:
        raise InputError(f"{name}:{number}: not {error.encoding.upper()}; convert it") from None


def _delimiter(first: Sequence[str]) -> str:
    """What separates the cells of a table that begins with these lines: that by which the most rows have as many cells
    as the header, if that has several; a comma if others do no better."""

    def fitting(delimiter: str) -> int:
        try:
            header, *rows = [row for row in csv.reader(first, delimiter=delimiter) if row]
        except (csv.Error, ValueError):
            return 0
        return sum(len(row) == len(header) > 1 for row in rows)

    return max(_DELIMITERS, key=fitting)


def _told(header: Sequence[str]) -> str:
    """The warning about a table with this header; "" if it needs none."""
    if "text" not in header:
        return "has no column 'text'; a row's text is every cell under its name, 'name: value | …'"
    others = [column for column in header if column not in ("text", *ID_FIELDS, *TITLE_FIELDS)]
    return f"is searched and read in its column 'text' alone; {few(others)} only filter (--where)" if others else ""


def _whole(row: dict[str, str], table: str) -> dict[str, str]:
    """A row with a title (by default the table's name) and a text (by default each cell behind its column's name, so
    that a value is found and read along with what it is the value of)."""
    title = {} if any(name in row for name in TITLE_FIELDS) else {"title": table}
    if "text" in row:
        return title | row
    cells = {name: " ".join(cell.split()) for name, cell in row.items() if name not in (*ID_FIELDS, *TITLE_FIELDS)}
    return {**row, **title, "text": " | ".join(f"{name}: {cell}" for name, cell in cells.items() if cell)}


def placed(document: Document, row: Mapping[str, str], last: int) -> Document:
    """The document of a row that ends in this line, with the line in which it begins as the place of its text."""
    first = last - sum(cell.count("\n") for cell in row.values())
    runs = [(0, len(document.text), first)] if document.text else []
    return replace(document, source_map=encode("line", runs))
