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
from dataclasses import replace
from itertools import accumulate
from math import exp, inf, log
from typing import NamedTuple

import numpy as np

from quoth.answers.evidence import Source, Spans, Weights, chance, is_within, log_odds, odds_of, quote
from quoth.arrays import Doubles
from quoth.records import Sentence
from quoth.text.boundaries import surface_group
from quoth.text.passages import CELL_END, FIELDS, SHORT, Line, Ranges, is_heading, lines_of, whole_sentences

ITEMS, CHARACTERS, LONGEST = 6, 400, 1000
"""A list with at most this many items or characters may be given whole, if it is not longer than the last."""
NAMED = 0.85
"""The chance that a section answers a question that names it and nothing else."""
_ASKS_FOR_LIST = re.compile(
    r"\b(?:list|ingredients|steps)\b"
    r"|\b(?:what|which)\b(?:\s+\S+){0,3}?\s+(?:are|were)\b"
    r"|\b(?:what|which)\s+(?!(?:is|was|does|has|this)\b)\w+s\b",
    re.IGNORECASE,
)


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
    named: Sequence[Source] = (),
) -> list[Sentence]:
    """The `most` sentences, list items or rows of highest log Σ exp over the odds of the spans inside, best first. A
    short list is one of them as a whole if the question asks for a list, or no item has half of the list's odds.

    Odds are raised by `prior` times the passage's relevance, as in `predict_spans`. The probability is the logistic
    function of `weights` · (1, the log odds of the share of all odds); without weights it is the share. Of equal texts
    the best is listed. The sections that the question has `named` take the place of what is in them; together they have
    the probability `NAMED`.
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
    for n, part, members, mass in sorted(marked, key=lambda each: -each[3])[: 2 * most]:
        share = exp(mass - total)
        probability = share if weights is None else chance(weights, (1.0, log_odds(share)))
        _, *phrase = places[max(members, key=lambda c: score_C[c])]
        found = _sentence(read[n], (part.start, part.end), probability, (phrase[0], phrase[1]))
        best.setdefault(surface_group(found.text), found)
    sections, others = list[Sentence](), [*best.values()]
    for each in named:
        whole = _sentence(each, (0, len(each.passage.text)), NAMED / len(named))
        within = [other for other in others if is_within(other.evidence[0], whole.evidence[0])]
        others = [other for other in others if other not in within]
        sections.append(replace(whole, answer=within[0].answer if within else ""))
    return sorted([*sections, *others], key=lambda each: -each.probability)[:most]


def _sentence(source: Source, place: tuple[int, int], probability: float, phrase: tuple[int, int] = (0, 0)) -> Sentence:
    """Characters of a passage as a sentence, with the phrase in it that answers."""
    passage = source.passage
    text, answer = (" ".join(passage.text[slice(*each)].split()) for each in (place, phrase))
    start, end = (passage.start + at for at in place)
    return Sentence(text, probability, (quote(passage, source.corpus, start, end, probability),), answer)


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
    lines = lines_of(text)
    heads = [is_heading(text, lines, i) for i in range(len(lines))]
    sentences_of = [
        [(line.at + a, line.at + b) for a, b in whole_sentences(text[line.at : line.end])] for line in lines
    ]
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


def _introduces(text: str, line: Line) -> bool:
    return text[line.end - 1] == ":"


def _is_banner(text: str, lines: list[Line], i: int) -> bool:
    """Whether a line has three cells and more, but no row next to it: navigation, the head or foot of a page."""
    above, below = i > 0 and lines[i].above == 1, i + 1 < len(lines) and lines[i + 1].above == 1
    return len(lines) > 1 and not above and not below and len(CELL_END.findall(text, lines[i].start, lines[i].end)) > 1


def _lists(text: str, lines: list[Line], heads: list[bool]) -> Iterator[tuple[int, int]]:
    """Short lists, as ranges of lines: what is indented below a line that ends in a colon; lines with markers and what
    is indented below them; short lines one below the other that are neither sentences nor fields nor rows."""
    headings = {line for line, heads_it in zip(lines, heads, strict=True) if heads_it}

    def plain(line: Line) -> bool:
        body = text[line.start : line.end]
        ends = line in headings or line.at > line.start or body.endswith((".", "!", "?", ":"))
        return not (ends or len(body) > SHORT or FIELDS.search(body))

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
