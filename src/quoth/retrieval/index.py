"""Nearest vectors: the protocol that exact and approximate indexes share, and the exact one.

Knows: rows and similarities. Does not know: tokens, passages, files.

Shape suffixes: Q queries, D dimensions, K neighbours, N vectors, P passages.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from quoth.retrieval.keys import TokenHits, TokenKeys

SIMILARITIES_AT_A_TIME = 1 << 25

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
        return self.nearest(self.keys.vectors.similarities(q_QD), k)

    def nearest(self, sim_QN: Floats, k: int) -> list[Neighbours]:
        """The k nearest live rows by similarities that are known already."""
        if self.keys.live_P is not None:
            live_N = np.repeat(self.keys.live_P, np.diff(self.keys.offsets_P1))
            sim_QN = np.where(live_N, sim_QN, np.float32(-np.inf))
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
    return _dealt(tables, [ExactIndex(table).search(q_2D, k) for table in tables], k)


def search_together(
    tables: Sequence[TokenKeys], hidden: Sequence[Collection[int]], q_2BD: Floats, k: int
) -> Iterator[list[TokenHits]]:
    """`search_all` over the same tables for B blanks, whose start and end queries are `q_2BD`; blank b never sees
    the passages `hidden[b]`. Vectors are read once for as many blanks as fit into memory."""
    largest = max((table.num_tokens for table in tables), default=1)
    size = max(1, SIMILARITIES_AT_A_TIME // (2 * max(largest, 1)))
    for first in range(0, len(hidden), size):
        block_2BD = q_2BD[:, first : first + size]
        sims = [table.vectors.similarities(block_2BD.reshape(-1, block_2BD.shape[-1])) for table in tables]
        for b, rows in enumerate(hidden[first : first + size]):
            seen = [table.without(rows) for table in tables]
            pairs = [sim_QN[[b, b + block_2BD.shape[1]]] for sim_QN in sims]
            found = [ExactIndex(table).nearest(pair, k) for table, pair in zip(seen, pairs, strict=True)]
            yield _dealt(seen, found, k)


def _dealt(tables: Sequence[TokenKeys], found: Sequence[list[Neighbours]], k: int) -> list[TokenHits]:
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
