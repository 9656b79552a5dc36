"""Words on pages: which make a line, a column, a table, a paragraph, and in what order a person reads them.

Knows rectangles, in points from a page's upper left corner; running heads, feet and page numbers, which are left out;
hyphens at the ends of lines. Does not know PDF.

A strip is the words at one height, a piece of it those without a wide gap between them. If an empty column goes down
through several strips, they are read column by column where the columns are prose, else row by row, as a table.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise, zip_longest
from statistics import median
from typing import Any, NamedTuple

from quoth.source_map import WHOLE
from quoth.sources.source import Piece, Text

HYPHENS = ("-", "\u00ad", "\u2010", "\ufffe")
_BULLET = re.compile(r"[•‣▪●○◦*–-]$|\(?(\d{1,3}|[a-zA-Z])[.)]$")
_PAGE_NUMBER = re.compile(r"(page )?[-–—]?\s?(\d+|[ivxlc]+)(\s?(of|/)\s?\d+)?\s?[-–—]?", re.IGNORECASE)
_EDGE = 0.12
"""The share of a page's height, above and below, in which heads and feet are."""
_GUTTER, _CLOSE = 0.9, 2.5
"""In heights of a line: the least gap between two pieces, the most between strips that may share columns."""
_PROSE = 3.5
"""The mean number of words in a piece from which a column is read by itself."""


class Word(NamedTuple):
    """A word and its rectangle. If it ends in a hyphen, `stem` is where what is before that ends."""

    left: float
    top: float
    right: float
    bottom: float
    text: str
    stem: float = 0.0


