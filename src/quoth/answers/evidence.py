"""From scores to predictions: phrases scored by NPM, or spans marked by a reader, quoted where they occur, with their
chance of being right.

Knows: grouping of equal spans, the marginal over passages (REALM, Guu et al. 2020, eq. 1), how phrases are quoted from
their passages, and that most of what is proposed is never shown. Does not know: encoders, how a score came about, or
how the passages were found.

Shape suffixes that differ from the project's: M places of a phrase, N passages that are read, C places of spans.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, islice
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from quoth.answers.equations import log_sum_exp
from quoth.answers.ranking import (
    Best,
    Groups,
    Occurrences,
    Places,
    Scored,
    best_phrases,
    group_equal,
    group_score,
    merge_mentions,
    places_of,
)
from quoth.arrays import Doubles, Rows
from quoth.index.key_table import passage_of
from quoth.records import Evidence, Passage, Prediction, Status, in_context, quote_of
from quoth.text.boundaries import surface_group
from quoth.text.passages import crosses_sentence, is_balanced, is_mark_of_item
from quoth.timing import step

if TYPE_CHECKING:
    from quoth.answers.options import ResolvedOptions
    from quoth.corpus.bm25 import Ranking
    from quoth.corpus.corpus import Corpus

Weights = tuple[float, ...]
"""Of the first of an answer's `features`."""
RIVALS = 5
"""Answers whose chances are weighed against each other, however few are asked for."""
_LEAST = 1e-6


@dataclass(frozen=True, slots=True)
class Proposal:
    """A phrase that may be an answer, quoted from its best place alone. Its other places are read only if it is one."""

    best: Prediction
    evidence: Callable[[], tuple[Evidence, ...]]

    def whole(self) -> Prediction:
        """The prediction with all places to be shown."""
        with step("explain"):
            return replace(self.best, evidence=self.evidence())


def chosen(proposals: Iterable[Proposal], top_k: int, distinct: bool = True) -> list[Prediction]:
    """The `top_k` best proposals, with all places to be shown; if `distinct`, none that overlaps a better one."""
    return [each.whole() for each in islice(_apart(proposals) if distinct else proposals, top_k)]


def _apart(proposals: Iterable[Proposal]) -> Iterator[Proposal]:
    """The proposals, best first, except those whose best place overlaps the best place of a better one, that run across
    the end of a sentence, or that are the number of a section or of an item."""
    taken: list[Evidence] = []
    for each in proposals:
        place = each.best.evidence[0]
        is_mark = is_mark_of_item(place.context, *in_context(place))
        if not (is_mark or crosses_sentence(each.best.text) or any(_overlap(place, other) for other in taken)):
            taken.append(place)
            yield each


def _overlap(one: Evidence, other: Evidence) -> bool:
    same = (one.corpus, one.document_id) == (other.corpus, other.document_id)
    return same and one.start < other.end and other.start < one.end


def propose(scored: Scored, options: ResolvedOptions) -> Iterator[Proposal]:
    """The `top_k` phrases of highest score, ties by first occurrence; equal keys are one phrase.

    Passages are read lazily and cached.
    """
    if not len(scored.key_C):
        return
    with step("score"):
        ranked = best_phrases(scored, options)
    # A generator: most proposals are compared by their best place alone, so one place of each is read, and the others
    # only of what is shown.
    quoter = Quoter(ranked.occurrences)
    for each in ranked.best:
        with step("explain"):
            places = places_of(ranked.occurrences, ranked.groups, each.group, each.probability)
            prediction = quoted(each, quoter.quotes(places, 1))
        yield Proposal(prediction, partial(quoter.evidence, places, options.max_evidence))


def quoted(best: Best, quotes: Quotes) -> Prediction:
    """The phrase as it occurs in its first place, with single spaces."""
    text = " ".join(quote_of(quotes.evidence[0]).split())
    return Prediction(text, best.score, best.probability, quotes.evidence, num_places=quotes.num_places)


def quote(passage: Passage, corpus: str, start: int, end: int, share: float) -> Evidence:
    """One place, by the characters of its document, that has this share of a probability."""
    return Evidence(
        document_id=passage.document_id,
        title=passage.title,
        passage=passage.row,
        start=start,
        end=end,
        context=passage.text,
        score=share,
        corpus=corpus,
        context_start=passage.start,
        source_map=passage.source_map,
        path=passage.path(start),
    )


