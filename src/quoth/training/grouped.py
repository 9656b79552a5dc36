"""Sums over groups of rows, of which losses are made. Does not know what the rows are."""

from __future__ import annotations

import torch
from torch import Tensor


def grouped_logsumexp(values: Tensor, group: Tensor, num_groups: int) -> Tensor:
    """log Σ exp of the values of each group; 0 for an empty group."""
    # The maximum cancels out of the sum, so its gradient is 0: `detach` says so, and saves a graph through "amax".
    top = torch.full((num_groups,), -torch.inf, dtype=values.dtype, device=values.device)
    top = top.scatter_reduce(0, group, values.detach(), "amax")
    empty = top.isneginf()
    top = top.masked_fill(empty, 0.0)
    sums = torch.zeros_like(top).index_add(0, group, (values - top[group]).exp())
    return top + sums.masked_fill(empty, 1.0).log()
