"""From a reader's scores on several passages to answers that show where they occur.

Knows: REALM's marginal over passages (Guu et al. 2020, eq. 1), and grouping of equal answers. Does not know: encoders,
or how the passages were found.

Shape suffixes that differ from the project's: N passages that are read, C places of answers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from quoth.answers.equations import log_sum_exp
from quoth.answers.evidence import Proposal
from quoth.answers.options import TopK
from quoth.answers.ranking import group_equal, group_score
from quoth.corpus.bm25 import PassageRef, Ranking
from quoth.fields import checked
from quoth.records import Evidence, Likelihood, Passage, PassageShare, Prediction
from quoth.text.boundaries import MAY_END, MAY_START, crosses_sentence, is_balanced, surface_group
from quoth.timing import step
from quoth.types import Doubles

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus
    from quoth.reader import network as span_reader
    from quoth.reader.network import Reading
    from quoth.realm import network as reader


@dataclass(frozen=True, slots=True)
class Source:
    """A passage that was read, the name of its corpus, and its relevance: f(x, z), or the log of its BM25 score as a
    share of the best one's."""

    passage: Passage
    corpus: str
    relevance: float = 0.0


def sources_of(ranking: Ranking, corpora: Sequence[Corpus], passage: Callable[[PassageRef], Passage]) -> list[Source]:
    """BM25's best passages, fetched by `passage`, each with the log of its score as a share of the best one's."""
    return [Source(passage(at), corpora[at[0]].name, math.log(score / ranking[0][0])) for score, at in ranking]


@dataclass(frozen=True, slots=True, kw_only=True)
class Read(Source):
    """The texts that REALM's reader saw."""

    reading: Reading


AnswerSpan = tuple[int, int, int]
"""The number of the passage among those read, and a range of characters of its text."""


def predict_answers(
    read: Sequence[Read],
    spans: Sequence[reader.Spans],
    add_relevance: bool,
    top_k: int,
    marginal: bool = False,
    null: float | None = None,
) -> list[Prediction]:
    """The `top_k` answers of highest score: log Σ exp over the spans of equal text, ignoring case and white space.

    A span's score is the reader's, plus its passage's relevance if that is added (ORQA §3), and the probability is the
    share among all spans of all passages, as in the released code. If `marginal`, the score is log p(y|z,x) + log
    p(z|x), each normalised by itself (REALM eq. 1): p(y|z,x) is the share among the spans of one passage, p(z|x) the
    softmax of the relevance of the passages read and, if its relevance `null` is given, of the null document, which has
    no span. If no span is legal, there is no answer.
    """
    with step("score"):
        relevance_N = np.array([each.relevance * add_relevance for each in read])
        log_prior_N, nothing = np.split(_log_retrieval(read, null) if marginal else relevance_N, [len(read)])
        parts = [
            found.score_C + log_prior - (log_sum_exp(found.score_C) if marginal else 0.0)
            for found, log_prior in zip(spans, log_prior_N, strict=True)
        ]
        score_C = np.concatenate([np.zeros(0), *parts])
        total = log_sum_exp(np.concatenate([score_C, nothing]))
    return [each.whole() for each in _proposals(read, _places(spans), score_C, total, top_k)]


