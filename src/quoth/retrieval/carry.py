"""Keys that follow their passages: when segments are merged, stored vectors are copied, not made again.

Knows: how key tables lie on disk (`tables`), and which passages went where. Does not know: models.

Shape suffixes: P passages of the new segment, D dimensions.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quoth.corpus.corpus import FOLLOWERS
from quoth.corpus.manifest import segment_name
from quoth.errors import CorruptionError
from quoth.retrieval.columns import TokenColumns, open_columns, ranges, save_columns
from quoth.retrieval.vectors import Quantizer, TokenVectors, save_quantizer, stored
from quoth.storage import (
    CHECKSUMS,
    Fields,
    atomic_write_json,
    check_fields,
    check_folder,
    open_array,
    publish_directory,
    read_json,
    save_array,
    save_pieces,
    seal_folder,
)

FORMAT = 2
PASSAGES_AT_A_TIME = 1024
FACTS: Fields = {"format": (int,), "model": (str,), "fingerprint": (str,), "precision": (str,), "tokens": (int,)}


def stored_table(model: Path, segment: str) -> Path | None:
    """The folder with what is stored of a segment's keys: the whole table, or the one that lacks some passages."""
    whole, partial = model / segment, model / f"{segment}.partial"
    return whole if whole.is_dir() else partial if partial.is_dir() else None


def table_facts(table: Path) -> dict[str, Any]:
    """What a table's `table.json` says. Raises CorruptionError unless it has FACTS, or is of another format."""
    content = read_json(table / "table.json")
    other = isinstance(content, dict) and content.get("format") != FORMAT and content.keys() >= FACTS.keys()
    return content if other else check_fields(table / "table.json", content, FACTS)


def is_sound(folder: Path, facts: str = "table.json") -> bool:
    """Whether a table, codes or settings are there as far as one sees without reading everything.

    A copy of what lies at a URL may have no more than the file that says what they are, and the list of checksums.
    """
    if not folder.is_dir():
        return False
    if {each.name for each in folder.iterdir()} == {facts, CHECKSUMS}:
        return True
    try:
        check_folder(folder)
    except CorruptionError:
        return False
    return True


def absent_passages(table: Path | None, num_passages: int) -> NDArray[np.int64]:
    """The numbers of a segment's passages whose keys are not stored in its table, ascending."""
    if table is None:
        return np.arange(num_passages)
    return open_array(table / "absent.npy", np.int64, (-1,)) if table.suffix == ".partial" else np.zeros(0, np.int64)


def carry_keys(corpus: Path, segment: str, origin_P2: NDArray[np.int64]) -> None:
    """Give a new segment of every model the keys that are stored of its passages.

    `origin_P2` holds for each passage the first document of the segment it stood in, and its number there. Vectors of
    eight bits are set to one scale, which covers all of theirs, those of four to that of the largest table; others are
    copied as they are. Where passages have no keys, the new table is partial.
    """
    for model in sorted((corpus / "keys").glob("*")):
        found = {first: stored_table(model, segment_name(first)) for first in np.unique(origin_P2[:, 0]).tolist()}
        if tables := {first: table for first, table in found.items() if table}:
            _carry(model, segment, tables, origin_P2)


def _carry(model: Path, segment: str, tables: dict[int, Path], origin_P2: NDArray[np.int64]) -> None:
    part = model / f"{segment}.carried.part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    for table in tables.values():
        check_folder(table)
    columns = {first: open_columns(table) for first, table in tables.items()}
    absent_P = np.zeros(len(origin_P2), np.bool_)
    for first in np.unique(origin_P2[:, 0]).tolist():
        here = np.flatnonzero(origin_P2[:, 0] == first)
        gone = absent_passages(tables.get(first), int(origin_P2[here, 1].max()) + 1)
        absent_P[here] = np.isin(origin_P2[here, 1], gone)
    if absent_P.any():
        save_array(part / "absent.npy", np.flatnonzero(absent_P))
    save_columns(part, lambda: (_taken(columns.get(first), numbers) for first, numbers in _runs(origin_P2)))
    _copy_vectors(part, tables, columns, origin_P2)
    seal_folder(part)
    publish_directory(part, model / (f"{segment}.partial" if absent_P.any() else segment))


def _copy_vectors(
    part: Path, tables: dict[int, Path], columns: dict[int, TokenColumns], origin_P2: NDArray[np.int64]
) -> None:
    vectors = {first: TokenVectors.open(table, 1.0) for first, table in tables.items()}
    largest_first = sorted(vectors.values(), key=len, reverse=True)
    quantizer = Quantizer.covering([each.quantizer for each in largest_first if each.quantizer])
    if quantizer:
        save_quantizer(part, quantizer)
    total = int(open_array(part / "offsets.npy")[-1])
    facts = table_facts(next(iter(tables.values()))) | {"tokens": total}
    moved = (
        stored(vectors[first].floats(ranges(columns[first].offsets_P1, numbers)), facts["precision"], quantizer)
        for first, numbers in _runs(origin_P2)
        if first in tables
    )
    save_pieces(part / "vectors.npy", total, moved)
    atomic_write_json(part / "table.json", facts)


def _taken(columns: TokenColumns | None, numbers: NDArray[np.int64]) -> TokenColumns:
    return TokenColumns.without_tokens(len(numbers)) if columns is None else columns.take(numbers)


def _runs(origin_P2: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """The passages in order, many of one segment at a time: the segment's first document, their numbers in it."""
    for run_P2 in np.split(origin_P2, np.flatnonzero(np.diff(origin_P2[:, 0])) + 1):
        for at in range(0, len(run_P2), PASSAGES_AT_A_TIME):
            yield int(run_P2[0, 0]), run_P2[at : at + PASSAGES_AT_A_TIME, 1]


FOLLOWERS.append(carry_keys)
