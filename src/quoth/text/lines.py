"""Lines of a text: which of them prose is wrapped into, which are headings, items of lists, fields or rows.

Knows: characters. Does not know: passages, answers.
"""

import re
from typing import NamedTuple

SHORT = 60
"""Characters that a heading has at most, and an item of a list without markers."""
WRAPPED = 40
"""Characters that a row of wrapped prose has at least."""
_MARKER = re.compile(r"(?:[-*•–]|\(?\d{1,2}[.)])[^\S\n]+(?=\S)")
_COMMAS = re.compile(r"^[^,]*,[^,\s][^,]*,\S")
_ROW = re.compile(rf"\t|(?:^|\s)\||\|$|{_COMMAS.pattern}")
CELL_END = re.compile(r"\t|\s\||(?<=[^\s.!?:]) {2,}")
FIELDS = re.compile(rf"{_ROW.pattern}|{CELL_END.pattern}|:\s")
_FIELD = re.compile(r"(?:[^\s:.!?]|[.!?](?=\S))(?:[^:\n.!?]|[.!?](?=\S)){0,59}:[^\S\n]+(?=\S)")
"""A line of a record: a short name, a colon, a value."""
_GROUP = re.compile(r"([^\n]{1,60}?)(?: - |: )")
_MARKDOWN = re.compile(r"#{1,6}\s")
_STOP = re.compile(r"[.!?…。！？][\"'”’»)\]]*(?:\s|$)|[,;]$")


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
    rows: list[Line] = []
    widths: list[int] = []  # of each block of rows
    begin = above = 0
    for shown in text.split("\n"):
        start, end = begin + len(shown) - len(shown.lstrip()), begin + len(shown.rstrip())
        if any(map(str.isalnum, shown)):
            marker = _MARKER.match(text, start, end)
            if above != 1 or not rows:
                widths.append(0)
            widths[-1] = max(widths[-1], end - begin)
            rows.append(Line(start, marker.end() if marker else start, end, start - begin, above))
            above = 0
        above += 1
        begin += len(shown) + 1
    lines: list[Line] = []
    block = -1
    for i, line in enumerate(rows):
        block += line.above != 1 or not i
        if i and _goes_on(text, lines[-1], rows[i - 1], line, widths[block]):
            lines[-1] = lines[-1]._replace(end=line.end)
        else:
            lines.append(line)
    return lines


def _goes_on(text: str, top: Line, row: Line, following: Line, width: int) -> bool:
    """Whether prose that begins at `top` is wrapped between two rows of a block of this width: the second begins with a
    lower-case letter, or its first word had no room in the first and it is no other field of a record."""
    length = row.column + row.end - row.start
    if following.above != 1 or following.at > following.start or length < WRAPPED:
        return False
    if _is_row(text[row.start : row.end]):
        return False
    if text[following.start].islower():
        return True
    if _FIELD.match(text, top.start, top.end) and _FIELD.match(text, following.start, following.end):
        return False
    flush = following.column in (row.column, row.column + row.at - row.start)
    word = text[following.start : following.end].split(maxsplit=1)[0]
    return flush and text[row.end - 1] not in ".!?:;" and length + 1 + len(word) > width


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


def is_same_field(text: str, above: Line, line: Line) -> bool:
    """Whether two lines are parts of one field, as "Airports: 157" and "Airports - with paved runways: 64"."""
    name = _GROUP.match(text, above.start, above.end)
    return name is not None and text.startswith(f"{name[1]} - ", line.start)
