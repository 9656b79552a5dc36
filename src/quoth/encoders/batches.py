"""Inputs of an encoder padded to batches: arrays, whatever network reads them.

Knows: padding, token types, how many tokens fit into a batch. Does not know: networks, devices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quoth.text.tokenizer import Pair, PairTokenizer

Ids = NDArray[np.int64]
BATCH_TOKENS = 512
"""Larger ones leave a processor's caches: in 8-bit integers a token of 2,048 takes 1.5 times as long as of 512."""


def batches_by_length(lengths: Sequence[int], limit: int = BATCH_TOKENS) -> Iterator[list[int]]:
    """Group inputs of similar length, longest first, so that a padded batch has at most `limit` tokens."""
    batch: list[int] = []
    for member in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if batch and (len(batch) + 1) * lengths[batch[0]] > limit:
            yield batch
            batch = []
        batch.append(member)
    if batch:
        yield batch


def padded(inputs: Sequence[Ids], pad_id: int) -> tuple[Ids, Ids]:
    """Inputs padded on the right, and 1 where they have a token: [B, T] each."""
    lengths_B1 = np.array([[len(ids)] for ids in inputs])
    mask_BT = (np.arange(lengths_B1.max()) < lengths_B1).astype(np.int64)
    ids_BT = np.full(mask_BT.shape, pad_id, np.int64)
    ids_BT[mask_BT > 0] = np.concatenate(inputs)
    return ids_BT, mask_BT


@dataclass(frozen=True, slots=True)
class PairArrays:
    """Inputs padded on the right: ids, attention mask and token types (None: all 0), each [B, T]."""

    ids_BT: Ids
    mask_BT: Ids
    types_BT: Ids | None


def pair_arrays(tokenizer: PairTokenizer, pairs: Sequence[Pair]) -> PairArrays:
    """Inputs of one or two texts; tokens of the second have type 1 if the encoder knows types."""
    ids_BT, mask_BT = padded([pair.ids_T for pair in pairs], tokenizer.pad_id)
    if not tokenizer.types:
        return PairArrays(ids_BT, mask_BT, None)
    second_B1 = np.array([[pair.second] for pair in pairs])
    return PairArrays(ids_BT, mask_BT, (np.arange(ids_BT.shape[1]) >= second_B1) * mask_BT)
