"""Sentences that may answer a question: those in which a reader marks most.

Knows: what counts as a sentence, and how the odds of the phrases in it become its chance. Does not know: networks, or
how the passages were found.

How, why and lists have no short phrase as their answer, but the phrases that a reader likes are in the sentence that
answers: the first sentence by the reader's mass has the answer half again as often as the one that shares most words
with the question (the log has the table).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from math import exp

import numpy as np

from quoth.answers.evidence import Source, Spans, Weights, chance, log_odds, odds_of, quote
from quoth.records import Sentence
from quoth.text.boundaries import breaks_phrase, surface_group
from quoth.text.passages import Ranges, sentences

_LINES = re.compile(r"\s*\n\s*")
_MARKER = re.compile(r"[-*•–][^\S\n]+")


def answer_sentences(
    read: Sequence[Source], spans: Sequence[Spans], prior: float, weights: Weights | None, most: int = 3
) -> list[Sentence]:
    """The `most` sentences, list items or rows of highest log Σ exp over the odds of the spans inside, best first.

    Odds are raised by `prior` times the passage's relevance, as in `predict_spans`. The probability is the logistic
    function of `weights` · (1, the log odds of the share of all odds); without weights it is the share. Of equal texts
    the best is listed.
    """
    places, score_C, total = odds_of(read, spans, prior)
    ranges = [lines_and_sentences(source.passage.text) for source in read]
    inside: dict[tuple[int, int], list[int]] = {}
    for c, (n, start, end) in enumerate(places):
        at = bisect_right(ranges[n], start, key=lambda each: each[0]) - 1
        if at >= 0 and end <= ranges[n][at][1]:
            inside.setdefault((n, at), []).append(c)
    mass = {key: float(np.logaddexp.reduce(score_C[members])) for key, members in inside.items()}
    found: dict[int, Sentence] = {}
    for key in sorted(mass, key=lambda each: -mass[each]):
        (n, at), passage = key, read[key[0]].passage
        start, end = ranges[n][at]
        text = " ".join(passage.text[start:end].split())
        share = exp(mass[key] - total)
        probability = share if weights is None else chance(weights, (1.0, log_odds(share)))
        place = quote(passage, read[n].corpus, passage.start + start, passage.start + end, probability)
        _, *best = places[max(inside[key], key=lambda c: score_C[c])]
        answer = " ".join(passage.text[slice(*best)].split())
        found.setdefault(surface_group(text), Sentence(text, probability, (place,), answer))
        if len(found) == most:
            break
    return list(found.values())


def lines_and_sentences(text: str) -> Ranges:
    """The character ranges of a text's sentences, cut at the ends of lines that are not wrapped prose: list items
    without their markers, rows of a table, headings."""
    ranges = []
    for first, last in sentences(text):
        at = first + _marker(text, first)
        for match in _LINES.finditer(text, first, last):
            if breaks_phrase(text, *match.span()):
                ranges.append((at, match.start()))
                at = match.end() + _marker(text, match.end())
        ranges.append((at, last))
    return [(start, end) for start, end in ranges if start < end]


def _marker(text: str, start: int) -> int:
    """How long the marker of a list item is that begins here."""
    found = _MARKER.match(text, start)
    return len(found[0]) if found else 0
