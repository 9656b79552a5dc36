"""Nearest vectors: of one table, exactly or by its codes, and of several tables together.

Knows: rows and similarities. Does not know: tokens, passages, files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from math import ceil

import numpy as np
from numpy.typing import NDArray

from quoth.arrays import Floats, Rows
from quoth.index.codes import Codes, CodesGoneError
from quoth.index.key_table import KeyHits, KeyTable, passage_of
from quoth.index.vectors import Neighbours, joined, top

SIMILARITIES_AT_A_TIME = 1 << 25  # 128 MB in fp32
HIDDEN_MARGIN = 1.02
"""This many times more rows are proposed than the share of live ones requires: what is hidden is often near."""
LEAST_LIVE = 0.01
"""The share of live rows is taken for this at least."""


def search_exactly(keys: KeyTable, q_QD: Floats, k: int) -> list[Neighbours]:
    """At most k neighbours of each query among all of a table's vectors, rows of deleted passages never among them."""
    # Block by block, so that memory does not grow with the table.
    size = max(1, SIMILARITIES_AT_A_TIME // max(len(q_QD), 1))
    if keys.num_keys <= size:
        return nearest(keys, keys.vectors.similarities(q_QD), k)
    found = [Neighbours(np.zeros(0, np.int64), np.zeros(0, np.float32))] * len(q_QD)
    for first in range(0, keys.num_keys, size):
        rows = np.arange(first, min(first + size, keys.num_keys))
        block = nearest(keys, keys.vectors.similarities(q_QD, rows), k, rows)
        found = [joined(known, fresh, k) for known, fresh in zip(found, block, strict=True)]
    return found


def nearest(keys: KeyTable, sim_QR: Floats, k: int, rows_R: Rows | None = None) -> list[Neighbours]:
    """The k live rows nearest to each query, of these rows (None: of all), by similarities that are known."""
    if keys.live_P is not None:
        sim_QR = np.where(live(keys, rows_R), sim_QR, np.float32(-np.inf))
    found = [top(sim_R, k) for sim_R in sim_QR]
    return found if rows_R is None else [Neighbours(rows_R[best.rows_K], best.sims_K) for best in found]


def proposals(keys: KeyTable, codes: Codes, q_QD: Floats, k: int) -> list[Neighbours]:
    """The live rows that codes propose to compare with each query, as many as k neighbours need or all there are.

    Raises CodesGoneError.
    """
    wanted = codes.count(k)
    live_share = max(num_live(keys) / max(keys.num_keys, 1), LEAST_LIVE)
    count = min(ceil(HIDDEN_MARGIN * wanted / live_share), keys.num_keys)
    # The codes still hold deleted rows. If too few of the proposals are live, twice as many are asked for; asking for
    # every row, or getting fewer than asked for, ends the loop.
    while True:
        proposed = codes.propose(q_QD, count)
        alive = [near.at(live(keys, near.rows_K)) for near in proposed]
        enough = all(len(near.rows_K) >= wanted for near in alive)
        if enough or count >= keys.num_keys or all(len(near.rows_K) < count for near in proposed):
            return [near.at(slice(wanted)) for near in alive]
        count = min(2 * count, keys.num_keys)


def rescored(keys: KeyTable, q_D: Floats, rows: Rows, k: int) -> Neighbours:
    """The k nearest of these rows, by exact similarity."""
    # Ascending: the file of vectors is read in one direction, and ties go to lower rows as in an exact search.
    rows = np.sort(rows)
    return nearest(keys, keys.vectors.similarities(q_D[None], rows), k, rows)[0]


def live(keys: KeyTable, rows_R: Rows | None) -> NDArray[np.bool_]:
    """Which of these rows (None: of all) are in passages that are neither deleted nor hidden: [R]."""
    if keys.live_P is None:
        return np.ones(keys.num_keys if rows_R is None else len(rows_R), np.bool_)
    if rows_R is None:
        return np.repeat(keys.live_P, np.diff(keys.offsets_P1))
    alive: NDArray[np.bool_] = keys.live_P[passage_of(keys.offsets_P1, rows_R)]
    return alive


def num_live(keys: KeyTable) -> int:
    """Number of the table's rows that are live."""
    return keys.num_keys if keys.live_P is None else int(np.diff(keys.offsets_P1)[keys.live_P].sum())


def search_all(tables: Sequence[KeyTable], q_start_D: Floats, q_end_D: Floats, k: int) -> list[KeyHits]:
    """The k nearest tokens over all tables to the start query and to the end query, distributed to their tables."""
    return _dealt(tables, search_tables(tables, np.stack([q_start_D, q_end_D]), k), k)


def search_tables(tables: Sequence[KeyTable], q_QD: Floats, k: int, total: int | None = None) -> list[list[Neighbours]]:
    """For each table and query the table's nearest rows, including all that are among the k nearest of all tables.

    Of all that the tables' codes propose for a query, only the rows of highest estimates are compared, as many as each
    table needs for its share of the k; `total` counts the tokens of all tables, if not all are given.
    """
    codes = {t: table.codes for t, table in enumerate(tables) if table.codes}
    proposed = {}
    for t in codes:
        # Codes that another process has just replaced or removed are not an error: the vectors are still there, and
        # this table is compared exactly.
        with suppress(CodesGoneError):
            proposed[t] = proposals(tables[t], codes[t], q_QD, k)
    # Estimates of q·c are comparable across tables (`codes._Index`), so all tables share one number of comparisons.
    # With 1.56 million tokens in eight segments, searching each by itself took three times as long (docs/index.md).
    if len(proposed) > 1:
        total = total or sum(table.num_keys for table in tables)
        count = sum(codes[t].count(k, tables[t].num_keys / total) for t in proposed)
        each_query = [_highest(parts, count) for parts in zip(*proposed.values(), strict=True)]
        proposed = {t: [parts[place] for parts in each_query] for place, t in enumerate(proposed)}
    return [
        [rescored(table, q_D, near.rows_K, k) for q_D, near in zip(q_QD, proposed[t], strict=True)]
        if t in proposed
        else search_exactly(table, q_QD, k)
        for t, table in enumerate(tables)
    ]


def _highest(parts: Sequence[Neighbours], count: int) -> list[Neighbours]:
    """Of several tables' rows for one query the `count` of highest similarity, by table."""
    total = sum(len(part.rows_K) for part in parts)
    if total <= count:
        return list(parts)
    least = np.partition(np.concatenate([part.sims_K for part in parts]), total - count)[total - count]
    return [part.at(part.sims_K >= least) for part in parts]


def search_together(
    tables: Sequence[KeyTable], hidden: Sequence[Collection[int]], q_2BD: Floats, k: int
) -> Iterator[list[KeyHits]]:
    """`search_all` over the same tables for B blanks, whose start and end queries are `q_2BD`; blank b never sees
    the passages `hidden[b]`. Vectors are read once for as many blanks as fit into memory."""
    compared = [table for table in tables if table.codes is None]
    total = sum(table.num_keys for table in tables)
    size = max(1, SIMILARITIES_AT_A_TIME // max(2 * sum(table.num_keys for table in compared), 1))
    for first in range(0, len(hidden), size):
        block_2BD = q_2BD[:, first : first + size]
        flat_QD = block_2BD.reshape(-1, block_2BD.shape[-1])
        # One product for the whole block; what is hidden from a blank is masked afterwards, in `nearest`.
        sims = [None if table.codes else table.vectors.similarities(flat_QD) for table in tables]
        for b, rows in enumerate(hidden[first : first + size]):
            seen = [table.without(rows) for table in tables]
            coded = iter(search_tables([table for table in seen if table.codes], block_2BD[:, b], k, total))
            found = [
                next(coded) if sim_QN is None else nearest(table, sim_QN[[b, b + block_2BD.shape[1]]], k)
                for table, sim_QN in zip(seen, sims, strict=True)
            ]
            yield _dealt(seen, found, k)


def _dealt(tables: Sequence[KeyTable], found: Sequence[list[Neighbours]], k: int) -> list[KeyHits]:
    starts = deal([both[0] for both in found], k)
    ends = deal([both[1] for both in found], k)
    return [KeyHits(*hits) for hits in zip(tables, starts, ends, strict=True)]


def deal(parts: Sequence[Neighbours], k: int) -> list[Rows]:
    """Each table's neighbours that are among the k nearest of all, ties by table, then row."""
    if not parts:
        return []
    best = top(np.concatenate([part.sims_K for part in parts]), k).rows_K
    owner = np.repeat(np.arange(len(parts)), [len(part.rows_K) for part in parts])[best]
    rows = np.concatenate([part.rows_K for part in parts])[best]
    return [np.sort(rows[owner == part]) for part in range(len(parts))]
