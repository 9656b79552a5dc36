"""A segment rebuilt from its documents.

Knows which of a segment's files its documents and passages follow from. A rebuilt segment counts only if its list of
checksums has the recorded SHA-256 or, where source maps are damaged, if it differs from the recorded list in their
files alone. Does not know manifests.
"""

import json
import mmap
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quoth.arrays import open_array, open_blob
from quoth.corpus.manifest import REPAIR, SegmentEntry, segment_path
from quoth.corpus.segment import BLOCKS, PLACES, WORDS, Parts, SegmentWriter, Split, blocks_of
from quoth.errors import CorruptionError, QuothError
from quoth.records import Document
from quoth.storage import (
    CHECKSUMS,
    check_folder,
    from_top,
    make_folder,
    publish_directory,
    read_json,
    sha256_file,
)
from quoth.text.passages import Ranges, get_splitter
from quoth.text.terms import ANALYZERS, FIRST

Maps = Callable[[int], tuple[bytes, bytes]]
"""The source map and the blocks of each document of a segment, by its number; none in place of what is damaged."""
_BESIDE = frozenset({PLACES, "places.npy", BLOCKS, "blocks.npy", *WORDS.values()})
"""Files of what a document can lose, and of words, which are found by the headings above them."""
Source = Callable[[Path, Maps], Iterator[Split]]


def rebuilt(path: Path, entry: SegmentEntry, splitter: str) -> bool:
    """Rebuild a segment from its documents; returns whether the result equals the original."""
    for sha256 in _written(path, entry, splitter):
        if sha256 == entry.sha256:
            publish_directory(part_of(path, entry), segment_path(path, entry.name))
            return True
    return False


def without_places(path: Path, entry: SegmentEntry, splitter: str) -> tuple[SegmentEntry, list[str]] | None:
    """Rebuild a segment with the source maps and blocks that are intact, as `part_of` it: its entry then, and the ids
    of the documents that have lost theirs; blocks are guessed then. None if anything else is damaged and cannot be
    rebuilt."""
    folder = segment_path(path, entry.name)
    try:
        listing = read_json(folder / CHECKSUMS)
        if sha256_file(folder / CHECKSUMS) != entry.sha256 or not {PLACES, BLOCKS} & {*listing}:
            return None
    except CorruptionError:
        return None
    for sha256 in _written(path, entry, splitter):
        part = part_of(path, entry)
        if _but_places(read_json(part / CHECKSUMS)) == _but_places(listing):
            known = _known(folder)
            documents = enumerate(document for document, _ in _stored(part, lambda _: (b"", b"")))
            return replace(entry, sha256=sha256), [each.id for number, each in documents if None in known(number)]
    return None


def part_of(path: Path, entry: SegmentEntry) -> Path:
    """Where a segment is rebuilt: where no write sweeps it away if the repair is killed before it has its place."""
    return path / REPAIR / entry.name


def take_rebuilt(path: Path, entry: SegmentEntry) -> None:
    """Give a segment its place that was rebuilt by a repair that was killed when the damaged one was gone."""
    part, folder = part_of(path, entry), segment_path(path, entry.name)
    with suppress(CorruptionError):
        if not folder.exists():
            check_folder(part, entry.sha256, contents=True)
            publish_directory(part, folder)


def _but_places(listing: dict[str, Any]) -> dict[str, Any]:
    return {name: described for name, described in listing.items() if name not in _BESIDE}


