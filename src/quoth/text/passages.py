"""Passages, lines and sentences: where a text is cut, and phrases that cross a cut.

Knows characters, words, lines and sentence ends; does not know documents, storage or models (apart from counting a
tokenizer's tokens). A passage begins and ends with a non-space character, and every non-space character is in one.

    blocks:N            up to N words, cut at the best place that fits: where a paragraph ends, or a line of a list, a
                        record or a table, or a sentence; and at both ends of a row that names its cells (the default,
                        N = 120)
    words:N             up to N words, cut at the last sentence end that fits
    fixed:N             exactly N words, wherever sentences end (N = 100: DPR's `psgs_w100`)
    tokens:N:TOKENIZER  up to N tokens of a tokenizer (a folder or a hub name), cut at sentence ends

A word is a run of non-space characters (a longer run counts as one word per 64 characters, so that every passage is
bounded), a single character of Chinese or Japanese, or four letters of Thai, Lao, Burmese or Khmer. Where words are
long or full of marks, `blocks` and `words` take fewer: a model reads each mark as a word. `blocks` leaves out tables of
contents, indexes, and what stands on every page.
"""

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Protocol

from quoth.errors import InputError, ModelNotFoundError
from quoth_sources.blocks import UNREAD, Block
from quoth_sources.guess import guess

Ranges = list[tuple[int, int]]


class Splitter(Protocol):
    """From a text and its blocks (None: they are guessed) to its passages' character ranges, in order."""

    def __call__(self, text: str, blocks: Sequence[Block] | None = None) -> Ranges: ...


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
_GROUP = re.compile(r"([^\n]{1,60}?)(?: - |: )")
_MARK_OF_ITEM = re.compile(r"\d{1,3}[.)] .?|\d+(\.\d|(\.\d+){2,})[.)]? [^\W\d_a-z].?")
CELL_NAME = r"[^\n|:]{1,60}:(?= )"
_CELL = rf"{CELL_NAME} [^\n|]*"
_NAMED_ROW = re.compile(rf"{_CELL}(?:\| {_CELL})+")
"""A row of a table that keeps its headings: "Country: Kenya | Capital: Nairobi"."""
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
    """The function that `spec` names.

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
    dense = _DENSE * limit if kind == "words" else 0

    def by_blocks(text: str, blocks: Sequence[Block] | None = None) -> Ranges:
        return _split_blocks(text, guess(text) if blocks is None else blocks, limit)

    def by_units(text: str, blocks: Sequence[Block] | None = None) -> Ranges:
        return _split(text, starts(text), [] if kind == "fixed" else _sentence_ends(text), limit, dense)

    return by_blocks if kind == "blocks" else by_units


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


def _split_blocks(text: str, blocks: Sequence[Block], limit: int) -> Ranges:
    """Passages by blocks, without those that are not read. A row that names its cells is by itself, or with the
    headings above it: a reader confuses rows that are next to each other."""
    rows = [each.kind == "row" and _NAMED_ROW.fullmatch(text, each.start, each.end) is not None for each in blocks]
    above = rows.copy()  # is a row, or a heading above one
    for i in reversed(range(1, len(blocks))):
        above[i - 1] |= blocks[i - 1].kind == "heading" and above[i]
    ranges: Ranges = [] if blocks else _split_block(text, [], limit)
    first = 0
    for i in range(1, len(blocks) + 1):
        if i == len(blocks) or rows[i - 1] or (above[i] and not above[i - 1]) or _is_read(blocks, i):
            begin = blocks[first].start if first else 0
            end = blocks[i].start if i < len(blocks) else len(text)
            if blocks[first].kind not in UNREAD:
                shifted = [each._replace(start=each.start - begin, end=each.end - begin) for each in blocks[first:i]]
                ranges += [(begin + a, begin + b) for a, b in _split_block(text[begin:end], shifted, limit)]
            first = i
    return ranges


def _is_read(blocks: Sequence[Block], i: int) -> bool:
    """Whether one of two neighbours is read and the other is not."""
    return (blocks[i - 1].kind in UNREAD) != (blocks[i].kind in UNREAD)


def _split_block(text: str, blocks: Sequence[Block], limit: int) -> Ranges:
    """Passages that may end where a block does, or a sentence that is not inside an item that fits."""
    units = _word_starts(text)
    ends, ranks = array("q"), bytearray()
    for i, block in enumerate(blocks):
        too_long = bisect_left(units, block.end) - bisect_left(units, block.start) > limit
        above = blocks[i - 1]
        introduced = above.kind == "heading" or text[above.end - 1] == ":"
        if i and not (introduced and too_long):
            empty = _EMPTY_LINE.search(text, above.end, block.start)
            ends.append(empty.end() if empty else block.start)
            is_last = empty or block.kind == "heading"
            better = _BLOCK if is_last else _SENTENCE if is_same_field(text, above, block) else _LINE
            ranks.append(_HEADING if introduced else better)
        if too_long or block.kind not in ("item", "row"):
            inside = [match.end() for match in _SENTENCE_END.finditer(text, block.start, block.end)]
            ends.extend(inside)
            ranks.extend([_SENTENCE] * len(inside))
    return _split(text, units, ends, limit, _DENSE * limit, ranks, marks=("\n", "; "))


def is_same_field(text: str, above: Block, line: Block) -> bool:
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
