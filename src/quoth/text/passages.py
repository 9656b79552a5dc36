"""Passages, lines and sentences: where a text is cut, and phrases that cross a cut.

Knows characters, words, lines and sentence ends; does not know documents, storage or models (apart from counting a
tokenizer's tokens). A passage begins and ends with a non-space character, and every non-space character is in one.

    blocks:N            up to N words, cut at the best place that fits: an empty line, the end of a line of a list, a
                        record or a table, the end of a sentence; and at both ends of a row that names its cells (the
                        default, N = 120)
    words:N             up to N words, cut at the last sentence end that fits
    fixed:N             exactly N words, wherever sentences end (N = 100: DPR's `psgs_w100`)
    tokens:N:TOKENIZER  up to N tokens of a tokenizer (a folder or a hub name), cut at sentence ends

A word is a run of non-space characters (a longer run counts as one word per 64 characters, so that every passage is
bounded), a single character of Chinese or Japanese, or four letters of Thai, Lao, Burmese or Khmer. Where words are
long or full of marks, `blocks` and `words` take fewer: a model reads each mark as a word.
"""

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from quoth.errors import InputError, ModelNotFoundError

Ranges = list[tuple[int, int]]
Splitter = Callable[[str], Ranges]

DEFAULT_SPLITTER = "blocks:120"
MEASURED = "words:120"
"""The splitter by which the models were trained, and with which they were measured (docs/results.md)."""
WHOLE = "words:1000000"
"""The splitter of a corpus whose documents are already passages."""

_MOST_DIGITS = 18
_IDEOGRAPHIC = "\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_MARKS = (
    "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece"
    "\u102b-\u103e\u1056-\u1059\u105e-\u1060\u1062-\u1064\u1067-\u106d\u1071-\u1074\u1082-\u108d"
    "\u17b4-\u17d3\u17dd"
)
# Marks are not words of their own: a cut before one would leave half a letter at a passage's end.
_WORD = re.compile(rf"[^\s{_IDEOGRAPHIC}{_UNSPACED}]{{1,64}}|[{_IDEOGRAPHIC}]|(?:[{_UNSPACED}][{_MARKS}]*){{1,4}}")
_LONG, _DENSE = 12, 7
"""Characters, and marks with a third of the characters, that a passage may have per word of its limit: of 60,000
passages of encyclopedias, reviews, manuals and laws the fullest has 11.96 and 6.3; a row of commas 64 and 85."""
_LETTERS = bytes(
    byte
    for byte in range(256)
    if chr(byte).isspace() or (chr(byte).isalnum() if byte < 0x80 else byte not in (0xC2, 0xCC, 0xCD, 0xE2, 0xEF, 0xF0))
)
"""Bytes of UTF-8 in which no mark begins."""
_NEAR = 32
"""A cut inside a word may move back this many characters, to the beginning of the word."""
_CLOSED = r"[\"'”’»)\]]*(?=\s+[^\sa-z])"  # not before a lower-case letter
# Every alternative begins with a letter of its own: Python's `re` then skips to the next such letter, 8 times as fast.
_SENTENCE_END = re.compile(
    "|".join(
        [
            rf"\.(?<!\b[A-Z]\.){_CLOSED}",  # not after an initial
            *(re.escape(mark) + _CLOSED for mark in "!?…"),
            *(f"{mark}[”’」』）]*" for mark in "。！？｡।॥"),
            r"\n[^\S\n]*(?=\n)",
        ]
    )
)
_EMPTY_LINE = re.compile(r"\n\s*\n")
_HEADING, _SENTENCE, _LINE, _BLOCK = range(4)
"""What ends where a passage may end: a heading, only if it must; a sentence, or a line of a field that has several; a
line of a list, a record or a table; a paragraph, or all that is above a heading."""
_FULL = 0.6
"""A passage with this share of its words may end before the last place that fits, at a better one."""
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
_GROUP = re.compile(r"([^\n]{1,60}?)(?: - |: )")
_MARK_OF_ITEM = re.compile(r"\d{1,3}[.)] .?|\d+(\.\d|(\.\d+){2,})[.)]? [^\W\d_a-z].?")
CELL_NAME = r"[^\n|:]{1,60}:(?= )"
_CELL = rf"{CELL_NAME} [^\n|]*"
_NAMED_ROW = re.compile(rf"{_CELL}(?:\| {_CELL})+")
"""A row of a table that keeps its headings: "Country: Kenya | Capital: Nairobi"."""
_MARKDOWN = re.compile(r"#{1,6}\s")
_STOP = re.compile(r"[.!?…。！？][\"'”’»)\]]*(?:\s|$)|[,;]$")
# Two rules: passages are cut where a sentence probably ends, and every corpus has been cut by this one; a phrase must
# not be refused for a full stop inside a name, so the second knows abbreviations too.
_FULL_STOP = re.compile(r"((?<!\w)\w+|(?<=[%‰)\]]))\.[\"'”’»)\]]*\s+(?=\S)")
_SHORTENED = (
    "mr mrs ms mx dr prof rev hon pres gov sen rep gen col maj capt cmdr lt sgt adm st ste mt ft pt rd ave blvd "
    "jr sr messrs mme mlle vs no nos vol vols op opp cat fig figs pp ch art sec ed eds trans approx ca cf fl inc ltd "
    "co corp bros dept univ assn jan feb mar apr jun jul aug sept sep oct nov dec ph feat al ext tel"
)
_ABBREVIATIONS = frozenset(_SHORTENED.split())
_IN_FRONT = _ABBREVIATIONS - {"rd", "ave", "blvd", "jr", "sr", "inc", "ltd", "co", "corp", "bros", "univ", "assn", "al"}
"""Those that do not follow a name: a capital after one of the others begins a sentence."""
_CLOSES = {")": "(", "]": "[", "}": "{", "”": "“"}


