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
from typing import IO, TYPE_CHECKING, Any

from quoth.corpus import headings
from quoth.corpus.checks import ID_FIELDS, TITLE_FIELDS
from quoth.corpus.headings import Headings
from quoth.errors import FileWarning, InputError, brief, few
from quoth.records import Document
from quoth_sources.files import Lines, bare, tell, text_stream
from quoth_sources.source_map import encode

if TYPE_CHECKING:
    from quoth.corpus.documents import Records


Cells = list[str] | ValueError
_DELIMITERS = ",;\t|"
_SAMPLE = 50
"""Lines that tell how cells are separated, and rows that tell which of them has the headings."""


def read(stream: IO[bytes], name: str, delimiter: str | None = None, header: bool | None = None) -> "Records":
    """Rows under a header, if there is one (`headings`; `header` says so if it is known). Rows with more or fewer cells
    are read as far as they go. Bytes that its encoding lacks become lone surrogates, which `check_document` refuses."""
    csv.field_size_limit(sys.maxsize)
    with text_stream(stream) as (characters, encoding):
        tell(name, encoding)
        lines = _lines(characters)
        first = [*islice(lines, _SAMPLE)]
        rows = _rows(csv.reader(chain(first, lines), delimiter=delimiter or _delimiter(first)), characters)
        head = [*islice(rows, _SAMPLE)]
        if not (there := [(line, cells) for line, cells in head if not isinstance(cells, ValueError)]):
            yield from chain(head, rows)
            return
        found = headings.find([cells for _, cells in there], header)
        begin, cells = there[found.row]
        own = cells if found.are_there else [f"column {n}" for n in range(1, found.width + 1)]
        _tell(name, found, distinct(own), [cells for _, cells in there[: found.row]])
        yield from _records(chain(head, rows), name, begin + found.are_there, found, own)


def _rows(table: Any, characters: Lines) -> Iterator[tuple[int, Cells]]:
    """The rows that are not empty, with the lines in which they end; why there is none in place of one."""
    while True:
        characters.taken = 0
        try:
            if (cells := next(table, None)) is None:
                return
        except csv.Error as error:
            yield table.line_num, ValueError(f"not a table row ({error})")
        else:
            if cells:
                yield table.line_num, cells


def _records(
    rows: Iterable[tuple[int, Cells]], name: str, begin: int, found: Headings, header: Sequence[str]
) -> "Records":
    names, title, odd, num_odd = distinct(header), bare(Path(name)).stem, list[str](), 0
    for line, cells in rows:
        if isinstance(cells, ValueError):
            yield line, cells
        elif line >= begin and "text" in header and header.index("text") >= len(cells):
            yield line, ValueError(f"{len(cells)} cells under a header of {len(header)}, so that it has no text")
        elif line >= begin:
            if len(cells) < len(header) or any(map(str.strip, cells[len(header) :])):
                odd, num_odd = [*odd, str(line)][:4], num_odd + 1
            if len(cells) > len(names):
                names = distinct([*names, *(f"column {n + 1}" for n in range(len(names), len(cells)))])
            row = {
                own: cell
                for number, (own, cell) in enumerate(zip(names, cells, strict=False))
                if cell or (number < len(header) and header[number].strip())
            }
            yield line, _whole(row, title, found.are_there)
    if num_odd:
        plural = "s" * (num_odd > 1)
        which = f"{num_odd:,} row{plural} (line{plural} {few(odd)})"
        message = f"{name}: {which} with more or fewer cells than {len(header)}, read as far as they go"
        warnings.warn(FileWarning(message), stacklevel=2)


def _tell(name: str, found: Headings, header: Sequence[str], above: Sequence[Sequence[str]]) -> None:
    """Warns of what is above the table, of columns that are not read, and of what was taken for the headings."""
    told = [_told(header)] if found.are_there else []
    if above:
        first = " ".join(" ".join(above[0]).split())
        told.append(f"has {len(above)} line{'s' * (len(above) > 1)} above the table, not read ({brief(first)})")
    if not found.are_there and not found.is_given:
        told.append("has no headings, as its first row is like the others; if it has, say so (--header, header=True)")
    elif not found.is_sure:
        told.append("has its headings in the first row, it seems; if not, say so (--no-header, header=False)")
    if told := [*filter(None, told)]:
        warnings.warn(FileWarning(f"{name} {'; it '.join(told)}"), stacklevel=2)


def distinct(header: Iterable[str]) -> list[str]:
    """The names of columns, with a number behind those that an earlier one has, so that no cell takes another's place.

    >>> distinct(["name", "phone", "phone", ""])
    ['name', 'phone', 'phone (2)', 'column 4']
    """
    names, repeated = dict[str, None](), Counter[str]()
    for number, said in enumerate(header, 1):
        own = name = said if said.strip() else f"column {number}"
        while own in names:
            repeated[name] += 1
            own = f"{name} ({repeated[name] + 1})"
        names[own] = None
    return list(names)


def _lines(characters: Iterable[str]) -> Iterator[str]:
    """Raises InputError where the characters end early."""
    number = 1
    try:
        for line in characters:
            yield line
            number += 1
    except UnicodeDecodeError as error:
        raise InputError(f"not {error.encoding.upper()}, so that line {number} and the rest is not read") from None


def _delimiter(first: Sequence[str]) -> str:
    """The delimiter of a table's first lines: the one under which most rows have the same number of cells, more than
    one; a comma on a tie."""

    is_spaced = not all(map(str.strip, first))

    def fitting(delimiter: str) -> int:
        try:
            rows = [row for row in csv.reader(first, delimiter=delimiter) if row]
        except csv.Error:
            return 0
        counted = Counter(len(row) for row in rows if len(row) > 1)
        if not counted:
            return 0
        if "text" in rows[0]:
            return counted[len(rows[0])]
        width = max(counted, key=lambda each: (counted[each], each))
        # A line above the table has fewer cells; but so has the heading of one column in which this mark occurs.
        is_below = 2 * counted[width] > len(rows) and (delimiter in ",\t" or is_spaced)
        return counted[width] if len(rows[0]) == width or is_below else 0

    return max(_DELIMITERS, key=fitting)


def _told(header: Sequence[str]) -> str:
    """The warning about a table with this header; "" if it needs none."""
    if "text" not in header:
        return "has no column 'text'; a row's text is every cell under its name, 'name: value | …'"
    others = [column for column in header if column not in ("text", *ID_FIELDS, *TITLE_FIELDS)]
    return f"is searched and read in its column 'text' alone; {few(others)} only filter (--where)" if others else ""


def _whole(row: dict[str, str], table: str, is_named: bool = True) -> dict[str, str]:
    """A row with a title (by default the table's name) and a text (by default each cell behind its column's name, if it
    has one, so that a value is found and read along with what it is the value of)."""
    title = {} if any(name in row for name in TITLE_FIELDS) else {"title": table}
    if "text" in row:
        return title | row
    cells = {name: " ".join(cell.split()) for name, cell in row.items() if name not in (*ID_FIELDS, *TITLE_FIELDS)}
    return {
        **row,
        **title,
        "text": " | ".join(f"{name}: {cell}" if is_named else cell for name, cell in cells.items() if cell),
    }


def placed(document: Document, row: Mapping[str, str], last: int) -> Document:
    """The document of a row that ends in this line, with the line in which it begins as the place of its text."""
    first = last - sum(cell.count("\n") for cell in row.values())
    runs = [(0, len(document.text), first)] if document.text else []
    return replace(document, source_map=encode("line", runs))
