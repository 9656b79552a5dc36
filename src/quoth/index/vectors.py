"""Vectors of tokens, in memory or mapped from disk, their exact similarity to queries, and the nearest of them.

Knows: precisions (fp32, fp16, sq8, sq4) and blocks. Does not know: passages and segments.

Shape suffixes that differ from the project's: W packed bytes, (D + 1) // 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quoth.arrays import Floats, Rows, fetch, forget, open_array, save_array
from quoth.errors import CorruptionError

BITS = {"sq8": 8, "sq4": 4, "fp16": 16, "fp32": 32}
ROWS_PER_BLOCK = 1024
"""Few enough that their numbers as floats stay in a core's cache."""
ROWS_AT_A_TIME = 1 << 16
"""The rows of a whole table that are in memory together."""
_MARGIN = 0.1
_DEVIATIONS = 2.5
"""Where four bits end: of the values from 2.25 to 3.5, the one that kept most neighbours of mask queries."""


def bytes_of(precision: str, dimensions: int) -> int:
    """How many bytes a vector takes."""
    return (dimensions * BITS[precision] + 7) // 8


class Spread:
    """The range of the numbers of many vectors, per dimension; they are added block by block, and none is kept."""

    def __init__(self, dimensions: int) -> None:
        self.count = 0
        self.low_D = np.full(dimensions, np.inf, np.float32)
        self.high_D = np.full(dimensions, -np.inf, np.float32)
        self._sum_D, self._squares_D = np.zeros(dimensions), np.zeros(dimensions)

    def add(self, vectors_ND: Floats) -> None:
        self.count += len(vectors_ND)
        self.low_D = np.minimum(self.low_D, vectors_ND.min(axis=0, initial=np.inf))
        self.high_D = np.maximum(self.high_D, vectors_ND.max(axis=0, initial=-np.inf))
        # Squares in float64: in float32 the variance of a long sum would be lost in rounding.
        for first in range(0, len(vectors_ND), ROWS_PER_BLOCK):
            block_ND = vectors_ND[first : first + ROWS_PER_BLOCK].astype(np.float64)
            self._sum_D += block_ND.sum(axis=0)
            self._squares_D += (block_ND**2).sum(axis=0)

    @property
    def mean_D(self) -> Floats:
        return (self._sum_D / self.count).astype(np.float32)

    @property
    def deviation_D(self) -> Floats:
        variance_D = self._squares_D / self.count - (self._sum_D / self.count) ** 2
        return np.sqrt(np.maximum(variance_D, 0.0)).astype(np.float32)


@dataclass(frozen=True, slots=True)
class Quantizer:
    """Eight or four bits per number: value = low + step * code, one low and one step per dimension."""

    low_D: Floats
    step_D: Floats
    bits: int = 8

    @classmethod
    def fitting(cls, spread: Spread, bits: int = 8) -> Quantizer:
        """Spread the codes over the range of the numbers; no vector at all counts as zeros.

        Eight bits reach a tenth beyond the range. Four end within it if it is long, at `_DEVIATIONS` standard
        deviations from the mean: shorter steps for most numbers are worth more than the few that are cut off.
        """
        if not spread.count:
            spread.add(np.zeros((1, len(spread.low_D)), np.float32))
        low_D, high_D = spread.low_D, spread.high_D
        if bits == 4:
            mean_D, reach_D = spread.mean_D, np.float32(_DEVIATIONS) * spread.deviation_D
            low_D, high_D = np.maximum(low_D, mean_D - reach_D), np.minimum(high_D, mean_D + reach_D)
        margin_D = (_MARGIN if bits == 8 else 0) * (high_D - low_D) + np.float32(1e-6)
        return cls._spanning(low_D - margin_D, high_D + margin_D, bits)

    @property
    def _steps(self) -> int:
        return (1 << self.bits) - 1

    @property
    def _high_D(self) -> Floats:
        return self.low_D + self._steps * self.step_D

    def widened(self, spread: Spread) -> Quantizer:
        """One that covers these numbers too; the same if it already does, and for four bits, which cut numbers off."""
        high_D = self._high_D
        if self.bits == 4 or ((spread.low_D >= self.low_D) & (spread.high_D <= high_D)).all():
            return self
        return self._spanning(np.minimum(self.low_D, spread.low_D), np.maximum(high_D, spread.high_D), self.bits)

    @classmethod
    def covering(cls, others: Sequence[Quantizer]) -> Quantizer | None:
        """One for the vectors of all the others; the same if they are the same. None for none.

        Eight bits span all their ranges. Four would lose too much by that: they keep to the first one's range.
        """
        if not others or others[0].bits == 4:
            return others[0] if others else None
        low_D = np.min([each.low_D for each in others], axis=0)
        return cls._spanning(low_D, np.max([each._high_D for each in others], axis=0), others[0].bits)

    @classmethod
    def _spanning(cls, low_D: Floats, high_D: Floats, bits: int) -> Quantizer:
        """One whose codes go from the lowest to the highest of each dimension."""
        return cls(low_D, ((high_D - low_D) / np.float32((1 << bits) - 1)).astype(np.float32), bits)

    def encode(self, vectors_ND: Floats) -> NDArray[np.uint8]:
        """The nearest codes; those of four bits two per byte: [N, W]."""
        codes_ND = np.asarray(np.clip(np.rint((vectors_ND - self.low_D) / self.step_D), 0, self._steps), np.uint8)
        return codes_ND if self.bits == 8 else _packed(codes_ND)


