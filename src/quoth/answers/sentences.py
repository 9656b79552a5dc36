"""Sentences that may answer a question: those in which a reader marks most.

Knows: what counts as a sentence, which lines belong together, and how the odds of the phrases inside become a chance.
Does not know: networks, or how the passages were found.

How, why and lists have no short phrase as their answer, but the phrases that a reader likes are in the sentence that
answers: the first sentence by the reader's mass has the answer half again as often as the one that shares most words
with the question (the log has the table).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from math import exp, inf, log
from typing import NamedTuple

import numpy as np

from quoth.answers.evidence import Source, Spans, Weights, chance, log_odds, odds_of, quote
from quoth.arrays import Doubles
from quoth.records import Sentence
from quoth.text.boundaries import surface_group
from quoth.text.passages import Ranges, sentences

SHORT = 60
"""Characters that a heading has at most, and an item of a list without markers."""
WRAPPED = 40
"""Characters that a row of wrapped prose has at least."""
ITEMS, CHARACTERS, LONGEST = 6, 400, 1000
"""A list with at most this many items or characters may be given whole, if it is not longer than the last."""
_MARKER = re.compile(r"(?:[-*•–]|\(?\d{1,2}[.)])[^\S\n]+(?=\S)")
_ROW = re.compile(r"\t|(?:^|\s)\||\|$|^[^,]*,[^,\s][^,]*,\S")
_CELL_END = re.compile(r"\t|\s\||(?<=[^\s.!?:]) {2,}")
_FIELDS = re.compile(rf"{_ROW.pattern}|{_CELL_END.pattern}|:\s")
_MARKDOWN = re.compile(r"#{1,6}\s")
_STOP = re.compile(r"[.!?…。！？][\"'”’»)\]]*(?:\s|$)|[,;]$")
_ASKS_FOR_LIST = re.compile(
    r"\b(?:list|ingredients|steps)\b"
    r"|\b(?:what|which)\b(?:\s+\S+){0,3}?\s+(?:are|were)\b"
    r"|\b(?:what|which)\s+(?!(?:is|was|does|has|this)\b)\w+s\b",
    re.IGNORECASE,
)


class Line(NamedTuple):
    """Characters of a line, or of several that prose is wrapped into: its text begins at `at`, after a list marker, in
    `column` of the page, and it has `above` line ends before it."""

    start: int
    at: int
    end: int
    column: int
    above: int


class Part(NamedTuple):
    """Characters of a text that may answer, and the pieces of the text in it, from `first` to before `last`."""

    start: int
    end: int
    first: int
    last: int


class Cut(NamedTuple):
    """The pieces of a text, in order: sentences, list items without their markers, rows, headings; the parts that may
    answer; and the short lists, each with the line that introduces it."""

    pieces: Ranges
    parts: list[Part]
    lists: list[Part]


def answer_sentences(
    read: Sequence[Source],
    spans: Sequence[Spans],
    prior: float,
    weights: Weights | None,
    most: int = 3,
    question: str = "",
) -> list[Sentence]:
    """The `most` sentences, list items or rows of highest log Σ exp over the odds of the spans inside, best first. A
    short list is one of them as a whole if the question asks for a list, or no item has half of the list's odds.

    Odds are raised by `prior` times the passage's relevance, as in `predict_spans`. The probability is the logistic
    function of `weights` · (1, the log odds of the share of all odds); without weights it is the share. Of equal texts
    the best is listed.
    """
    places, score_C, total = odds_of(read, spans, prior)
    cuts = [cut(source.passage.text) for source in read]
    inside: list[defaultdict[int, list[int]]] = [defaultdict(list) for _ in read]
    for c, (n, start, end) in enumerate(places):
        at = bisect_right(cuts[n].pieces, start, key=lambda piece: piece[0]) - 1
        if at >= 0 and end <= cuts[n].pieces[at][1]:
            inside[n][at].append(c)
    asks_for_list = bool(_ASKS_FOR_LIST.search(question))
    marked = [
        (n, part, members, _mass(score_C, members))
        for n, held in enumerate(inside)
        for part, members in _marked(cuts[n], held, score_C, asks_for_list).items()
    ]
    best: dict[int, Sentence] = {}
    for n, part, members, mass in sorted(marked, key=lambda each: -each[3]):
        passage = read[n].passage
        text = " ".join(passage.text[part.start : part.end].split())
        share = exp(mass - total)
        probability = share if weights is None else chance(weights, (1.0, log_odds(share)))
        place = quote(passage, read[n].corpus, passage.start + part.start, passage.start + part.end, probability)
        _, *phrase = places[max(members, key=lambda c: score_C[c])]
        answer = " ".join(passage.text[slice(*phrase)].split())
        best.setdefault(surface_group(text), Sentence(text, probability, (place,), answer))
        if len(best) == most:
            break
    return list(best.values())


def _mass(score_C: Doubles, members: Sequence[int]) -> float:
    return float(np.logaddexp.reduce(score_C[list(members)]))


def _marked(text: Cut, inside: dict[int, list[int]], score_C: Doubles, asks_for_list: bool) -> dict[Part, list[int]]:
    """The parts of a text with marked spans, and these; a list that is given whole in place of its items."""

    def of(part: Part) -> list[int]:
        return [c for at in range(part.first, part.last) for c in inside.get(at, ())]

    found = {part: members for part in text.parts if (members := of(part))}
    for whole in text.lists:
        members, items = of(whole), [part for part in found if whole.first <= part.first < whole.last]
        most = max((_mass(score_C, found[item]) for item in items), default=-inf)
        if members and (asks_for_list or most < _mass(score_C, members) - log(2)):
            for item in items:
                del found[item]
            found[whole] = members
    return found


def cut(text: str) -> Cut:
    """What of a text may answer.

    A heading may only along with a line indented below it, or with a list as a whole; so may a line that ends in a
    colon, along with what follows.
    """
    lines = _lines(text)
    heads = [_is_heading(text, lines, i) for i in range(len(lines))]
    sentences_of = [[(line.at + a, line.at + b) for a, b in sentences(text[line.at : line.end])] for line in lines]
    first = [0, *accumulate(map(len, sentences_of))]
    pieces = [piece for group in sentences_of for piece in group]
    lists, parts = [], []
    for i, j in _lists(text, lines, heads):
        leads = i > 0 and (heads[i - 1] or _introduces(text, lines[i - 1]))
        start = pieces[first[i] - 1][0] if leads else lines[i].start
        lists.append(Part(start, lines[j - 1].end, first[i] - leads, first[j]))
    for i, line in enumerate(lines):
        if heads[i] or _is_banner(text, lines, i):
            continue
        above = lines[i - 1] if i and heads[i - 1] and line.at == line.start else None
        under = above is not None and (line.column > above.column or _introduces(text, above))
        for at in range(first[i], first[i + 1]):
            since = at - (under and at == first[i])
            if text[pieces[at][1] - 1] != ":" or len(pieces) == 1:
                parts.append(Part(pieces[since][0], pieces[at][1], since, at + 1))
    return Cut(pieces, parts, lists)


def _lines(text: str) -> list[Line]:
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
        if i and _goes_on(text, rows[i - 1], line, widths[block]):
            lines[-1] = lines[-1]._replace(end=line.end)
        else:
            lines.append(line)
    return lines


def _goes_on(text: str, row: Line, following: Line, width: int) -> bool:
    """Whether prose is wrapped between two rows of a block of this width: the second begins with a lower-case letter,
    or its first word had no room in the first."""
    length = row.column + row.end - row.start
    if following.above != 1 or following.at > following.start or length < WRAPPED:
        return False
    if _ROW.search(text[row.start : row.end]):
        return False
    if text[following.start].islower():
        return True
    flush = following.column in (row.column, row.column + row.at - row.start)
    word = text[following.start : following.end].split(maxsplit=1)[0]
    return flush and text[row.end - 1] not in ".!?:;" and length + 1 + len(word) > width


def _introduces(text: str, line: Line) -> bool:
    return text[line.end - 1] == ":"


def _is_heading(text: str, lines: list[Line], i: int) -> bool:
    """Whether a line is the heading of what is below it: of Markdown; or a short one without a full stop that ends in a
    colon, has a line indented below it, or begins with a capital after an empty line and is followed by an empty line,
    a longer one or nothing."""
    line, body = lines[i], text[lines[i].start : lines[i].end]
    if line.at > line.start or len(lines) == 1:
        return False
    if _MARKDOWN.match(body):
        return True
    if len(body) > SHORT or _STOP.search(body) or _FIELDS.search(body):
        return False
    if body.endswith(":"):
        return True
    below = lines[i + 1] if i + 1 < len(lines) else None
    if below is not None and below.column > line.column:
        return True
    if line.above == 1 or not body[0].isalnum() or body[0].islower():
        return False
    return below is None or below.above > 1 or below.end - below.start > SHORT


def _is_banner(text: str, lines: list[Line], i: int) -> bool:
    """Whether a line has three cells and more, but no row next to it: navigation, the head or foot of a page."""
    above, below = i > 0 and lines[i].above == 1, i + 1 < len(lines) and lines[i + 1].above == 1
    return len(lines) > 1 and not above and not below and len(_CELL_END.findall(text, lines[i].start, lines[i].end)) > 1


def _lists(text: str, lines: list[Line], heads: list[bool]) -> Iterator[tuple[int, int]]:
    """Short lists, as ranges of lines: what is indented below a line that ends in a colon; lines with markers and what
    is indented below them; short lines one below the other that are neither sentences nor fields nor rows."""
    headings = {line for line, heads_it in zip(lines, heads, strict=True) if heads_it}

    def plain(line: Line) -> bool:
        body = text[line.start : line.end]
        ends = line in headings or line.at > line.start or body.endswith((".", "!", "?", ":"))
        return not (ends or len(body) > SHORT or _FIELDS.search(body))

    def up_to(i: int, belongs: Callable[[Line], bool]) -> int:
        return next((j for j in range(i + 1, len(lines)) if not belongs(lines[j])), len(lines))

    def block(i: int, top: Line) -> int:
        return up_to(i, lambda line: line.column >= top.column)

    def run(i: int, top: Line) -> int:
        if top.at > top.start:
            return up_to(i, lambda line: line.at > line.start or (line.above == 1 and line.column > top.column))
        return up_to(i, lambda line: line.above == 1 and plain(line)) if plain(top) else i + 1

    def is_short(i: int, j: int) -> bool:
        size = lines[j - 1].end - lines[i].start
        return size <= CHARACTERS or (j - i <= ITEMS and size <= LONGEST)

    i = 0
    while i < len(lines):
        below = i > 0 and _introduces(text, lines[i - 1]) and lines[i].column > lines[i - 1].column
        end = block(i, lines[i]) if below else i
        if not below or not is_short(i, end):
            below, end = False, run(i, lines[i])
        if below or (end - i > 1 and is_short(i, end)):
            yield i, end
        i = end
