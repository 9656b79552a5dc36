"""One write to a corpus: from a snapshot to the next; and what is removed before and after it.

Knows in which order things reach the disk, so that a kill or a power failure at any instant loses nothing that was
committed: segments, deletions and origins, then the manifest, whose rename is the commit; a manifest that is released
is gone before its files. And that on a full disk deleting and compacting are tried again with the reserve. Of what is
kept next to the passages it knows only that whatever is named after a segment that was never committed must go, because
the next segment gets that name. Does not know locks, models or vectors.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from errno import EDQUOT, ENOSPC
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from quoth.corpus.checks import check_document
from quoth.corpus.deletions import Deletion, Deletions
from quoth.corpus.manifest import (
    BESIDE,
    EXACT,
    REPAIR,
    Manifest,
    deletions_path,
    exact_indexes,
    is_number,
    manifest_path,
    numbered,
    read_manifest,
    segment_name,
    segment_of,
    segment_path,
    side_tables,
    snapshots,
    unnamed,
    write_manifest,
)
from quoth.corpus.moves import NO_MOVES, moves_from, save_moves, sweep_moves
from quoth.corpus.origins import BEFORE, Changes, Record, held, read_origins, write_origins, write_whole
from quoth.corpus.seen import Seen
from quoth.corpus.segment import Segment, SegmentWriter, Split, blocks_of
from quoth.corpus.snapshot import Snapshot, deletion
from quoth.errors import CorruptionError, DuplicateDocumentError, InputError, UnknownDocumentError, brief, remedy_of
from quoth.records import Document
from quoth.storage import (
    CHECKSUMS,
    flush_removal,
    fsync_path,
    publish_directory,
    remove,
    remove_unless_leased,
    sha256_file,
)
from quoth.text.passages import get_splitter
from quoth_sources.blocks import encode

SEGMENT_PASSAGES = 100_000
"""A segment is closed when it contains this many passages."""
RESERVE = 1 << 17
"""Bytes that a corpus keeps for a full disk: enough to delete a thousand documents, or to merge small segments."""
_AROUND = 1 << 15
"""What a merge writes along with segments: moves, manifest and its copy, lists of checksums; each takes some blocks."""
_TEMPORARY = ("*.tmp", "segments/*.tmp", "moves/*.tmp")


class Writer:
    """Writes under the writer's lock, which its user holds; `show` receives every snapshot that it commits, so that
    nobody keeps the one before it. `origins` says, once all documents are written, where they come from.
    `yield_reserve` frees space that the corpus keeps for a full disk."""

    def __init__(
        self,
        path: Path,
        snapshot: Snapshot,
        show: Callable[[Snapshot], None],
        origins: Callable[[], Changes],
        yield_reserve: Callable[[], None],
    ) -> None:
        self.path = path
        self.snapshot = snapshot
        self._show = show
        self._origins = origins
        self._yield_reserve = yield_reserve

    def add(self, documents: Iterator[Split]) -> int:
        """`Corpus.add`."""
        return self._add(self._write_segments(documents))

    def replace(self, documents: Iterator[Split], delete: Iterable[str] = ()) -> int:
        """`Corpus.replace`."""
        # A byte per document ever added marks the unchanged ones: a million documents take a megabyte.
        kept_D = bytearray(self.snapshot.manifest.next_document)
        return self._add(self._write_segments(self.snapshot.changed(documents, kept_D)), kept_D, delete)

    def add_written(self, folders: Iterable[Path]) -> int:
        """`Corpus.add_written`."""
        return self._add(self._take_in(folders))

    def delete(self, document_ids: Sequence[str]) -> int:
        """`Corpus.delete`; on a full disk with the reserve."""
        return self._with_reserve(lambda: self._delete(document_ids))

    def _with_reserve(self, write: Callable[[], int]) -> int:
        try:
            return write()
        except OSError as error:
            self._raise_unless_full(error)
        sweep(self.path, self.snapshot.manifest)
        self._yield_reserve()
        return write()

    def _delete(self, document_ids: Iterable[str]) -> int:
        deleted = [deletion(*self.snapshot.locate(document_id)) for document_id in dict.fromkeys(document_ids)]
        changes = self._origins()
        if deleted or changes:
            self.commit(deletions=self.snapshot.deletions.plus(deleted), origins=self._recorded(changes))
        return len(deleted)

    def compact(self) -> None:
        """`Corpus.compact`. Raises CorruptionError if a segment or the record of source files is damaged."""
        for damaged in self.snapshot.damaged:
            raise CorruptionError(f"{damaged.reason}; only an intact corpus is compacted: {remedy_of(self.path)}")
        read_origins(self.path, self.snapshot.manifest)  # if it is damaged, nothing is written
        merged = self.merge()
        release(self.path, self.snapshot.manifest.snapshot)  # which frees space for what follows
        record = read_origins(self.path, self.snapshot.manifest)
        kept = held(record, self._holds)
        merged = bool(self._with_reserve(lambda: self._rewrite(record, kept))) or merged
        released = release(self.path, self.snapshot.manifest.snapshot, thorough=True)
        # Somebody reads an older snapshot: an empty commit says that later writes are to release it.
        if not (released or merged):
            self.commit(kept_from=self.snapshot.manifest.snapshot + 1)
            release(self.path, self.snapshot.manifest.snapshot)
        # What killed writers left, and what only saves work, may have texts or names of the documents that are gone.
        sweep(self.path, self.snapshot.manifest)
        remove(self.path / REPAIR)
        whole = {place: {name for name in files if files[name]["digest"]} for place, files in kept.items()}
        Seen(self.path).keep(whole)

    def _rewrite(self, record: Record, kept: Record) -> bool:
        """Commits what is kept of the record of source files, in one file; returns False if it is so already."""
        old = self.snapshot.manifest
        if kept == record and (len(old.origins) == 1 or not record):
            return False
        self.commit(origins=write_whole(self.path, old, kept), kept_from=old.snapshot + 1)
        return True

    def _holds(self, document_id: str) -> bool:
        with suppress(UnknownDocumentError):
            self.snapshot.locate(document_id)
            return True
        return False

    def merge(self) -> bool:
        """Merges the segments that are worth it; on a full disk with the reserve and without the older snapshots, first
        the segments that shrink, one by one from the smallest, each of which frees space for the next.

        Returns whether there are any. Raises OSError naming the bytes that are needed; what was merged until then is
        committed.
        """
        try:
            return self._merge(_worth_merging(self.snapshot))
        except OSError as error:
            self._raise_unless_full(error)
        self._yield_reserve()
        self._make_room()
        shrinking = [segment for segment in self.snapshot.segments if self.snapshot.num_deleted(segment)]
        merged = False
        for chosen in (*([segment] for segment in sorted(shrinking, key=_bytes)), None):
            segments = chosen or _worth_merging(self.snapshot)
            kept = {segment: segment.num_documents - self.snapshot.num_deleted(segment) for segment in segments}
            # By the share of documents that stay: an estimate, for the message alone.
            needed = _AROUND + sum(_bytes(segment) * kept[segment] // segment.num_documents for segment in segments)
            try:
                merged = self._merge(segments) or merged
            except OSError as error:
                self._raise_unless_full(error)
                self._make_room()
                free = shutil.disk_usage(self.path).free
                message = f"No space left on device: compacting needs some {needed:,} bytes, and {free:,} are free"
                raise OSError(ENOSPC, message, str(self.path)) from None
            self._make_room()
        return merged

    def _raise_unless_full(self, error: OSError) -> None:
        """Raises the error unless the disk is full and nothing was committed."""
        # Beyond the commit, trying again would write the same twice: the manifest on disk says on which side this is.
        if error.errno not in (ENOSPC, EDQUOT) or read_manifest(self.path) != self.snapshot.manifest:
            raise error

    def _make_room(self) -> None:
        """Removes what a failed write left, and the older snapshots that nobody reads."""
        sweep(self.path, self.snapshot.manifest)
        release(self.path, self.snapshot.manifest.snapshot, thorough=True)

    def _merge(self, merged: list[Segment]) -> bool:
        """Merges these segments, without their deleted documents; returns whether there are any."""
        if not merged:
            return False
        moving = (
            (segment.document(document), segment.ranges(document))
            for segment in merged
            for document in self.snapshot.live_documents(segment)
        )
        deletions = self.snapshot.deletions
        for segment in merged:
            deletions = deletions.without(segment.first_document, segment.last_document)
        new = list(self._write_segments(moving))
        self._save_moves(merged, new)
        self.commit(new, deletions, merged)
        return True

    def commit(
        self,
        new: Sequence[Segment] = (),
        deletions: Deletions | None = None,
        merged: Sequence[Segment] = (),
        kept_from: int | None = None,
        origins: tuple[dict[str, Any], ...] | None = None,
    ) -> None:
        """Makes a new snapshot with these segments, without the merged ones, with these deletions and these files that
        say where documents come from (None: as now).

        Damaged segments stay, with all that was known of them. The next writes release the snapshots below `kept_from`,
        which after a merge is the new one.
        """
        old = self.snapshot.manifest
        deletions = self.snapshot.deletions if deletions is None else deletions
        saved = old.deletions
        if len(deletions) != self.snapshot.num_saved_deletions or not old.has_copies:
            saved = deletions.save(deletions_path(self.path, old.snapshot + 1)) if len(deletions) else None
        gone = {segment.name for segment in merged}
        segments = (*(entry for entry in old.segments if entry.name not in gone), *(segment.entry for segment in new))
        damaged = {segment.entry.name for segment in self.snapshot.damaged}
        bypassed = damaged & {*old.bypassed, *(damaged if new else ())}
        manifest = old.successor(
            bypassed=tuple(sorted(bypassed)),
            segments=segments,
            next_row=old.next_row + sum(segment.num_passages for segment in new),
            next_document=old.next_document + sum(segment.num_documents for segment in new),
            num_documents=sum(entry.num_documents for entry in segments) - len(deletions),
            num_passages=sum(entry.num_passages for entry in segments) - deletions.num_rows,
            deletions=saved,
            origins=old.origins if origins is None else origins,
            kept_from=kept_from or (old.snapshot + 1 if merged else old.kept_from),
        )
        write_manifest(self.path, manifest)  # the commit: from here on it must not seem to have failed
        self.snapshot = Snapshot(self.path, manifest, [*self.snapshot.segments, *new], committed=True)
        self._show(self.snapshot)

    def _recorded(self, changes: Changes) -> tuple[dict[str, Any], ...]:
        return write_origins(self.path, self.snapshot.manifest, changes)

    def _add(self, segments: Iterable[Segment], kept_D: bytearray | None = None, delete: Iterable[str] = ()) -> int:
        """Commits new segments. With `kept_D`, their documents replace those with their ids, except those marked; and
        the documents with the ids `delete` are deleted, unless they are marked."""
        new: list[Segment] = []
        deleted: set[Deletion] = set()
        for segment in segments:
            deleted |= {deletion(*replaced) for replaced in self._replaced(segment, new, kept_D)}
            new.append(segment)
        others = (each for each in delete if all(segment.find(each) is None for segment in new))
        gone = {deletion(*self.snapshot.locate(document_id)) for document_id in others}
        deleted |= {document for document in gone if not (kept_D and kept_D[document[0]])}
        changes = self._origins()
        if new or deleted or changes:
            self.commit(new, self.snapshot.deletions.plus(deleted), origins=self._recorded(changes))
        return sum(segment.num_documents for segment in new)

    def _replaced(
        self, segment: Segment, new: list[Segment], kept_D: bytearray | None
    ) -> Iterator[tuple[Segment, int]]:
        """The documents whose ids a new segment has too. Raises DuplicateDocumentError if it may not have them."""
        for earlier in new:
            for document in earlier.find_all(segment):
                raise DuplicateDocumentError(f"document {brief(earlier.id(document))} occurs twice; leave one out")
        known = ((older, document) for older in self.snapshot.segments for document in older.find_all(segment))
        for older, document in known:
            if self.snapshot.is_deleted(older, document):
                continue
            if kept_D is None:
                already = f"document {brief(older.id(document))} is in {self.path} already"
                raise DuplicateDocumentError(f"{already}; `quoth replace` replaces it")
            if kept_D[older.first_document + document]:
                raise DuplicateDocumentError(f"document {brief(older.id(document))} occurs twice; leave one out")
            yield older, document

    def _write_segments(self, documents: Iterator[Split]) -> Iterator[Segment]:
        manifest = self.snapshot.manifest
        row, number = manifest.next_row, manifest.next_document
        # A segment is named after a number that is not taken before the commit: what a killed writer left has the same
        # name, and was swept before this write.
        for first in documents:
            with SegmentWriter(segment_path(self.path, segment_name(number))) as writer:
                writer.add(*first)
                while writer.num_passages < SEGMENT_PASSAGES and (split := next(documents, None)) is not None:
                    writer.add(*split)
                segment = Segment(writer.path, row, number, writer.seal())
            row, number = segment.last_row, segment.last_document
            yield segment

    def _take_in(self, folders: Iterable[Path]) -> Iterator[Segment]:
        row, number = self.snapshot.manifest.next_row, self.snapshot.manifest.next_document
        for folder in folders:
            path = segment_path(self.path, segment_name(number))
            folder.replace(path)
            fsync_path(path.parent)
            segment = Segment(path, row, number, sha256_file(path / CHECKSUMS))
            row, number = segment.last_row, segment.last_document
            yield segment

    def _save_moves(self, merged: list[Segment], new: list[Segment]) -> None:
        """Record where the passages of the new segments were, numbered through all of these."""
        parts, count = [NO_MOVES], 0
        for segment in merged:
            ranges = map(segment.passage_range, self.snapshot.live_documents(segment))
            numbers = np.concatenate([np.zeros(0, np.int64), *(np.arange(first, last) for first, last in ranges)])
            parts.append(moves_from(self.path, segment.name, numbers, count))
            count += len(numbers)
        # The merged segments' passages end to end are the new segments' passages end to end, in the same order.
        moves_M3, first = np.concatenate(parts), 0
        for segment in new:
            last = first + segment.num_passages
            here_M = (moves_M3[:, 2] >= first) & (moves_M3[:, 2] < last)
            if here_M.any():
                save_moves(self.path, segment.name, moves_M3[here_M] - np.array([0, 0, first]))
            first = last


def _worth_merging(snapshot: Snapshot) -> list[Segment]:
    """The segments with deletions or without words, and the small ones unless there is only one."""
    small = {segment.name for segment in snapshot.segments if segment.num_passages < SEGMENT_PASSAGES // 2}
    incomplete = {
        segment.name for segment in snapshot.segments if snapshot.num_deleted(segment) or not segment.has_words
    }
    merged = [segment for segment in snapshot.segments if segment.name in small | incomplete]
    return merged if len(merged) > 1 or incomplete else []


def split_documents(
    documents: Iterable[Document], splitter: str, progress: Callable[[int], None] | None = None
) -> Iterator[Split]:
    """Every document with its passages' character ranges; `progress` receives the count so far. Raises InputError."""
    ranges_of = get_splitter(splitter)
    for count, document in enumerate(documents, 1):
        if not isinstance(document, Document):
            what = f"{type(document).__name__}, not a quoth.Document"
            raise InputError(f"document {count} is a {what}; give quoth.Document(id, title, text, metadata)")
        try:
            check_document(document)
        except (ValueError, TypeError, RecursionError) as error:
            raise InputError(f"document {count}, {brief(document.id)}: {error}; fix it or leave it out") from None
        blocks = blocks_of(document)
        whole = document if document.blocks else replace(document, blocks=encode(blocks))
        yield whole, ranges_of(document.text, blocks)
        if progress is not None:
            progress(count)


