"""How well a system knows when it is right: risk against coverage, calibration.

Knows: of each question the probability of the first answer, and whether that was right. Does not know: systems.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from quoth.errors import InputError
from quoth.evaluation.metrics import markdown, percent

PRECISIONS = (0.8, 0.9, 0.95)
_BINS = 10


@dataclass(frozen=True, slots=True)
class Abstention:
    """`aurc`: the mean error rate over all coverages (Geifman and El-Yaniv 2017). `augrc`: the mean share of questions
    that are answered, and wrongly (Traub et al. 2024). `coverage`: the largest share of questions that can be answered
    at each of `PRECISIONS`. `brier`, `ece`: squared and absolute error of the probabilities, the latter in ten bins.
    `answered` and `precision`: what is answered from `threshold` on, and how much of it is right.
    """

    num_questions: int
    aurc: float
    augrc: float
    coverage: tuple[float, ...]
    brier: float
    ece: float
    threshold: float
    answered: float
    precision: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def abstention(probabilities: Sequence[float], right: Sequence[bool], threshold: float) -> Abstention:
    """Measures the probabilities of first answers. Raises InputError if there is none."""
    if not probabilities:
        raise InputError("no answer to measure; ask some questions")
    order = np.argsort(-np.asarray(probabilities, float), kind="stable")
    p_N, right_N = np.asarray(probabilities, float)[order], np.asarray(right, bool)[order]
    count_N = np.arange(1, len(p_N) + 1)
    wrong_N = np.cumsum(~right_N)
    share_N = 1 - wrong_N / count_N
    given_N = p_N >= threshold
    return Abstention(
        num_questions=len(p_N),
        aurc=float((wrong_N / count_N).mean()),
        augrc=float((wrong_N / len(p_N)).mean()),
        coverage=tuple(float(count_N[share_N >= each].max(initial=0) / len(p_N)) for each in PRECISIONS),
        brier=float(((p_N - right_N) ** 2).mean()),
        ece=_ece(p_N, right_N),
        threshold=threshold,
        answered=float(given_N.mean()),
        precision=float(right_N[given_N].mean()) if given_N.any() else 1.0,
    )


def _ece(p_N: np.ndarray[Any, Any], right_N: np.ndarray[Any, Any]) -> float:
    bin_N = np.minimum((p_N * _BINS).astype(int), _BINS - 1)
    gaps = [abs(p_N[bin_N == each].sum() - right_N[bin_N == each].sum()) for each in range(_BINS)]
    return float(sum(gaps) / len(p_N))


def table(name: str, found: Abstention) -> str:
    """The numbers as a Markdown table; shares in per cent."""
    heads = [name, "AURC", "AUGRC", *(f"coverage at {percent(each)} %" for each in PRECISIONS), "Brier", "ECE"]
    heads += [f"answered from {found.threshold:.2f} on", "of these right"]
    shares = [found.aurc, found.augrc, *found.coverage, found.brier, found.ece, found.answered, found.precision]
    return markdown(heads, [[f"{found.num_questions:,} questions", *map(percent, shares)]])
