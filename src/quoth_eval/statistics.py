"""Bootstrap intervals, a paired test between two systems, and how well a system knows when it is right.

Knows: numbers, one per example. Does not know: what they measure.

Shape suffixes that differ from the project's: N examples, S samples, G groups of equal probabilities.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from quoth.errors import InputError

SAMPLES = 1000
FLIPS = 10_000
_AT_A_TIME = 1 << 22
PRECISIONS = (0.8, 0.9, 0.95)
_BINS = 10
Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean and its 95 % confidence interval: by bootstrap over examples (1,000 samples, seed 0), or Wilson's."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{100 * self.mean:.1f} [{100 * self.low:.1f}, {100 * self.high:.1f}]"


def interval(values: Sequence[float], weights: Sequence[float] | None = None) -> Interval:
    """The mean of values and its interval; zeros if there are no values. With weights (above 0) it is Σ wv / Σ w, and
    values are sampled together with their weights."""
    if not len(values):
        return Interval(0.0, 0.0, 0.0)
    return macro_interval([values], None if weights is None else [weights])


def wilson(count: int, total: int) -> Interval:
    """A share and its 95 % interval by Wilson's formula, which does not end at 0 where nothing was counted; 0 to 1 of
    none. Source: E. B. Wilson, "Probable inference, the law of succession, and statistical inference", 1927."""
    if not total:
        return Interval(0.0, 0.0, 1.0)
    share, z = count / total, NormalDist().inv_cdf(0.975)
    middle = share + z * z / (2 * total)
    spread = z * sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    low, high = ((middle + side) / (1 + z * z / total) for side in (-spread, spread))
    return Interval(share, min(max(low, 0.0), share), max(min(high, 1.0), share))


def macro_interval(groups: Sequence[Sequence[float]], weights: Sequence[Sequence[float]] | None = None) -> Interval:
    """The mean of the groups' means, whatever their sizes, and its interval: each group is sampled by itself."""
    rng = np.random.default_rng(0)
    means, sampled = [], []
    for number, values in enumerate(groups):
        value_N, weight_N = np.asarray(values, float), np.ones(len(values))
        if weights is not None:
            weight_N = np.asarray(weights[number], float)
        sampled.append(np.concatenate([_means(value_N, weight_N, rng, num) for num in _shares(len(value_N))]))
        means.append(np.average(value_N, weights=weight_N))
    low, high = np.quantile(np.mean(sampled, axis=0), [0.025, 0.975]).tolist()
    return Interval(float(np.mean(means)), low, high)


def _shares(num_values: int) -> list[int]:
    """How many samples are drawn at a time, so that they fit into memory."""
    step = max(1, _AT_A_TIME // num_values)
    return [min(step, SAMPLES - first) for first in range(0, SAMPLES, step)]


def _means(value_N: Vector, weight_N: Vector, rng: np.random.Generator, num_samples: int) -> Vector:
    """The weighted means of samples that are drawn with replacement: [S]."""
    drawn_SN = rng.integers(len(value_N), size=(num_samples, len(value_N)))
    drawn_weights_SN = weight_N[drawn_SN]
    means_S: Vector = (value_N[drawn_SN] * drawn_weights_SN).sum(1) / drawn_weights_SN.sum(1)
    return means_S


@dataclass(frozen=True, slots=True)
class Difference:
    """How much better one system's mean is than another's over the same examples, and the probability of a difference
    as large if the two systems were exchangeable."""

    points: Interval
    p: float


def paired(values: Sequence[float], others: Sequence[float]) -> Difference:
    """The mean of the pairs' differences with its bootstrap interval, and a two-sided sign-flip test of it.

    10,000 random flips (seed 0) and the data themselves are counted, so p is never 0. Ties change nothing.
    Source: Dror et al. 2018, "The Hitchhiker's Guide to Testing Statistical Significance in NLP".
    """
    gain_N = np.asarray(values, float) - np.asarray(others, float)
    differing_N = gain_N[gain_N != 0]
    rng = np.random.default_rng(0)
    step = max(1, _AT_A_TIME // max(1, len(differing_N)))
    observed, extreme = abs(differing_N.sum()), 0
    for at in range(0, FLIPS, step):
        signs_SN = rng.choice([-1.0, 1.0], size=(min(step, FLIPS - at), len(differing_N)))
        extreme += int((np.abs(signs_SN @ differing_N) >= observed - 1e-9).sum())
    return Difference(interval(gain_N.tolist()), (extreme + 1) / (FLIPS + 1))


def abstention(probabilities: Sequence[float], right: Sequence[bool], answered: Sequence[bool]) -> dict[str, float]:
    """How well the probabilities of first answers tell right from wrong, by the names of the measures.

    AURC: the mean error rate over all coverages (Geifman and El-Yaniv 2017). AUGRC: the mean share of questions
    answered wrongly (Traub et al. 2024). Both are means over the orders of answers that are equally probable.
    Coverage: the largest share of questions that a threshold answers at each of `PRECISIONS`. Brier, ECE: squared and
    absolute error of the probabilities, the latter in ten bins. Last, the share of questions that are answered, and
    the share of these that is right. Raises InputError if there are none.
    """
    if not probabilities:
        raise InputError("no answer to measure; ask some questions")
    p_N, right_N, answered_N = np.asarray(probabilities, float), np.asarray(right, bool), np.asarray(answered, bool)
    right_share = float(right_N[answered_N].mean()) if answered_N.any() else 1.0
    order = np.lexsort((right_N, -p_N))
    p_N, right_N = p_N[order], right_N[order]
    count_N = np.arange(1, len(p_N) + 1)
    ends_G = np.flatnonzero(np.append(p_N[1:] < p_N[:-1], True)) + 1  # of each group of equal probabilities
    # Inside such a group, wrong answers are as likely at one place as at another: a straight line between its ends.
    wrong_N = np.interp(count_N, [0, *ends_G], [0, *np.cumsum(~right_N)[ends_G - 1]])
    share_G = 1 - wrong_N[ends_G - 1] / ends_G
    bin_N = np.minimum((p_N * _BINS).astype(int), _BINS - 1)
    gaps = [abs(p_N[bin_N == i].sum() - right_N[bin_N == i].sum()) for i in range(_BINS)]
    coverage = (float(ends_G[share_G >= least].max(initial=0) / len(p_N)) for least in PRECISIONS)
    return {
        "AURC": float((wrong_N / count_N).mean()),
        "AUGRC": float((wrong_N / len(p_N)).mean()),
        **{f"coverage at {100 * least:.1f} %": share for least, share in zip(PRECISIONS, coverage, strict=True)},
        "Brier": float(((p_N - right_N) ** 2).mean()),
        "ECE": float(sum(gaps) / len(p_N)),
        "answered": float(answered_N.mean()),
        "of these right": right_share,
    }