def write_segment(folder: Path, documents: Iterable[Split]) -> None:
    """Writes documents, with their passages' character ranges, as one finished segment into a new folder.

    A process that dies leaves a folder whose name ends in .tmp. Raises DuplicateDocumentError if an id occurs twice.
    """
    part = folder.with_name(f"{folder.stem}.{uuid4().hex}.tmp")
    try:
        with SegmentWriter(part) as writer:
            for split in documents:
                writer.add(*split)
            writer.seal()
        publish_directory(part, folder)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise


def _bytes(segment: Segment) -> int:
    return sum(512 * file.stat().st_blocks for file in segment.path.iterdir())


def sweep(corpus: Path, current: Manifest) -> None:
    """Removes the leftovers of a killed writer, and nothing that a manifest names."""
    first = segment_name(current.next_document)
    called = [path for path in (*corpus.glob("moves/*"), *side_tables(corpus)) if is_number(segment_of(path))]
    _remove_all(path for path in called if segment_of(path) >= first)
    sweep_temporary(corpus)
    before = [corpus / name for name in BEFORE] if current.origins else []
    _remove_all([*unnamed(corpus, current), *before])
    _sweep_exact(corpus)


def sweep_temporary(corpus: Path, beside: bool = False) -> None:
    """Removes temporary files; with `beside` also those in folders that others keep, whose locks must be held."""
    patterns = (*_TEMPORARY, *((f"{BESIDE}/*/*.tmp", f"{EXACT}/*.tmp") if beside else ()))
    _remove_all(path for pattern in patterns for path in corpus.glob(pattern))


