"""Tables as people make them: titles, one row of headings or two, the labels and values of a form, cells over columns.

Knows what cells say, how many columns each spans, and which are bold. Does not know files, nor how a table is written,
which `source` does.
"""

import re
from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple

from quoth_sources.source import Cell, Text

_MOST_WORDS = 10
"""Of a heading."""
_MOST_ROWS = 200
"""By how many it is judged what the first ones are."""
_MOSTLY = 0.8
"""The share of values from which they are all of one kind."""
_DATE = re.compile(r"(1[5-9]|20)\d\d(-\d\d)*$")
_LABEL = re.compile(
    r"(?i)\b(?:"
    r"account|action|activity|address|age|allergy|amount|answer|applicant|approved|attendees|author|"
    r"birth|blood|budget|building|capital|category|chair|city|class|client|code|colour|comment|"
    r"company|contact|cost|country|course|customer|date|day|deadline|definition|department|"
    r"description|detail|dimensions|director|doctor|due|duration|effect|email|employee|employer|end|"
    r"ending|example|expires|expiry|explanation|family|fax|firm|from|function|gender|grade|group|"
    r"height|id|ingredient|instructor|insurance|invoice|job|language|leader|length|level|location|"
    r"manager|material|meaning|measure|member|mobile|model|name|nationality|note|number|occupation|"
    r"office|opening|order|organi[sz]ation|owner|page|partner|period|person|phase|phone|place|"
    r"position|postcode|prepared|rate|quantity|qty|present|price|priority|product|project|purpose|question|reason|"
    r"reference|remarks|responsible|result|reviewed|role|room|section|service|sex|signature|size|"
    r"skill|sponsor|start|state|sum|count|score|average|status|step|street|subject|supervisor|supplier|symptom|task|tel|"
    r"telephone|term|time|title|to|topic|total|translation|treatment|type|unit|url|value|venue|"
    r"version|warranty|website|weight|width|zip"
    r")s?\b"
)
"""What labels of forms, and headings, are about in English: of other languages more is taken for headings."""
_TIME = re.compile(
    r"(?i)\b(?:(?:mon|tue|wed|thu|fri|sat|sun|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}|(?:1[5-9]|20)\d\d)\b"
)
"""Days, months and years, of which there are columns."""


class Box(NamedTuple):
    """A cell: what it says, and where; how many columns it spans (0: one before it covers it); whether it is bold."""

    said: str
    pieces: Cell
    across: int
    is_bold: bool


def boxed(pieces: Cell, across: int = 1, is_bold: bool = False) -> Box:
    """A cell of these pieces."""
    return Box(" ".join("".join(piece.text for piece in pieces).split()), pieces, across, is_bold)


EMPTY, COVERED = boxed(()), boxed((), 0)
Row = Sequence[Box]


class Grid:
    """The rows of a table, one after another, whose cells may go on over columns and rows: one is repeated in each of
    its rows, and COVERED in all of its columns but the first."""

    def __init__(self) -> None:
        self.row: list[Box] = []
        self._below: dict[int, tuple[int, Box]] = {}  # by column: in how many rows more, and the cell

    def begin(self, is_new: bool = False) -> None:
        """Begins a row; in a new part of a table no cell of the part before goes on."""
        if is_new:
            self._below.clear()
        self.row = []
        self._go_on()

    def add(self, box: Box, across: int = 1, down: int = 1) -> None:
        """Appends a cell, and those behind it that go on from above."""
        for at in range(across):
            self.row.append(COVERED if at else box)
            if down > 1:
                self._below[len(self.row) - 1] = down - 1, self.row[-1]
        self._go_on()

    def end(self) -> list[Box]:
        """The row, with all that goes on from above."""
        while max(self._below, default=-1) >= len(self.row):
            self.add(EMPTY)
        return self.row

    def _go_on(self) -> None:
        while len(self.row) in self._below:
            left, box = self._below.pop(len(self.row))
            if left > 1:
                self._below[len(self.row)] = left - 1, box
            self.row.append(box)


def write(text: Text, rows: Sequence[Row], marked: int = 0, name: str = "") -> None:
    """Appends a table; its file marks the first `marked` rows as headings. If it has headings, each row begins with
    `name`, and with the title above."""
    rows = [row for above, row in zip([(), *rows], rows, strict=False) if _has_own(row, above)]
    width = max(map(len, rows), default=0)
    while len(rows) > 1 and _is_title(rows, width, marked):
        text.gap()
        text.block("caption")
        text.pieces(rows[0][0].pieces)
        if (title := rows[0][0].said) not in name and len(title.split()) <= _MOST_WORDS:
            name = f"{name} | {title}" if name else title
        rows, marked = rows[1:], max(marked - 1, 0)
    headed = heading_rows(rows, marked)
    # What spans all columns is in none of them, and below no heading.
    cells = [[()] * (width if _spans_all(row, width) else 0) + [box.pieces for box in row] for row in rows[headed:]]
    text.table([*([box.pieces for box in spread(row)] for row in rows[:headed]), *cells], headed, name)