Line = list[Word]
Strip = list[Line]
Gaps = list[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Page:
    """A page's size and strips, from above, after its text was made level: `turn` quarters of a circle, clockwise."""

    width: float
    height: float
    strips: list[Strip]
    turn: int = 0


def strips_of(words: Sequence[Word]) -> list[Strip]:
    """The words at each height: their middles differ by less than a third of their heights."""
    rows: list[list[Word]] = []
    middle = limit = 0.0
    for word in sorted(words, key=lambda word: word.top + word.bottom):
        if not rows or (word.top + word.bottom) / 2 - middle > limit:
            rows.append([])
            middle, limit = (word.top + word.bottom) / 2, (word.bottom - word.top) / 3
        rows[-1].append(word)
    return [_pieces(sorted(row)) for row in rows]


def _pieces(row: Line) -> Strip:
    pieces = [[row[0]]]
    for before, word in pairwise(row):
        if word.left - before.right > _GUTTER * (word.bottom - word.top):
            pieces.append([])
        pieces[-1].append(word)
    return pieces


def _words(strip: Strip) -> Line:
    return [*chain.from_iterable(strip)]


def _height(strip: Strip) -> float:
    return max(word.bottom - word.top for word in _words(strip))


def _top(strip: Strip) -> float:
    return min(word.top for word in _words(strip))


def _bottom(strip: Strip) -> float:
    return max(word.bottom for word in _words(strip))


def without_heads(pages: Sequence[Page]) -> Iterator[list[Strip]]:
    """The pages' strips without running heads, feet and page numbers: what is apart at a page's edge, and is a number
    or, but for its numbers, is there on three pages or more, or on both of two."""
    edges = [[*_edge_strips(page)] for page in pages]
    counts = Counter(key for page in edges for key, _, _ in page)
    for page, edge in zip(pages, edges, strict=True):
        left_out = set[int]()
        for key, number, outermost in edge:
            is_number = len(pages) > 1 and outermost and _PAGE_NUMBER.fullmatch(key[1])
            if is_number or counts[key] >= min(3, max(2, len(pages))):
                left_out.add(number)
        yield [strip for number, strip in enumerate(page.strips) if number not in left_out]


def _edge_strips(page: Page) -> Iterator[tuple[tuple[bool, str], int, bool]]:
    """The strips apart at the upper and the lower edge: (is above, text with 0 for each number), number, whether it is
    the outermost."""
    for above in (True, False):
        inward = [*enumerate(page.strips)] if above else [*enumerate(page.strips)][::-1]
        apart = 0
        for depth, (number, strip) in enumerate(inward[:3], 1):
            if not (_bottom(strip) < _EDGE * page.height if above else _top(strip) > (1 - _EDGE) * page.height):
                break
            following = page.strips[number + 1 if above else number - 1] if depth < len(inward) else strip
            gap = _top(following) - _bottom(strip) if above else _top(strip) - _bottom(following)
            if depth == len(inward) or gap > 0.8 * _height(strip):
                apart = depth
        for number, strip in inward[:apart]:
            text = " ".join(word.text for word in _words(strip))
            yield (above, re.sub(r"\d+", "0", text)), number, number == inward[0][0]


def _gaps(strip: Strip) -> Gaps:
    rights, lefts = [-1e9, *(piece[-1].right for piece in strip)], [*(piece[0].left for piece in strip), 1e9]
    return [(low, high) for low, high in zip(rights, lefts, strict=True) if high > low]


def _inner(gaps: Gaps, words: Line) -> list[float]:
    """The middles of the gaps that have text on both sides."""
    left, right = min(word.left for word in words), max(word.right for word in words)
    return [(low + high) / 2 for low, high in gaps if low >= left and high <= right]


def _groups(strips: Sequence[Strip]) -> Iterator[tuple[list[Strip], list[float]]]:
    """Strips in a row, and the gaps that go down through all of them, if any."""
    single: list[Strip] = []
    at = 0
    while at < len(strips):
        gaps, inner, end = _gaps(strips[at]), list[float](), at + 1
        words = _words(strips[at])
        while end < len(strips) and _top(strips[end]) - _bottom(strips[end - 1]) < _CLOSE * _height(strips[end]):
            both = ((max(a, c), min(b, d)) for a, b in gaps for c, d in _gaps(strips[end]))
            common = [gap for gap in both if gap[1] - gap[0] >= _GUTTER * _height(strips[end]) * 0.6]
            more = words + _words(strips[end])
            if not (found := _inner(common, more)):
                break
            gaps, inner, words, end = common, found, more, end + 1
        if (end - at > 1 and sum(len(strip) > 1 for strip in strips[at:end]) > 1) or end - at > 2:
            if single:
                yield single, []
                single = []
            yield [*strips[at:end]], inner
            at = end
        else:
            single.append(strips[at])
            at += 1
    if single:
        yield single, []


def _columns(strips: Sequence[Strip], cuts: Sequence[float]) -> list[list[Strip]]:
    """The pieces between the cuts, per strip; a strip may have none there."""
    limits = [-1e9, *sorted(cuts), 1e9]
    return [
        [[piece for piece in strip if low <= (piece[0].left + piece[-1].right) / 2 < high] for strip in strips]
        for low, high in pairwise(limits)
    ]


def joins_in(pages: Iterable[Page]) -> Callable[[str, str], bool]:
    """Whether a word that is cut at a hyphen is one word: unless the text has it with the hyphen, and only so."""
    seen = {word.text.strip(".,;:!?()").lower() for page in pages for strip in page.strips for word in _words(strip)}

    def joins(head: str, tail: str) -> bool:
        tail = tail.rstrip(".,;:!?)")
        return tail[:1].islower() and not ((head + "-" + tail).lower() in seen and (head + tail).lower() not in seen)

    return joins


class Writer:
    """Writes pages into a text, paragraph by paragraph."""

    def __init__(self, text: Text, joins: Callable[[str, str], bool]) -> None:
        self._text, self._joins = text, joins
        self._number, self._scale, self._turn = 0, (1.0, 1.0), 0
        self._last = ""
        self._is_first = False

    def page(self, number: int, page: Page, strips: Sequence[Strip]) -> None:
        self._number, self._scale, self._is_first = number, (WHOLE / page.width, WHOLE / page.height), True
        self._turn = page.turn
        self._layout(strips)

    def _layout(self, strips: Sequence[Strip]) -> None:
        prose = list[Strip]()
        for group, cuts in _groups(strips):
            columns = _columns(group, cuts)
            if cuts and all(map(_is_prose, columns)):
                self._prose(prose)
                prose = []
                for column in columns:
                    self._layout([strip for strip in column if strip])
                continue
            # What is above a table's headings may end the paragraph before it.
            above = next((number for number, strip in enumerate(group) if cuts and len(strip) > 1), len(group))
            prose += group[:above]
            if above < len(group):
                self._prose(prose)
                prose = []
                self._table(group[above:], [column[above:] for column in columns])
        self._prose(prose)

    def _prose(self, strips: Sequence[Strip]) -> None:
        if not strips:
            return
        lines = [*map(_words, strips)]
        left, right = min(line[0].left for line in lines), max(line[-1].right for line in lines)
        usual = median(map(_height, strips))
        paragraph = [lines[0]]
        for line in lines[1:]:
            if _begins(paragraph[-1], line, left, right, usual):
                self._paragraph(paragraph)
                paragraph = []
            paragraph.append(line)
        self._paragraph(paragraph)

    def _paragraph(self, lines: Sequence[Line]) -> None:
        # A sentence may continue from the page before.
        continues = self._is_first and self._last[-1:].isalpha() and lines[0][0].text[0].islower()
        self._text.gap(" " if continues else "\n\n")
        self._is_first = False
        for text, *place in self._pieces(lines):
            if place:
                self._text.add(text, *place)
            else:
                self._text.gap(text)
        self._last = lines[-1][-1].text

    def _pieces(self, lines: Sequence[Line]) -> Iterator[tuple[Any, ...]]:
        """The words and the spaces between them, without the hyphens of words that are cut at the end of a line."""
        words = [(word, word is line[-1]) for line in lines for word in line]
        for (word, ends), following in zip_longest(words, [word for word, _ in words[1:]]):
            text = word.text.replace("\ufffe", "-")
            is_cut = ends and following is not None and len(text) > 1 and text[-1] in HYPHENS
            if is_cut:
                text = text[:-1] + ("" if self._joins(text[:-1], following.text) else "-")
            yield text, *self._place(word, word.right if len(text) == len(word.text) else word.stem)
            if following is not None and not is_cut:
                yield (" ",)

    def _place(self, word: Word, right_edge: float) -> tuple[int, ...]:
        across, down = self._scale
        left, right = round(word.left * across), round(right_edge * across)
        top, bottom = round(word.top * down), round(word.bottom * down)
        if left < 0 or top < 0 or right > WHOLE or bottom > WHOLE:  # what is off the page
            left, top, right, bottom = (min(max(edge, 0), WHOLE) for edge in (left, top, right, bottom))
        if self._turn == 1:
            left, top, right, bottom = WHOLE - bottom, left, WHOLE - top, right
        elif self._turn == 2:
            left, top, right, bottom = WHOLE - right, WHOLE - bottom, WHOLE - left, WHOLE - top
        elif self._turn == 3:
            left, top, right, bottom = top, WHOLE - right, bottom, WHOLE - left
        return self._number, left, top, right, bottom

    def _table(self, strips: Sequence[Strip], columns: Sequence[Sequence[Strip]]) -> None:
        rows: list[list[Line]] = []
        for number, strip in enumerate(strips):
            cells = [_words(column[number]) for column in columns]
            close = number > 0 and _top(strip) - _bottom(strips[number - 1]) < 0.3 * _height(strip)
            if len(rows) > 1 and close and not cells[0]:
                rows[-1] = [before + more for before, more in zip(rows[-1], cells, strict=True)]
            else:
                rows.append(cells)
        self._text.table([[self._cell(cell) for cell in row] for row in rows], _is_headed(rows))

    def _cell(self, words: Line) -> list[Piece]:
        return [Piece(text, tuple(place)) for text, *place in self._pieces([words])] if words else []


def _is_prose(column: Sequence[Strip]) -> bool:
    pieces = [piece for strip in column for piece in strip]
    return len(pieces) > 2 and sum(map(len, pieces)) >= _PROSE * len(pieces)


def _is_headed(rows: Sequence[Sequence[Line]]) -> bool:
    """Whether a table's first row has headings: words in every column, above two rows or more."""
    words = [" ".join(word.text for word in cell) for cell in rows[0]]
    asks = any(row[0] and row[0][-1].text.endswith(":") for row in rows)
    numbers = any(map(str.isdigit, "".join(words))) and len(words) < 3
    return len(rows) > 2 and all(words[1:]) and not asks and not numbers


def _begins(before: Line, line: Line, left: float, right: float, usual: float) -> bool:
    """Whether a line begins a paragraph: after a gap, in another size, at a bullet, indented, or after a short line."""
    height, last = line[0].bottom - line[0].top, before[0].bottom - before[0].top
    apart = line[0].top - before[0].bottom > 0.6 * usual or abs(height - last) > 0.15 * max(height, last)
    indented = line[0].left > left + 0.8 * usual and before[0].left < left + 0.3 * usual
    short = before[-1].right < right - 0.2 * (right - left) and before[-1].text[-1] in ".!?:"
    return apart or indented or short or _BULLET.fullmatch(line[0].text) is not None
