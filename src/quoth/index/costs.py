"""The cost of computing keys, and shortfalls in their recall.

Knows: the two records. Does not know: how they are estimated or found (`tables`).
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Cost:
    """Estimates: the passages to encode and the time that takes; the tokens of their segments; their bytes on disk,
    finally and at the peak."""

    passages: int
    tokens: int
    bytes: int
    peak_bytes: int
    seconds: float

    def plus(self, other: Cost) -> Cost:
        return Cost(*(mine + theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True)))


@dataclass(frozen=True, slots=True)
class Shortfall:
    """A segment whose codes find only the share `recall` of a blank's nearest tokens, below the `target`."""

    corpus: Path
    segment: str
    recall: float
    target: float
