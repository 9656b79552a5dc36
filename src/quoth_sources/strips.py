"""Words on pages: which are at one height, and what goes down through several such strips.

Knows rectangles, in points from a page's upper left corner; running heads, feet and page numbers, which are left out.
Does not know PDF, paragraphs or tables.

A strip is the words at one height, a piece of it those without a wide gap between them.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, groupby, pairwise
from statistics import median, median_low
from typing import NamedTuple
from unicodedata import bidirectional

from quoth_sources.source_map import Rectangle

HYPHENS = ("-", "\u00ad", "\u2010", "\ufffe")
_NUMBERED = r"(?:page )?[-–—]?\s?(\d{1,9}|[ivxlc]+)(?:\s?(?:of|/)\s?\d+)?\s?[-–—]?"
_PAGE_NUMBER = re.compile(_NUMBERED, re.IGNORECASE)
_PART = re.compile(rf"(?:^|(?<=\t)|(?<= [|·•–—] )){_NUMBERED}(?=\t|$| [|·•–—] )", re.IGNORECASE)
"""A page number that is a part of a line, apart from the rest by a gap or a mark."""
_NUMBER = re.compile(r"(?<!\d)(?<!\d[-–.,:/])(\d{1,9})(?![-–.,:]?\d|/\d+/)")
"""A number that is no part of another, or of a date."""
_RULE = re.compile(r"[.…·_*=~\u2500-\u257f]+|[-–—]{2,}[-–—\ufffe]*")
_EDGE = 0.12
"""The share of a page's height, above and below, in which heads and feet are."""
_LONGEST = 500
"""In characters: a running head with a page number."""
_LARGE = 1.2
"""In heights of a page's usual line: a title."""
GUTTER, _CLOSE = 0.9, 2.5
"""In heights of a line: the least gap between two pieces, the most between strips that may share columns."""
_NARROW, _WIDER, _IN_A_ROW, _SEVERAL = 0.5, 1.5, 8, 3
"""A gap that is one because many rows have it: in heights of a line and in a row's usual gap how wide it is, at least;
in how many rows; how many words are on both sides of it."""
ACROSS = 1 / 8
"""The share of a table's strips, such as headings and totals, that may lie across a gap between its columns."""


class Word(NamedTuple):
    """A word and its rectangle. If it ends in a hyphen, `stem` is where what is before that ends. `at` is where it is
    shown if it is read elsewhere; () is nowhere. `is_field`: a value in a form, or the end of its label. `is_backward`:
    its characters run from right to left."""

    left: float
    top: float
    right: float
    bottom: float
    text: str
    stem: float = 0.0
    at: Rectangle | tuple[()] | None = None
    is_field: bool = False
    is_backward: bool = False


Line = list[Word]
_FIGURE = 3.0
"""Type that is larger than that beside it by this is no part of its line."""
Strip = list[Line]
Gaps = list[tuple[float, float]]
_Chain = tuple[float, float, list[int], int]
"""A gap of several rows: its edges, the numbers of the rows, how many words they have on its shorter side together."""
_Head = tuple[bool | None, str]
"""Whether it is above, below or aside, and its text, perhaps with a shift for its page's number."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page's size and strips, from above, after its text was made level: `turn` quarters of a circle, clockwise.
    `aside` are the words that are not level even so."""

    width: float
    height: float
    strips: list[Strip]
    turn: int = 0
    aside: Line = field(default_factory=list)


def is_rule(text: str) -> bool:
    """Whether a word is nothing but a line or a leader, of dots or dashes."""
    return _RULE.fullmatch(text) is not None


def strips_of(words: Sequence[Word]) -> list[Strip]:
    """The words at each height: their middles differ by less than a third of their heights, of the smaller one beside a
    large figure or initial, which would have the words of several lines."""
    rows: list[list[Word]] = []
    middle = limit = 0.0
    for word in sorted(words, key=lambda word: word.top + word.bottom):
        own = (word.bottom - word.top) / 3
        if not rows or (word.top + word.bottom) / 2 - middle > (own if limit > _FIGURE * own else limit):
            rows.append([])
            middle, limit = (word.top + word.bottom) / 2, own
        rows[-1].append(word)
    rows = [sorted(row) for row in rows]
    return [_pieces(row, gutters) for row, gutters in zip(rows, _gutters(rows), strict=True)]


