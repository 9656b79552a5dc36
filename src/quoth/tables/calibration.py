"""The chance of a column's cells, fitted to those that a person confirmed or corrected.

Knows: chances, and which were right. Does not know: where corrections are kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np

from quoth.answers.calibration import LEAST_ANSWERS, PRECISION, fit, threshold
from quoth.answers.evidence import chance, log_odds
from quoth.tables.cells import Cell, fits
from quoth.tables.columns import Column


@dataclass(frozen=True, slots=True)
class Calibration:
    """The weights of 1 and of the log odds of the reader's chance, none if that says nothing of what is right; the
    chance from which a cell is filled; how many cells say so; and a digest of the question and the reader."""

    weights: tuple[float, ...]
    threshold: float
    cells: int
    of: str

    def chance(self, probability: float) -> float:
        """The chance of a cell by the reader's."""
        return chance(self.weights, (1.0, log_odds(probability))) if self.weights else probability

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, known: Mapping[str, Any]) -> Self:
        """What `to_dict` wrote. Raises TypeError and the like."""
        weights = tuple(map(float, known["weights"]))
        return cls(weights, float(known["threshold"]), int(known["cells"]), str(known["of"]))


def calibrated(cell: Cell, column: Column, known: Calibration) -> Cell:
    """The cell, filled if its chance reaches the column's threshold; that of the questions file goes before the fitted
    one."""
    best = best_of(cell, column)
    if best is None or (cell.read_as and not cell.text):  # a misspelt word may be a name: nothing is sure
        return cell
    share = known.chance(best.probability)
    if share >= (known.threshold if column.threshold is None else column.threshold):
        return replace(cell, text=best.text, value=best.value, probability=share, status="answered",
                       evidence=best.evidence, candidate=None)  # fmt: skip
    nearest = replace(best, probability=share, status="unsure", others=())
    return Cell(status="unsure", candidate=nearest, read_as=cell.read_as, others=cell.others)


def best_of(cell: Cell, column: Column) -> Cell | None:
    """The answer of a cell, sure or not, if it may fill it."""
    best = cell if cell.text else cell.candidate
    return best if best is not None and fits(best.text, column) else None


def fitted(probabilities: Sequence[float], right: Sequence[bool], of: str) -> Calibration:
    """A column's calibration by the reader's chances of cells and whether these were right: 80 % of the cells from the
    threshold on were.

    Weights are the likeliest where each right cell counts as (R + 1) / (R + 2) right, each wrong one as 1 / (W + 2).
    Source: Platt, Probabilistic outputs for support vector machines (1999).
    """
    assert len(right) >= LEAST_ANSWERS
    num_right = sum(right)
    high, low = (num_right + 1) / (num_right + 2), 1 / (len(right) - num_right + 2)
    odds_N2 = np.array([(1.0, log_odds(each)) for each in probabilities])
    weights = tuple(round(each, 4) for each in fit(odds_N2, np.where(right, high, low)))
    made = Calibration(weights if weights[1] > 0 else (), 0.0, len(right), of)
    return replace(made, threshold=threshold([*map(made.chance, probabilities)], right, PRECISION))


def told(known: Calibration, pairs: Sequence[tuple[float, bool]]) -> str:
    """What a calibration says of the cells that it was fitted to."""
    filled = [right for share, right in pairs if known.chance(share) >= known.threshold]
    if not filled:
        return f"of {known.cells} confirmed cells no chance is high enough; none is filled"
    least = f"{100 * known.threshold:.0f} %"
    return f"{sum(filled)} of the {len(filled)} cells from {least} on are right, of {known.cells} confirmed"
