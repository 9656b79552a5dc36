"""Equal candidates brought together, and which of them can be among the best.

Knows: keys that are equal for equal phrases, and log scores. Does not know: texts, or how a score came about. numpy
only.

Shape suffixes that differ from the project's: B buckets of candidates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quoth.types import Doubles

_BUCKET_BITS = 12


@dataclass(frozen=True, slots=True)
class Groups:
    """Equal candidates brought together: group g is `order_C[bounds_G1[g]:bounds_G1[g + 1]]`, in ascending order."""

    order_C: NDArray[np.int64]
    bounds_G1: NDArray[np.int64]
    first_G: NDArray[np.int64]

    def members(self, group: int) -> NDArray[np.int64]:
        """The group's candidates, in order of occurrence."""
        return self.order_C[self.bounds_G1[group] : self.bounds_G1[group + 1]]


# Weights are exp(score - top). Near the smallest float64 (2.2e-308) they become subnormal and lose digits, then
# underflow to 0, so that comparing them says nothing. Below this bound `prune_to_top_groups` keeps every candidate:
# slow, but right.
_LEAST_WEIGHT = 1e-290


def prune_to_top_groups(key_C: NDArray[np.uint64], log_score_C: Doubles, count: int, slack: float) -> NDArray[np.int64]:
    """A superset of the candidates that matter: all those of the `count` best-scoring keys, and of every key within
    `slack` of these.

    A key weighs at most as much as all keys that share its upper bits. So only the heaviest such buckets are grouped at
    first; a bucket lighter than the `count`-th best key among them cannot contain a contender.
    """
    top = log_score_C.max(initial=-np.inf)
    # One linear pass replaces sorting all candidates. The keys are hashes, so their upper bits spread them evenly.
    bucket_C = (key_C >> np.uint64(64 - _BUCKET_BITS)).astype(np.int64)
    weight_B = np.bincount(bucket_C, np.exp(log_score_C - top), 1 << _BUCKET_BITS)
    # At least `count` buckets are this heavy, and none of them is empty, so the groups below number at least `count`.
    heavy = np.partition(weight_B, -count)[-count] if count <= len(weight_B) else 0.0
    if heavy < _LEAST_WEIGHT:
        return np.arange(len(key_C))
    weight_C = weight_B[bucket_C]
    heavy_C = np.flatnonzero(weight_C >= heavy)
    score_G = np.sort(group_score(log_score_C[heavy_C], group_equal(key_C[heavy_C])))
    # The second slack covers rounding: bucket weights and group scores add up the same numbers in different orders.
    # A candidate too many costs a little time; one too few would change the answer.
    return np.flatnonzero(weight_C >= np.exp(score_G[-count] - top - 2 * slack))


def group_equal(key_C: NDArray[np.uint64]) -> Groups:
    """Candidates of equal key; `first_G` is each group's first candidate."""
    order_C = _stable_group_order(key_C)
    sorted_C = key_C[order_C]
    changes = np.flatnonzero(sorted_C[1:] != sorted_C[:-1]) + 1
    bounds_G1 = np.concatenate(([0], changes, [len(key_C)])) if len(key_C) else np.zeros(1, np.int64)
    return Groups(order_C, bounds_G1, order_C[bounds_G1[:-1]] if len(key_C) else order_C)


def _stable_group_order(key_C: NDArray[np.uint64]) -> NDArray[np.int64]:
    """An order that puts equal keys next to each other, in order of occurrence within a key.

    Sorts the keys with their lower bits replaced by their positions, in half the time of argsort. Falls back to argsort
    if two keys differ in those lower bits alone.
    """
    bits = np.uint64(len(key_C).bit_length())
    place = (np.uint64(1) << bits) - np.uint64(1)
    order_C = (np.sort(key_C & ~place | np.arange(len(key_C), dtype=np.uint64)) & place).astype(np.int64)
    sorted_C = key_C[order_C]
    # A million candidates take 20 bits, which leaves 44 of the hash: two keys that agree in these are rare, but their
    # occurrences would be interleaved, and `group_equal` would see one phrase as several.
    different = sorted_C[1:] ^ sorted_C[:-1]
    if ((different != 0) & (different >> bits == 0)).any():
        return np.argsort(key_C, kind="stable")
    return order_C


def group_score(log_score_C: Doubles, groups: Groups) -> Doubles:
    """log Σ exp over the occurrences of each phrase: [G]. NPM §3.1 (phrases), A.3 (tokens), A.4 (labels)."""
    starts_G = groups.bounds_G1[:-1]
    if not len(starts_G):
        return np.zeros(0)
    sorted_C = log_score_C[groups.order_C]
    top_G = np.maximum.reduceat(sorted_C, starts_G)
    sorted_C -= np.repeat(top_G, np.diff(groups.bounds_G1))
    return top_G + np.log(np.add.reduceat(np.exp(sorted_C), starts_G))