def _written(path: Path, entry: SegmentEntry, splitter: str) -> Iterator[str]:
    """Writes the segment in each form that it may have had, without damaged source maps, as an earlier repair may have
    left it; yields the SHA-256 of each while it is on disk."""
    # Older segments lack checks, or words too, or have those of another analyzer. Nothing says which: only the original
    # has the recorded SHA-256, so every combination is tried.
    folder, part = segment_path(path, entry.name), part_of(path, entry)
    make_folder(part.parent)
    known = _known(folder)

    def maps(number: int) -> tuple[bytes, bytes]:
        source_map, blocks = known(number)
        return source_map or b"", blocks or b""

    sources: tuple[Source, ...] = (_stored, partial(_stored, splitter=splitter), _framed)
    words = [*reversed(ANALYZERS), None]
    for source, with_blocks, with_checks, analyzer in product(sources, (True, False), (True, False), words):
        shutil.rmtree(part, ignore_errors=True)
        try:
            with SegmentWriter(part, analyzer or FIRST, with_blocks) as writer:
                for split in source(folder, maps):
                    writer.add(*split)
                sha256 = writer.seal(with_checks, with_words=analyzer is not None)
        except (QuothError, ValueError, TypeError, IndexError):
            continue  # the files it would be rebuilt from are damaged
        yield sha256
    shutil.rmtree(part, ignore_errors=True)


def _stored(folder: Path, maps: Maps, splitter: str = "") -> Iterator[Split]:
    """The documents, from `documents.bin` and `documents.npy` alone, with their passages as they are stored or, given a
    splitter, split again."""
    blob = open_blob(folder / "documents.bin")
    table_D13 = open_array(folder / "documents.npy", np.int64, (-1, 3))
    passages_P5 = np.empty((0, 5), np.int64) if splitter else open_array(folder / "passages.npy", np.int64, (-1, 5))
    split = get_splitter(splitter) if splitter else None
    for number, ((begin, middle, first), (end, _, last)) in enumerate(pairwise(table_D13.tolist())):
        document_id, title, metadata = from_top(partial(json.loads, blob[begin:middle]))
        text = blob[middle:end].decode()
        document = Document(document_id, title, text, metadata, *maps(number))
        yield document, split(text, blocks_of(document)) if split else _ranges(passages_P5[first:last])


def _known(folder: Path) -> Callable[[int], tuple[bytes | None, bytes | None]]:
    """The source map and the blocks of each document, None in place of what is damaged."""
    files: list[Parts | None] = []
    for name in (PLACES, BLOCKS):
        try:
            files.append(Parts(folder / name))
        except CorruptionError:
            files.append(None)

    def part(number: int, file: Parts | None) -> bytes | None:
        with suppress(ValueError, IndexError):
            return None if file is None else file.part(number)
        return None

    return lambda number: (part(number, files[0]), part(number, files[1]))


def _ranges(passages_P5: NDArray[np.int64]) -> Ranges:
    return [(start, end) for start, end in passages_P5[:, 1:3].tolist()]


def _framed(folder: Path, maps: Maps) -> Iterator[Split]:
    """The documents, with their passages as they are stored, without `documents.npy`: a text begins where the JSON of
    its record ends, and after its last passage there is only white space, so the next `[` begins the next record."""
    blob = open_blob(folder / "documents.bin")
    passages_P5 = open_array(folder / "passages.npy", np.int64, (-1, 5))
    begin = number = 0
    while 0 <= begin < len(blob):
        fields, middle = _record(blob, begin)
        first, last = np.searchsorted(passages_P5[:, 0], [number, number + 1]).tolist()
        after = int(passages_P5[last - 1, 4]) if last > first else middle
        begin = blob.find(b"[", max(after, middle))
        end = len(blob) if begin < 0 else begin
        document_id, title, metadata = fields
        document = Document(document_id, title, blob[middle:end].decode(), metadata, *maps(number))
        yield document, _ranges(passages_P5[first:last])
        number += 1


def _record(blob: mmap.mmap | bytes, begin: int) -> tuple[Any, int]:
    """The JSON that begins at a byte, and the byte after it. Raises ValueError."""
    # A record's length is unknown, so four times as much is decoded until it is whole: at most a third more in all.
    size = 1 << 12
    while True:
        part = blob[begin : begin + size].decode(errors="ignore")
        try:
            content, end = json.JSONDecoder().raw_decode(part)
            return content, begin + len(part[:end].encode())
        except json.JSONDecodeError:
            if begin + size >= len(blob):
                raise
            size *= 4
