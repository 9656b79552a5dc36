"""Vectors of tokens, in memory or mapped from disk, and their exact similarity to queries.

Knows: precisions (fp32, fp16, sq8) and blocks. Does not know: passages and segments.

Shape suffixes: N vectors, D dimensions, Q queries, R rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from quoth.errors import InputError
from quoth.storage import open_array, save_array

Precision = Literal["sq8", "fp16", "fp32"]
BYTES = {"sq8": 1, "fp16": 2, "fp32": 4}
ROWS_PER_BLOCK = 1024
"""Few enough that their numbers as floats stay in a core's cache."""
_STEPS = 255
_MARGIN = 0.1

Floats = NDArray[np.float32]


def check_precision(value: str) -> None:
    """Raises InputError unless `value` is a known precision."""
    if value not in BYTES:
        raise InputError(f"precision {value!r}; allowed are {', '.join(get_args(Precision))}")


@dataclass(frozen=True, slots=True)
class Quantizer:
    """Eight bits a number: value = low + step * code, one low and one step a dimension."""

    low_D: Floats
    step_D: Floats

    @classmethod
    def fit(cls, sample_ND: Floats) -> Quantizer:
        """Spread the codes over the sample's range and a tenth more; no vector at all counts as zeros."""
        sample_ND = sample_ND if len(sample_ND) else np.zeros((1, sample_ND.shape[1]), np.float32)
        low_D, high_D = sample_ND.min(axis=0), sample_ND.max(axis=0)
        margin_D = _MARGIN * (high_D - low_D) + np.float32(1e-6)
        return cls(low_D - margin_D, (high_D - low_D + 2 * margin_D) / np.float32(_STEPS))

    def widened(self, sample_ND: Floats) -> Quantizer:
        """One that covers the sample too; the same where it does already."""
        high_D = self.low_D + _STEPS * self.step_D
        if not len(sample_ND) or ((sample_ND >= self.low_D) & (sample_ND <= high_D)).all():
            return self
        return self._spanning(np.vstack([self.low_D, sample_ND]), np.vstack([high_D, sample_ND]))

    @classmethod
    def covering(cls, others: Sequence[Quantizer]) -> Quantizer | None:
        """One whose codes span the ranges of all the others; the same where they are the same. None for none."""
        if not others:
            return None
        lows_ND = np.stack([each.low_D for each in others])
        return cls._spanning(lows_ND, lows_ND + _STEPS * np.stack([each.step_D for each in others]))

    @classmethod
    def _spanning(cls, lows_ND: Floats, highs_ND: Floats) -> Quantizer:
        """One whose codes go from the lowest to the highest of each dimension."""
        low_D = lows_ND.min(axis=0)
        return cls(low_D, ((highs_ND.max(axis=0) - low_D) / np.float32(_STEPS)).astype(np.float32))

    def encode(self, vectors_ND: Floats) -> NDArray[np.uint8]:
        codes_ND = np.clip(np.rint((vectors_ND - self.low_D) / self.step_D), 0, _STEPS)
        return np.asarray(codes_ND, np.uint8)


@dataclass(frozen=True, slots=True)
class TokenVectors:
    """Vectors [N, D] of any precision, whose similarity to queries is `scale` q·c."""

    stored_ND: NDArray[np.generic]
    scale: float
    quantizer: Quantizer | None = None

    def similarities(self, q_QD: Floats, rows_R: NDArray[np.int64] | None = None) -> Floats:
        """sim(q, c) = s q·c for the given rows (all when None), in blocks: [Q, R]."""
        import torch  # which turns codes into floats in two thirds of the time that numpy takes

        total = len(self.stored_ND) if rows_R is None else len(rows_R)
        sim_QR = np.empty((len(q_QD), total), np.float32)
        weights_QD, bias_Q1 = self._linear(q_QD)
        shape = (min(ROWS_PER_BLOCK, total), self.dimensions)
        picked_RD, floats_RD = np.empty(shape, self.stored_ND.dtype), np.empty(shape, np.float32)
        codes_RD, numbers_RD = torch.from_numpy(picked_RD), torch.from_numpy(floats_RD)
        for first in range(0, total, ROWS_PER_BLOCK):
            block = slice(first, min(first + ROWS_PER_BLOCK, total))
            size = block.stop - first
            if rows_R is None:
                floats_RD[:size] = self.stored_ND[block]
            else:
                np.take(self.stored_ND, rows_R[block], axis=0, out=picked_RD[:size], mode="clip")
                numbers_RD[:size].copy_(codes_RD[:size])
            np.matmul(weights_QD, floats_RD[:size].T, out=sim_QR[:, block])
        sim_QR += bias_Q1
        return sim_QR

    def __len__(self) -> int:
        return len(self.stored_ND)

    @property
    def dimensions(self) -> int:
        return int(self.stored_ND.shape[1])

    def floats(self, rows: slice | NDArray[np.int64]) -> Floats:
        """These rows as they were before they were stored, as far as the precision holds them: [R, D]."""
        picked_RD = self.stored_ND[rows].astype(np.float32)
        if self.quantizer is not None:
            picked_RD = picked_RD * self.quantizer.step_D + self.quantizer.low_D
        return picked_RD

    def take(self, rows_R: NDArray[np.int64]) -> TokenVectors:
        """These rows alone, in memory."""
        return replace(self, stored_ND=self.stored_ND[rows_R])

    def _linear(self, q_QD: Floats) -> tuple[Floats, Floats]:
        """Weights and bias that give the similarity from the stored numbers as they are."""
        q_QD = (q_QD * np.float32(self.scale)).astype(np.float32)
        if self.quantizer is None:
            return q_QD, np.zeros((len(q_QD), 1), np.float32)
        return q_QD * self.quantizer.step_D, (q_QD @ self.quantizer.low_D)[:, None]

    @classmethod
    def open(cls, folder: Path, scale: float) -> TokenVectors:
        """Map the vectors that `stored` and `save_quantizer` wrote; nothing is read. Raises CorruptionError."""
        codes = folder / "quantizer.npy"
        quantizer = Quantizer(*open_array(codes)) if codes.is_file() else None
        return cls(open_array(folder / "vectors.npy"), scale, quantizer)


def stored(vectors_ND: Floats, precision: str, quantizer: Quantizer | None) -> NDArray[np.generic]:
    """Vectors as they lie on disk."""
    if precision == "sq8":
        assert quantizer is not None
        return quantizer.encode(vectors_ND)
    return vectors_ND.astype(np.float16 if precision == "fp16" else np.float32)


def save_quantizer(folder: Path, quantizer: Quantizer) -> None:
    """Write it whole or not at all."""
    fresh = folder / "fresh.npy"
    save_array(fresh, np.stack([quantizer.low_D, quantizer.step_D]))
    fresh.replace(folder / "quantizer.npy")
