"""What NPM proposes and what a reader marks, decided together.

Knows: proposals of both for the same blank. Does not know: how either came about.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from quoth.answers.equations import log_sum_exp
from quoth.answers.evidence import Proposal, Source, chosen
from quoth.records import Evidence, Passage, Prediction
from quoth.text.boundaries import STOP_WORDS, surface_group, words
from quoth.text.passages import sentences
from quoth.text.tokenizer import MASK

PROPOSED = 50
"""Candidates taken from each model."""
LEAST = 1e-4
"""Floor for phrases that one model lacks: their probability there."""
SURE = 3
"""The power with which NPM's weight falls as the reader becomes surer of its best phrase."""


def passages_of(proposed: Sequence[Proposal], most: int) -> list[Source]:
    """The passages in which phrases occur, each in its best place, best phrase first, `most` of them."""
    found: dict[tuple[str, int], Passage] = {}
    for place in (each.best.evidence[0] for each in proposed):
        if len(found) == most:
            break
        found.setdefault((place.corpus, place.passage), _passage(place))
    return [Source(passage, corpus) for (corpus, _), passage in found.items()]


def _passage(place: Evidence) -> Passage:
    end = place.context_start + len(place.context)
    return Passage(place.passage, place.document_id, place.title, place.context, place.context_start, end)


def combine(
    text: str,
    proposed: Sequence[Proposal],
    marked: Sequence[Proposal],
    weights: tuple[float, float, float],
    top_k: int,
    max_evidence: int | None = None,
    distinct: bool = True,
) -> list[Prediction]:
    """The `top_k` phrases with the highest w · (1 − p)³ · log p_NPM + v · log p_reader − e · echo.

    `weights` are (w, v, e). p is the reader's highest probability: if the passages say it, NPM has little to add. A
    phrase is an echo (1, else 0) if it has words that name something and all of them occur in the sentence of `text`
    with the `[MASK]`.

    A phrase that one of the two does not propose has the probability `LEAST` there. `log_score` is that sum, and the
    probability is the phrase's share of exp of all these sums. Evidence is the reader's, or else NPM's, its best
    `max_evidence` places (None: all). If answers are to be `distinct`, only the best of those that overlap in their
    best place is listed.
    """
    by_phrase: dict[int, list[Proposal | None]] = {}
    for at, group in enumerate((proposed, marked)):
        for each in group:
            by_phrase.setdefault(_name(each.best.text), [None, None])[at] = each
    w, v, e = weights
    w *= (1 - max((each.best.probability for each in marked), default=0.0)) ** SURE
    said = words_beside(text)
    weighed = []
    for npm, reader in by_phrase.values():
        named = reader or npm
        assert named is not None
        score = w * _log(npm) + v * _log(reader)
        if e:
            score -= e * _is_echo(named.best.text, said)
        weighed.append(replace(named, best=replace(named.best, log_score=score)))
    weighed.sort(key=lambda each: -each.best.log_score)
    total = log_sum_exp(np.array([each.best.log_score for each in weighed]))
    best = chosen(weighed, top_k, distinct)
    return [each.with_probability(math.exp(each.log_score - total), max_evidence) for each in best]


def words_beside(text: str) -> frozenset[str]:
    """The words of the sentence with the `[MASK]`, ignoring case, except those that name nothing."""
    at = text.index(MASK)
    start, end = next(each for each in sentences(text) if each[0] <= at < each[1])
    return naming(text[start:end].replace(MASK, " "))


def naming(text: str) -> frozenset[str]:
    """The words of a text that name something, ignoring case: all but stop words."""
    every = (text[start:end].casefold() for start, end in words(text))
    return frozenset(word for word in every if word[0].isalnum() and word not in STOP_WORDS)


def _is_echo(text: str, said: frozenset[str]) -> bool:
    names = naming(text)
    return bool(names) and names <= said


def _name(text: str) -> int:
    return surface_group(" ".join(text.split()))


def _log(proposal: Proposal | None) -> float:
    return math.log(LEAST if proposal is None else max(proposal.best.probability, LEAST))
