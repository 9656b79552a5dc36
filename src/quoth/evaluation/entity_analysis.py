"""Rare and common names: what was found for questions by their entity's IDF (Hoshi et al. 2022).

Knows: what was found (`entity_questions`), counts of terms. Does not know: models.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from quoth.corpus.analysis import analyse, analyse_with_characters
from quoth.errors import InputError
from quoth.evaluation.entity_questions import EntityReport, recall_of, scored
from quoth.evaluation.metrics import markdown

NUM_BUCKETS = 5


def idf(num_holding: int, num_passages: int) -> float:
    """ln((N − n + 0.5) / (n + 0.5)), below 0 for a term of more than half of the passages. Zero-NeR, no +1."""
    return math.log((num_passages - num_holding + 0.5) / (num_holding + 0.5))


@dataclass(frozen=True, slots=True)
class TermCounts:
    """How many of a corpus's passages hold each term, as the word index cuts terms."""

    num_passages: int
    num_holding: Mapping[str, int]

    def idfs(self, text: str) -> list[float]:
        """The IDF of each term of the text, in its order."""
        return [idf(self.num_holding.get(term, 0), self.num_passages) for term in analyse(text)]


def count_terms(texts: Iterable[str], wanted: Iterable[str]) -> TermCounts:
    """Counts the terms of the texts `wanted` in `texts` (`indexed_text` of each passage), reading them once."""
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
    """Questions whose entity's IDF is from `low` up to `high`, by their numbers in the report."""

    low: float
    high: float
    numbers: tuple[int, ...]


def idf_buckets(
    report: EntityReport,
    counts: TermCounts,
    num_buckets: int = NUM_BUCKETS,
) -> list[Bucket]:
    """The report's questions by their entity's IDF, in buckets of about equal size, rarest last.

    A question without an entity that has terms is in none; a value is in the upper one of two buckets that meet at it.
    """
    idfs = {number: counts.idfs(each.name) for number, each in enumerate(report.questions)}
    values = {number: entity_idf(found) for number, found in idfs.items() if found}
    if not values:
        raise InputError("no question whose entity is known; give the templates (--templates)")
    edges = np.quantile(list(values.values()), np.linspace(0, 1, num_buckets + 1))
    places = np.searchsorted(edges[1:-1], list(values.values()), side="right")
    members = [[number for number, place in zip(values, places, strict=True) if place == i] for i in range(num_buckets)]
    ends = zip(edges[:-1].tolist(), edges[1:].tolist(), members, strict=True)
    return [Bucket(low, high, tuple(numbers)) for low, high, numbers in ends if numbers]


def idf_records(report: EntityReport, buckets: Sequence[Bucket]) -> list[dict[str, Any]]:
    """Each bucket as a dictionary: its edges, its counts, each system's recall."""
    return [
        {
            "low": each.low,
            "high": each.high,
            "num_questions": len(each.numbers),
            "recall": {
                result.name: {str(k): recall_of(result.ranks["dpr"], each.numbers, k) for k in report.ks}
                for result in report.results
            },
        }
        for each in buckets
    ]


def idf_table(report: EntityReport, buckets: Sequence[Bucket]) -> str:
    """The buckets as a Markdown table: percentages, DPR's match."""
    heads = ["IDF of the entity", "questions", "answerable", "covered"]
    heads += [f"{each.name}@{k}" for each in report.results for k in report.ks]
    rows = [[f"{each.low:.2f} to {each.high:.2f}", *scored(report, each.numbers)] for each in buckets]
    return markdown(heads, rows)
