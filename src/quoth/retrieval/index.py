"""Nearest vectors: the protocol that exact and approximate indexes share, and the exact one.

Knows: rows and similarities. Does not know: tokens, passages, files.

Shape suffixes: Q queries, D dimensions, K neighbours, N vectors, P passages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from quoth.retrieval.keys import TokenHits, TokenKeys

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The nearest rows to one query, nearest first, ties by row: rows [K], similarities [K]."""

    rows_K: Rows
    sims_K: Floats


class VectorIndex(Protocol):
    """Finds a table's nearest live rows."""

    def search(self, q_QD: Floats, k: int) -> list[Neighbours]:
        """At most k neighbours of each query, rows of deleted passages never among them."""
        ...


@dataclass(frozen=True, slots=True)
class ExactIndex:
    """Compares a query with every live vector."""

    keys: TokenKeys

    def search(self, q_QD: Floats, k: int) -> list[Neighbours]:
        sim_QN = self.keys.vectors.similarities(q_QD)
        if self.keys.live_P is not None:
            live_N = np.repeat(self.keys.live_P, np.diff(self.keys.offsets_P1))
            sim_QN[:, ~live_N] = -np.inf
        return [top(sim_N, k) for sim_N in sim_QN]


def top(sim_N: Floats, k: int) -> Neighbours:
    """The k largest finite similarities, largest first; of equal ones those of lower rows."""
    rows = np.arange(len(sim_N))
    if k < len(sim_N):
        kth = np.partition(sim_N, len(sim_N) - k)[len(sim_N) - k]
        above, level = np.flatnonzero(sim_N > kth), np.flatnonzero(sim_N == kth)
        rows = np.concatenate([above, level[: k - len(above)]])
    rows = rows[sim_N[rows] > -np.inf]
    rows = rows[np.lexsort((rows, -sim_N[rows]))]
    return Neighbours(rows, sim_N[rows])


def search_all(tables: Sequence[TokenKeys], q_start_D: Floats, q_end_D: Floats, k: int) -> list[TokenHits]:
    """The k nearest tokens over all tables to the start query and to the end query, dealt out to their tables."""
    q_2D = np.stack([q_start_D, q_end_D])
    found = [ExactIndex(table).search(q_2D, k) for table in tables]
    starts = _deal([both[0] for both in found], k)
    ends = _deal([both[1] for both in found], k)
    return [TokenHits(*hits) for hits in zip(tables, starts, ends, strict=True)]


def _deal(parts: Sequence[Neighbours], k: int) -> list[Rows]:
    """Of each table's neighbours those among the k nearest of all, ties by table, then row."""
    if not parts:
        return []
    best = top(np.concatenate([part.sims_K for part in parts]), k).rows_K
    owner = np.repeat(np.arange(len(parts)), [len(part.rows_K) for part in parts])[best]
    rows = np.concatenate([part.rows_K for part in parts])[best]
    return [np.sort(rows[owner == part]) for part in range(len(parts))]