def get_splitter(spec: str) -> Splitter:
    """The function that `spec` names: from a text to its passages' character ranges, in order.

    Raises InputError for an invalid spec, ModelNotFoundError if the tokenizer cannot be loaded.
    """
    kind, _, rest = spec.partition(":")
    count, _, tokenizer = rest.partition(":")
    known = kind in ("blocks", "words", "fixed", "tokens") and bool(tokenizer) == (kind == "tokens")
    # `int` refuses thousands of digits.
    if not known or not (count.isascii() and count.isdecimal()) or len(count) > _MOST_DIGITS or int(count) < 1:
        raise InputError(
            f"splitter {spec!r} is not one of blocks:N, words:N, fixed:N, tokens:N:TOKENIZER with N > 0; "
            f"try {DEFAULT_SPLITTER}"
        )
    limit, starts = int(count), _tokens(tokenizer) if tokenizer else _word_starts
    if kind == "blocks":
        return lambda text: _split_blocks(text, limit)
    dense = _DENSE * limit if kind == "words" else 0
    return lambda text: _split(text, starts(text), [] if kind == "fixed" else _sentence_ends(text), limit, dense)


def _tokens(name: str) -> Callable[[str], Sequence[int]]:
    """Where the tokens of a text begin."""
    from tokenizers import Tokenizer

    file = Path(name) / "tokenizer.json"
    try:
        tokenizer = Tokenizer.from_file(str(file)) if file.is_file() else Tokenizer.from_pretrained(name)
    except Exception as error:  # the library raises a bare Exception
        raise ModelNotFoundError(f"tokenizer {name!r}: neither a folder with a tokenizer.json nor a hub id") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return lambda text: [start for start, _ in tokenizer.encode(text, add_special_tokens=False).offsets]


def _word_starts(text: str) -> Sequence[int]:
    return array("q", map(re.Match.start, _WORD.finditer(text)))  # a fifth of the memory of a list


def _split(
    text: str,
    units: Sequence[int],
    ends: Sequence[int],
    limit: int,
    dense: int,
    ranks: Sequence[int] | None = None,
    marks: Sequence[str] = (),
) -> Ranges:
    """Greedy: a passage extends to the best of `ends` within `limit` units, or if there is none, to that limit. It has
    fewer units if they are dense, unless `dense` is 0.

    The best is the last of the highest rank among those that leave it full; else the last that is not a heading's;
    else the last. Without `ranks` it is the last. In place of the limit, it ends behind the last of `marks` that leaves
    it full, if there is one.
    """
    rank_of = bytes(len(ends)) if ranks is None else ranks
    cuts = [0]
    first = 0
    while (beyond := _beyond(text, units, first, limit, dense)) < len(units):
        begin, full, cut = units[first], units[first + int(_FULL * (beyond - first - 1))], units[beyond]
        fits = range(bisect_right(ends, begin), bisect_right(ends, cut))
        if fits:
            cut = ends[max(fits, key=lambda i: (rank_of[i] if ends[i] > full else min(rank_of[i], _SENTENCE), i))]
        else:
            spaces = (at for at in range(cut, max(begin, cut - _NEAR), -1) if text[at - 1].isspace())
            marked = max((text.rfind(mark, full, cut) for mark in marks), default=-1) + 1
            cut = marked or next(spaces, cut)
        cuts.append(cut)
        first = max(first + 1, bisect_left(units, cut))
    return _pieces(text, cuts)


