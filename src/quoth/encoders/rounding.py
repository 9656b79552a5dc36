"""Weights in 8-bit integers with a scale for each row: a quarter of the space, an error of at most 0.4 % of a row's
largest weight.

Knows: rounding, its inverse, and products of what is rounded. Does not know: networks, files.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

SCALE = ".scale"
"""What the name of a matrix's scales has in addition to its own."""
_LARGEST = 127
_SMALLEST = 1e-12


def rounded(name: str, matrix_RD: Tensor) -> dict[str, Tensor]:
    """A matrix as bytes [R, D] and the scales [R, 1] of its rows, by the names that they are stored under."""
    scale_R1 = matrix_RD.abs().amax(dim=1, keepdim=True).clamp_min(_SMALLEST) / _LARGEST
    return {name: (matrix_RD / scale_R1).round().to(torch.int8), f"{name}{SCALE}": scale_R1}


def whole(stored: Mapping[str, Tensor], name: str) -> Tensor:
    """The stored weight of that name in fp32."""
    weight, scale_R1 = stored[name].float(), stored.get(f"{name}{SCALE}")
    return weight if scale_R1 is None else weight.mul_(scale_R1)  # in place of the copy: half of the time


def all_whole(stored: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Every stored weight in fp32, by its name."""
    return {name: whole(stored, name) for name in stored if not name.endswith(SCALE)}


class RoundedLinear(nn.Module):
    """A linear layer that multiplies 8-bit integers: its weights are rounded once, with a scale for each output, its
    inputs in each call, with a scale for each token."""

    weight_IO: Tensor
    scale_O: Tensor
    bias: Tensor

    def __init__(self, weight_OI: Tensor, bias_O: Tensor | None = None) -> None:
        super().__init__()
        stored = rounded("weight", weight_OI.detach())
        self.register_buffer("weight_IO", stored["weight"].T)
        self.register_buffer("scale_O", stored[f"weight{SCALE}"].flatten())
        self.register_buffer("bias", weight_OI.new_zeros(len(weight_OI)) if bias_O is None else bias_O.detach())

    @property
    def weight(self) -> Tensor:
        """fp32 [O, I]; some models look at it."""
        return (self.weight_IO * self.scale_O).T

    def forward(self, x: Tensor) -> Tensor:
        """fp32 [..., O] of fp32 [..., I]."""
        x_TI = x.flatten(0, -2)
        scale_T1 = x_TI.abs().amax(dim=1, keepdim=True).clamp_min(_SMALLEST) / _LARGEST
        whole_TO = torch._int_mm((x_TI / scale_T1).round_().to(torch.int8), self.weight_IO)
        y_TO = torch.addcmul(self.bias, whole_TO.float().mul_(scale_T1), self.scale_O)
        return y_TO.view(*x.shape[:-1], len(self.scale_O))


def round_linears(model: nn.Module) -> None:
    """Replace a model's linear layers, fp32 on the processor, by layers in 8-bit integers."""
    for module in list(model.modules()):
        for name, part in module.named_children():
            if isinstance(part, nn.Linear):
                setattr(module, name, RoundedLinear(part.weight, part.bias))
