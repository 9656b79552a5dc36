"""Tables on pages: which words make a cell, a row and a heading.

Knows strips and the cuts between their columns. Does not know where a table begins or ends.
"""

import re
from bisect import bisect
from collections.abc import Sequence
from itertools import chain, pairwise

from quoth_sources.strips import (
    ACROSS,
    Line,
    Strip,
    bottom_of,
    columns_of,
    height_of,
    said,
    top_of,
    usual_cuts,
    words_of,
)

Row = list[Line]
"""A cell for each column."""
_BULLET = re.compile(r"[•‣▪●○◦☐☒*–\ue000-\uf8ff-]|\(?(\d{1,3}|[a-zA-Z]|[ivxIVX]{2,5})[.)]")
_SECTION = re.compile(r"(([A-Z]\.)?\d+)?(\.\d+)+\.?")
_NUMBER = re.compile(r"[\W\d_]*\d[\W\d_]*")
_YEAR = re.compile(r"(19|20)\d\d([-–/]\d\d(\d\d)?)?")
_HEADING, _LOWER, _HEAD_LINES = 8, 4, 4
"""The most words of a column's heading, of one that begins with a small letter, and the most lines of headings."""
_LABELS = 1 / 3
"""The share of rows that begin with a label and a colon from which a table is a form."""
_NUMERIC = 0.6
"""The share of rows with numbers from which what is above the first of them are headings."""


def rows_of(strips: Sequence[Strip], cuts: Sequence[float]) -> list[Row]:
    """The rows of a table, what is above the first number in a table of numbers as one. A line whose first cell is
    empty goes on with the row above, unless most of its cells are numbers."""
    cuts = usual_cuts(strips, cuts)
    split = [_split(strip, cuts) for strip in strips]
    columns = columns_of(split, cuts)
    if [2 * sum(map(bool, column)) > len(strips) for column in columns if not column[0]] == [True]:
        columns = columns_of([_split(strips[0], cuts, headings=True), *split[1:]], cuts)
    rows: list[Row] = []
    for number, strip in enumerate(strips):
        cells = [words_of(column[number]) for column in columns]
        close = number > 0 and top_of(strip) - bottom_of(strips[number - 1]) < 0.3 * height_of(strip)
        continues = close and not cells[0] and 2 * sum(map(_is_number, cells)) <= len(cells)
        if continues and rows and (len(rows) > 1 or not _may_head(rows[0])):
            rows[-1] = _joined([rows[-1], cells])
        else:
            rows.append(cells)
    return _without_strays(_with_one_head(rows))


def _split(strip: Strip, cuts: Sequence[float], headings: bool = False) -> Strip:
    """The pieces of a strip, cut between numbers, or words if they are headings, whose middles are in two columns."""
    parts: Strip = []
    for piece in strip:
        parts.append([piece[0]])
        for word, following in pairwise(piece):
            column, other = (bisect(cuts, (each.left + each.right) / 2) for each in (word, following))
            if column != other and (headings or (_is_number([word]) and _is_number([following]))):
                parts.append([])
            parts[-1].append(following)
    return parts


def _is_number(cell: Line) -> bool:
    text = said(cell)
    return _NUMBER.fullmatch(text) is not None and not _YEAR.fullmatch(text)


def _joined(rows: Sequence[Row]) -> Row:
    return [[*chain.from_iterable(cells)] for cells in zip(*rows, strict=True)]


def _with_one_head(rows: list[Row]) -> list[Row]:
    numeric = [any(map(_is_number, row[1:])) for row in rows]
    first = numeric.index(True) if True in numeric else 0
    if not 1 < first <= _HEAD_LINES or sum(numeric) < max(2, _NUMERIC * (len(rows) - first)):
        return rows
    return [_joined(rows[:first]), *rows[first:]]


def _without_strays(rows: list[Row]) -> list[Row]:
    """The rows without columns of a heading or of few values alone, which belong to the column next to them: no row has
    something in both."""
    at = 1
    while at < len(rows[0]):
        few = min(sum(map(bool, (row[column] for row in rows))) for column in (at - 1, at))
        if few <= max(1, ACROSS * len(rows)) and not any(row[at - 1] and row[at] for row in rows):
            rows = [[*row[: at - 1], row[at - 1] + row[at], *row[at + 1 :]] for row in rows]
        else:
            at += 1
    return rows


def is_headed(rows: Sequence[Row]) -> bool:
    """Whether a table's first row has headings: above two rows or more, or one of numbers, which do not begin with
    labels, as a form's."""
    labels = sum(row[0][-1].text.endswith(":") for row in rows if row[0])
    enough = len(rows) > 2 or (len(rows) == 2 and _is_of_numbers(*rows))
    return enough and _may_head(rows[0]) and labels < _LABELS * len(rows)


def _is_of_numbers(first: Row, second: Row) -> bool:
    """Whether words are above numbers, in most of three columns or more."""
    digits = [[any(map(str.isdigit, said(cell))) for cell in row] for row in (first, second)]
    return len(first) > 2 and all(first) and not any(digits[0]) and 2 * sum(digits[1]) > len(second)


def _may_head(row: Row) -> bool:
    """Whether a row has a heading in every column, but perhaps the first: a few words or a year, most different."""
    heads = [*map(said, row)]
    numbers = any(map(str.isdigit, "".join(heads))) and len(heads) < 3
    short = all(len(cell) <= (_LOWER if cell[0].text[0].islower() else _HEADING) for cell in row if cell)
    named = all(any(map(str.isalpha, head)) or _YEAR.match(head) for head in heads[1:])
    marked = any(is_mark(cell[0].text) for cell in row if cell)
    return named and short and not numbers and not marked and 2 * len({*heads[1:]}) >= len(heads)


def is_mark(text: str) -> bool:
    """Whether a word is a bullet, or the number of a section or of an item in a list."""
    return (_BULLET.fullmatch(text) or _SECTION.fullmatch(text)) is not None


def is_bullet(text: str) -> bool:
    """The same without sections, whose numbers may be amounts too."""
    return _BULLET.fullmatch(text) is not None


def are_marks(strips: Sequence[Strip], column: Sequence[Strip]) -> bool:
    """Whether a first column has nothing but the bullets and numbers of the texts next to it."""
    marks = [(piece, strip) for strip, pieces in zip(strips, column, strict=True) for piece in pieces]
    alone = all(len(piece) == 1 and is_mark(piece[0].text) for piece, _ in marks)
    return alone and all(len(strip) > 1 and any(map(str.isalpha, said(strip[1]))) for _, strip in marks)
