"""What can be read of a corpus: one state of it, its segments without the deleted documents.

Knows rows, documents, passages and their words. Does not know who writes, when, or how to move to another snapshot.

Shape suffixes that differ from the project's: D documents that were ever given a number, X deleted ones, R rows, N
intervals of rows.
"""

from __future__ import annotations

import warnings
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import nullcontext, suppress
from copy import copy
from functools import cached_property, reduce
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quoth.arrays import open_array, save_array
from quoth.corpus.bm25 import LiveWords
from quoth.corpus.dates import Orders, orders_of
from quoth.corpus.duplicates import digest_of, plain
from quoth.corpus.facets import Facets, tally
from quoth.corpus.manifest import Manifest, manifest_path, read_manifest
from quoth.corpus.segment import Damaged, Segment, Split, open_segment
from quoth.corpus.where import Condition, Record, parse, values_of
from quoth.errors import (
    CorruptionError,
    DamageWarning,
    DuplicateDocumentError,
    InputError,
    LockedError,
    UnknownDocumentError,
    advising,
    brief,
    remedy_of,
)
from quoth.records import Passage
from quoth.storage import Lease, check_file, describe_file, fsync_path

Deletion = tuple[int, int, int]
"""A document's number, its first passage row, and the row after its last."""


class Deletions:
    """The documents deleted up to a snapshot; immutable. A document's passages are consecutive rows, so that each
    deletion is an interval."""

    def __init__(self, deleted_X3: NDArray[np.int64] | None = None) -> None:
        self._table_X3 = np.empty((0, 3), np.int64) if deleted_X3 is None else deleted_X3
        self._documents_X, self._first_X, self._last_X = np.ascontiguousarray(self._table_X3.T)

    @classmethod
    def open(cls, path: Path) -> Deletions:
        return cls(open_array(path, np.int64, (-1, 3)))

    def save(self, path: Path) -> dict[str, Any]:
        """Writes the set to disk and returns the file's name, size and SHA-256."""
        save_array(path, self._table_X3)
        fsync_path(path)
        return {"name": path.name, **describe_file(path)}

    def __len__(self) -> int:
        return len(self._documents_X)

    @property
    def num_rows(self) -> int:
        """Number of passages of the deleted documents."""
        return int((self._last_X - self._first_X).sum())

    def __contains__(self, document: int) -> bool:
        place = np.searchsorted(self._documents_X, document)
        return bool(place < len(self) and self._documents_X[place] == document)

    def count(self, first_document: int, last_document: int) -> int:
        """Number of deleted documents in [first, last)."""
        first, last = np.searchsorted(self._documents_X, [first_document, last_document])
        return int(last - first)

    def hide(self, rows_R: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of these passage rows belong to a deleted document: bool [R]."""
        # Ordered by document, the intervals are ordered by row too, and disjoint.
        return _inside(rows_R, self._first_X, self._last_X)

    def plus(self, deletions: Iterable[Deletion]) -> Deletions:
        """This set with more documents, which must not be in it yet."""
        table_X3 = np.concatenate([self._table_X3, np.array(list(deletions), np.int64).reshape(-1, 3)])
        return Deletions(table_X3[np.argsort(table_X3[:, 0])])

    def without(self, first_document: int, last_document: int) -> Deletions:
        """This set without the documents in [first, last)."""
        first, last = np.searchsorted(self._documents_X, [first_document, last_document])
        return Deletions(np.delete(self._table_X3, slice(first, last), axis=0))


def _inside(rows_R: NDArray[np.int64], first_N: NDArray[np.int64], last_N: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which rows are in an interval [first, last) of these, which ascend and do not overlap: bool [R]."""
    if not len(first_N):
        return np.zeros(len(rows_R), bool)
    # A row below the first interval has place -1, which reads the end of the last: the first test excludes it.
    place_R = np.searchsorted(first_N, rows_R, "right") - 1
    return (place_R >= 0) & (rows_R < last_N[place_R])


class Snapshot:
    """Immutable; reuses `known` segments, which are open already. While it is referred to, `compact` keeps its files.

    A segment of which a file is missing, or has another size, is `damaged`, and left out. Raises CorruptionError,
    naming the file, if the manifest or the deletions are, LockedError if somebody keeps the manifest locked, unless it
    was `committed` just now.
    """

    def __init__(self, path: Path, manifest: Manifest, known: Iterable[Segment] = (), committed: bool = False) -> None:
        # Before any file is opened: from here on, `compact` keeps the files that the manifest names.
        with suppress(LockedError) if committed else nullcontext():  # what is committed must not seem to have failed
            self._lease = Lease(manifest_path(path, manifest.snapshot))
        opened = {segment.entry: segment for segment in known}
        self.path = path
        self.manifest = manifest
        self.conditions: tuple[str, ...] = ()
        self.notes: tuple[str, ...] = ()
        self._whole: Snapshot | None = None
        self._orders: dict[str, Orders] = {}
        segments: list[Segment] = []
        damaged: list[Damaged] = []
        for entry in manifest.segments:
            try:
                segments.append(opened.get(entry) or open_segment(path, entry))
            except CorruptionError as error:
                damaged.append(Damaged(entry, str(error)))
        self.segments, self.damaged = tuple(segments), tuple(damaged)
        self.deletions = Deletions()
        if manifest.deletions is not None:
            file = path / manifest.deletions["name"]
            check_file(file, manifest.deletions)
            self.deletions = Deletions.open(file)
        self.num_saved_deletions = len(self.deletions)
        # Of segments that were damaged, and are no longer, the documents of which later segments have newer versions:
        # while a segment is damaged, nobody can tell which ids it has.
        superseded = {
            deletion(older, document)
            for older in self.segments
            if older.name in manifest.bypassed
            for newer in self.segments
            if newer.first_document > older.first_document
            for document in older.find_all(newer)
        }
        if superseded:
            self.deletions = self.deletions.plus(each for each in superseded if each[0] not in self.deletions)
        self._first_R = np.array([segment.first_row for segment in self.segments], np.int64)
        self._last_R = np.array([segment.last_row for segment in self.segments], np.int64)

    @cached_property
    def num_documents(self) -> int:
        """Number of documents that can be read."""
        return sum(segment.num_documents - self.num_deleted(segment) for segment in self.segments)

    @cached_property
    def num_passages(self) -> int:
        """Number of passages that can be read."""
        is_counted = not (self.damaged or self.manifest.bypassed or self.conditions)
        return self.manifest.num_passages if is_counted else len(self.live_rows())

    def where(self, condition: Condition) -> Snapshot:
        """The same as if documents that do not meet a condition were deleted."""
        others, met = list[Deletion](), set[bytes]()
        condition.settle(self._orders_of)
        for segment, number, record in self._records():
            keeps = condition(record)
            if keeps and condition.once:
                text = digest_of(plain(segment.document(number).text))
                keeps = text not in met
                met.add(text)
            if not keeps:
                others.append(deletion(segment, number))
        kept = copy(self)
        kept._whole = self._whole or self
        for name in ("num_documents", "num_passages", "live_words", "facets"):
            kept.__dict__.pop(name, None)
        kept.deletions = self.deletions.plus(others)
        kept.conditions = (*self.conditions, condition.text)
        kept.notes = tuple(dict.fromkeys((*self.notes, *condition.notes())))
        return kept

    def _records(self) -> Iterator[tuple[Segment, int, Record]]:
        """What is known of each document, as conditions find it, with its segment and its number there."""
        for segment in self.segments:
            for number in self.live_documents(segment):
                document_id, title, metadata = segment.record(number)
                known = {**metadata, "id": document_id, "title": title or metadata.get("title", "")}
                yield segment, number, known

    def _orders_of(self, name: str) -> Orders:
        """The orders of the dates of a field, whatever part of the documents is kept."""
        if name not in self._orders:
            records = (record for _, _, record in (self._whole or self)._records())
            values = chain.from_iterable(values_of(record, name) for record in records)
            self._orders[name] = orders_of(value for value in values if isinstance(value, str))
        return self._orders[name]

    def part(self, conditions: Iterable[str]) -> Snapshot:
        """The same by several conditions, one after the other. Raises InputError on one that cannot be read."""
        return reduce(Snapshot.where, map(parse, conditions), self)

    def is_altered(self) -> bool:
        """Whether files that are open have other sizes by now, or a damaged segment is there again."""
        for damaged in self.damaged:
            with suppress(CorruptionError):
                open_segment(self.path, damaged.entry)
                return True
        return not all(segment.has_its_sizes() for segment in self.segments)

    def passage(self, row: int) -> Passage:
        """The passage of a row, deleted or not. Raises InputError for a row that no segment contains."""
        segment = self.segment_of(row)
        return segment.passage(row - segment.first_row)

    def segment_of(self, row: int) -> Segment:
        """The segment that contains a row. Raises InputError if none does."""
        place = bisect_right(self.segments, row, key=attrgetter("first_row")) - 1
        if place < 0 or row >= self.segments[place].last_row:
            raise InputError(f"row {row} is not a passage of snapshot {self.manifest.snapshot} of {self.path}")
        return self.segments[place]

    def live(self, rows_R: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of these rows are passages of this snapshot: bool [R]."""
        rows_R = np.asarray(rows_R, np.int64)
        return _inside(rows_R, self._first_R, self._last_R) & ~self.deletions.hide(rows_R)

    def live_rows(self) -> NDArray[np.int64]:
        """Every row of this snapshot, ascending: int64 [num_passages]."""
        parts = [np.arange(segment.first_row, segment.last_row) for segment in self.segments]
        rows_R = np.concatenate([np.empty(0, np.int64), *parts])
        return rows_R[~self.deletions.hide(rows_R)]

    @cached_property
    def live_words(self) -> list[LiveWords]:
        """The words of every segment's passages, without the deleted ones. Raises CorruptionError."""
        with advising(self.path):
            return [LiveWords(segment.words, segment.first_row, self._deleted_in(segment)) for segment in self.segments]

    @cached_property
    def facets(self) -> Facets:
        """What documents have as each field of their metadata. Raises CorruptionError."""
        return tally(each.record(number)[2] for each in self.segments for number in self.live_documents(each))

    def _deleted_in(self, segment: Segment) -> NDArray[np.int64]:
        """The deleted passages of a segment, counted in it."""
        if not self.num_deleted(segment):
            return np.empty(0, np.int64)
        return np.flatnonzero(self.deletions.hide(np.arange(segment.first_row, segment.last_row)))

    def live_documents(self, segment: Segment) -> Iterator[int]:
        """The documents of a segment that are not deleted, counted in the segment."""
        deleted = self.num_deleted(segment)
        for document in range(segment.num_documents):
            if not deleted or not self.is_deleted(segment, document):
                yield document

    def num_deleted(self, segment: Segment) -> int:
        return self.deletions.count(segment.first_document, segment.last_document)

    def is_deleted(self, segment: Segment, document: int) -> bool:
        return segment.first_document + document in self.deletions

    def locate(self, document_id: str) -> tuple[Segment, int]:
        """The segment that contains a document, and its number there. Raises UnknownDocumentError."""
        # The newest first: a replaced document is found again in older segments, where it is deleted.
        for segment in reversed(self.segments):
            document = segment.find(document_id)
            if document is not None and not self.is_deleted(segment, document):
                return segment, document
        beyond = f", unless it is in a damaged segment ({remedy_of(self.path)})" if self.damaged else ""
        raise UnknownDocumentError(
            f"document {brief(document_id)} is not in {self.path}{beyond}; `quoth list {self.path}` shows the ids"
        )

    def changed(self, documents: Iterable[Split], kept_D: bytearray) -> Iterator[Split]:
        """The documents that are new or differ by a byte; the others are marked in `kept_D` by their numbers.

        Raises DuplicateDocumentError if an unchanged one occurs twice.
        """
        for document, ranges in documents:
            with suppress(UnknownDocumentError):
                segment, index = self.locate(document.id)
                if segment.holds(index, document):
                    number = segment.first_document + index
                    if kept_D[number]:
                        raise DuplicateDocumentError(f"document {brief(document.id)} occurs twice; leave one out")
                    kept_D[number] = True
                    continue
            yield document, ranges


def deletion(segment: Segment, document: int) -> Deletion:
    """The entry of a document in the set of deletions."""
    first, last = segment.passage_range(document)
    return segment.first_document + document, segment.first_row + first, segment.first_row + last


def open_snapshot(path: Path, number: int | None, known: Iterable[Segment] = ()) -> Snapshot:
    """Opens a snapshot, the current one if `number` is None: a newer one if a writer removes its files meanwhile.

    Raises CorpusNotFoundError if there is no such snapshot, or it is released meanwhile, CorruptionError.
    """
    while True:
        manifest = read_manifest(path, number)
        try:
            return Snapshot(path, manifest, known)
        except CorruptionError:
            if read_manifest(path, number).snapshot == manifest.snapshot:
                raise


def tell_damage(snapshot: Snapshot) -> None:
    """Warns of damaged segments. Raises CorruptionError if no other is intact."""
    for damaged in snapshot.damaged:
        if not snapshot.segments:
            raise CorruptionError(damaged.reason)
        count = f"{damaged.entry.num_documents} document" + "s" * (damaged.entry.num_documents != 1)
        without = f"{snapshot.path} is open without segment {damaged.entry.name} ({count}), so BM25 ranks differently"
        warnings.warn(DamageWarning(f"{damaged.reason}; {without}; {remedy_of(snapshot.path)}"), stacklevel=3)
