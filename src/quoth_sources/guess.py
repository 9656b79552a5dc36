"""The blocks of a text that no file marks: plain text, records, pages of a PDF without an outline.

Knows lines, and by their look which are headings, items, rows, contents. Does not know documents or formats.
"""

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

from quoth_sources.blocks import Block

SHORT = 60
"""Characters that a heading has at most, and an item of a list without markers."""
WRAPPED = 40
"""Characters that a row of wrapped prose has at least."""
_RAGGED = 0.85
"""The share of a block's width that a row of its wrapped prose has at least, with the first word of the next row."""
_MARKER = re.compile(r"(?:[-*•–]|\(?\d{1,2}[.)]|\(?[a-z]\))[^\S\n]+(?=\S)")
_COMMAS = re.compile(r"^[^,]*,[^,\s][^,]*,\S")
_ROW = re.compile(rf"\t|(?:^|\s)\||\|$|{_COMMAS.pattern}")
CELL_END = re.compile(r"\t|\s\||(?<=[^\s.!?:]) {2,}")
FIELDS = re.compile(rf"{_ROW.pattern}|{CELL_END.pattern}|:\s")
_FIELD = re.compile(r"(?:[^\s:.!?]|[.!?](?=\S))(?:[^:\n.!?]|[.!?](?=\S)){0,59}:[^\S\n]+(?=\S)")
"""A line of a record: a short name, a colon, a value."""
_STAMP = re.compile(r"\[?(?:\d{1,2}[./]\d{1,2}[./]\d{2,4}|\d{4}-\d\d-\d\d|\d{1,2}[:.]\d\d)\b")
"""What a message or an entry of a log begins with: a date or a time."""
_COLUMNS = re.compile(r"\S {4,}\S")  # justified prose has up to three
_MARKDOWN = re.compile(r"#{1,6}\s")
_STOP = re.compile(r"[.!?…。！？][\"'”’»)\]]*(?:\s|$)|[,;]$")
_NUMBERED = re.compile(r"(\d+(?:\.\d+)*)[.)]?\s")
_LEADER = re.compile(r"(?:\s?[.·…_]){4,}\s*[\divxlc]+\b")
"""The dots and the page's number behind an entry of a table of contents or an index."""
LONGEST, ITEMS, CHARACTERS = 1200, 12, 400
"""A list without markers has at most so many characters and items, or fewer characters."""


def guess(text: str) -> list[Block]:
    """The blocks of a text, in order; lines without letters and digits are in none."""
    lines = lines_of(text)
    heads = [is_heading(text, lines, i) for i in range(len(lines))]
    listed = {at for i, j in _lists(text, lines, heads) for at in range(i, j) if not heads[at]}
    blocks: list[Block] = []
    columns: list[int] = []  # of the items around the line
    for i, line in enumerate(lines):
        kind, level, body = "paragraph", 0, text[line.start : line.end]
        columns = [each for each in columns if each < line.column] if line.above == 1 or line.at > line.start else []
        if _LEADER.search(body):
            kind = "contents"
        elif heads[i]:
            kind, level = "heading", _level(body)
        elif line.at > line.start or i in listed:
            columns.append(line.column)
            kind, level = "item", len(columns)
        elif is_item(text, line):
            kind = "row"
        else:
            level = len(columns)
        blocks.append(Block(line.start, line.end, kind, level))
    for i in range(1, len(blocks) - 1):  # a letter of an index
        is_between = blocks[i - 1].kind == blocks[i + 1].kind == "contents"
        if is_between and blocks[i].end - blocks[i].start <= 3:
            blocks[i] = blocks[i]._replace(kind="contents", level=0)
    return blocks


def _level(body: str) -> int:
    """The level of a heading, by its marks, its number, its capitals or its colon."""
    if _MARKDOWN.match(body):
        return len(body) - len(body.lstrip("#"))
    if numbered := _NUMBERED.match(body):
        return 1 + numbered[1].count(".")
    return 1 if body.isupper() else 3 if body.endswith(":") else 2


