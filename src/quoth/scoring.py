"""The papers' scores, one equation one function, each in log space.

Knows: similarities and what each paper does with them. Does not know: texts, keys, or where a similarity
comes from. numpy only.

NPM = Nonparametric Masked Language Modeling (Min et al., 2022).

Shape suffixes: C candidates (one occurrence of a phrase each), G groups of equal candidates. `a` is
sim(q_start, c_i)/τ of a candidate's first token, `b` is sim(q_end, c_j)/τ of its last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_BUCKET_BITS = 12


def log_sum_exp(x: Floats) -> float:
    """log Σ exp x, with one shared maximum; −inf for nothing or for nothing but −inf."""
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
    """What scores are normalised by, as logs of sums over all tables and machines: exp a and exp b of the rows searched
    (`softmax_sum_score`), the scores of all candidates, the scores of favoured ones."""

    starts: float = -np.inf
    ends: float = -np.inf
    everywhere: float = -np.inf
    favoured: float = -np.inf

    @classmethod
    def over(cls, parts: Sequence[Sums]) -> Sums:
        """Those of all parts together."""
        return cls(*(log_sum_exp(np.array(each)) for each in zip(*map(astuple, parts), strict=True)))


def interpolated(log_score_C: Floats, favoured_C: NDArray[np.bool_], weight: float, sums: Sums) -> Floats:
    """log((1 − w) p(c) + w p'(c)): [C]; p is a candidate's share of all scores, p' its share of the favoured ones'.

    As kNN-LM mixes two distributions (Khandelwal et al. 2020, eq. 3). Where nothing is favoured, log p.
    """
    everywhere_C = log_score_C - sums.everywhere
    if weight == 0 or sums.favoured == -np.inf:
        return everywhere_C
    inside_C = np.where(favoured_C, log_score_C - sums.favoured, -np.inf)
    with np.errstate(divide="ignore"):
        mixed_C: Floats = np.logaddexp(everywhere_C + np.log(1 - weight), inside_C + np.log(weight))
    return mixed_C


@dataclass(frozen=True, slots=True)
class Groups:
    """Equal candidates brought together: those of group g are `order_C[bounds_G1[g]:bounds_G1[g + 1]]`, ascending."""

    order_C: NDArray[np.int64]
    bounds_G1: NDArray[np.int64]
    first_G: NDArray[np.int64]

    def members(self, group: int) -> NDArray[np.int64]:
        """The group's candidates, in order of occurrence."""
        return self.order_C[self.bounds_G1[group] : self.bounds_G1[group + 1]]


_LEAST_WEIGHT = 1e-290
"""Lighter ones may have lost digits, or all of them."""


def contenders(key_C: NDArray[np.uint64], log_score_C: Floats, count: int, slack: float) -> NDArray[np.int64]:
    """Candidates with all those of the `count` keys of highest score, and of each key within `slack` of these.

    A key weighs no more than all keys that share its upper bits. So the heaviest such buckets are grouped alone, and
    where their `count`-th best key stands, lighter buckets hold no contender.
    """
    top = log_score_C.max(initial=-np.inf)
    bucket_C = (key_C >> np.uint64(64 - _BUCKET_BITS)).astype(np.int64)
    weight_B = np.bincount(bucket_C, np.exp(log_score_C - top), 1 << _BUCKET_BITS)
    heavy = np.partition(weight_B, -count)[-count] if count <= len(weight_B) else 0.0
    if heavy < _LEAST_WEIGHT:
        return np.arange(len(key_C))
    weight_C = weight_B[bucket_C]
    heavy_C = np.flatnonzero(weight_C >= heavy)
    score_G = np.sort(group_score(log_score_C[heavy_C], group_equal(key_C[heavy_C])))
    return np.flatnonzero(weight_C >= np.exp(score_G[-count] - top - 2 * slack))


def group_equal(key_C: NDArray[np.uint64]) -> Groups:
    """Candidates of equal key; `first_G` is each group's first candidate."""
    order_C = _together(key_C)
    sorted_C = key_C[order_C]
    changes = np.flatnonzero(sorted_C[1:] != sorted_C[:-1]) + 1
    bounds_G1 = np.concatenate(([0], changes, [len(key_C)])) if len(key_C) else np.zeros(1, np.int64)
    return Groups(order_C, bounds_G1, order_C[bounds_G1[:-1]] if len(key_C) else order_C)


def _together(key_C: NDArray[np.uint64]) -> NDArray[np.int64]:
    """An order in which equal keys follow each other, each in order of occurrence.

    The keys' upper bits are sorted with the places in the lower ones, in half of argsort's time, which is left for
    the case that two keys differ in their lower bits alone.
    """
    bits = np.uint64(len(key_C).bit_length())
    place = (np.uint64(1) << bits) - np.uint64(1)
    order_C = (np.sort(key_C & ~place | np.arange(len(key_C), dtype=np.uint64)) & place).astype(np.int64)
    sorted_C = key_C[order_C]
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
