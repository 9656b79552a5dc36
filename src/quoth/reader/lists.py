"""Several right answers that one list of a text gives are one answer.

Knows: which questions ask for several things, or for yes or no, and what stands between the items of a list. Does not
know: networks, or how the passages were found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import log

import numpy as np

from quoth.answers.equations import log_sum_exp
from quoth.answers.evidence import (
    Proposal,
    Source,
    Spans,
    chosen,
    is_within,
    odds_of,
    predict_spans,
    quote,
    span_proposals,
)
from quoth.records import Prediction, Sentence, quote_of
from quoth.text.boundaries import core, surface_group
from quoth.text.passages import crosses_sentence, is_balanced, lines_of

Range = tuple[int, int]
"""Characters of a text."""
_PLURAL = (
    r"(?!(?:was|does|has|besides|series|species|news)\b)\w+(?<![sui])(?<!ic)s\b(?!\s+(?:the|an?|its|to|for|between)\s)"
)
_HOW_MANY = r"(?:all|any|some|several|two|three|four|five|six|seven|eight|nine|ten|main|major|other|different)"
_SEVERAL = re.compile(
    rf"(?i:(?:\w+\s+)?(?:which|what))\s+(?:(?:(?i:{_HOW_MANY})|[A-Z][\w-]*)\s+){{0,2}}(?i:{_PLURAL})"
    r"|(?i:what|which|who)\s+(?:are|were)\b"
    rf"|(?i:name|list|give)\s+(?:me\s+)?(?:{_HOW_MANY}|the)\s+(?:\w+\s+){{0,3}}?{_PLURAL}"
)
_FOR_ALL = re.compile(
    r"(?:please\s+)?(?:how\s+(?!big|deep|far|high|large|late|long|many|much|often|old|soon|tall|wide)"
    r"|what\s+(?:are|can|do|does|happens|has|have|must|should)\b"
    r"|what(?:\s+is|['’]s)\s+the\s+(?:method|procedure)\b|(?:describe|explain|give|list|name|read|show|tell)\b)",
    re.IGNORECASE,
)
"""What questions begin with that want to be told all."""
_YES_OR_NO = re.compile(
    r"(?:is|are|am|was|were|do|does|did|has|have|had|can|could|will|would|shall|should|may|might|must)(?:n['’]t)?\s"
    r"(?!.*\b(?:or|who|whom|whose|what|which|when|where|why|how)\b)",
    re.IGNORECASE | re.DOTALL,
)
_BETWEEN = re.compile(
    r"(?:\s*(?:[,;|\t]|\n\s*(?:[-*•–]|\d{1,3}[.)])(?=\s))\s*(?:(?:and|or|as\s+well\s+as)\s+)?"
    r"|\s+(?:and|or|as\s+well\s+as)\s+)(?:(?:the|an?)\s+)?"
)
"""What stands between two items of a list, in a sentence, a row, or one a line."""
LEAST_ITEM = 0.05
"""The odds of a list's item, as a share of its neighbour's."""


def asks_for_several(question: str) -> bool:
    """Whether a question is put in the plural: "Which countries …", "What are …", "Who were …", "Name the … s"."""
    return _SEVERAL.match(question) is not None


def asks_yes_or_no(question: str) -> bool:
    """Whether the answer to a question is yes or no: "Is …", "Do …", without an "or" or another question inside."""
    return _YES_OR_NO.match(question) is not None


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


def with_whole(
    question: str, phrases: Sequence[Prediction], best: Sentence, named: Sequence[Source] = ()
) -> list[Prediction]:
    """The answers, best first, behind what the question asks for as a whole, if that is the best sentence: a list with
    several items, which are its `parts`, around the best phrase; or a section that the question names."""
    if not phrases or not (asks_for_several(question) or _FOR_ALL.match(question)):
        return [*phrases]
    [place] = best.evidence
    text = quote_of(place)
    items = [text[line.at : line.end] for line in lines_of(text) if line.at > line.start]
    is_list = len(items) > 1 and asks_for_several(question) and is_within(phrases[0].evidence[0], place)
    if not is_list and (place.document_id, place.start) not in {
        (n.passage.document_id, n.passage.start) for n in named
    }:
        return [*phrases]
    whole = replace(
        phrases[0],
        text=best.text,
        probability=best.probability,
        evidence=(place,),
        num_places=1,
        status="answered",
        parts=tuple(" ".join(item.split()) for item in items),
    )
    return [whole, *(each for each in phrases if not is_within(each.evidence[0], place))]


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
