"""The order of a run's examples: shuffled epoch by epoch, and cut into batches of similar length.

Knows: numbers of examples, and their lengths. Does not know: what an example is.

Everything is a pure function of the seed and the step, so a run that resumes sees what an unbroken one would.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from quoth.arrays import Ints

_LIKE_LENGTHS = 32
"""Batches are made of examples of similar length among this many batches' examples: that leaves little padding, and
still mixes examples that are far apart in length."""


def turns(first: int, last: int, total: int, order: Callable[[int], Ints]) -> Iterator[int]:
    """The examples whose turn it is from `first` to `last`, in a run through all `total` of them over and over;
    `order` gives that of an epoch."""
    epoch, order_N = -1, np.zeros(0, np.int64)
    for number in range(first, last):
        if number // total != epoch:
            epoch = number // total
            order_N = order(epoch)
        yield int(order_N[number % total])


def drawn(step: int, size: int, total: int, *seed: int) -> list[int]:
    """The `size` examples of a step: all `total` come once per epoch, in an order that follows from seed and epoch."""
    first = step * size
    return list(turns(first, first + size, total, lambda n: np.random.default_rng((*seed, n)).permutation(total)))


def by_length(order: Ints, lengths: Sequence[int], size: int) -> Iterator[list[Ints]]:
    """Batches of `size` examples of similar length, `_LIKE_LENGTHS` of them at a time; `lengths` are those of the
    examples in `order`."""
    pool = size * _LIKE_LENGTHS
    for at in range(0, len(order), pool):
        # A stable sort: examples of equal length keep their random order, the same on every machine.
        part = order[at : at + pool][np.argsort(lengths[at : at + pool], kind="stable")]
        yield [part[i : i + size] for i in range(0, len(part), size)]