def _packed(codes_ND: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Two codes of four bits per byte: the first half of the dimensions low, the second high: [N, W]."""
    half = (codes_ND.shape[1] + 1) // 2
    packed_NW = codes_ND[:, :half].copy()
    packed_NW[:, : codes_ND.shape[1] - half] |= codes_ND[:, half:] << 4
    return packed_NW


def _unpack(stored_RD: NDArray[np.generic], floats_RD: Floats) -> None:
    """Write stored numbers as floats, two from each byte if they are packed."""
    width, dimensions = stored_RD.shape[1], floats_RD.shape[1]
    if width == dimensions:
        floats_RD[:] = stored_RD
        return
    bytes_RW = stored_RD.view(np.uint8)
    floats_RD[:, :width] = bytes_RW & 15
    floats_RD[:, width:] = bytes_RW[:, : dimensions - width] >> 4


@dataclass(frozen=True, slots=True)
class KeyVectors:
    """Vectors [N, D] of any precision (four bits: [N, W], two per byte), whose similarity to queries is `scale` q·c."""

    stored_ND: NDArray[np.generic]
    scale: float
    quantizer: Quantizer | None = None

    def similarities(self, q_QD: Floats, rows_R: NDArray[np.int64] | None = None) -> Floats:
        """sim(q, c) = s q·c for the given rows (all when None), in blocks: [Q, R]."""
        if len(self.stored_ND) > ROWS_PER_BLOCK:
            fetch(self.stored_ND, rows_R)
        total = len(self.stored_ND) if rows_R is None else len(rows_R)
        sim_QR = np.empty((len(q_QD), total), np.float32)
        # q·(low + step·code) = (q·step)·code + q·low: the query is scaled once, and codes are multiplied as they are
        # stored, without making vectors of them again.
        weights_QD, bias_Q1 = self._linear(q_QD)
        rows = min(ROWS_PER_BLOCK, total)
        picked_RD = np.empty((rows, *self.stored_ND.shape[1:]), self.stored_ND.dtype)
        floats_RD = np.empty((rows, self.dimensions), np.float32)
        for first in range(0, total, ROWS_PER_BLOCK):
            block = slice(first, min(first + ROWS_PER_BLOCK, total))
            size = block.stop - first
            if rows_R is None:
                _unpack(self.stored_ND[block], floats_RD[:size])
            else:
                np.take(self.stored_ND, rows_R[block], axis=0, out=picked_RD[:size], mode="clip")
                _unpack(picked_RD[:size], floats_RD[:size])
            np.matmul(weights_QD, floats_RD[:size].T, out=sim_QR[:, block])
        sim_QR += bias_Q1
        return sim_QR

    def __len__(self) -> int:
        return len(self.stored_ND)

    @property
    def dimensions(self) -> int:
        return self.stored_ND.shape[1] if self.quantizer is None else len(self.quantizer.low_D)

    def floats(self, rows: slice | NDArray[np.int64]) -> Floats:
        """These rows as they were before they were stored, as far as the precision holds them: [R, D]."""
        picked_RD = self.stored_ND[rows]
        floats_RD = np.empty((len(picked_RD), self.dimensions), np.float32)
        _unpack(picked_RD, floats_RD)
        if self.quantizer is not None:
            floats_RD = floats_RD * self.quantizer.step_D + self.quantizer.low_D
        return floats_RD

    def blocks(self, first: int, last: int) -> Iterator[tuple[int, KeyVectors]]:
        """The vectors from the first to the last in blocks, each with the row that it begins at. Of mapped vectors no
        more than a block is in memory."""
        fetch(self.stored_ND, None)
        for at in range(first, last, ROWS_AT_A_TIME):
            yield at, replace(self, stored_ND=self.stored_ND[at : min(at + ROWS_AT_A_TIME, last)])
            forget(self.stored_ND)

    def take(self, rows_R: NDArray[np.int64]) -> KeyVectors:
        """These rows alone, in memory."""
        return replace(self, stored_ND=self.stored_ND[rows_R])

    def _linear(self, q_QD: Floats) -> tuple[Floats, Floats]:
        """Weights and bias that give the similarity from the stored numbers as they are."""
        q_QD = (q_QD * np.float32(self.scale)).astype(np.float32)
        if self.quantizer is None:
            return q_QD, np.zeros((len(q_QD), 1), np.float32)
        return q_QD * self.quantizer.step_D, (q_QD @ self.quantizer.low_D)[:, None]

    @classmethod
    def open(cls, folder: Path, scale: float) -> KeyVectors:
        """Map the vectors that `stored` and `save_quantizer` wrote; nothing is read. Raises CorruptionError."""
        stored_ND, codes = open_array(folder / "vectors.npy", None, (-1, -1)), folder / "quantizer.npy"
        if not codes.is_file():
            return cls(stored_ND, scale)
        low_D, step_D = open_array(codes, np.float32, (2, -1))
        if stored_ND.shape[1] not in (len(low_D), (len(low_D) + 1) // 2):
            raise CorruptionError(f"{codes}: damaged, its {len(low_D)} dimensions are not those of the vectors")
        return cls(stored_ND, scale, Quantizer(low_D, step_D, 8 if stored_ND.shape[1] == len(low_D) else 4))


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The nearest rows to one query, nearest first, ties by row: rows [K], similarities [K]."""

    rows_K: NDArray[np.int64]
    sims_K: NDArray[np.float32]

    def at(self, which: Any) -> Neighbours:
        """The hits that a mask or a slice picks."""
        return Neighbours(self.rows_K[which], self.sims_K[which])


def nearest_rows(vectors: KeyVectors, q_QD: Floats, k: int) -> list[Rows]:
    """The rows of the k vectors nearest to each query, nearest first; a block of vectors is in memory at a time."""
    found = [Neighbours(np.zeros(0, np.int64), np.zeros(0, np.float32))] * len(q_QD)
    for first, block in vectors.blocks(0, len(vectors)):
        near = [top(sim_R, k) for sim_R in block.similarities(q_QD)]
        shifted = [Neighbours(each.rows_K + first, each.sims_K) for each in near]
        found = [joined(known, fresh, k) for known, fresh in zip(found, shifted, strict=True)]
    return [each.rows_K for each in found]


def joined(left: Neighbours, right: Neighbours, k: int) -> Neighbours:
    """The k nearest of both; of ties, the left's."""
    best = top(np.concatenate([left.sims_K, right.sims_K]), k)
    return Neighbours(np.concatenate([left.rows_K, right.rows_K])[best.rows_K], best.sims_K)


def top(sim_N: Floats, k: int) -> Neighbours:
    """The k largest finite similarities, largest first; of ties, those of lower rows."""
    rows = np.arange(len(sim_N))
    # Partitioning is linear; only k survivors are sorted. It leaves ties at the k-th value in any order, so those are
    # picked by row.
    if k < len(sim_N):
        kth = np.partition(sim_N, len(sim_N) - k)[len(sim_N) - k]
        above, level = np.flatnonzero(sim_N > kth), np.flatnonzero(sim_N == kth)
        rows = np.concatenate([above, level[: k - len(above)]])
    rows = rows[sim_N[rows] > -np.inf]
    rows = rows[np.lexsort((rows, -sim_N[rows]))]
    return Neighbours(rows, sim_N[rows])


def stored(vectors_ND: Floats, precision: str, quantizer: Quantizer | None) -> NDArray[np.generic]:
    """Vectors as they lie on disk."""
    if BITS[precision] <= 8:
        assert quantizer is not None
        return quantizer.encode(vectors_ND)
    return vectors_ND.astype(np.float16 if precision == "fp16" else np.float32)


def save_quantizer(folder: Path, quantizer: Quantizer) -> None:
    """Write it whole or not at all."""
    fresh = folder / "fresh.npy"
    save_array(fresh, np.stack([quantizer.low_D, quantizer.step_D]))
    fresh.replace(folder / "quantizer.npy")