@dataclass(frozen=True, slots=True)
class Quotes:
    """A phrase's best places, with their shares of its probability, and how many places it has."""

    evidence: tuple[Evidence, ...] = ()
    num_places: int = 0


class Quoter:
    """Turns occurrences into evidence, reading each passage once."""

    def __init__(self, occurrences: Occurrences) -> None:
        self._occurrences = occurrences
        self._passages: dict[tuple[int, int], Passage] = {}

    def quotes(self, places: Places, most: int | None = None) -> Quotes:
        """The first `most` places (None: all), quoted, and how many there are."""
        return Quotes(self.evidence(places, most), len(places.candidate_M))

    def evidence(self, places: Places, most: int | None = None) -> tuple[Evidence, ...]:
        """The first `most` places (None: all), quoted."""
        candidate_M, share_M = places.candidate_M[:most], places.share_M[:most]
        part_M = self._occurrences.part_C[candidate_M]
        local_M, start_M, end_M = (np.zeros(len(part_M), np.int64) for _ in range(3))
        for part in np.unique(part_M):
            keys, here = self._occurrences.parts[part], part_M == part
            rows = self._occurrences.start_C[candidate_M[here]]
            local_M[here] = passage_of(keys.offsets_P1, rows)
            start_M[here] = keys.start_N[rows]
            end_M[here] = keys.end_N[self._occurrences.end_C[candidate_M[here]]]
        rows = zip(*(x.tolist() for x in (part_M, local_M, start_M, end_M, share_M)), strict=True)
        return tuple(
            quote(self._passage(part, local), self._occurrences.parts[part].corpus.name, *place)
            for part, local, *place in rows
        )

    def _passage(self, part: int, local: int) -> Passage:
        found = self._passages.get((part, local))
        if found is None:
            found = self._passages[part, local] = self._occurrences.parts[part].passage(local)
        return found


@dataclass(frozen=True, slots=True)
class Source:
    """A passage that was read, the name of its corpus, its relevance: f(x, z), or the log of its BM25 score as a share
    of the best one's; and the number of passages among which it was found."""

    passage: Passage
    corpus: str
    relevance: float = 0.0
    among: int = 1


