"""What NPM proposes and what a reader marks, decided together.

Knows: predictions of both for the same blank. Does not know: how either came about.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from quoth.corpus.passages import sentences
from quoth.predictors.answers import Source
from quoth.records import Evidence, Passage, Prediction
from quoth.scoring import log_sum_exp
from quoth.tokenizers.boundaries import STOP_WORDS, surface_group, words

PROPOSED = 50
"""So many phrases of NPM's, and of the reader's, are weighed."""
LEAST = 1e-4
"""The probability of a phrase that one of the two does not name among its best."""


def passages_of(predictions: Sequence[Prediction], most: int) -> list[Source]:
    """The passages in which phrases occur, each in its best place, best phrase first, `most` of them."""
    found: dict[tuple[str, int], Passage] = {}
    for place in (each.evidence[0] for each in predictions):
        if len(found) == most:
            break
        found.setdefault((place.corpus, place.passage), _passage(place))
    return [Source(passage, corpus) for (corpus, _), passage in found.items()]


def _passage(place: Evidence) -> Passage:
    end = place.context_start + len(place.context)
    return Passage(place.passage, place.document_id, place.title, place.context, place.context_start, end)


def combine(
    proposed: Sequence[Prediction],
    marked: Sequence[Prediction],
    weights: tuple[float, float, float],
    top_k: int,
    said: frozenset[str] = frozenset(),
    max_evidence: int | None = None,
) -> list[Prediction]:
    """The `top_k` phrases with the highest w · log p_NPM + v · log p_reader − e · echo, for weights (w, v, e).

    A phrase is an echo (1, else 0) if it has words that name something and all of them are in `said`, the words of the
    sentence with the blank.

    A phrase that one of the two does not name has the probability `LEAST` there. `score` is that sum, the probability
    its share of exp of all these sums. Evidence is the reader's, or else NPM's, its best `max_evidence` places (None:
    all). Of phrases that overlap in their best
    place only the best is listed.
    """
    by_phrase: dict[int, list[Prediction | None]] = {}
    for at, group in enumerate((proposed, marked)):
        for each in group:
            by_phrase.setdefault(_name(each.text), [None, None])[at] = each
    w, v, e = weights
    weighed = []
    for npm, reader in by_phrase.values():
        best = reader or npm
        assert best is not None
        echo = e * _is_echo(best.text, said)
        weighed.append(replace(best, score=w * _log(npm) + v * _log(reader) - echo))
    weighed.sort(key=lambda each: -each.score)
    total = log_sum_exp(np.array([each.score for each in weighed]))
    chosen = [replace(each, evidence=each.evidence[:max_evidence]) for each in islice(apart(weighed), top_k)]
    return [_shared(each, math.exp(each.score - total)) for each in chosen]


def _shared(prediction: Prediction, probability: float) -> Prediction:
    """The prediction with another probability, of which its places have the shares they had."""
    scale = probability / prediction.probability if prediction.probability else 0.0
    evidence = tuple(replace(place, score=place.score * scale) for place in prediction.evidence)
    return replace(prediction, probability=probability, evidence=evidence)


def apart(predictions: Sequence[Prediction]) -> Iterator[Prediction]:
    """The predictions, best first, but for those whose best place overlaps the best place of one before."""
    taken: list[Evidence] = []
    for each in predictions:
        place = each.evidence[0]
        if not any(_overlap(place, other) for other in taken):
            taken.append(place)
            yield each


def _overlap(one: Evidence, other: Evidence) -> bool:
    same = (one.corpus, one.document_id) == (other.corpus, other.document_id)
    return same and one.start < other.end and other.start < one.end


def words_beside(text: str, mask: str) -> frozenset[str]:
    """The words of the sentence that holds the blank, case aside, but for those that name nothing."""
    at = text.index(mask)
    start, end = next(each for each in sentences(text) if each[0] <= at < each[1])
    return naming(text[start:end].replace(mask, " "))


def naming(text: str) -> frozenset[str]:
    """The words of a text that name something, case aside: all but stop words."""
    every = (text[start:end].casefold() for start, end in words(text))
    return frozenset(word for word in every if word[0].isalnum() and word not in STOP_WORDS)


def _is_echo(text: str, said: frozenset[str]) -> bool:
    names = naming(text)
    return bool(names) and names <= said


def _name(text: str) -> int:
    return surface_group(" ".join(text.split()))


def _log(prediction: Prediction | None) -> float:
    return math.log(LEAST if prediction is None else max(prediction.probability, LEAST))