def _beyond(text: str, units: Sequence[int], first: int, limit: int, dense: int) -> int:
    """The unit behind those that fit into a passage: `limit`, or fewer, but one at least, if they are too dense."""
    beyond = min(first + limit, len(units))

    def density(last: int) -> int:
        part = text[units[first] : units[last] if last < len(units) else len(text)]
        marks = len(part.encode("utf-8", "surrogatepass").translate(None, _LETTERS))
        return max(len(part) * _DENSE // _LONG, len(part) // 3 + marks)

    if not dense or first + 1 >= beyond or density(beyond) <= dense:
        return beyond
    return max(first + 1, bisect_right(range(first, beyond), dense, key=density) + first - 1)


def _split_blocks(text: str, limit: int) -> Ranges:
    """Passages by their blocks. A row that names its cells is by itself, or with the headings above it: a reader
    confuses rows that are next to each other."""
    if " | " not in text:
        return _split_block(text, limit)
    lines = lines_of(text)
    rows = [_NAMED_ROW.fullmatch(text, line.start, line.end) is not None for line in lines]
    above, apart = rows.copy(), list[int]()  # is a row, or a heading above one
    for i in reversed(range(1, len(lines))):
        headed = is_heading(text, lines, i - 1)
        above[i - 1] |= headed and above[i]
        if rows[i - 1] or (above[i] and not headed):
            apart.append(lines[i].start)
    cuts = pairwise([0, *reversed(apart), len(text)])
    return [(start + a, start + b) for start, end in cuts for a, b in _split_block(text[start:end], limit)]


def _split_block(text: str, limit: int) -> Ranges:
    """Passages that may end where a line does, or a sentence that is not inside an item that fits."""
    units = _word_starts(text)
    ends, ranks = array("q"), bytearray()
    lines = lines_of(text)
    heads = [is_heading(text, lines, i) for i in range(len(lines))]
    for i, line in enumerate(lines):
        too_long = bisect_left(units, line.end) - bisect_left(units, line.start) > limit
        above = lines[i - 1]
        introduced = heads[i - 1] or text[above.end - 1] == ":"
        if i and not (introduced and too_long):
            empty = _EMPTY_LINE.search(text, above.end, line.start)
            ends.append(empty.end() if empty else line.start)
            better = _BLOCK if empty or heads[i] else _SENTENCE if is_same_field(text, above, line) else _LINE
            ranks.append(_HEADING if introduced else better)
        if too_long or not is_item(text, line):
            inside = [match.end() for match in _SENTENCE_END.finditer(text, line.start, line.end)]
            ends.extend(inside)
            ranks.extend([_SENTENCE] * len(inside))
    return _split(text, units, ends, limit, _DENSE * limit, ranks, marks=("\n", "; "))


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


def is_same_field(text: str, above: Line, line: Line) -> bool:
    """Whether two lines are parts of one field, as "Airports: 157" and "Airports - with paved runways: 64"."""
    name = _GROUP.match(text, above.start, above.end)
    return name is not None and text.startswith(f"{name[1]} - ", line.start)


def sentences(text: str) -> Ranges:
    """The character ranges of a text's sentences, in order."""
    return _pieces(text, [0, *_sentence_ends(text)])


def whole_sentences(text: str) -> Ranges:
    """As `sentences`, but none ends in the abbreviation of what follows: "St. Brendan", "ext. 4471"."""
    inside = {stop.end(1) + 1 for stop in _FULL_STOP.finditer(text) if _goes_with(stop[1], text[stop.end()])}
    return _pieces(text, [0, *(end for end in _sentence_ends(text) if end not in inside)])


def _goes_with(word: str, following: str) -> bool:
    """Whether a word with a full stop is short for something, and belongs to what begins with this character."""
    return word.casefold() in _IN_FRONT and (following.isdigit() or word[0].isupper())


def _sentence_ends(text: str) -> list[int]:
    """Where sentences end, paragraphs too, closing quotes and brackets included."""
    return [match.end() for match in _SENTENCE_END.finditer(text)]


def _pieces(text: str, cuts: list[int]) -> Ranges:
    """The parts of a text that begin at these places, without white space around them, and none that is empty then."""
    ranges = []
    for start, end in pairwise([*cuts, len(text)]):
        if piece := text[start:end].strip():
            first = start + text[start:end].index(piece)
            ranges.append((first, first + len(piece)))
    return ranges


def is_mark_of_item(text: str, start: int, end: int) -> bool:
    """Whether these characters are but the number of a section or of an item in a list: "2" of "2. Mix well", at the
    beginning of a line, or "7.1" of "7.1 Officers". Not "10.30" of "10.30 Coffee", which may be a time."""
    if text[text.rfind("\n", 0, start) + 1 : start] not in ("", "- "):
        return False
    return _MARK_OF_ITEM.fullmatch(text[start:end] + text[end : end + 3].split("\n")[0]) is not None


def is_balanced(text: str) -> bool:
    """Whether every bracket and double quote in a text has its other half."""
    open_marks: list[str] = []
    for char in text:
        if char in _CLOSES.values():
            open_marks.append(char)
        elif char in _CLOSES and (not open_marks or open_marks.pop() != _CLOSES[char]):
            return False
    return not open_marks and text.count('"') % 2 == 0


def crosses_sentence(text: str) -> bool:
    """Whether a sentence ends inside a phrase: a full stop, white space, and anything but a lower-case letter.

    Not after an initial ("J. R. R. Tolkien", "Washington, D.C. The") or an abbreviation ("St. Petersburg"). Question
    and exclamation marks do not count: they are parts of names too ("Yahoo! Inc.").
    """
    for match in _FULL_STOP.finditer(text):
        word = match[1].casefold()
        is_word = len(word) != 1 or word.isdigit()
        if is_word and word not in _ABBREVIATIONS and not text[match.end()].islower():
            return True
    return False