def _gutters(rows: Sequence[Line]) -> list[list[float]]:
    """For each row, the middles of narrow gaps that many rows in a row have, each wider than their other gaps and with
    several words on both sides."""
    found: list[list[float]] = [[] for _ in rows]
    least = _NARROW * median([word.bottom - word.top for row in rows for word in row] or [0])
    chains = list[_Chain]()
    for number, row in enumerate([*rows, []]):
        usual = median([b.left - a.right for a, b in pairwise(row)] or [0])
        wide = max(least, _WIDER * usual)
        inner = {
            (a.right, b.left): min(at, len(row) - at)
            for at, (a, b) in enumerate(pairwise(row), 1)
            if b.left - a.right >= wide
        }
        following = list[_Chain]()
        for low, high, members, words in chains:
            if row and (row[-1].right <= low + least or row[0].left >= high - least):
                following.append((low, high, members, words))  # the row is on one side
            elif gap := next((gap for gap in inner if min(high, gap[1]) - max(low, gap[0]) >= least), None):
                following.append((max(low, gap[0]), min(high, gap[1]), [*members, number], words + inner.pop(gap)))
            elif len(members) >= _IN_A_ROW and words >= _SEVERAL * len(members):
                for member in members:
                    found[member].append((low + high) / 2)
        chains = [*following, *((low, high, [number], words) for (low, high), words in inner.items())]
    return found


def _pieces(row: Line, gutters: Sequence[float]) -> Strip:
    pieces = [[row[0]]]
    for before, word in pairwise(row):
        is_wide = word.left - before.right > GUTTER * (word.bottom - word.top)
        if is_wide or word.at == () or (gutters and any(before.right <= gutter <= word.left for gutter in gutters)):
            pieces.append([])
        pieces[-1].append(word)
    return pieces


def words_of(strip: Strip) -> Line:
    return [*chain.from_iterable(strip)]


def height_of(strip: Strip) -> float:
    return max(word.bottom - word.top for word in words_of(strip))


def top_of(strip: Strip) -> float:
    return min(word.top for word in words_of(strip))


def bottom_of(strip: Strip) -> float:
    return max(word.bottom for word in words_of(strip))


def without_heads(pages: Sequence[Page]) -> Iterator[Page]:
    """The pages without running heads, feet and page numbers: what is apart at a page's edge, or aside, and is its
    number or, but for its number, is there on three pages or more, or on both of two; what is close to the text must
    be there on half of the pages, and be no row of headings. Large titles are kept if their numbers differ, and a
    page's text if nothing else is on it."""
    edges = [[*_edge_strips(page)] for page in pages]
    heads = [
        [_heads(above, strip, at, len(pages)) for above, strip in parts]
        for at, parts in enumerate(
            [*((above, page.strips[number]) for above, _, number, *_ in edge), (None, [page.aside])]
            for page, edge in zip(pages, edges, strict=True)
        )
    ]
    counts = Counter(chain.from_iterable(set[_Head]().union(*page) for page in heads))
    texts = Counter(text for page in edges for _, text, *_ in page)
    shifts = Counter(_shift(text, at) for at, page in enumerate(edges) for _, text, *_ in page)
    often = min(3, max(2, len(pages)))
    for at, (page, edge, keys) in enumerate(zip(pages, edges, heads, strict=True)):
        *times, aside_times = (max(counts[key] for key in one) for one in keys)
        usual = median_low(map(height_of, page.strips)) if page.strips else 0
        left_out = set[int]()
        for (_, text, number, outermost, apart), count in zip(edge, times, strict=True):
            strip, shift = page.strips[number], _shift(text, at)
            is_known = shift is None or shift + at <= len(pages) or shifts[shift] > 1
            is_number = len(pages) > 1 and outermost and is_known and _PAGE_NUMBER.fullmatch(text)
            is_title = texts[text] == 1 and height_of(strip) > _LARGE * usual
            is_again = count >= often if apart else len(strip) < 3 and count >= max(3, len(pages) / 2)
            if (is_number and apart) or (is_again and not is_title):
                left_out.add(number)
        strips = [strip for number, strip in enumerate(page.strips) if number not in left_out]
        aside = [] if aside_times >= often else page.aside
        yield replace(page, strips=strips, aside=aside) if strips or aside else page


def _heads(above: bool | None, strip: Strip, at: int, count: int) -> set[_Head]:
    """What a strip may be as a running head of a page, counted from 0: its text, and that with a shift for each number
    that may be the page's. One amid a text is at most the count of the pages: that of an invoice may be 1001."""
    text = "\t".join(map(said, strip))
    keys = {text}
    if len(text) <= _LONGEST:
        amid = (number for number in _NUMBER.finditer(text) if int(number[1]) <= count)
        for number in chain(_PART.finditer(text), amid):
            if number[1].isdecimal():
                keys.add(f"{text[: number.start(1)]}\0{int(number[1]) - at}\0{text[number.end(1) :]}")
    return {(above, key.replace("\t", " ")) for key in keys}