def _lists(text: str, lines: list["Line"], heads: list[bool]) -> Iterator[tuple[int, int]]:
    """Short lists, as ranges of lines: what is indented below a line that ends in a colon; short lines one below the
    other that are neither sentences nor fields nor rows."""

    def plain(i: int) -> bool:
        body = text[lines[i].start : lines[i].end]
        ends = heads[i] or lines[i].at > lines[i].start or body.endswith((".", "!", "?", ":"))
        return not (ends or len(body) > SHORT or FIELDS.search(body))

    def up_to(i: int, belongs: Callable[[int], bool]) -> int:
        return next((j for j in range(i + 1, len(lines)) if not belongs(j)), len(lines))

    def is_short(i: int, j: int) -> bool:
        size = lines[j - 1].end - lines[i].start
        return size <= CHARACTERS or (j - i <= ITEMS and size <= LONGEST)

    i = 0
    while i < len(lines):
        top, end = lines[i], i
        if i and text[lines[i - 1].end - 1] == ":" and top.column > lines[i - 1].column:
            end = up_to(i, lambda j: lines[j].column >= top.column)  # noqa: B023
        if end == i or not is_short(i, end):
            end = up_to(i, lambda j: lines[j].above == 1 and plain(j)) if plain(i) else i
        if end - i > 1 and is_short(i, end):
            yield i, end
        i = max(end, i + 1)


class Line(NamedTuple):
    """Characters of a line, or of several that prose is wrapped into: its text begins at `at`, after a list marker, in
    `column` of the page, and it has `above` line ends before it."""

    start: int
    at: int
    end: int
    column: int
    above: int


def lines_of(text: str) -> list[Line]:
    """The lines of a text, those that prose is wrapped into as one. Lines without letters and digits count as empty."""
    blocks: list[list[Line]] = []
    begin = above = 0
    for shown in text.split("\n"):
        start, end = begin + len(shown) - len(shown.lstrip()), begin + len(shown.rstrip())
        if any(map(str.isalnum, shown)):
            marker = _MARKER.match(text, start, end)
            if above != 1 or not blocks:
                blocks.append([])
            blocks[-1].append(Line(start, marker.end() if marker else start, end, start - begin, above))
            above = 0
        above += 1
        begin += len(shown) + 1
    lines: list[Line] = []
    for rows in blocks:
        lines.append(rows[0])
        lengths = [row.column + row.end - row.start for row in rows]
        width = max(lengths)
        lower = any(text[row.start].islower() for row in rows[1:])
        prose = text[rows[-1].end - 1] in ".!?" or (lower and sum(each > _RAGGED * width for each in lengths) > 2)
        for row, following in pairwise(rows):
            if _goes_on(text, lines[-1], row, following, width, prose):
                lines[-1] = lines[-1]._replace(end=following.end)
            else:
                lines.append(following)
    return lines


def _goes_on(text: str, top: Line, row: Line, following: Line, width: int, prose: bool) -> bool:
    """Whether prose that begins at `top` is wrapped between two rows of a block of this width: the first word of the
    second had no room in the first. If that word begins with a lower-case letter, a little room is nothing, and the
    text's first row may have lost its beginning. If not, the block has to be `prose`: it ends a sentence, or a row
    begins with such a letter and three are about as long; and the second row is no other field or entry of a record."""
    length, body = row.column + row.end - row.start, text[row.start : row.end]
    if following.at > following.start or length < WRAPPED or _is_row(body) or _COLUMNS.search(body):
        return False
    needed = length + 1 + len(text[following.start : following.end].split(maxsplit=1)[0])
    if text[following.start].islower():
        return needed > _RAGGED * width or row.above == 0
    if any(kind.match(text, top.start) and kind.match(text, following.start) for kind in (_FIELD, _STAMP)):
        return False
    flush = following.column in (row.column, row.column + row.at - row.start)
    return flush and prose and text[row.end - 1] not in ".!?:;" and needed > width


def is_heading(text: str, lines: list[Line], i: int) -> bool:
    """Whether a line is the heading of what is below it: of Markdown; or a short one without a full stop that ends in a
    colon, has a line indented below it, or begins with a capital after an empty line and is followed by an empty line,
    a longer one or nothing."""
    line, body = lines[i], text[lines[i].start : lines[i].end]
    if line.at > line.start or len(lines) == 1:
        return False
    if _MARKDOWN.match(body):
        return True
    if len(body) > SHORT or _STOP.search(body) or FIELDS.search(body):
        return False
    if body.endswith(":"):
        return True
    below = lines[i + 1] if i + 1 < len(lines) else None
    if below is not None and below.column > line.column:
        return True
    if line.above == 1 or not body[0].isalnum() or body[0].islower():
        return False
    return below is None or below.above > 1 or below.end - below.start > SHORT


def is_item(text: str, line: Line) -> bool:
    """Whether a line is an item of a list, a row of a table or a field of a record: the sentences of it are one."""
    if line.at > line.start or _FIELD.match(text, line.start, line.end):
        return True
    return _is_row(text[line.start : line.end])


def _is_row(body: str) -> bool:
    cells = _ROW.search(body) if "|" in body or "\t" in body else _COMMAS.match(body)
    return cells is not None