def release(corpus: Path, before: int, thorough: bool = False) -> bool:
    """Removes the snapshots below `before` that nobody reads, with the files that only they used.

    Returns whether all of them are gone. `thorough` also removes the leftovers of an interrupted release.
    """
    # A manifest goes first: without it nobody opens the snapshot, and a kill leaves only files that nothing names.
    old = [number for number in snapshots(corpus) if number < before]
    gone = [number for number in old if remove_unless_leased(manifest_path(corpus, number))]
    if gone or thorough:
        flush_removal(corpus)  # so that a manifest never comes back without its files
        kept = [read_manifest(corpus, number) for number in snapshots(corpus)]
        segments = {entry.name for manifest in kept for entry in manifest.segments}
        _remove_all(path for path in corpus.glob("segments/*") if path.name not in segments)
        named = {each["name"] for manifest in kept for each in manifest.written_twice}
        _remove_all(path for path in numbered(corpus) if path.name.replace(".copy.", ".") not in named)
        _remove_all(corpus.glob("bm25*"))  # of the first format
        sweep_moves(corpus)
        _sweep_exact(corpus)
    return len(gone) == len(old)


def _sweep_exact(corpus: Path) -> None:
    """Removes the exact indexes of segments that are gone."""
    _remove_all(path for path in exact_indexes(corpus) if not segment_path(corpus, path.name).exists())


def _remove_all(paths: Iterable[Path]) -> None:
    for path in list(paths):
        remove(path)
