"""How well a system knows when it is right: risk against coverage, calibration.

Knows: the probability of each question's first answer, and whether it was right. Does not know: systems.

Shape suffixes that differ from the project's: N questions, G groups of equal probabilities.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from quoth.cli.output import markdown
from quoth.errors import InputError
from quoth_eval.task import percent

PRECISIONS = (0.8, 0.9, 0.95)
_BINS = 10


@dataclass(frozen=True, slots=True)
class Abstention:
    """Scores of how well the probabilities of first answers tell right from wrong.

    `aurc`: the mean error rate over all coverages (Geifman and El-Yaniv 2017). `augrc`: the mean share of questions
    answered wrongly (Traub et al. 2024). Both are means over the orders of answers that are equally probable.
    `coverage`: the largest share of questions that a threshold answers at each of `PRECISIONS`. `brier`, `ece`: squared
    and absolute error of the probabilities, the latter in ten bins. `answered`: the share of questions whose
    probability is at least `threshold`; `precision`: the share of these that is right.
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
    """Score the probabilities of first answers. Raises InputError if there are none."""
    if not probabilities:
        raise InputError("no answer to measure; ask some questions")
    p_N, right_N = np.asarray(probabilities, float), np.asarray(right, bool)
    order = np.lexsort((right_N, -p_N))
    p_N, right_N = p_N[order], right_N[order]
    count_N = np.arange(1, len(p_N) + 1)
    ends_G = np.flatnonzero(np.append(p_N[1:] < p_N[:-1], True)) + 1  # of each group of equal probabilities
    # Inside such a group, wrong answers are as likely at one place as at another: a straight line between its ends.
    wrong_N = np.interp(count_N, [0, *ends_G], [0, *np.cumsum(~right_N)[ends_G - 1]])
    share_G = 1 - wrong_N[ends_G - 1] / ends_G
    answered_N = p_N >= threshold
    return Abstention(
        num_questions=len(p_N),
        aurc=float((wrong_N / count_N).mean()),
        augrc=float((wrong_N / len(p_N)).mean()),
        coverage=tuple(float(ends_G[share_G >= least].max(initial=0) / len(p_N)) for least in PRECISIONS),
        brier=float(((p_N - right_N) ** 2).mean()),
        ece=_ece(p_N, right_N),
        threshold=threshold,
        answered=float(answered_N.mean()),
        precision=float(right_N[answered_N].mean()) if answered_N.any() else 1.0,
    )


def _ece(p_N: np.ndarray[Any, Any], right_N: np.ndarray[Any, Any]) -> float:
    bin_N = np.minimum((p_N * _BINS).astype(int), _BINS - 1)
    gaps = [abs(p_N[bin_N == i].sum() - right_N[bin_N == i].sum()) for i in range(_BINS)]
    return float(sum(gaps) / len(p_N))


def table(name: str, scores: Abstention) -> str:
    """The scores as a Markdown table; percentages."""
    heads = [name, "AURC", "AUGRC", *(f"coverage at {percent(least)} %" for least in PRECISIONS), "Brier", "ECE"]
    heads += [f"answered at {scores.threshold:.2f} or more", "of these right"]
    shares = [scores.aurc, scores.augrc, *scores.coverage, scores.brier, scores.ece, scores.answered, scores.precision]
    return markdown(heads, [[f"{scores.num_questions:,} questions", *map(percent, shares)]])
