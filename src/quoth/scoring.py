"""The papers' scores, one equation one function, each in log space.

Knows: similarities and what each paper does with them. Does not know: texts, keys, or where a similarity
comes from. numpy only.

NPM = Nonparametric Masked Language Modeling (Min et al., 2022).

Shape suffixes that differ from the project's: B buckets of candidates. `a` is sim(q_start, c_i)/τ for a candidate's
first token, `b` is sim(q_end, c_j)/τ for its last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_BUCKET_BITS = 12


def log_sum_exp(x: Floats) -> float:
    """log Σ exp x, computed relative to the maximum; −inf if x is empty or all −inf."""
    top = float(x.max(initial=-np.inf))
    if top == -np.inf:
        return top
    return top + float(np.log(np.exp(x - top).sum()))


def sum_score(a_C: Floats, b_C: Floats) -> Floats:
    """log(exp a_i + exp b_j): [C]. NPM §3.1."""
    high_C = np.maximum(a_C, b_C)
    low_C = np.minimum(a_C, b_C)
    score_C: Floats = high_C + np.log1p(np.exp(low_C - high_C))
    return score_C


def joint_score(a_C: Floats, b_C: Floats) -> Floats:
    """log exp(a_i + b_j): [C]. NPM appendices A.1 and A.4."""
    return a_C + b_C


def softmax_sum_score(a_C: Floats, b_C: Floats, log_sum_a: float, log_sum_b: float) -> Floats:
    """log(softmax(a)_i + softmax(b)_j): [C]. NPM's released code.

    `log_sum_a` is log Σ exp a over the rows searched, `log_sum_b` log Σ exp b: over every token of the passages if
    the search is restricted to some, else over the hits where a phrase may start (end) and the first (last) tokens of
    all candidates.
    """
    return sum_score(a_C - log_sum_a, b_C - log_sum_b)


def length_weighted(log_score_C: Floats, length_C: NDArray[np.int64], exponent: float) -> Floats:
    """log(score · length^α), length in tokens: [C]. NPM's released code; α = 0 leaves scores as they are."""
    if exponent == 0.0:
        return log_score_C
    return log_score_C + exponent * np.log(length_C)


@dataclass(frozen=True, slots=True)
class Sums:
    """The normalisers of scores, as logs of sums over all tables and machines: exp a and exp b over the rows searched
    (`softmax_sum_score`), the scores of all candidates, the scores of the boosted ones."""

    starts: float = -np.inf
    ends: float = -np.inf
    everywhere: float = -np.inf
    boosted: float = -np.inf

    @classmethod
    def over(cls, parts: Sequence[Sums]) -> Sums:
        """The normalisers of several parts (tables, machines) combined."""
        return cls(*(log_sum_exp(np.array(logs)) for logs in zip(*map(astuple, parts), strict=True)))


def interpolated(log_score_C: Floats, boosted_C: NDArray[np.bool_], weight: float, sums: Sums) -> Floats:
    """log((1 − w) p(c) + w p'(c)): [C]; p is a candidate's share of all scores, p' its share of the boosted ones'.

    This is how kNN-LM mixes two distributions (Khandelwal et al. 2020, eq. 3). If nothing is boosted: log p.
    """
    everywhere_C = log_score_C - sums.everywhere
    if weight == 0 or sums.boosted == -np.inf:
        return everywhere_C
    inside_C = np.where(boosted_C, log_score_C - sums.boosted, -np.inf)
    with np.errstate(divide="ignore"):
        mixed_C: Floats = np.logaddexp(everywhere_C + np.log(1 - weight), inside_C + np.log(weight))
    return mixed_C


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


def prune_to_top_groups(key_C: NDArray[np.uint64], log_score_C: Floats, count: int, slack: float) -> NDArray[np.int64]:
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


def group_score(log_score_C: Floats, groups: Groups) -> Floats:
    """log Σ exp over the occurrences of each phrase: [G]. NPM §3.1 (phrases), A.3 (tokens), A.4 (labels)."""
    starts_G = groups.bounds_G1[:-1]
    if not len(starts_G):
        return np.zeros(0)
    sorted_C = log_score_C[groups.order_C]
    top_G = np.maximum.reduceat(sorted_C, starts_G)
    sorted_C -= np.repeat(top_G, np.diff(groups.bounds_G1))
    return top_G + np.log(np.add.reduceat(np.exp(sorted_C), starts_G))
