"""A corpus on disk: add, replace, delete, compact, verify; readers and one writer.

Knows in which order things reach the disk, so that a kill at any instant loses nothing committed: segments,
then the manifest, whose rename is the commit. Does not know models or vectors.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quoth.corpus.beside import LOCK, owners_waiting
from quoth.corpus.bm25 import Statistics, count, search
from quoth.corpus.deletions import Deletion, Deletions
from quoth.corpus.manifest import (
    Manifest,
    deletions_path,
    manifest_path,
    read_manifest,
    remedy_of,
    segment_name,
    segment_path,
    snapshots,
    write_manifest,
)
from quoth.corpus.moves import NO_MOVES, moves_from, save_moves
from quoth.corpus.passages import DEFAULT_SPLITTER, get_splitter
from quoth.corpus.repair import Repairs, repair
from quoth.corpus.segment import Segment, SegmentWriter
from quoth.corpus.segment_writer import Split, split_documents, take_in
from quoth.corpus.snapshot import Snapshot, deletion, open_snapshot
from quoth.corpus.sweep import release, sweep
from quoth.corpus.verify import verify
from quoth.errors import DuplicateDocumentError, InputError, advising
from quoth.records import Document, Passage
from quoth.storage import CHECKSUMS, WriterLock, fsync_path, sha256_file

SEGMENT_PASSAGES = 100_000
"""A segment is closed when it holds this many passages."""


class Corpus:
    """Documents, split into passages, in a folder.

    Reading sees one snapshot: that of the moment of opening, or of this object's last write or `refresh`.
    One process writes at a time (LockedError names the other); any number read. Nothing is committed where a
    method raises. Passage rows are never given out twice.

    Example:
        >>> mine = quoth.Corpus.create("mine.quoth")
        >>> mine.add([quoth.Document("a", "A title", "A text.")])
        1
        >>> mine
        Corpus('mine.quoth', documents=1, passages=1, snapshot=1)
    """

    def __init__(self, path: Path, snapshot: Snapshot, pinned: bool = False) -> None:
        self.path = path
        self._snapshot = snapshot
        self._pinned = pinned
        self._all_released = True

    def __repr__(self) -> str:
        held = f"documents={self.num_documents}, passages={self.num_passages}, snapshot={self.snapshot}"
        return f"Corpus({self.path.name!r}, {held})"

    @classmethod
    def create(cls, path: str | Path, splitter: str = DEFAULT_SPLITTER) -> "Corpus":
        """A new, empty corpus; one that was begun there and never held a document is begun again.

        Raises InputError where the folder holds anything else or the splitter is unknown, LockedError where somebody
        is writing the first documents.
        """
        path = Path(path)
        get_splitter(splitter)
        if path.exists() and not _is_vacant(path):
            raise InputError(f"{path} is there already; `quoth add {path} DOCS` adds to it, or name another")
        path.mkdir(parents=True, exist_ok=True)
        with WriterLock(path / LOCK):
            (path / "segments").mkdir(exist_ok=True)
            write_manifest(path, Manifest(snapshot=0, splitter=splitter))
        fsync_path(path.absolute().parent)
        return cls.open(path)

    @classmethod
    def open(cls, path: str | Path, snapshot: int | None = None) -> "Corpus":
        """A corpus as it is now, or, for reading only, as it was at a snapshot that is still kept.

        Compares sizes, and the bytes of small files. Raises CorpusNotFoundError, and CorruptionError naming the file
        that is damaged; the words of passages, without which texts are there still, are looked at by the first search.
        """
        path = Path(path)
        with advising(remedy_of(path)):
            return cls(path, open_snapshot(path, snapshot), pinned=snapshot is not None)

    @staticmethod
    def repair(path: str | Path) -> Repairs:
        """Makes again what is damaged and can be made from the rest; says what was mended, and what is lost.

        Mended are the tables and words of segments, the lists of checksums, the last manifest, from its copy;
        what is damaged of vectors and their codes is removed, so that `embed` makes it again. Reads every file. Raises
        CorpusNotFoundError, and LockedError while another process writes, or embeds.
        """
        return repair(Path(path))

    def refresh(self) -> None:
        """Moves to the latest snapshot, seeing what others have written since."""
        self._pinned = False
        with advising(remedy_of(self.path)):
            if read_manifest(self.path).snapshot != self.snapshot:
                self._snapshot = open_snapshot(self.path, None, self.segments)

    def catch_up(self) -> None:
        """`refresh`, unless this object was opened to read one snapshot."""
        if not self._pinned:
            self.refresh()

    @cached_property
    def name(self) -> str:
        return self.path.absolute().stem

    @property
    def snapshot(self) -> int:
        """The number of the snapshot this object reads; each commit counts one more."""
        return self._snapshot.manifest.snapshot

    @property
    def splitter(self) -> str:
        return self._snapshot.manifest.splitter

    @property
    def num_documents(self) -> int:
        return self._snapshot.manifest.num_documents

    @property
    def num_passages(self) -> int:
        return self._snapshot.manifest.num_passages

    @property
    def segments(self) -> tuple[Segment, ...]:
        return self._snapshot.segments

    def snapshots(self) -> list[int]:
        """The snapshots that `open` accepts, oldest first; `compact` releases all but the last and those being read."""
        return snapshots(self.path)

    def passage(self, row: int) -> Passage:
        """The passage of a row, deleted or not. Raises InputError for a row that no segment holds."""
        return self._snapshot.passage(row)

    def segment_of(self, row: int) -> Segment:
        """The segment that holds a passage's row. Raises InputError where none does."""
        return self._snapshot.segment_of(row)

    def rows_of(self, document_id: str) -> list[int]:
        """The rows of a document's passages. Raises UnknownDocumentError."""
        return self._snapshot.rows_of(document_id)

    def passages(self) -> Iterator[Passage]:
        """Every live passage, by row."""
        snapshot = self._snapshot
        return (snapshot.passage(row) for row in snapshot.live_rows().tolist())

    def document(self, document_id: str) -> Document:
        """The document of that id. Raises UnknownDocumentError."""
        return self._snapshot.document(document_id)

    def documents(self) -> Iterator[Document]:
        """Every live document, in the order they were added."""
        snapshot = self._snapshot
        for segment in snapshot.segments:
            yield from map(segment.document, snapshot.live_documents(segment))

    def containing(self, part: bytes) -> Iterator[tuple[Segment, int]]:
        """The live documents in whose text these bytes of UTF-8 occur: their segments, and their numbers there."""
        return self._snapshot.containing(part)

    def live(self, rows_R: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of these rows are passages of this snapshot: bool [R]."""
        return self._snapshot.live(rows_R)

    def live_rows(self) -> NDArray[np.int64]:
        """Every live row, ascending: int64 [num_passages]."""
        return self._snapshot.live_rows()

    def bm25(
        self, query: str, k: int, statistics: Statistics | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The k passages of this snapshot that match the query's words best: rows and scores, best first.

        Scores depend on nothing but the snapshot's own passages; or else on `statistics`, where more corpora than this
        one are searched as one. Raises CorruptionError where a segment's words are damaged.
        """
        with advising(remedy_of(self.path)):
            parts = self._snapshot.live_words
            return search(parts, query, k, count(parts, query) if statistics is None else statistics)

    def word_statistics(self, query: str) -> Statistics:
        """What BM25's scores of a query depend on; those of several corpora add up. Raises CorruptionError."""
        with advising(remedy_of(self.path)):
            return count(self._snapshot.live_words, query)

    def add(self, documents: Iterable[Document], progress: Callable[[int], None] | None = None) -> int:
        """Adds documents in one commit, streaming; returns how many. `progress` receives the count so far.

        Raises DuplicateDocumentError for an id that is there already or comes twice, InputError for a
        document that cannot be stored.
        """
        return self._write_documents(documents, progress, replacing=False)

    def replace(self, documents: Iterable[Document], progress: Callable[[int], None] | None = None) -> int:
        """Like `add`, but each document takes the place of the one of its id, if there is one; returns how many were
        written: what is there already, with the same title, text and metadata, keeps its rows and vectors."""
        return self._write_documents(documents, progress, replacing=True)

    def add_written(self, folders: Generator[Path]) -> int:
        """Like `add`, of segments that other processes have written with `writing.write_segment`, each into a folder
        of `segments/` whose name ends in .tmp; the folders are asked for one after another, and no more after an error.
        """
        with self._writing(), closing(folders):
            return self._add(self._take_in(folders))

    def delete(self, document_ids: Iterable[str]) -> int:
        """Deletes documents in one commit; returns how many. Raises UnknownDocumentError naming the id."""
        wanted = [document_ids] if isinstance(document_ids, str) else document_ids
        with self._writing():
            deleted = [deletion(*self._snapshot.locate(each)) for each in dict.fromkeys(wanted)]
            if deleted:
                self._commit([], self._snapshot.deletions.plus(deleted))
        return len(deleted)

    def compact(self) -> None:
        """Merges small segments, drops deleted documents from disk and releases every older snapshot: at once, or,
        where somebody reads it still, with a later write.

        A segment that is full and has no deletion stays as it is, with its rows; the passages of all others get new
        rows. What is kept of them beside the corpus, as vectors are, is not touched: it is read where it is, and
        follows when its owner writes next (`quoth embed`; `quoth compact` lets it follow at once). Raises
        LockedError while another process writes, or embeds.
        """
        with self._writing(), owners_waiting(self.path):
            if merged := _worth_merging(self._snapshot):
                self._merge(merged)
            self._all_released = release(self.path, self.snapshot, thorough=True)
            if not (self._all_released or merged):
                self._commit([], self._snapshot.deletions, kept_from=self.snapshot + 1)
                release(self.path, self.snapshot)

    def verify(self) -> None:
        """Reads every file, of older snapshots and of what is kept beside the passages, as vectors are, too.

        Raises CorruptionError naming the file that is missing, truncated or altered.
        """
        verify(self.path)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        if self._pinned:
            raise InputError(f"snapshot {self.snapshot} is for reading; open {self.path} without a snapshot")
        with WriterLock(self.path / LOCK), advising(remedy_of(self.path)):
            self.refresh()
            sweep(self.path, self._snapshot.manifest)
            self._all_released = release(self.path, self._snapshot.manifest.kept_from)
            try:
                yield
            except BaseException:
                sweep(self.path, read_manifest(self.path))
                raise

    def _write_documents(
        self, documents: Iterable[Document], progress: Callable[[int], None] | None, replacing: bool
    ) -> int:
        with self._writing():
            split = split_documents(documents, self.splitter, progress)
            if not replacing:
                return self._add(self._write_segments(split))
            kept_D = bytearray(self._snapshot.manifest.next_document)
            return self._add(self._write_segments(self._snapshot.changed(split, kept_D)), kept_D)

    def _add(self, segments: Iterable[Segment], kept_D: bytearray | None = None) -> int:
        """Commits new segments; documents may take the place of others, but of those marked, where that is given."""
        new: list[Segment] = []
        deleted: list[Deletion] = []
        for segment in segments:
            deleted += [deletion(*taken) for taken in self._taken(segment, new, kept_D)]
            new.append(segment)
        if new:
            self._commit(new, self._snapshot.deletions.plus(deleted))
        return sum(segment.num_documents for segment in new)

    def _taken(self, segment: Segment, new: list[Segment], kept_D: bytearray | None) -> Iterator[tuple[Segment, int]]:
        """The documents whose ids a new segment takes; an error where it may not."""
        for earlier in new:
            for document in earlier.find_all(segment):
                raise DuplicateDocumentError(f"document {earlier.id(document)!r} comes twice; leave one out")
        for older, document in self._snapshot.shared_with(segment):
            if kept_D is None:
                taken = f"document {older.id(document)!r} is in {self.path} already"
                raise DuplicateDocumentError(f"{taken}; `quoth replace` puts another in its place")
            if kept_D[older.first_document + document]:
                raise DuplicateDocumentError(f"document {older.id(document)!r} comes twice; leave one out")
            yield older, document

    def _write_segments(self, documents: Iterator[Split]) -> Iterator[Segment]:
        manifest = self._snapshot.manifest
        row, number = manifest.next_row, manifest.next_document
        for first in documents:
            with SegmentWriter(segment_path(self.path, segment_name(number))) as writer:
                writer.add(*first)
                while writer.num_passages < SEGMENT_PASSAGES and (each := next(documents, None)) is not None:
                    writer.add(*each)
                segment = Segment(writer.path, row, number, writer.seal())
            row, number = row + segment.num_passages, number + segment.num_documents
            yield segment

    def _take_in(self, folders: Iterable[Path]) -> Iterator[Segment]:
        row, number = self._snapshot.manifest.next_row, self._snapshot.manifest.next_document
        for folder in folders:
            path = segment_path(self.path, segment_name(number))
            take_in(folder, path)
            segment = Segment(path, row, number, sha256_file(path / CHECKSUMS))
            row, number = row + segment.num_passages, number + segment.num_documents
            yield segment

    def _merge(self, merged: list[Segment]) -> None:
        moving = (
            (segment.document(document), segment.ranges(document))
            for segment in merged
            for document in self._snapshot.live_documents(segment)
        )
        deletions = self._snapshot.deletions
        for segment in merged:
            deletions = deletions.without(segment.first_document, segment.last_document)
        new = list(self._write_segments(moving))
        self._save_moves(merged, new)
        self._commit(new, deletions, merged)

    def _save_moves(self, merged: list[Segment], new: list[Segment]) -> None:
        """Note where the passages of the new segments were, numbered through all of these."""
        parts, count = [NO_MOVES], 0
        for segment in merged:
            ranges = map(segment.passage_range, self._snapshot.live_documents(segment))
            numbers = np.concatenate([np.zeros(0, np.int64), *(np.arange(*each) for each in ranges)])
            parts.append(moves_from(self.path, segment.name, numbers, count))
            count += len(numbers)
        moves_M3, first = np.concatenate(parts), 0
        for segment in new:
            last = first + segment.num_passages
            here_M = (moves_M3[:, 2] >= first) & (moves_M3[:, 2] < last)
            if here_M.any():
                save_moves(self.path, segment.name, moves_M3[here_M] - np.array([0, 0, first]))
            first = last

    def _commit(
        self, new: list[Segment], deletions: Deletions, merged: Sequence[Segment] = (), kept_from: int | None = None
    ) -> None:
        old = self._snapshot.manifest
        gone = {segment.name for segment in merged}
        segments = (*(each for each in old.segments if each.name not in gone), *(each.entry for each in new))
        manifest = old.successor(
            segments=segments,
            next_row=old.next_row + sum(segment.num_passages for segment in new),
            next_document=old.next_document + sum(segment.num_documents for segment in new),
            num_documents=sum(entry.num_documents for entry in segments) - len(deletions),
            num_passages=sum(entry.num_passages for entry in segments) - deletions.num_rows,
            deletions=self._save(deletions),
            kept_from=kept_from or (old.snapshot + 1 if merged else old.kept_from),
        )
        write_manifest(self.path, manifest)
        self._snapshot = Snapshot(self.path, manifest, [*self.segments, *new])

    def _save(self, deletions: Deletions) -> dict[str, Any] | None:
        if len(deletions) == len(self._snapshot.deletions):
            return self._snapshot.manifest.deletions
        return deletions.save(deletions_path(self.path, self.snapshot + 1)) if len(deletions) else None


_BEGUN = {"segments", LOCK, "manifest-0.json", "committed.json"}


def _is_vacant(path: Path) -> bool:
    """Whether a folder is empty, or holds only what was left where a corpus's first documents were not committed."""
    if not path.is_dir() or {each.name for each in path.iterdir() if each.suffix != ".tmp"} - _BEGUN:
        return False
    return manifest_path(path, 0).is_file() or not any(path.glob("*/*"))


def _worth_merging(snapshot: Snapshot) -> list[Segment]:
    """The segments with deletions or without words, and the small ones unless there is but one."""
    small = {each.name for each in snapshot.segments if each.num_passages < SEGMENT_PASSAGES // 2}
    wanting = {each.name for each in snapshot.segments if snapshot.num_deleted(each) or not each.has_words}
    merged = [each for each in snapshot.segments if each.name in small | wanting]
    return merged if len(merged) > 1 or wanting else []
