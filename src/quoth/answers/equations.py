"""The papers' scores, one equation one function, each in log space.

Knows: similarities and what each paper does with them. Does not know: texts, keys, or where a similarity
comes from. numpy only.

NPM = Nonparametric Masked Language Modeling (Min et al., 2022).

`a` is sim(q_start, c_i)/τ for a candidate's first token, `b` is sim(q_end, c_j)/τ for its last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass

import numpy as np
from numpy.typing import NDArray

from quoth.arrays import Doubles


def log_sum_exp(x: Doubles) -> float:
    """log Σ exp x, computed relative to the maximum; −inf if x is empty or all −inf."""
    top = float(x.max(initial=-np.inf))
    if top == -np.inf:
        return top
    return top + float(np.log(np.exp(x - top).sum()))


def sum_score(a_C: Doubles, b_C: Doubles) -> Doubles:
    """log(exp a_i + exp b_j): [C]. NPM §3.1."""
    high_C = np.maximum(a_C, b_C)
    low_C = np.minimum(a_C, b_C)
    score_C: Doubles = high_C + np.log1p(np.exp(low_C - high_C))
    return score_C


def joint_score(a_C: Doubles, b_C: Doubles) -> Doubles:
    """log exp(a_i + b_j): [C]. NPM appendices A.1 and A.4."""
    return a_C + b_C


def softmax_sum_score(a_C: Doubles, b_C: Doubles, log_sum_a: float, log_sum_b: float) -> Doubles:
    """log(softmax(a)_i + softmax(b)_j): [C]. NPM's released code.

    `log_sum_a` is log Σ exp a over the rows searched, `log_sum_b` log Σ exp b: over every token of the passages if
    the search is restricted to some, else over the hits where a phrase may start (end) and the first (last) tokens of
    all candidates.
    """
    return sum_score(a_C - log_sum_a, b_C - log_sum_b)


def length_weighted(log_score_C: Doubles, length_C: NDArray[np.int64], exponent: float) -> Doubles:
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


def interpolated(log_score_C: Doubles, boosted_C: NDArray[np.bool_], weight: float, sums: Sums) -> Doubles:
    """log((1 − w) p(c) + w p'(c)): [C]; p is a candidate's share of all scores, p' its share of the boosted ones'.

    This is how kNN-LM mixes two distributions (Khandelwal et al. 2020, eq. 3). If nothing is boosted: log p.
    """
    everywhere_C = log_score_C - sums.everywhere
    if weight == 0 or sums.boosted == -np.inf:
        return everywhere_C
    inside_C = np.where(boosted_C, log_score_C - sums.boosted, -np.inf)
    with np.errstate(divide="ignore"):
        mixed_C: Doubles = np.logaddexp(everywhere_C + np.log(1 - weight), inside_C + np.log(weight))
    return mixed_C