def _shift(text: str, at: int) -> int | None:
    """How far a text that is a page number is from that of its page, counted from 0; None if it is a Roman one."""
    found = _PAGE_NUMBER.fullmatch(text)
    return int(found[1]) - at if found and found[1].isdecimal() else None


def _edge_strips(page: Page) -> Iterator[tuple[bool, str, int, bool, bool]]:
    """The strips apart at the upper and the lower edge, and the outermost ones: whether it is above, text, number,
    whether it is the outermost, whether it is apart."""
    for above in (True, False):
        inward = [*enumerate(page.strips)] if above else [*enumerate(page.strips)][::-1]
        apart = within = 0
        for depth, (number, strip) in enumerate(inward[:3], 1):
            if not (bottom_of(strip) < _EDGE * page.height if above else top_of(strip) > (1 - _EDGE) * page.height):
                break
            following = page.strips[number + 1 if above else number - 1] if depth < len(inward) else strip
            gap = top_of(following) - bottom_of(strip) if above else top_of(strip) - bottom_of(following)
            within = depth
            if depth == len(inward) or gap > 0.8 * height_of(strip):
                apart = depth
        for depth, (number, strip) in enumerate(inward[: max(apart, min(within, 1))]):
            yield above, said(words_of(strip)), number, depth == 0, depth < apart


def in_order(line: Line) -> Line:
    """The words of a line as they are read: from right to left if most run so, but for those between that do not."""
    backward = sum(word.is_backward for word in line)
    if not backward or backward <= sum(_is_forward(word) for word in line):
        return line
    words = list[Word]()
    for forward, run in groupby(reversed(line), _is_forward):
        part = [*run]
        words += part[::-1] if forward else part
    return words


def _is_forward(word: Word) -> bool:
    return not word.is_backward and any(bidirectional(letter) == "L" for letter in word.text)


def said(line: Line) -> str:
    """What a line says, its words with single spaces."""
    return " ".join(word.text for word in line)


def _gaps(strip: Strip) -> Gaps:
    rights, lefts = [-1e9, *(piece[-1].right for piece in strip)], [*(piece[0].left for piece in strip), 1e9]
    return [(low, high) for low, high in zip(rights, lefts, strict=True) if high > low]


def _inner(gaps: Gaps, words: Line) -> list[float]:
    """The middles of the gaps that have text on both sides."""
    left, right = min(word.left for word in words), max(word.right for word in words)
    return [(low + high) / 2 for low, high in gaps if low >= left and high <= right]


def groups_of(strips: Sequence[Strip]) -> Iterator[tuple[list[Strip], list[float]]]:
    """Strips in a row, and the gaps that go down through all of them, if any."""
    single: list[Strip] = []
    at = 0
    while at < len(strips):
        gaps, inner, end = _gaps(strips[at]), list[float](), at + 1
        words = words_of(strips[at])
        while end < len(strips) and top_of(strips[end]) - bottom_of(strips[end - 1]) < _CLOSE * height_of(strips[end]):
            both = ((max(a, c), min(b, d)) for a, b in gaps for c, d in _gaps(strips[end]))
            least = _NARROW * min(height_of(strips[at]), height_of(strips[end]))
            common = [gap for gap in both if gap[1] - gap[0] >= least]
            more = words + words_of(strips[end])
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


def usual_cuts(strips: Sequence[Strip], cuts: Sequence[float]) -> list[float]:
    """These cuts, and the middles of the gaps that go down through most strips, where none of these is."""
    rows = [strip for strip in strips if len(strip) > 1]
    pieces = [piece for strip in (rows if len(rows) > 2 else strips) for piece in strip]
    edges = sorted([*((piece[0].left, 1) for piece in pieces), *((piece[-1].right, -1) for piece in pieces)])
    most, least = int(ACROSS * len(strips)), 0.6 * GUTTER * median(map(height_of, strips))
    found, covered, low = [*cuts], 0, None
    for at, change in edges:
        if covered <= most < covered + change and low is not None and at - low >= least:
            found += [(low + at) / 2] * (not any(low <= cut <= at for cut in cuts))
        covered += change
        low = at if covered <= most < covered - change else low
    return sorted(found)


def columns_of(strips: Sequence[Strip], cuts: Sequence[float]) -> list[list[Strip]]:
    """The pieces between the cuts, per strip; a strip may have none there."""
    limits = [-1e9, *sorted(cuts), 1e9]
    return [
        [[piece for piece in strip if low <= (piece[0].left + piece[-1].right) / 2 < high] for strip in strips]
        for low, high in pairwise(limits)
    ]
