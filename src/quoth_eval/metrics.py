"""Ranks of answers, groups by length, and tables of percentages.

Knows: answers and predictions as texts. Does not know: where they come from.
"""

from __future__ import annotations

from collections.abc import Sequence

from quoth.datasets.judging import normalise

HITS = 5


def rank(answer: str, predictions: Sequence[str]) -> int | None:
    """The rank of the answer among the predictions, from 0; None if it is not among them."""
    wanted = normalise(answer)
    return next((i for i, text in enumerate(predictions) if normalise(text) == wanted), None)


def length_groups(length: int, unit: str) -> dict[str, str]:
    """The groups of an answer by its number of words or tokens: 1, 2, 3, 4+, and 2+."""
    name = f"4+ {unit}" if length >= 4 else f"{length} {unit if length > 1 else unit.removesuffix('s')}"
    return {unit: name} | ({f"several {unit}": f"2+ {unit}"} if length > 1 else {})


def percent(share: float) -> str:
    return f"{100 * share:.1f}"
