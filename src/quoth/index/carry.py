"""Keys follow their passages into merged segments: stored vectors are copied, not made again.

Knows: the arrays of key tables, and which tables a segment is read from (`key_store`). Does not know: models.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quoth.arrays import open_array, save_array, save_pieces
from quoth.errors import LockedError, advising
from quoth.index.key_store import KeyStore, absent_from, stores, table_facts
from quoth.index.key_table import KeyColumns, open_columns, ranges, save_columns
from quoth.index.vectors import KeyVectors, Quantizer, save_quantizer, stored
from quoth.storage import atomic_write_json, check_folder, publish_folder

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus
    from quoth.corpus.segment import Segment

PASSAGES_AT_A_TIME = 1024


def follow(corpus: Corpus) -> None:
    """Let every model's tables follow their passages; a model that is embedding does so itself.

    Raises CorruptionError if what is to be copied is damaged.
    """
    for store in stores(corpus.path):
        with advising(corpus.path), suppress(LockedError), store.lock():
            for segment in corpus.segments:
                carry(store, segment)
            store.remove_orphans()


def carry(store: KeyStore, segment: Segment) -> None:
    """Copy a segment's keys from other tables into one of its own, unless it has one; the lock must be held.

    Raises CorruptionError.
    """
    name, count = segment.name, segment.num_passages
    if store.table(name) or not (sources := store.sources(name, count, store.tables(name))):
        return
    origin_P2 = np.full((count, 2), -1, np.int64)
    for number, each in enumerate(sources):
        origin_P2[each.here_M, 0], origin_P2[each.here_M, 1] = number, each.there_M
    tables = [each.table for each in sources]

    def write(part: Path) -> None:
        for table in tables:
            check_folder(table)
        copy_table(part, tables, origin_P2, table_facts(tables[0]))

    publish_folder(store.partial(name) if len(absent_from(sources, count)) else store.whole(name), write)


def copy_table(part: Path, tables: Sequence[Path], origin_P2: NDArray[np.int64], facts: dict[str, Any]) -> None:
    """Write a table of passages whose keys other tables hold into a folder; `facts` are those of one of these.

    `origin_P2` holds for each passage the number of its table, −1 if it has no keys, and its number there. Vectors of
    eight bits are set to one scale, which covers all of theirs, those of four to that of the largest table; others are
    copied as they are.
    """
    columns = [open_columns(table) for table in tables]
    if len(absent := np.flatnonzero(origin_P2[:, 0] < 0)):
        save_array(part / "absent.npy", absent)
    save_columns(part, lambda: (_taken(columns, *run) for run in _runs(origin_P2)))
    vectors = [KeyVectors.open(table, 1.0) for table in tables]
    largest_first = sorted(vectors, key=len, reverse=True)
    quantizer = Quantizer.covering([each.quantizer for each in largest_first if each.quantizer])
    if quantizer:
        save_quantizer(part, quantizer)
    total = int(open_array(part / "offsets.npy")[-1])
    copied = (
        stored(vectors[table].floats(ranges(columns[table].offsets_P1, numbers)), facts["precision"], quantizer)
        for table, numbers in _runs(origin_P2)
        if table >= 0
    )
    save_pieces(part / "vectors.npy", total, copied)
    atomic_write_json(part / "table.json", facts | {"tokens": total})


def _taken(columns: Sequence[KeyColumns], table: int, numbers: NDArray[np.int64]) -> KeyColumns:
    return columns[table].take(numbers) if table >= 0 else KeyColumns.without_tokens(len(numbers))


def _runs(origin_P2: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """The passages in order, many of one table at a time: the table's number, their numbers in it."""
    for run_P2 in np.split(origin_P2, np.flatnonzero(np.diff(origin_P2[:, 0])) + 1):
        for at in range(0, len(run_P2), PASSAGES_AT_A_TIME):
            yield int(run_P2[0, 0]), run_P2[at : at + PASSAGES_AT_A_TIME, 1]
