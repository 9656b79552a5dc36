"""Mending a damaged corpus: what can be made again from the rest, and what is lost.

Knows which files say the same as others: a segment's tables, its words and its list of checksums what its documents
say, the copy of the last manifest what that says. What is made again counts only if its SHA-256
is the recorded one. Does not know what is kept beside the passages: what is damaged of it is removed, and its owner
makes it again.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise, product
from pathlib import Path

import numpy as np

from quoth.arrays import open_array, open_blob
from quoth.corpus.beside import LOCK, owners_waiting, sealed_beside
from quoth.corpus.manifest import (
    COMMITTED,
    Manifest,
    SegmentEntry,
    committed,
    manifest_path,
    read_manifest,
    segment_path,
    snapshots,
)
from quoth.corpus.moves import saved_moves
from quoth.corpus.passages import Ranges, get_splitter
from quoth.corpus.segment import SegmentWriter, Split
from quoth.errors import CorruptionError, QuothError
from quoth.records import Document
from quoth.storage import WriterLock, atomic_write_bytes, check_file, check_folder, publish_directory, remove


@dataclass(frozen=True, slots=True)
class Repairs:
    """What was mended, and what cannot be, one line of words each."""

    mended: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)


def repair(path: Path) -> Repairs:
    """`Corpus.repair`."""
    if not snapshots(path) and committed(path) is None:
        read_manifest(path)  # raises: there is no corpus
    done = Repairs()
    with WriterLock(path / LOCK), owners_waiting(path):
        manifest = _mend_manifest(path, done)
        if manifest is not None:
            _mend_segments(path, manifest, done)
            _mend_deletions(path, manifest, done)
            _release_damaged(path, manifest, done)
        _remove_damaged_beside(path, done)
    return done


def _mend_manifest(path: Path, done: Repairs) -> Manifest | None:
    """The last commit's manifest, and its copy, each made of the other; None where neither can be read."""
    numbers, copy, copied = snapshots(path), path / COMMITTED, committed(path)
    last, latest, reason = numbers[-1] if numbers else -1, None, ""
    try:
        latest = read_manifest(path, last) if numbers else None
    except CorruptionError as error:
        reason = str(error)
    if copied is not None and (copied.snapshot > last or (latest is None and copied.snapshot == last)):
        file = manifest_path(path, copied.snapshot)
        remove(file)
        atomic_write_bytes(file, copy.read_bytes())
        done.mended.append(f"{file}: made again from its copy {COMMITTED}")
        return copied
    if latest is None:
        remedy = f"restore it from a backup, or delete it and {COMMITTED} to go back to the snapshot before"
        done.lost.append(f"{reason}; {COMMITTED} holds no copy of it: {remedy}")
        return None
    newest = manifest_path(path, last).read_bytes()
    if copy.exists() and (copied is None or copy.read_bytes() != newest):
        remove(copy)
        done.mended.append(f"{copy}: copied again from {manifest_path(path, last).name}")
    atomic_write_bytes(copy, newest)
    return latest


def _mend_segments(path: Path, manifest: Manifest, done: Repairs) -> None:
    for entry in manifest.segments:
        folder = segment_path(path, entry.name)
        try:
            check_folder(folder, entry.sha256, contents=True)
        except CorruptionError as error:
            if _write_again(path, entry, manifest.splitter):
                done.mended.append(f"{error}; made again from its documents")
            else:
                done.lost.append(f"{error}; restore {folder} from a backup, or index its documents again")


def _write_again(path: Path, entry: SegmentEntry, splitter: str) -> bool:
    """Makes a segment anew from its documents and where they lie; whether it has become what it was."""
    folder, part = segment_path(path, entry.name), segment_path(path, f"{entry.name}.repair.tmp")
    sources: tuple[Callable[[Path], Iterator[Split]], ...] = (_stored, partial(_split, splitter=splitter))
    for source, with_checks, with_words in product(sources, (True, False), (True, False)):
        shutil.rmtree(part, ignore_errors=True)
        try:
            with SegmentWriter(part) as writer:
                for each in source(folder):
                    writer.add(*each)
                sha256 = writer.seal(with_checks, with_words)
        except (QuothError, ValueError, TypeError, IndexError):
            continue  # what it would be made of is damaged
        if sha256 == entry.sha256:
            publish_directory(part, folder)
            return True
    shutil.rmtree(part, ignore_errors=True)
    return False


def _documents(folder: Path) -> Iterator[tuple[Document, int, int]]:
    """Each document, its first passage and the one after its last, from `documents.bin` and `documents.npy` alone."""
    blob = open_blob(folder / "documents.bin")
    table_D13 = open_array(folder / "documents.npy", np.int64, (-1, 3))
    for (begin, middle, first), (end, _, last) in pairwise(table_D13.tolist()):
        document_id, title, metadata = json.loads(blob[begin:middle])
        yield Document(document_id, title, blob[middle:end].decode(), metadata), first, last


def _stored(folder: Path) -> Iterator[Split]:
    """The documents, with their passages as they are stored."""
    passages_P5 = open_array(folder / "passages.npy", np.int64, (-1, 5))
    for document, first, last in _documents(folder):
        yield document, [(start, end) for start, end in passages_P5[first:last, 1:3].tolist()]


def _split(folder: Path, splitter: str) -> Iterator[Split]:
    """The documents, with their passages as they are split anew."""
    ranges_of = get_splitter(splitter)
    for document, _, _ in _documents(folder):
        ranges: Ranges = ranges_of(document.text)
        yield document, ranges


def _mend_deletions(path: Path, manifest: Manifest, done: Repairs) -> None:
    try:
        _check_deletions(path, manifest)
    except CorruptionError as error:
        done.lost.append(f"{error}; restore it from a backup: nothing else says which documents are deleted")


def _check_deletions(path: Path, manifest: Manifest) -> None:
    if manifest.deletions is not None:
        check_file(path / manifest.deletions["name"], manifest.deletions, contents=True)


def _release_damaged(path: Path, latest: Manifest, done: Repairs) -> None:
    """Older snapshots that can no longer be read, for what they alone have, are released."""
    for number in snapshots(path)[:-1]:
        try:
            manifest = read_manifest(path, number)
            if manifest.deletions != latest.deletions:
                _check_deletions(path, manifest)
            for entry in set(manifest.segments) - set(latest.segments):
                check_folder(segment_path(path, entry.name), entry.sha256, contents=True)
        except CorruptionError as error:
            remove(manifest_path(path, number))
            done.mended.append(f"{error}; snapshot {number}, an older one, is released")


def _remove_damaged_beside(path: Path, done: Repairs) -> None:
    """A folder goes with those that are called by its name and more, which belong to it; as do a segment's moves."""
    folders = [*saved_moves(path), *sealed_beside(path)]
    for folder in folders:
        try:
            if folder.exists():
                check_folder(folder, contents=True)
        except CorruptionError as error:
            belonging = (each for each in folders if each.parent == folder.parent and each.stem == folder.name)
            for each in {folder, *belonging}:
                remove(each)
            done.mended.append(
                f"{error}; removed {folder}: `quoth embed {path}`, with the model it was of, makes it again"
            )
