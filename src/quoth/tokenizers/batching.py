"""Batches of inputs of similar length, padded to the longest, and the one loop in which networks run without gradients.

Knows: lengths, the padding id, the order and the size of batches. Does not know: what the inputs are, or how a network
takes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from quoth.types import Floats

PADDED_TOKENS_PER_BATCH = 8192

Input = TypeVar("Input")


def batches_by_length(lengths: Sequence[int], limit: int = PADDED_TOKENS_PER_BATCH) -> Iterator[list[int]]:
    """Group inputs of similar length, longest first, so that a padded batch has at most `limit` tokens."""
    batch: list[int] = []
    for member in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if batch and (len(batch) + 1) * lengths[batch[0]] > limit:
            yield batch
            batch = []
        batch.append(member)
    if batch:
        yield batch


def pad(inputs: Sequence[NDArray[np.int64]], pad_id: int) -> tuple[Tensor, Tensor]:
    """Input ids and attention mask: [B, T] each."""
    width = max(len(ids) for ids in inputs)
    ids_BT = torch.full((len(inputs), width), pad_id, dtype=torch.long)
    mask_BT = torch.zeros((len(inputs), width), dtype=torch.long)
    for row, ids in enumerate(inputs):
        ids_BT[row, : len(ids)] = torch.from_numpy(ids)
        mask_BT[row, : len(ids)] = 1
    return ids_BT, mask_BT


@torch.inference_mode()
def run_batched(
    inputs: Sequence[Input], lengths: Sequence[int], forward: Callable[[list[Input]], Tensor]
) -> Iterator[tuple[int, Floats]]:
    """The index of every input and its row of what `forward` makes of a batch, [B, ...], as float32 on the CPU.

    A batch has a bounded number of tokens, its inputs padded to the longest, as `lengths` says. The longest inputs come
    first, so a batch that does not fit into memory fails at once. If rows have a token axis, they are as long as the
    longest input of their batch.
    """
    for members in batches_by_length(lengths):
        rows_B = forward([inputs[member] for member in members]).float().cpu().numpy()
        yield from zip(members, rows_B, strict=True)