def predict_spans(
    read: Sequence[Source],
    spans: Sequence[span_reader.Spans],
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
    1, so that it takes its share p(z|x) from all answers. If the answers are to be `distinct`, only the best of those
    that overlap in their best place is listed, and none with half a pair of brackets or quotes.
    """
    odds = _odds(read, spans, prior, marginal, null)
    return [each.whole() for each in _proposals(read, *odds, top_k, distinct)]


def propose_spans(
    read: Sequence[Source], spans: Sequence[span_reader.Spans], top_k: int, prior: float = 0.0
) -> list[Proposal]:
    """As `predict_spans`, answers that overlap among them, quoted from their best places alone."""
    return _proposals(read, *_odds(read, spans, prior), top_k)


def _odds(
    read: Sequence[Source],
    spans: Sequence[span_reader.Spans],
    prior: float,
    marginal: bool = False,
    null: float | None = None,
) -> tuple[list[AnswerSpan], Doubles, float]:
    """The spans, their log odds, and the log of what all odds sum to, those of "no answer here" among them."""
    with step("score"):
        if marginal:
            raised_N = _log_retrieval(read, null)[: len(read)] - np.array(
                [np.logaddexp(0.0, found.total) for found in spans]
            )
            total = 0.0
        else:
            raised_N = np.array([prior * each.relevance for each in read])
            totals = [found.total + raised for found, raised in zip(spans, raised_N, strict=True)]
            total = log_sum_exp(np.array([0.0, *totals]))
        parts = [found.odds_C + raised for found, raised in zip(spans, raised_N, strict=True)]
        return _places(spans), np.concatenate([np.zeros(0), *parts]), total


def _places(spans: Sequence[reader.Spans | span_reader.Spans]) -> list[AnswerSpan]:
    """The spans of all passages, one passage after another."""
    return [
        (n, start, end)
        for n, found in enumerate(spans)
        for start, end in zip(found.start_C.tolist(), found.end_C.tolist(), strict=True)
    ]


def _log_retrieval(read: Sequence[Source], null: float | None) -> Doubles:
    """log p(z|x): the softmax of relevance over the passages read and, last, a null document's, if given: [N]. REALM
    §3.2."""
    nulls = [] if null is None else [null]
    relevance_N = np.array([*(each.relevance for each in read), *nulls], np.float64)
    log_p_N: Doubles = relevance_N - log_sum_exp(relevance_N)
    return log_p_N


def predict_words(
    read: Sequence[Read], null: float | None, log_p_NV: NDArray[np.float32], top_k: int
) -> list[Prediction]:
    """The `top_k` words y of highest p(y|x) = Σ_z p(y|z,x) p(z|x) (REALM eq. 1), of those that occur in the passages.

    `log_p_NV` are log p(y|z,x) for each passage and, last, for the null document, if its relevance `null` is given. A
    word is a token that is a whole word. Its places share p(y|x), over the whole vocabulary, by p(z|x) p(y|z,x) of
    their passages, evenly within each; words whose spellings differ by more than case are distinct even if their token
    is the same.
    """
    with step("score"):
        joint_NV = _log_retrieval(read, null)[:, None] + log_p_NV
        standing: dict[int, list[AnswerSpan]] = {}
        for n, each in enumerate(read):
            for word, start, end in _words(each.reading):
                standing.setdefault(word, []).append((n, start, end))
        scores = [np.zeros(0)]
        for word, at in standing.items():
            weight_C = _weights(joint_NV[:, word], at)
            scores.append(weight_C - log_sum_exp(weight_C) + log_sum_exp(joint_NV[:, word]))
    places = [place for at in standing.values() for place in at]
    return [each.whole() for each in _proposals(read, places, np.concatenate(scores), 0.0, top_k)]


def explain_likelihood(
    read: Sequence[Read], null: float, answer: str, pieces: Sequence[str], log_p_NM: NDArray[np.float32]
) -> Likelihood:
    """log p(y|x) = log Σ_z p(z|x) Π_m p(y_m|z,x) (REALM eq. 1, §3.2), and each passage's share of the sum.

    `log_p_NM` are log p(y_m|z,x) of the answer's pieces for each passage and, last, for the null document, whose
    relevance is `null`.
    """
    with step("score"):
        log_prior_N = _log_retrieval(read, null)
        log_p_N = log_p_NM.astype(np.float64).sum(axis=1)
        total = log_sum_exp(log_prior_N + log_p_N)
        share_N = np.exp(log_prior_N + log_p_N - total)
    sources = [*((each.passage, each.corpus) for each in read), (None, "")]
    rows = zip(sources, log_prior_N.tolist(), log_p_N.tolist(), share_N.tolist(), strict=True)
    return Likelihood(answer, tuple(pieces), total, tuple(PassageShare(*source, *numbers) for source, *numbers in rows))


def _proposals(
    read: Sequence[Source],
    places: Sequence[AnswerSpan],
    score_C: Doubles,
    total: float,
    top_k: int,
    distinct: bool = False,
) -> list[Proposal]:
    """The `top_k` texts of highest score, log Σ exp over their places; `total` is the log of the sum of all scores.

    `distinct`: texts whose best place overlaps a better text's are left out, and so are those with half a pair of
    brackets or quotes.
    """
    checked("top_k", top_k, TopK, 5)
    with step("score"):
        texts = (" ".join(read[n].passage.text[start:end].split()) for n, start, end in places)
        groups = group_equal(np.array([surface_group(text) for text in texts], np.uint64))
        score_G = group_score(score_C, groups)
        order_G = np.lexsort((groups.first_G, -score_G)).tolist()
        every = ((float(score_G[g]), groups.members(g).tolist()) for g in order_G)
        found = list(islice(_apart(every, read, places, score_C) if distinct else every, top_k))
    with step("explain"):
        return [
            _proposal(read, [places[c] for c in members], score_C[members], score, float(np.exp(score - total)))
            for score, members in found
        ]


def _apart(
    found: Iterable[tuple[float, list[int]]], read: Sequence[Source], places: Sequence[AnswerSpan], score_C: Doubles
) -> Iterator[tuple[float, list[int]]]:
    """The groups, best first, except those whose best place overlaps the best place of a better one, cuts a pair of
    brackets or quotes, or runs across the end of a sentence."""
    taken: list[AnswerSpan] = []
    for score, members in found:
        n, start, end = places[members[int(np.argmax(score_C[members]))]]
        overlaps = any(n == m and start < last and first < end for m, first, last in taken)
        text = read[n].passage.text[start:end]
        if not overlaps and is_balanced(text) and not crosses_sentence(text):
            taken.append((n, start, end))
            yield score, members


def _words(reading: Reading) -> Iterator[tuple[int, int, int]]:
    """The passage's tokens that are whole words: id, characters from start to end."""
    ids_T = reading.pair.ids_T[reading.body : reading.body + len(reading.flags_T)]
    for t in np.flatnonzero((reading.flags_T & MAY_START > 0) & (reading.flags_T & MAY_END > 0)).tolist():
        yield int(ids_T[t]), int(reading.offsets_T2[t, 0]), int(reading.offsets_T2[t, 1])


def _weights(joint_N: Doubles, places: Sequence[AnswerSpan]) -> Doubles:
    """The log of each place's part of its passage's share."""
    count = Counter(n for n, _, _ in places)
    return np.array([joint_N[n] - np.log(count[n]) for n, _, _ in places])


def _proposal(
    read: Sequence[Source], places: Sequence[AnswerSpan], log_weight: Doubles, score: float, probability: float
) -> Proposal:
    """An answer whose places, heaviest first, share its probability by their weights."""
    share = probability * np.exp(log_weight - log_sum_exp(log_weight))
    order = np.argsort(-log_weight, kind="stable").tolist()

    def evidence(most: int | None = None) -> tuple[Evidence, ...]:
        return tuple(_evidence(read[places[i][0]], places[i], float(share[i])) for i in order[:most])

    n, start, end = places[order[0]]
    text = " ".join(read[n].passage.text[start:end].split())
    return Proposal(Prediction(text, score, probability, evidence(1), num_places=len(places)), evidence)


def _evidence(read: Source, place: AnswerSpan, share: float) -> Evidence:
    passage, (_, start, end) = read.passage, place
    return Evidence(
        document_id=passage.document_id,
        title=passage.title,
        passage=passage.row,
        start=passage.start + start,
        end=passage.start + end,
        context=passage.text,
        score=share,
        corpus=read.corpus,
        context_start=passage.start,
    )
