"""Batches of inputs of similar length, padded to the longest.

Knows: lengths and the padding id. Does not know: what the ids mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

PADDED_TOKENS_PER_BATCH = 8192


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
