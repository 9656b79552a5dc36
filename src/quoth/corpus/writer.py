"""One write to a corpus: from a snapshot to the next.

Knows in which order things reach the disk, so that a kill at any instant loses nothing that was committed: segments,
then the manifest, whose rename is the commit. Does not know locks, models or vectors.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from quoth.corpus.deletions import Deletion, Deletions
from quoth.corpus.layout import deletions_path, segment_name, segment_path
from quoth.corpus.manifest import write_manifest
from quoth.corpus.moves import NO_MOVES, moves_from, save_moves
from quoth.corpus.segment import Segment, SegmentWriter, Split
from quoth.corpus.segment_writer import take_in
from quoth.corpus.snapshot import Snapshot, deletion
from quoth.errors import CorruptionError, DuplicateDocumentError, brief, remedy_of
from quoth.storage import CHECKSUMS, sha256_file

SEGMENT_PASSAGES = 100_000
"""A segment is closed when it contains this many passages."""


class Writer:
    """Writes under the writer's lock, which its user holds; `on_commit` receives every snapshot that it commits.
    `yield_reserve` frees space that the corpus keeps for a full disk."""

    def __init__(
        self,
        path: Path,
        snapshot: Snapshot,
        on_commit: Callable[[Snapshot], None],
        yield_reserve: Callable[[], None],
    ) -> None:
        self.path = path
        self.snapshot = snapshot
        self._on_commit = on_commit
        self.yield_reserve = yield_reserve

    def add(self, documents: Iterator[Split]) -> int:
        """`Corpus.add`."""
        return self._add(self._write_segments(documents))

    def replace(self, documents: Iterator[Split], delete: Iterable[str] = ()) -> int:
        """`Corpus.replace`."""
        kept_D = bytearray(self.snapshot.manifest.next_document)
        return self._add(self._write_segments(self.snapshot.changed(documents, kept_D)), kept_D, delete)

    def add_written(self, folders: Iterable[Path]) -> int:
        """`Corpus.add_written`."""
        return self._add(self._take_in(folders))

    def delete(self, document_ids: Iterable[str]) -> int:
        """`Corpus.delete`."""
        deleted = [deletion(*self.snapshot.locate(document_id)) for document_id in dict.fromkeys(document_ids)]
        if deleted:
            self.commit(deletions=self.snapshot.deletions.plus(deleted))
        return len(deleted)

    def check_intact(self) -> None:
        """Raises CorruptionError if a segment is damaged."""
        for each in self.snapshot.damaged:
            raise CorruptionError(f"{each.reason}; only an intact corpus is compacted: {remedy_of(self.path)}")

    def merge(self, chosen: list[Segment] | None = None) -> bool:
        """Merges these segments (None: those that are worth it), without their deleted documents; returns whether there
        are any."""
        if not (merged := worth_merging(self.snapshot) if chosen is None else chosen):
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
    ) -> None:
        """Makes a new snapshot with these segments, without the merged ones, and with these deletions (None: as now).

        Damaged segments stay, with all that was known of them. The next writes release the snapshots below `kept_from`;
        after a merge, those without it.
        """
        old = self.snapshot.manifest
        deletions = self.snapshot.deletions if deletions is None else deletions
        gone = {segment.name for segment in merged}
        segments = (*(entry for entry in old.segments if entry.name not in gone), *(segment.entry for segment in new))
        damaged = {each.entry.name for each in self.snapshot.damaged}
        bypassed = damaged & {*old.bypassed, *(damaged if new else ())}
        manifest = old.successor(
            bypassed=tuple(sorted(bypassed)),
            segments=segments,
            next_row=old.next_row + sum(segment.num_passages for segment in new),
            next_document=old.next_document + sum(segment.num_documents for segment in new),
            num_documents=sum(entry.num_documents for entry in segments) - len(deletions),
            num_passages=sum(entry.num_passages for entry in segments) - deletions.num_rows,
            deletions=self._save(deletions),
            kept_from=kept_from or (old.snapshot + 1 if merged else old.kept_from),
        )
        write_manifest(self.path, manifest)
        self.snapshot = Snapshot(self.path, manifest, [*self.snapshot.segments, *new], committed=True)
        self._on_commit(self.snapshot)

    def _add(self, segments: Iterable[Segment], kept_D: bytearray | None = None, delete: Iterable[str] = ()) -> int:
        """Commits new segments. With `kept_D`, their documents replace those with their ids, except those marked; and
        the documents with the ids `delete` are deleted, unless they are marked."""
        new: list[Segment] = []
        deleted: set[Deletion] = set()
        for segment in segments:
            deleted |= {deletion(*replaced) for replaced in self._replaced(segment, new, kept_D)}
            new.append(segment)
        gone = {deletion(*self.snapshot.locate(document_id)) for document_id in delete}
        deleted |= {each for each in gone if not (kept_D and kept_D[each[0]])}
        if new or deleted:
            self.commit(new, self.snapshot.deletions.plus(deleted))
        return sum(segment.num_documents for segment in new)

    def _replaced(
        self, segment: Segment, new: list[Segment], kept_D: bytearray | None
    ) -> Iterator[tuple[Segment, int]]:
        """The documents whose ids a new segment has too. Raises DuplicateDocumentError if it may not have them."""
        for earlier in new:
            for document in earlier.find_all(segment):
                raise DuplicateDocumentError(f"document {brief(earlier.id(document))} occurs twice; leave one out")
        for older, document in self.snapshot.shared_with(segment):
            if kept_D is None:
                already = f"document {brief(older.id(document))} is in {self.path} already"
                raise DuplicateDocumentError(f"{already}; `quoth replace` replaces it")
            if kept_D[older.first_document + document]:
                raise DuplicateDocumentError(f"document {brief(older.id(document))} occurs twice; leave one out")
            yield older, document

    def _write_segments(self, documents: Iterator[Split]) -> Iterator[Segment]:
        manifest = self.snapshot.manifest
        row, number = manifest.next_row, manifest.next_document
        for first in documents:
            with SegmentWriter(segment_path(self.path, segment_name(number))) as writer:
                writer.add(*first)
                while writer.num_passages < SEGMENT_PASSAGES and (split := next(documents, None)) is not None:
                    writer.add(*split)
                segment = Segment(writer.path, row, number, writer.seal())
            row, number = row + segment.num_passages, number + segment.num_documents
            yield segment

    def _take_in(self, folders: Iterable[Path]) -> Iterator[Segment]:
        row, number = self.snapshot.manifest.next_row, self.snapshot.manifest.next_document
        for folder in folders:
            path = segment_path(self.path, segment_name(number))
            take_in(folder, path)
            segment = Segment(path, row, number, sha256_file(path / CHECKSUMS))
            row, number = row + segment.num_passages, number + segment.num_documents
            yield segment

    def _save_moves(self, merged: list[Segment], new: list[Segment]) -> None:
        """Record where the passages of the new segments were, numbered through all of these."""
        parts, count = [NO_MOVES], 0
        for segment in merged:
            ranges = map(segment.passage_range, self.snapshot.live_documents(segment))
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

    def _save(self, deletions: Deletions) -> dict[str, Any] | None:
        if len(deletions) == self.snapshot.num_saved_deletions:
            return self.snapshot.manifest.deletions
        number = self.snapshot.manifest.snapshot + 1
        return deletions.save(deletions_path(self.path, number)) if len(deletions) else None


def worth_merging(snapshot: Snapshot) -> list[Segment]:
    """The segments with deletions or without words, and the small ones unless there is only one."""
    small = {each.name for each in snapshot.segments if each.num_passages < SEGMENT_PASSAGES // 2}
    incomplete = {each.name for each in snapshot.segments if snapshot.num_deleted(each) or not each.has_words}
    merged = [each for each in snapshot.segments if each.name in small | incomplete]
    return merged if len(merged) > 1 or incomplete else []
