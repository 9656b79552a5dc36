"""The one loop in which encoders run without gradients: inputs of similar length share a forward pass.

Knows: the order and the size of batches, what comes back to the CPU. Does not know: what the inputs are, or how a
network takes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import torch
from torch import Tensor

from quoth.tokenizers.batching import batches_by_length
from quoth.types import Floats

Input = TypeVar("Input")


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