def sources_of(ranking: Ranking, passages: Sequence[Passage], corpora: Sequence[Corpus], among: int) -> list[Source]:
    """BM25's best passages `among` so many, each with the log of its score as a share of the best one's."""
    return [
        Source(passage, corpora[number].name, math.log(score / ranking[0][0]), among)
        for passage, (score, (number, _)) in zip(passages, ranking, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class Spans:
    """Spans that a reader marked in a passage, as characters from start to end, and their log odds against "no answer
    here" (REALM's reader, which knows no such thing: their scores): [C] each.

    `total` is log Σ exp of the odds of all its legal spans, marked or not. If the reader scores them: `relevance` are
    the log odds that the passage answers; `marks` its tokens as characters [T, 2], and the log odds that each is part
    of the evidence [T].
    """

    start_C: Rows
    end_C: Rows
    odds_C: Doubles
    total: float
    relevance: float = 0.0
    marks: tuple[NDArray[np.int64], Doubles] | None = None


AnswerSpan = tuple[int, int, int]
"""The number of the passage among those read, and a range of characters of its text."""


def predict_spans(
    read: Sequence[Source],
    spans: Sequence[Spans],
    top_k: int,
    distinct: bool = True,
    prior: float = 0.0,
    marginal: bool = False,
    null: float | None = None,
) -> list[Prediction]:
    """The `top_k` answers of a span reader: the odds of spans with equal text, ignoring case and white space, add up.

    `prior` times a passage's relevance is added to the log odds of its spans. Probability is the share among all spans
    of all passages and "no answer here", whose odds are 1: one normalisation over everything that was read. If
    `marginal` (REALM eq. 1), each passage is normalised by itself, with its own "no answer here": p(y|z,x) = Σ exp odds
    of y / (1 + Σ exp odds of all its spans). It is weighted by p(z|x), the softmax of relevance; `prior` is not used.
    `null` is the relevance of the null document, if that is one of z: an empty passage, in which p("no answer here") is
    1, so that it takes its share p(z|x) from all answers. If the answers are to be `distinct`, texts that say the same
    are one answer (`merge_mentions`; not if `marginal`, as eq. 1 knows equal texts alone), only the best of those
    that overlap in their best place is listed, and none with half a pair of brackets or quotes.
    """
    found = span_proposals(read, *odds_of(read, spans, prior, marginal, null), together=distinct and not marginal)
    if distinct:
        found = (each for each in found if is_balanced(each.best.text))
    return chosen(found, top_k, distinct)


def propose_spans(read: Sequence[Source], spans: Sequence[Spans], top_k: int, prior: float = 0.0) -> list[Proposal]:
    """As `predict_spans`, answers that overlap among them, quoted from their best places alone."""
    return list(islice(span_proposals(read, *odds_of(read, spans, prior)), top_k))


def odds_of(
    read: Sequence[Source],
    spans: Sequence[Spans],
    prior: float,
    marginal: bool = False,
    null: float | None = None,
) -> tuple[list[AnswerSpan], Doubles, float]:
    """The spans, their log odds, and the log of what all odds sum to, those of "no answer here" among them."""
    with step("score"):
        if marginal:
            raised_N = log_retrieval(read, null)[: len(read)] - np.array(
                [np.logaddexp(0.0, found.total) for found in spans]
            )
            total = 0.0
        else:
            raised_N = np.array([prior * each.relevance for each in read])
            totals = [found.total + raised for found, raised in zip(spans, raised_N, strict=True)]
            total = float(np.logaddexp.reduce([0.0, *totals]))
        parts = [found.odds_C + raised for found, raised in zip(spans, raised_N, strict=True)]
        return places_in(spans), np.concatenate([np.zeros(0), *parts]), total


def settled(read: Sequence[Source], spans: Sequence[Spans], prior: float, bound: float) -> bool:
    """Whether the best answer in the first passages of `read`, of which there are `spans`, stays the best whatever the
    others say: even if all they say, each log odds of `bound` and its prior, went to the second best."""
    places, score_C, _ = odds_of(read[: len(spans)], spans, prior)
    with step("score"):
        unread = bound + log_sum_exp(np.array([prior * each.relevance for each in read[len(spans) :]]))
        _, score_G = _by_text([read[n].passage.text[start:end] for n, start, end in places], score_C)
        second, best = np.sort(np.concatenate([[-np.inf] * 2, score_G]))[-2:]
        return bool(best > np.logaddexp(second, unread))


def _by_text(texts: Sequence[str], score_C: Doubles) -> tuple[Groups, Doubles]:
    """Places of equal text, ignoring case and white space, and log Σ exp of their scores."""
    groups = group_equal(np.array([surface_group(" ".join(text.split())) for text in texts], np.uint64))
    return groups, group_score(score_C, groups)


def places_in(spans: Sequence[Spans]) -> list[AnswerSpan]:
    """The spans of all passages, one passage after another."""
    return [
        (n, start, end)
        for n, found in enumerate(spans)
        for start, end in zip(found.start_C.tolist(), found.end_C.tolist(), strict=True)
    ]


def log_retrieval(read: Sequence[Source], null: float | None) -> Doubles:
    """log p(z|x): the softmax of relevance over the passages read and, last, a null document's, if given: [N]. REALM
    §3.2."""
    nulls = [] if null is None else [null]
    relevance_N = np.array([*(each.relevance for each in read), *nulls], np.float64)
    log_p_N: Doubles = relevance_N - np.logaddexp.reduce(relevance_N)
    return log_p_N


def span_proposals(
    read: Sequence[Source], places: Sequence[AnswerSpan], score_C: Doubles, total: float, together: bool = False
) -> Iterator[Proposal]:
    """The texts of these places, ignoring case and white space, by log Σ exp over their places, highest first; `total`
    is the log of the sum of all scores. If `together`, texts of one mention are one (`merge_mentions`)."""
    with step("score"):
        texts = [read[n].passage.text[start:end] for n, start, end in places]
        groups, score_G = _by_text(texts, score_C)
        scores = dict(enumerate(score_G.tolist()))
        if together:
            scores = merge_mentions(scores, groups, places.__getitem__, lambda c: is_balanced(texts[c]))
        order = sorted(scores, key=lambda g: (-scores[g], groups.first_G[g]))
    for g in order:
        with step("explain"):
            score, member_M = scores[g], groups.members(g)
            best = Best(g, score, float(np.exp(score - total)))
            proposal = _of_spans(read, [places[c] for c in member_M.tolist()], score_C[member_M], best)
        yield proposal


def _of_spans(read: Sequence[Source], places: Sequence[AnswerSpan], log_weight_M: Doubles, best: Best) -> Proposal:
    """An answer whose places, heaviest first, share its probability by their weights."""
    share_M = best.probability * np.exp(log_weight_M - np.logaddexp.reduce(log_weight_M))
    order = np.argsort(-log_weight_M, kind="stable").tolist()

    def evidence(most: int | None = None) -> tuple[Evidence, ...]:
        shown = ((*places[m], float(share_M[m])) for m in order[:most])
        return tuple(
            quote(read[n].passage, read[n].corpus, read[n].passage.start + start, read[n].passage.start + end, share)
            for n, start, end, share in shown
        )

    return Proposal(quoted(best, Quotes(evidence(1), len(places))), evidence)


def features(answer: Prediction, read: Sequence[Source] = (), spans: Sequence[Spans] = ()) -> tuple[float, ...]:
    """Features for calibration: bias (1); log odds of the answer's share among all; its score; the search relevance of
    its best place's passage, if that was `read`; shortness, minus the log of its number of words; fewness, minus the
    log of the number of passages that could mislead; and, if the reader scores them, that passage's relevance and the
    log of the evidence in the phrase."""
    place = answer.evidence[0]
    at = next((n for n, one in enumerate(read) if _is_of(place, one)), -1)
    relevance = read[at].relevance if at >= 0 else 0.0
    short, few = -math.log(len(answer.text.split())), -math.log(read[0].among) if read else 0.0
    own = (1.0, log_odds(answer.probability), answer.log_score, relevance, short, few)
    if not 0 <= at < len(spans) or spans[at].marks is None:
        return own
    begin = read[at].passage.start
    return (*own, spans[at].relevance, math.log(evidence_in(spans[at], place.start - begin, place.end - begin)))


def evidence_in(spans: Spans, start: int, end: int) -> float:
    """The mean probability of the tokens of these characters to be evidence, at least one in a million."""
    assert spans.marks is not None
    offsets_T2, marks_T = spans.marks
    inside_T = (offsets_T2[:, 1] > start) & (offsets_T2[:, 0] < end)
    return max(float((1 / (1 + np.exp(-marks_T[inside_T]))).mean()), _LEAST) if inside_T.any() else _LEAST


def _is_of(place: Evidence, source: Source) -> bool:
    return (place.corpus, place.passage) == (source.corpus, source.passage.row)


def log_odds(share: float) -> float:
    """log(p / (1 - p)), of a share between one in a million and all but that."""
    share = min(max(share, _LEAST), 1 - _LEAST)
    return math.log(share) - math.log1p(-share)


def chance(weights: Weights, features: Sequence[float]) -> float:
    """The logistic function of the first features, as many as have a weight, times their weights."""
    logit = sum(w * x for w, x in zip(weights, features, strict=False))
    return 1 / (1 + math.exp(-min(max(logit, -50.0), 50.0)))


def calibrated(
    found: Iterable[Prediction],
    weights: Weights | None,
    read: Sequence[Source],
    min_probability: float,
    not_found_below: float = 0.0,
    spans: Sequence[Spans] = (),
) -> list[Prediction]:
    """The predictions with the chance of being right as their probability (without weights: the share) and with their
    status; `read` are the passages they were found in, with their `spans`.

    Predictions contradict each other: none is likelier than the one before, and if the chances of all add up to more
    than 1, each is its share of their sum.
    Shares of places are scaled alike. From `min_probability` on a prediction is answered. The others are unsure; or not
    found, if even the best chance is below both thresholds.
    """
    found = list(found)
    if weights is not None:
        chances = [*accumulate((chance(weights, features(each, read, spans)) for each in found), min)]
        total = max(math.fsum(chances), 1.0)
        found = [each.with_probability(one / total) for each, one in zip(found, chances, strict=True)]
    best = max((each.probability for each in found), default=0.0)
    below: Status = "not_found" if best < min(not_found_below, min_probability) else "unsure"
    return [replace(each, status="answered" if each.probability >= min_probability else below) for each in found]
