"""Probabilities that mean something: weights and thresholds, fitted to questions with known answers.

Knows: an answer's features and whether it was right. Does not know: how answers came about, or where the weights are
used (`evidence.calibrated`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor

import numpy as np
from numpy.typing import NDArray

from quoth.answers.evidence import Weights, chance
from quoth.answers.options import Thresholds
from quoth.arrays import Doubles

PRECISION = 0.8
"""The share of right answers for which `min_probability` is chosen."""
NOT_FOUND = 0.05
"""The share of right answers, at most, among those that are not shown as answers."""
SHARES = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.98)
"""Of right answers, for which thresholds are kept."""
LEAST_ANSWERS = 30
"""From fewer answers no share is promised."""
_RIDGE = 1e-3
_ROUNDS = 50


@dataclass(frozen=True, slots=True)
class Fitted:
    """Weights of an answer's features, and the thresholds of the probability that they give."""

    calibration: Weights
    min_probability: float
    not_found_below: float
    thresholds: Thresholds


def calibrate(features: Sequence[Sequence[float]], right: Sequence[bool]) -> Fitted:
    """Weights by the features of first answers and whether they were right, rounded to four digits, and thresholds:
    from `min_probability` on 80 % are right, below `not_found_below` at most 5 %."""
    weights = tuple(round(each, 4) for each in fit(np.array(features), np.array(right)))
    chances = [chance(weights, row) for row in features]
    least = round(threshold(chances, right, PRECISION), 3)
    lowest = floor(1000 * not_found_threshold(chances, right, NOT_FOUND)) / 1000
    return Fitted(weights, least, min(lowest, least), thresholds(chances, right))


def fit(features_NF: Doubles, right_N: NDArray[np.bool_] | Doubles) -> Weights:
    """The weights of highest likelihood (logistic regression), none of them below 0 but the first, the bias. What is
    right may be shares between 0 and 1.

    A chance never falls with a feature: one whose weight would be negative is left out (0), the most negative first.
    """
    used = list(range(features_NF.shape[1]))
    weights = _likeliest(features_NF, right_N)
    while len(weights) > 1 and weights[1:].min() < 0:
        del used[1 + int(weights[1:].argmin())]
        weights = _likeliest(features_NF[:, used], right_N)
    fitted_F = np.zeros(features_NF.shape[1])
    fitted_F[used] = weights
    return tuple(fitted_F.tolist())


def _likeliest(features_NF: Doubles, right_N: NDArray[np.bool_] | Doubles) -> Doubles:
    """By Newton's method, with a ridge of 0.001 but for the bias."""
    w_F: Doubles = np.zeros(features_NF.shape[1])
    ridge_F = np.full(len(w_F), _RIDGE)
    ridge_F[0] = 0.0
    for _ in range(_ROUNDS):
        p_N = 1 / (1 + np.exp(-np.clip(features_NF @ w_F, -50, 50)))
        gradient_F = features_NF.T @ (p_N - right_N) + ridge_F * w_F
        weight_N = np.maximum(p_N * (1 - p_N), 1e-9)
        curvature_FF = (features_NF.T * weight_N) @ features_NF + np.diag(ridge_F + 1e-9)
        w_F = w_F - np.linalg.solve(curvature_FF, gradient_F)
    return w_F


def threshold(probabilities: Sequence[float], right: Sequence[bool], precision: float) -> float:
    """The smallest probability to answer from, so that at least `precision` of the answers given are right.

    1 if no threshold reaches that. Answers of equal probability are given together.
    """
    order = np.argsort(-np.asarray(probabilities), kind="stable")
    p_N, right_N = np.asarray(probabilities, float)[order], np.asarray(right, bool)[order]
    share_N = np.cumsum(right_N) / np.arange(1, len(right_N) + 1)
    last_N = np.append(p_N[1:] < p_N[:-1], True) if len(p_N) else np.zeros(0, bool)
    good = np.flatnonzero((share_N >= precision) & last_N)
    return float(p_N[good[-1]]) if len(good) else 1.0


def not_found_threshold(probabilities: Sequence[float], right: Sequence[bool], most: float) -> float:
    """The largest probability below which at most `most` of the best answers are right.

    It is one of the probabilities, or 1, or 0 if no such threshold has an answer below it. Answers of equal probability
    are on the same side.
    """
    order = np.argsort(np.asarray(probabilities), kind="stable")
    p_N, right_N = np.asarray(probabilities, float)[order], np.asarray(right, bool)[order]
    share_N = np.cumsum(right_N) / np.arange(1, len(right_N) + 1)
    above_N = np.append(p_N[1:], 1.0) if len(p_N) else np.zeros(0)
    good = np.flatnonzero((share_N <= most) & (above_N > p_N))
    return float(above_N[good[-1]]) if len(good) else 0.0


def thresholds(probabilities: Sequence[float], right: Sequence[bool]) -> Thresholds:
    """Of every share of right answers that so many questions can promise, the smallest probability that reaches it,
    rounded up to a thousandth.

    Promised is what at least 30 answers reach, and so many that one of them may be wrong.
    """
    found = []
    for share in SHARES:
        least = float(np.ceil(1000 * threshold(probabilities, right, share)) / 1000)
        if sum(p >= least for p in probabilities) >= max(LEAST_ANSWERS, 1 / (1 - share)):
            found.append((share, least))
    return tuple(found)