def heading_rows(rows: Sequence[Row], marked: int = 0) -> int:
    """How many of the first rows have headings of what is below: two, if cells of the first span some of the second."""
    if marked or len(rows) < 2:
        return marked if marked < len(rows) else 0
    rows = rows[:_MOST_ROWS]
    bold_column = all(row[0].is_bold for row in rows if row and row[0].said)
    for count in (2, 1) if _has_second(rows) else (1,):
        parts = zip_longest(*([box.said for box in spread(row)] for row in rows[:count]), fillvalue="")
        heads = [" ".join(dict.fromkeys(filter(None, each))) for each in parts]
        bold_row = all(box.is_bold for row in rows[:count] for box in row if box.said)
        if is_headed([heads, *([box.said for box in row] for row in rows[count:])], bold_row, bold_column):
            return count
    return 0


def is_headed(rows: Sequence[Sequence[str]], bold_row: bool = False, bold_column: bool = False) -> bool:
    """Whether the first row, which may be bold like no other, has headings of what is below, by what it says."""
    filled = sorted({number for row in rows for number, said in enumerate(row) if said})
    first, *below = rows = [[row[number] if number < len(row) else "" for number in filled] for row in rows]
    heads = [said for said in first if said]
    columns = {number for row in below for number, said in enumerate(row) if said}
    if not heads or not columns or 2 * len({*heads}) < len(heads) or 2 * len(heads) < len(columns):
        return False
    if len(heads) == 1 and first[0]:
        return False  # a title, or a part of a form
    if bold_row != bold_column:
        return bold_row
    if not all(map(_may_head, heads)) or is_form(rows):
        return False
    of_numbers = (
        all(_has_digits(row[number]) for row in below if row[number])
        for number in columns
        if first[number] and not _has_digits(first[number])
    )
    known = any(_LABEL.search(said) or _TIME.search(said) or not said.isascii() for said in heads[1:])
    return not first[0] or known or any(of_numbers)


def is_form(rows: Sequence[Sequence[str]]) -> bool:
    """Whether columns are labels and their values in turn, from the first row on. If in doubt, two are: a form's first
    row would be lost, headings that are not taken for such stay next to what is below."""
    width = len(rows[0])
    pairs = [(row[at], row[at + 1]) for row in rows for at in range(0, width - 1, 2) if row[at] and row[at + 1]]
    if width % 2 or not pairs or not rows[0][0]:
        return False
    labels = [said.endswith(":") or _is_label(said) for said, _ in pairs]
    if width > 2:
        firsts = [said for said in rows[0][1::2] if said]
        long = sum(_has_digits(said) or len(said.split()) > _MOST_WORDS / 2 for said, _ in pairs)
        named = 2 * sum(labels) >= len(pairs) > 2 * long
        return named and 2 * sum(map(_is_label, firsts)) < len(firsts)
    (_, value), *below = pairs
    numbers = sum(_has_digits(said) for _, said in below)
    named = 2 * sum(labels[1:]) >= len(below)
    if _has_digits(value):
        return True
    if numbers >= _MOSTLY * len(below):
        return named and bool(below) and not _is_label(value)
    mixed = len(below) > 2 and numbers > (1 - _MOSTLY) * len(below)
    return mixed or named or not _is_label(value)


def _is_title(rows: Sequence[Row], width: int, marked: int) -> bool:
    """Whether the first row is but a text above the table."""
    if not rows[0] or not rows[0][0].said or any(box.said for box in rows[0][1:]):
        return False
    return _spans_all(rows[0], width) or heading_rows(rows[1:], max(marked - 1, 0)) > 0


def _has_own(row: Row, above: Row) -> bool:
    """Whether a row says more than cells that go on from the row above, or nothing at all."""
    own = [box for number, box in enumerate(row) if box.said and not (number < len(above) and box is above[number])]
    return bool(own) or not any(box.said for box in row)


def _spans_all(row: Row, width: int) -> bool:
    return bool(row) and row[0].across >= width > 1


def spread(row: Row) -> list[Box]:
    """A row with what each cell says in every column that it spans."""
    boxes: list[Box] = []
    for box in row:
        boxes.append(box if box.across or not boxes else boxes[-1])
    return boxes


def _has_second(rows: Sequence[Row]) -> bool:
    """Whether the second row has headings too, below those of the first that span several."""
    first, second, *below = [[box for box in row if box.said] for row in rows]
    if not below or not any(box.across > 1 for box in rows[0]) or not all(_may_head(box.said) for box in second):
        return False
    is_bold = all(box.is_bold for box in second) and not all(box.is_bold for row in below for box in row)
    has_numbers = any(_has_digits(box.said) and not _DATE.match(box.said) for box in second)
    return len(second) >= len(first) and (
        is_bold or (not has_numbers and any(_has_digits(box.said) for box in below[0]))
    )


def _may_head(said: str) -> bool:
    words = said.split()
    is_text = any(map(str.isalpha, said)) or _DATE.match(said) is not None or said in "#№"
    is_sentence = said.endswith(".") and len(words) > _MOST_WORDS / 2
    is_value = said.endswith(":") or "@" in said or "://" in said
    return is_text and len(words) <= _MOST_WORDS and not is_sentence and not is_value


def _is_label(said: str) -> bool:
    return _LABEL.search(said) is not None


def _has_digits(said: str) -> bool:
    return any(map(str.isdigit, said))
