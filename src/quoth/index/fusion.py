"""Merges several rankings of the same things into one.

Knows: scores and keys. Does not know: what the keys stand for, where the rankings come from.

A ranking is a list of (score, key), best first, each key once; it has a weight, by default 1, which is 0 or more and
finite (`model.base.check_weights`). The fused ranking has every key of every ranking; ties are ordered by key.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Protocol, TypeVar

RANK_CONSTANT = 60

_Key = TypeVar("_Key", bound=Hashable)


class Fusion(Protocol):
    """Merges rankings, each with a weight (by default 1)."""

    def __call__(
        self, rankings: Sequence[Sequence[tuple[float, _Key]]], weights: Sequence[float] | None = None
    ) -> list[tuple[float, _Key]]: ...


def reciprocal_rank(
    rankings: Sequence[Sequence[tuple[float, _Key]]], weights: Sequence[float] | None = None
) -> list[tuple[float, _Key]]:
    """Σ w / (60 + rank) over the rankings that contain the key, ranks from 1 (Cormack et al. 2009).

    Only the order counts, not the scores.
    """
    return _summed(
        (weight / (RANK_CONSTANT + rank), key)
        for weight, ranking in zip(weights or [1.0] * len(rankings), rankings, strict=True)
        for rank, (_, key) in enumerate(ranking, start=1)
    )


def weighted_sum(
    rankings: Sequence[Sequence[tuple[float, _Key]]], weights: Sequence[float] | None = None
) -> list[tuple[float, _Key]]:
    """Σ w · (score − min) / (max − min) over the rankings that contain the key (CombSUM over scores scaled as in Lee
    1997).

    Minimum and maximum are those of the ranking; if they are equal, as in a ranking of one, every key counts w. The
    last of a ranking counts 0, as if it were absent. Scores are finite.
    """
    return _summed(
        (weight * share, key)
        for weight, ranking in zip(weights or [1.0] * len(rankings), rankings, strict=True)
        for share, (_, key) in zip(_scaled([score for score, _ in ranking]), ranking, strict=True)
    )


FUSIONS: dict[str, Fusion] = {"rrf": reciprocal_rank, "sum": weighted_sum}


def _scaled(scores: Sequence[float]) -> list[float]:
    """The scores scaled to 0 (lowest) … 1 (highest); all 1 if they are equal."""
    low, high = min(scores, default=0.0), max(scores, default=0.0)
    return [(score - low) / (high - low) if high > low else 1.0 for score in scores]


def _summed(shares: Iterable[tuple[float, _Key]]) -> list[tuple[float, _Key]]:
    """The sum of each key's shares, largest first, ties by key."""
    total: dict[_Key, float] = {}
    for share, key in shares:
        total[key] = total.get(key, 0.0) + share
    return sorted(((score, key) for key, score in total.items()), key=lambda pair: (-pair[0], pair[1]))
