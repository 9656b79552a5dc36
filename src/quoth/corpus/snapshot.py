"""What can be read of a corpus: one state of it, its segments without the deleted documents.

Knows rows, documents, passages and their words. Does not know who writes, when, or how to move to another snapshot.

Shape suffixes that differ from the project's: D documents that were ever given a number, R rows.
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

import numpy as np
from numpy.typing import NDArray

from quoth.corpus.bm25 import LiveWords
from quoth.corpus.dates import Orders, orders_of
from quoth.corpus.deletions import Deletion, find_deletions, inside, is_recorded
from quoth.corpus.duplicates import digest_of
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
from quoth.storage import Lease


class Snapshot:
    """Immutable; reuses `known` segments, which are open already. While it is referred to, `compact` keeps its files.

    A segment of which a file is missing, or has another size, is `damaged`, and left out. If the list of deletions is
    damaged, `unlisted` says so; its copy is read, else an older list, and then documents may be there that were
    deleted since: `is_incomplete`. Raises CorruptionError, naming the file, if the manifest is damaged, LockedError if
    somebody keeps the manifest locked, unless it was `committed` just now.
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
        found = find_deletions(path, manifest)
        self.num_saved_deletions = -1 if found.is_lost else len(found.deletions)
        # Of segments that were damaged, and are no longer, the documents of which later segments have newer versions:
        # while a segment is damaged, nobody can tell which ids it has. Of all segments if the deletions are lost.
        self.deletions = found.deletions.plus(
            deletion(older, document)
            for older in self.segments
            if found.is_lost or older.name in manifest.bypassed
            for newer in self.segments
            if newer.first_document > older.first_document
            for document in older.find_all(newer)
        )
        self.unlisted = found.damage
        self.is_incomplete = found.is_lost and not is_recorded(self.deletions, manifest)
        self._first_R = np.array([segment.first_row for segment in self.segments], np.int64)
        self._last_R = np.array([segment.last_row for segment in self.segments], np.int64)

    @cached_property
    def num_documents(self) -> int:
        """Number of documents that can be read."""
        return sum(segment.num_documents - self.num_deleted(segment) for segment in self.segments)

    @cached_property
    def num_passages(self) -> int:
        """Number of passages that can be read."""
        is_counted = not (self.damaged or self.manifest.bypassed or self.conditions or self.is_incomplete)
        return self.manifest.num_passages if is_counted else len(self.live_rows())

    def where(self, condition: Condition) -> Snapshot:
        """The same as if documents that do not meet a condition were deleted."""
        others, met = list[Deletion](), set[bytes]()
        condition.settle(self._orders_of)
        for segment, number, record in self._records():
            keeps = condition(record)
            if keeps and condition.once:
                text = digest_of(segment.document(number).text)
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
        """Each document's fields, as conditions see them, with its segment and its number there."""
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
        """Whether open files have changed in size, or damaged ones have been restored."""
        if self.unlisted and not find_deletions(self.path, self.manifest).damage:
            return True
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
        return inside(rows_R, self._first_R, self._last_R) & ~self.deletions.hide(rows_R)

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
    """Warns of damaged segments and deletions. Raises CorruptionError if no segment is intact."""
    if snapshot.unlisted:
        warnings.warn(DamageWarning(f"{reason_unlisted(snapshot)}; {remedy_of(snapshot.path)}"), stacklevel=3)
    for damaged in snapshot.damaged:
        if not snapshot.segments:
            raise CorruptionError(damaged.reason)
        count = f"{damaged.entry.num_documents} document" + "s" * (damaged.entry.num_documents != 1)
        without = f"{snapshot.path} is open without segment {damaged.entry.name} ({count}), so BM25 ranks differently"
        warnings.warn(DamageWarning(f"{damaged.reason}; {without}; {remedy_of(snapshot.path)}"), stacklevel=3)


def reason_unlisted(snapshot: Snapshot) -> str:
    """What is wrong with the list of deletions, and what is read instead."""
    if not snapshot.is_incomplete:
        is_copy = snapshot.num_saved_deletions >= 0
        return f"{snapshot.unlisted}; {'its copy is' if is_copy else 'an older list and the ids are'} read instead"
    manifest = snapshot.manifest
    count = sum(entry.num_documents for entry in manifest.segments) - manifest.num_documents - len(snapshot.deletions)
    back = f"{count:,} deleted document" + ("s are" if count != 1 else " is")
    why = "its copy is lost too" if manifest.has_copies else "it has no copy"
    return f"{snapshot.unlisted}; {why}, so {back} there again, as in the last list that can be read"
