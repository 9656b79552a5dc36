"""Keys that follow their passages: when segments are merged, stored vectors are copied, not made again.

Knows: how key tables lie on disk (`tables`), and which passages went where. Does not know: models.

Shape suffixes: P passages of the new segment, D dimensions.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from quoth.corpus.corpus import FOLLOWERS
from quoth.corpus.manifest import segment_name
from quoth.retrieval.columns import open_columns, ranges, save_columns
from quoth.retrieval.vectors import Quantizer, TokenVectors, save_quantizer, stored
from quoth.storage import (
    atomic_write_json,
    check_folder,
    open_array,
    publish_directory,
    read_json,
    save_pieces,
    seal_folder,
)

PASSAGES_AT_A_TIME = 1024


def carry_keys(corpus: Path, segment: str, origin_P2: NDArray[np.int64]) -> None:
    """Give a new segment the keys of every model that has keys of all the segments its passages come from.

    `origin_P2` holds for each passage the first document of the segment it stood in, and its number there. Vectors of
    eight bits are set to one scale, which covers all of theirs; others are copied as they are.
    """
    firsts = np.unique(origin_P2[:, 0]).tolist()
    for model in sorted((corpus / "keys").glob("*")):
        folders = {first: model / segment_name(first) for first in firsts}
        if folders and all((folder / "table.json").is_file() for folder in folders.values()):
            _carry(model / segment, folders, origin_P2)


def _carry(final: Path, folders: dict[int, Path], origin_P2: NDArray[np.int64]) -> None:
    part = final.with_name(f"{final.name}.carried.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    for folder in folders.values():
        check_folder(folder)
    columns = {first: open_columns(folder) for first, folder in folders.items()}
    save_columns(part, lambda: (columns[first].take(passages_P) for first, passages_P in _runs(origin_P2)))
    vectors = {first: TokenVectors.open(folder, 1.0) for first, folder in folders.items()}
    quantizer = Quantizer.covering([each.quantizer for each in vectors.values() if each.quantizer])
    if quantizer:
        save_quantizer(part, quantizer)
    total = int(open_array(part / "offsets.npy")[-1])
    facts = read_json(folders[int(origin_P2[0, 0])] / "table.json") | {"tokens": total}
    moved = (
        stored(vectors[first].floats(ranges(columns[first].offsets_P1, passages_P)), facts["precision"], quantizer)
        for first, passages_P in _runs(origin_P2)
    )
    save_pieces(part / "vectors.npy", total, moved)
    atomic_write_json(part / "table.json", facts)
    seal_folder(part)
    publish_directory(part, final)


def _runs(origin_P2: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """The passages in order, many of one segment at a time: the segment's first document, their numbers in it."""
    for run_P2 in np.split(origin_P2, np.flatnonzero(np.diff(origin_P2[:, 0])) + 1):
        for at in range(0, len(run_P2), PASSAGES_AT_A_TIME):
            yield int(run_P2[0, 0]), run_P2[at : at + PASSAGES_AT_A_TIME, 1]


FOLLOWERS.append(carry_keys)
