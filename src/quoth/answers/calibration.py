"""Probabilities that mean something: weights and thresholds, fitted to questions with known answers.

Knows: an answer's features and whether it was right. Does not know: how answers came about, or where the weights are
used (`evidence.calibrated`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from quoth.answers.evidence import Weights
from quoth.arrays import Doubles

_RIDGE = 1e-3
_ROUNDS = 50


def fit(features_N3: Doubles, right_N: NDArray[np.bool_]) -> Weights:
    """The weights of highest likelihood (logistic regression, Newton's method, a ridge of 0.001 but for the bias)."""
    w_3 = np.zeros(3)
    ridge_3 = np.array([0.0, _RIDGE, _RIDGE])
    for _ in range(_ROUNDS):
        p_N = 1 / (1 + np.exp(-np.clip(features_N3 @ w_3, -50, 50)))
        gradient_3 = features_N3.T @ (p_N - right_N) + ridge_3 * w_3
        weight_N = np.maximum(p_N * (1 - p_N), 1e-9)
        curvature_33 = (features_N3.T * weight_N) @ features_N3 + np.diag(ridge_3 + 1e-9)
        w_3 -= np.linalg.solve(curvature_33, gradient_3)
    bias, of_share, of_score = w_3.tolist()
    return bias, of_share, of_score


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
