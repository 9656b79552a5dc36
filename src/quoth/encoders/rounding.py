"""Weights in 8-bit integers with a scale for each row: a quarter of the space, an error of at most 0.4 % of a row's
largest weight.

Knows: rounding and its inverse, and the folder of an encoder that is stored like this. Does not know: networks.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import save
from torch import Tensor

from quoth.storage import atomic_write_bytes

SCALE = ".scale"
"""What the name of a matrix's scales has in addition to its own."""
_LARGEST = 127
_BESIDE_WEIGHTS = ("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")


def rounded(name: str, matrix_RD: Tensor) -> dict[str, Tensor]:
    """A matrix as bytes [R, D] and the scales [R, 1] of its rows, by the names that they are stored under."""
    scale_R1 = matrix_RD.abs().amax(dim=1, keepdim=True).clamp_min(1e-12) / _LARGEST
    return {name: (matrix_RD / scale_R1).round().to(torch.int8), f"{name}{SCALE}": scale_R1}


def whole(stored: Mapping[str, Tensor], name: str) -> Tensor:
    """The stored weight of that name in fp32."""
    weight, scale_R1 = stored[name].float(), stored.get(f"{name}{SCALE}")
    return weight if scale_R1 is None else weight * scale_R1


def save_rounded(folder: Path, weights: Mapping[str, Tensor], base: Path) -> None:
    """Write an encoder's folder: its weights, matrices rounded; configuration and tokenizer are those of `base`."""
    folder.mkdir(parents=True, exist_ok=True)
    stored: dict[str, Tensor] = {}
    for name, weight in weights.items():
        tensor = weight.detach().cpu()
        stored |= rounded(name, tensor) if tensor.ndim == 2 else {name: tensor.contiguous()}
    atomic_write_bytes(folder / "model.safetensors", save(stored))
    for name in _BESIDE_WEIGHTS:
        if (base / name).is_file():
            shutil.copyfile(base / name, folder / name)
