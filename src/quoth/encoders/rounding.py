"""Weights in 8-bit integers with a scale for each row: a quarter of the space, an error of at most 0.4 % of a row's
largest weight.

Knows: rounding and its inverse, of arrays. Does not know: products of what is rounded, networks, files.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quoth.arrays import Floats

Stored = dict[str, NDArray[Any]]
"""Weights by the names that they are stored under; a matrix that is rounded has its scales beside it."""
SCALE = ".scale"
"""What the name of a matrix's scales has in addition to its own."""
LARGEST = 127
SMALLEST = 1e-12


def rounded(name: str, matrix_RD: Floats) -> Stored:
    """A matrix as bytes [R, D] and the scales [R, 1] of its rows, by the names that they are stored under."""
    scale_R1 = np.maximum(np.abs(matrix_RD).max(axis=1, keepdims=True), np.float32(SMALLEST)) / np.float32(LARGEST)
    return {name: np.round(matrix_RD / scale_R1).astype(np.int8), f"{name}{SCALE}": scale_R1}


def whole(stored: Mapping[str, NDArray[Any]], name: str) -> Floats:
    """The stored weight of that name in fp32."""
    weight, scale_R1 = stored[name].astype(np.float32), stored.get(f"{name}{SCALE}")
    if scale_R1 is not None:
        weight *= scale_R1  # in place of the copy: half of the time
    return weight


def names_of(stored: Mapping[str, Any]) -> list[str]:
    """The names of the weights, without those of scales."""
    return [name for name in stored if not name.endswith(SCALE)]
