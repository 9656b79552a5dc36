"""Probabilities that mean something: the chance that an answer is right, and when not to answer.

Knows: an answer's share and score, weights fitted to questions with known answers. Does not know: how answers came
about.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from quoth.records import Prediction, Status
from quoth.types import Doubles

Weights = tuple[float, float, float]
"""Of 1, of the log odds of an answer's share, and of its score."""

_LEAST = 1e-6
_RIDGE = 1e-3
_ROUNDS = 50


def features(prediction: Prediction) -> tuple[float, float, float]:
    """1, the log odds of the share that the answer has among all, and its score."""
    share = min(max(prediction.probability, _LEAST), 1 - _LEAST)
    return 1.0, math.log(share) - math.log1p(-share), prediction.log_score


def calibrated(
    predictions: Iterable[Prediction], weights: Weights | None, min_probability: float, not_found_below: float = 0.0
) -> list[Prediction]:
    """The predictions with the chance of being right as their probability, and with their status.

    The chance is the logistic function of `weights` · `features`; without weights it stays the share. Shares of places
    are scaled alike. From `min_probability` on a prediction is answered. The others are unsure; or not found, if even
    the best chance is below both thresholds.
    """
    found = []
    for each in predictions:
        chance = each.probability
        if weights is not None:
            logit = sum(w * x for w, x in zip(weights, features(each), strict=True))
            chance = 1 / (1 + math.exp(-min(max(logit, -50.0), 50.0)))
        found.append(each.with_probability(chance))
    best = max((each.probability for each in found), default=0.0)
    below: Status = "not_found" if best < min(not_found_below, min_probability) else "unsure"
    return [replace(each, status="answered" if each.probability >= min_probability else below) for each in found]


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
