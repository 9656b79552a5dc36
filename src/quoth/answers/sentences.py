"""What answers a question: a phrase, several that stand in one list, or the sentences in which a reader marks most.

Knows: what counts as a sentence and as a list, which questions ask for several things, and how the odds of phrases
become a list's and a sentence's chance. Does not know: networks, or how the passages were found.

How, why and lists have no short phrase as their answer, but the phrases that a reader likes are in the sentence that
answers: the first sentence by the reader's mass has the answer half again as often as the one that shares most words
with the question (the log has the table).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from math import exp, log

import numpy as np

from quoth.answers.equations import log_sum_exp
from quoth.answers.evidence import (
    Proposal,
    Source,
    Spans,
    chance,
    chosen,
    odds_of,
    predict_spans,
    quote,
    span_proposals,
)
from quoth.records import Prediction, Sentence
from quoth.text.boundaries import breaks_phrase, core, surface_group
from quoth.text.passages import Ranges, crosses_sentence, is_balanced, sentences

Range = tuple[int, int]
"""Characters of a text."""
_LINES = re.compile(r"\s*\n\s*")
_MARKER = re.compile(r"[-*•–][^\S\n]+")
_PLURAL = (
    r"(?!(?:was|does|has|besides|series|species|news)\b)\w+(?<![sui])(?<!ic)s\b(?!\s+(?:the|an?|its|to|for|between)\s)"
)
_HOW_MANY = r"(?:all|any|some|several|two|three|four|five|six|seven|eight|nine|ten|main|major|other|different)"
_SEVERAL = re.compile(
    rf"(?i:(?:\w+\s+)?(?:which|what))\s+(?:(?:(?i:{_HOW_MANY})|[A-Z][\w-]*)\s+){{0,2}}(?i:{_PLURAL})"
    r"|(?i:what|which|who)\s+(?:are|were)\b"
    rf"|(?i:name|list|give)\s+(?:me\s+)?(?:{_HOW_MANY}|the)\s+(?:\w+\s+){{0,3}}?{_PLURAL}"
)
_BETWEEN = re.compile(
    r"(?:\s*(?:[,;|\t]|\n\s*[-*•–](?=\s))\s*(?:(?:and|or|as\s+well\s+as)\s+)?|\s+(?:and|or|as\s+well\s+as)\s+)"
    r"(?:(?:the|an?)\s+)?"
)
"""What stands between two items of a list, in a sentence, a row, or one a line."""
LEAST_ITEM = 0.05
"""The odds of a list's item, as a share of its neighbour's."""


def asks_for_several(question: str) -> bool:
    """Whether a question is put in the plural: "Which countries …", "What are …", "Who were …", "Name the … s"."""
    return _SEVERAL.match(question) is not None


def answer_phrases(
    question: str, read: Sequence[Source], spans: Sequence[Spans], top_k: int, prior: float
) -> list[Prediction]:
    """As `predict_spans`. If the question asks for several things and the best answer stands in a list with others, the
    list is the answer: one quotation, with the sum of its items' odds, and the items as its `parts`."""
    if not asks_for_several(question):
        return predict_spans(read, spans, top_k, prior=prior)
    ranked = span_proposals(read, *odds_of(read, spans, prior), together=True)
    found = [each for each in ranked if is_balanced(each.best.text) and not crosses_sentence(each.best.text)]
    return chosen(_with_lists(found, read, spans), top_k)


def _with_lists(found: list[Proposal], read: Sequence[Source], spans: Sequence[Spans]) -> list[Proposal]:
    """The answers, best first, with lists in place of their items. A list begins with an answer that might be an item
    next to the best one."""
    listed = list[Proposal]()
    least = LEAST_ITEM * found[0].best.probability if found else 0.0
    while found and found[0].best.probability >= least:
        first, found = _listed(found, read, spans)
        listed.append(first)
    return sorted([*listed, *found], key=lambda each: -each.best.log_score)


def _listed(found: list[Proposal], read: Sequence[Source], spans: Sequence[Spans]) -> tuple[Proposal, list[Proposal]]:
    """The list in which the first answer stands, or that answer alone; and the answers that are neither its items nor
    several of these."""
    best, *others = found
    place = best.best.evidence[0]
    at = [(source.corpus, source.passage.row) for source in read].index((place.corpus, place.passage))
    passage = read[at].passage
    items = items_around(passage.text, (place.start - passage.start, place.end - passage.start), spans[at])
    start, end = items[0][0], items[-1][1]
    text = " ".join(passage.text[start:end].split())
    if len(items) == 1 or crosses_sentence(text) or not is_balanced(text):
        return best, others
    names = {_name(passage.text[first:last]) for first, _ in items for _, last in items if first < last}
    inside = [best.best, *(each.best for each in others if _name(each.best.text) in names)]
    probability = sum(each.probability for each in inside)
    quoted = quote(passage, place.corpus, passage.start + start, passage.start + end, probability)
    score = log_sum_exp(np.array([each.log_score for each in inside]))
    parts = tuple(" ".join(passage.text[slice(*item)].split()) for item in items)
    whole = Prediction(text, score, probability, (quoted,), parts=parts)
    return Proposal(whole, lambda: (quoted,)), [each for each in others if _name(each.best.text) not in names]


def _name(text: str) -> int:
    """Equal for texts that say the same."""
    start, end = core(text)
    return surface_group(" ".join(text[start:end].split()))


def items_around(text: str, best: Range, spans: Spans) -> list[Range]:
    """The items, in order, of the list in which the best answer stands: marked spans with commas, "and", "or" between
    them, whose odds are at least `LEAST_ITEM` of their neighbour's. Without a list the best alone."""
    ranges = zip(spans.start_C.tolist(), spans.end_C.tolist(), strict=True)
    odds = dict(zip(ranges, spans.odds_C.tolist(), strict=True))
    items = [best]
    while before := _beside(text, odds, items[0], lambda item, other: (other[1], item[0])):
        items.insert(0, before)
    while after := _beside(text, odds, items[-1], lambda item, other: (item[1], other[0])):
        items.append(after)
    return [part for item in items for part in _split(text, item, odds)]


def _beside(text: str, odds: Mapping[Range, float], item: Range, gap: Callable[[Range, Range], Range]) -> Range | None:
    """The most likely of the spans that are listed next to an item, on the side of this gap."""
    least = odds[item] + log(LEAST_ITEM)
    beside = [other for other in odds if odds[other] >= least and _BETWEEN.fullmatch(text, *gap(item, other))]
    return max(beside, key=odds.__getitem__, default=None)


def _split(text: str, item: Range, odds: Mapping[Range, float]) -> list[Range]:
    """A span as the marked spans that it lists, if it does."""
    start, end = item
    for between in _BETWEEN.finditer(text, start, end):
        if (start, between.start()) in odds and (between.end(), end) in odds:
            return [(start, between.start()), *_split(text, (between.end(), end), odds)]
    return [item]


def answer_sentences(
    read: Sequence[Source], spans: Sequence[Spans], prior: float, weights: tuple[float, float] | None, most: int = 3
) -> list[Sentence]:
    """The `most` sentences, list items or rows of highest log Σ exp over the odds of the spans inside, best first.

    Odds are raised by `prior` times the passage's relevance, as in `predict_spans`. The probability is the logistic
    function of `weights` · (1, the log odds of the share of all odds); without weights it is the share. Of equal texts
    the best is listed.
    """
    fitted = None if weights is None else (*weights, 0.0)
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
        probability = chance(fitted, exp(mass[key] - total), 0.0)
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
