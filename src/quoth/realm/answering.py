"""How a REALM answers from the passages that it found.

Knows: eq. 1 of REALM (Guu et al. 2020) over the readings: spans, words of a blank, the likelihood of an answer. Does
not know: how passages are found, the reader that a REALM was trained with (`own_reader`). numpy only.

Shape suffixes that differ from the project's: N passages that are read, C places of answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quoth.answers.equations import log_sum_exp
from quoth.answers.evidence import (
    AnswerSpan,
    Source,
    Spans,
    chosen,
    log_retrieval,
    places_in,
    span_proposals,
)
from quoth.corpus.bm25 import Ranking
from quoth.datasets.judging import normalise
from quoth.reader.spans import Reading
from quoth.records import Likelihood, Passage, PassageShare, Prediction
from quoth.text.boundaries import MAY_END, MAY_START
from quoth.timing import step


@dataclass(frozen=True, slots=True)
class EncodedQuery:
    """A question, or a text with masks: its token ids, cut to what is read, its vector [D], and the passages nearest to
    it."""

    text: str
    ids: Sequence[int]
    vector_D: NDArray[np.float32]
    places: Ranking


@dataclass(frozen=True, slots=True)
class How:
    """How answers are read and combined: their number; by eq. 1 or by one softmax; the relevance of the null document,
    None if it is not one of z."""

    top_k: int
    marginal: bool
    null: float | None = None


def predict_answers(
    read: Sequence[Source],
    spans: Sequence[Spans],
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
        relevance_N = np.array([source.relevance * add_relevance for source in read])
        log_prior_N, nothing = np.split(log_retrieval(read, null) if marginal else relevance_N, [len(read)])
        parts = [
            found.odds_C + log_prior - (found.total if marginal else 0.0)
            for found, log_prior in zip(spans, log_prior_N, strict=True)
        ]
        score_C = np.concatenate([np.zeros(0), *parts])
        total = log_sum_exp(np.concatenate([score_C, nothing]))
    return chosen(span_proposals(read, places_in(spans), score_C, total), top_k, distinct=False)


def predict_words(
    read: Sequence[Source], seen: Sequence[Reading], null: float | None, log_p_NV: NDArray[np.float32], top_k: int
) -> list[Prediction]:
    """The `top_k` words y of highest p(y|x) = Σ_z p(y|z,x) p(z|x) (REALM eq. 1), of those that occur in the passages.

    `log_p_NV` are log p(y|z,x) for each passage, as the reader has `seen` it, and, last, for the null document, if its
    relevance `null` is given. A word is a token that is a whole word. Its places share p(y|x), over the whole
    vocabulary, by p(z|x) p(y|z,x) of their passages, evenly within each; words whose spellings differ by more than case
    are distinct even if their token is the same.
    """
    with step("score"):
        joint_NV = log_retrieval(read, null)[:, None] + log_p_NV
        spans_of: dict[int, list[AnswerSpan]] = {}
        for n, reading in enumerate(seen[: len(read)]):
            for word, start, end in _words(reading):
                spans_of.setdefault(word, []).append((n, start, end))
        scores = [np.zeros(0)]
        for word, spans in spans_of.items():
            count = Counter(n for n, _, _ in spans)
            weight_C = np.array([joint_NV[n, word] - np.log(count[n]) for n, _, _ in spans])
            scores.append(weight_C - log_sum_exp(weight_C) + log_sum_exp(joint_NV[:, word]))
    places = [place for spans in spans_of.values() for place in spans]
    return chosen(span_proposals(read, places, np.concatenate(scores), 0.0), top_k, distinct=False)


def log_likelihood(passage: Passage, spans: Spans, answer: str) -> float:
    """log p(y|z,x) by the reader of a `Reader`: the share of the spans equal to the answer, ignoring case and white
    space, among all spans of the passage and "no answer here"; −inf if there is none."""
    texts = (passage.text[start:end] for start, end in zip(spans.start_C, spans.end_C, strict=True))
    said = normalise(answer)
    equal_C = np.array([normalise(text) == said for text in texts], np.bool_)
    return log_sum_exp(spans.odds_C[equal_C]) - float(np.logaddexp(0.0, spans.total))


def explain_likelihood(
    read: Sequence[Source], null: float, answer: str, pieces: Sequence[str], log_p_NM: NDArray[np.float32]
) -> Likelihood:
    """log p(y|x) = log Σ_z p(z|x) Π_m p(y_m|z,x) (REALM eq. 1, §3.2), and each passage's share of the sum.

    `log_p_NM` are log p(y_m|z,x) of the answer's pieces for each passage and, last, for the null document, whose
    relevance is `null`.
    """
    with step("score"):
        log_prior_N = log_retrieval(read, null)
        log_p_N = log_p_NM.astype(np.float64).sum(axis=1)
        total = log_sum_exp(log_prior_N + log_p_N)
        share_N = np.exp(log_prior_N + log_p_N - total)
    sources = [*((source.passage, source.corpus) for source in read), (None, "")]
    rows = zip(sources, log_prior_N.tolist(), log_p_N.tolist(), share_N.tolist(), strict=True)
    return Likelihood(answer, tuple(pieces), total, tuple(PassageShare(*source, *numbers) for source, *numbers in rows))


def _words(reading: Reading) -> Iterator[tuple[int, int, int]]:
    """The passage's tokens that are whole words: id, characters from start to end."""
    ids_T = reading.pair.ids_T[reading.body : reading.body + len(reading.flags_T)]
    for t in np.flatnonzero((reading.flags_T & MAY_START > 0) & (reading.flags_T & MAY_END > 0)).tolist():
        yield int(ids_T[t]), int(reading.offsets_T2[t, 0]), int(reading.offsets_T2[t, 1])
