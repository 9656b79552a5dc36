"""From what a reader makes of several passages to answers that show where they stand.

Knows: REALM's marginal over passages (Guu et al. 2020, eq. 1), and grouping of equal answers. Does not know: encoders,
or how the passages were found.

Shape suffixes: N passages read, T tokens, V vocabulary, C places of answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quoth.encoders.boundaries import MAY_END, MAY_START, surface_group
from quoth.predictors.evidence import check_at_least_one
from quoth.predictors.reader import Reading, Spans
from quoth.records import Evidence, Passage, Prediction
from quoth.scoring import Floats, log_sum_exp
from quoth.timing import step

CONTENDERS = 1000
"""So many spans of highest score are brought together; the others count in the sum of all scores alone."""


@dataclass(frozen=True, slots=True)
class Read:
    """A passage, the name of its corpus, its relevance f(x, z), and what the reader saw."""

    passage: Passage
    corpus: str
    relevance: float
    reading: Reading


Place = tuple[int, int, int]
"""Which of the passages read, and the characters of its text."""


def predict_answers(read: Sequence[Read], spans: Sequence[Spans], add_relevance: bool, top_k: int) -> list[Prediction]:
    """The `top_k` answers of highest score: log Σ exp over the spans of equal text, case aside.

    A span's score is the reader's, plus its passage's relevance if that is added (ORQA §3); probability is the share
    among all spans of all passages. No legal span, no answer.
    """
    with step("score"):
        scores, places = [np.zeros(0)], []
        for n, (each, found) in enumerate(zip(read, spans, strict=True)):
            scores.append(found.score_C + (each.relevance if add_relevance else 0.0))
            places += [(n, start, end) for start, end in zip(found.start_C.tolist(), found.end_C.tolist(), strict=True)]
        score_C = np.concatenate(scores)
        best = np.sort(np.argsort(-score_C, kind="stable")[:CONTENDERS])
    return _predictions(read, [places[c] for c in best.tolist()], score_C[best], log_sum_exp(score_C), top_k)


def predict_words(read: Sequence[Read], null: float, log_p_NV: NDArray[np.float32], top_k: int) -> list[Prediction]:
    """The `top_k` words y of highest p(y|x) = Σ_z p(y|z,x) p(z|x) (REALM eq. 1), of those that stand in the passages.

    `log_p_NV` are log p(y|z,x) for each passage and, last, for the null document, whose relevance is `null`. A word is
    a token that cuts none. Its places share p(y|x), over the whole vocabulary, by p(z|x) p(y|z,x) of their passages,
    evenly within each; words that are written differently, case aside, are told apart though their token is the same.
    """
    with step("score"):
        relevance_N = np.array([*(each.relevance for each in read), null])
        joint_NV = (relevance_N - log_sum_exp(relevance_N))[:, None] + log_p_NV
        standing: dict[int, list[Place]] = {}
        for n, each in enumerate(read):
            for word, start, end in _words(each.reading):
                standing.setdefault(word, []).append((n, start, end))
        scores = [np.zeros(0)]
        for word, at in standing.items():
            weight_C = _weights(joint_NV[:, word], at)
            scores.append(weight_C - log_sum_exp(weight_C) + log_sum_exp(joint_NV[:, word]))
    return _predictions(read, [place for at in standing.values() for place in at], np.concatenate(scores), 0.0, top_k)


def _predictions(
    read: Sequence[Read], places: Sequence[Place], score_C: Floats, total: float, top_k: int
) -> list[Prediction]:
    """The `top_k` texts of highest score, log Σ exp over their places; `total` is the log of what all scores sum to."""
    check_at_least_one("top_k", top_k)
    with step("score"):
        groups: dict[int, list[int]] = {}
        for c, (n, start, end) in enumerate(places):
            groups.setdefault(surface_group(read[n].passage.text[start:end]), []).append(c)
        found = [(log_sum_exp(score_C[members]), members) for members in groups.values()]
        found.sort(key=lambda pair: -pair[0])
    with step("explain"):
        return [
            _prediction(read, [places[c] for c in members], score_C[members], score, float(np.exp(score - total)))
            for score, members in found[:top_k]
        ]


def _words(reading: Reading) -> Iterator[tuple[int, int, int]]:
    """The passage's tokens that are whole words: id, characters from start to end."""
    ids_T = reading.pair.ids_T[reading.body : reading.body + len(reading.flags_T)]
    for t in np.flatnonzero((reading.flags_T & MAY_START > 0) & (reading.flags_T & MAY_END > 0)).tolist():
        yield int(ids_T[t]), int(reading.offsets_T2[t, 0]), int(reading.offsets_T2[t, 1])


def _weights(joint_N: Floats, places: Sequence[Place]) -> Floats:
    """log of each place's part of what its passage gives."""
    count = Counter(n for n, _, _ in places)
    return np.array([joint_N[n] - np.log(count[n]) for n, _, _ in places])


def _prediction(
    read: Sequence[Read], places: Sequence[Place], log_weight: Floats, score: float, probability: float
) -> Prediction:
    """An answer with all its places, heaviest first, which share its probability by their weights."""
    share = probability * np.exp(log_weight - log_sum_exp(log_weight))
    order = np.argsort(-log_weight, kind="stable").tolist()
    evidence = tuple(_evidence(read[places[i][0]], places[i], float(share[i])) for i in order)
    n, start, end = places[order[0]]
    return Prediction(read[n].passage.text[start:end], score, probability, evidence)


def _evidence(read: Read, place: Place, share: float) -> Evidence:
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
