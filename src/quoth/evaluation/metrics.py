"""Exact match and hit@5 by groups of blanks, confidence intervals, and tables of percentages.

Knows: answers, predictions, and the groups that are reported. Does not know: where answers and predictions come from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from quoth.datasets.answers import normalise

HITS = 5
ALL = "all"
LENGTHS: Mapping[str, Callable[[int], bool]] = {
    ALL: lambda length: True,
    "1": lambda length: length == 1,
    "2": lambda length: length == 2,
    "3": lambda length: length == 3,
    "4+": lambda length: length >= 4,
    "2+": lambda length: length >= 2,
}


@dataclass(frozen=True, slots=True)
class GroupScore:
    """The shares of a group's blanks whose answer is the first prediction, and among the first five.

    `kind` is a kind of blank or "all"; `length` is "all", "1", "2", "3", "4+" or "2+", in words or tokens.
    """

    kind: str
    length: str
    num_blanks: int
    exact_match: float
    hit_at_5: float


def rank(answer: str, predictions: Sequence[str]) -> int | None:
    """The rank of the answer among the predictions, from 0; None if it is not among them."""
    wanted = normalise(answer)
    return next((i for i, text in enumerate(predictions) if normalise(text) == wanted), None)


def group_scores(kinds: Sequence[str], lengths: Sequence[int], ranks: Sequence[int | None]) -> tuple[GroupScore, ...]:
    """The scores of all blanks and of each kind, both overall and by length; empty groups are left out.

    The three sequences have one entry per blank; `lengths` are those of the answers, in words or tokens.
    """
    blanks = list(zip(kinds, lengths, ranks, strict=True))
    scores = []
    for kind in dict.fromkeys([ALL, *kinds]):
        for length, fits in LENGTHS.items():
            group = [where for own, size, where in blanks if kind in (ALL, own) and fits(size)]
            if group:
                scores.append(_score(kind, length, group))
    return tuple(scores)


def _score(kind: str, length: str, ranks: Sequence[int | None]) -> GroupScore:
    exact = sum(where == 0 for where in ranks)
    hits = sum(where is not None and where < HITS for where in ranks)
    return GroupScore(kind, length, len(ranks), exact / len(ranks), hits / len(ranks))


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean and its 95 % confidence interval, by bootstrap over questions (1,000 samples, seed 0)."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{percent(self.mean)} [{percent(self.low)}, {percent(self.high)}]"


def interval(values: Sequence[float]) -> Interval:
    """The mean of values and its interval; zeros if there are no values."""
    if not len(values):
        return Interval(0.0, 0.0, 0.0)
    value_N = np.asarray(values, float)
    rng = np.random.default_rng(0)
    means = [float(value_N[rng.integers(len(value_N), size=len(value_N))].mean()) for _ in range(1000)]
    low, high = np.quantile(means, [0.025, 0.975]).tolist()
    return Interval(float(value_N.mean()), low, high)


def percent(share: float) -> str:
    return f"{100 * share:.1f}"


def exact_and_hits(exact_match: float, hit_at_5: float) -> str:
    return f"{percent(exact_match)} ({percent(hit_at_5)})"


def markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table with names in the first column and numbers in the others."""
    lines = [heads, ["---", *("---:" for _ in heads[1:])], *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
