"""Weights in 8-bit integers with a scale for each row: a quarter of the space, an error of at most 0.4 % of a row's
largest weight.

Knows: rounding and its inverse. Does not know: networks, files.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

SCALE = ".scale"
"""What the name of a matrix's scales has in addition to its own."""
_LARGEST = 127


def rounded(name: str, matrix_RD: Tensor) -> dict[str, Tensor]:
    """A matrix as bytes [R, D] and the scales [R, 1] of its rows, by the names that they are stored under."""
    scale_R1 = matrix_RD.abs().amax(dim=1, keepdim=True).clamp_min(1e-12) / _LARGEST
    return {name: (matrix_RD / scale_R1).round().to(torch.int8), f"{name}{SCALE}": scale_R1}


def whole(stored: Mapping[str, Tensor], name: str) -> Tensor:
    """The stored weight of that name in fp32."""
    weight, scale_R1 = stored[name].float(), stored.get(f"{name}{SCALE}")
    return weight if scale_R1 is None else weight * scale_R1
