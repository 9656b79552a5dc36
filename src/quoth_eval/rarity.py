"""Rare and common names: recall by the IDF of the question's entity (Hoshi et al. 2022).

Knows: names, counts of terms. Does not know: questions, models.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from quoth.errors import InputError
from quoth.text.terms import analyse, analyse_with_characters

NUM_BUCKETS = 5


def idf(num_holding: int, num_passages: int) -> float:
    """ln((N − n + 0.5) / (n + 0.5)), as in Zero-NeR: without +1, so below 0 for a term in most of the passages."""
    return math.log((num_passages - num_holding + 0.5) / (num_holding + 0.5))


@dataclass(frozen=True, slots=True)
class TermCounts:
    """How many of a corpus's passages contain each term, with terms cut as in the word index."""

    num_passages: int
    num_holding: Mapping[str, int]

    def idfs(self, text: str) -> list[float]:
        """The IDF of each term of the text, in its order."""
        return [idf(self.num_holding.get(term, 0), self.num_passages) for term in analyse(text)]


def count_terms(texts: Iterable[str], wanted: Iterable[str]) -> TermCounts:
    """Count the terms of the texts `wanted` in `texts` (`indexed_text` of each passage), which are read once."""
    terms = {term for text in wanted for term in analyse(text)}
    counts: Counter[str] = Counter()
    num_passages = 0
    for text in texts:
        words, characters = analyse_with_characters(text)
        counts.update(terms.intersection([*words, *characters]))
        num_passages += 1
    return TermCounts(num_passages, counts)


def entity_idf(idfs: Sequence[float]) -> float:
    """How rare a name is: the IDF of its rarest term. Zero-NeR, "Analysis": IDF_ent = max(5.8, 6.0) = 6.0."""
    return max(idfs)


@dataclass(frozen=True, slots=True)
class Bucket:
    """Questions whose entity's IDF is between `low` and `high`, by their numbers."""

    low: float
    high: float
    numbers: tuple[int, ...]

    def name(self, number: int, num_buckets: int) -> str:
        """Its name in a report, given its number and the number of buckets."""
        return f"rarity {number + 1} of {num_buckets}, IDF {self.low:.2f} to {self.high:.2f}"


def idf_buckets(names: Sequence[str], counts: TermCounts, num_buckets: int = NUM_BUCKETS) -> list[Bucket]:
    """Questions by the IDF of their entities, whose names are given ("" if unknown), in buckets of about equal size,
    rarest last.

    Questions whose entity is unknown or has no terms are in no bucket; a value on an edge is in the upper bucket.
    """
    idfs = {number: counts.idfs(name) for number, name in enumerate(names)}
    values = {number: entity_idf(terms) for number, terms in idfs.items() if terms}
    if not values:
        raise InputError("no question whose entity is known; give the templates (--set templates=FILE)")
    edges = np.quantile(list(values.values()), np.linspace(0, 1, num_buckets + 1))
    places = np.searchsorted(edges[1:-1], list(values.values()), side="right")
    members = [[number for number, place in zip(values, places, strict=True) if place == i] for i in range(num_buckets)]
    ends = zip(edges[:-1].tolist(), edges[1:].tolist(), members, strict=True)
    return [Bucket(low, high, tuple(numbers)) for low, high, numbers in ends if numbers]
