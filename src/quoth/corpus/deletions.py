"""The documents that are deleted up to a snapshot: the set, its file and the file's copy.

Knows what is read instead if both files are damaged: the last list of an older snapshot, which lacks only what was
deleted since. Does not know segments or ids; `snapshot` adds what follows from them.

Shape suffixes that differ from the project's: X deleted documents, R rows or documents, N intervals of rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quoth.arrays import parsed
from quoth.corpus.manifest import Manifest, parse_manifest, snapshots
from quoth.errors import CorruptionError
from quoth.storage import read_either, sha256_bytes, write_twice

Deletion = tuple[int, int, int]
"""A document's number, its first passage row, and the row after its last."""


class Deletions:
    """The documents deleted up to a snapshot; immutable. A document's passages are consecutive rows, so that each
    deletion is an interval."""

    def __init__(self, deleted_X3: NDArray[np.int64] | None = None) -> None:
        self._table_X3 = np.empty((0, 3), np.int64) if deleted_X3 is None else deleted_X3
        self._documents_X, self._first_X, self._last_X = np.ascontiguousarray(self._table_X3.T)

    @classmethod
    def decode(cls, content: bytes) -> Deletions:
        """From the bytes of a file that has the recorded checksum. Raises CorruptionError if they are no such table."""
        table_X3 = parsed(
            lambda: np.lib.format.read_array(BytesIO(content), allow_pickle=False), "not a list of deletions"
        )
        if table_X3.dtype != np.int64 or table_X3.ndim != 2 or table_X3.shape[1] != 3:
            raise CorruptionError(f"not a list of deletions, but {table_X3.dtype} of shape {table_X3.shape}")
        return cls(table_X3)

    def encode(self) -> bytes:
        """The bytes of its file, which are equal for equal sets."""
        stream = BytesIO()
        np.lib.format.write_array(stream, np.ascontiguousarray(self._table_X3), (1, 0), allow_pickle=False)
        return stream.getvalue()

    def save(self, path: Path) -> dict[str, Any]:
        """Writes the set and a copy to disk, whose names are not flushed yet; returns name, size and SHA-256."""
        return write_twice(path, self.encode())

    def __len__(self) -> int:
        return len(self._documents_X)

    @property
    def num_rows(self) -> int:
        """Number of passages of the deleted documents."""
        return int((self._last_X - self._first_X).sum())

    def __contains__(self, document: int) -> bool:
        place = np.searchsorted(self._documents_X, document)
        return bool(place < len(self) and self._documents_X[place] == document)

    def contain(self, documents_R: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of these documents are in the set: bool [R]."""
        return np.isin(documents_R, self._documents_X)

    def count(self, first_document: int, last_document: int) -> int:
        """Number of deleted documents in [first, last)."""
        if not len(self):
            return 0
        first, last = np.searchsorted(self._documents_X, [first_document, last_document])
        return int(last - first)

    def hide(self, rows_R: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of these passage rows belong to a deleted document: bool [R]."""
        # Ordered by document, the intervals are ordered by row too, and disjoint.
        return inside(rows_R, self._first_X, self._last_X)

    def plus(self, deletions: Iterable[Deletion]) -> Deletions:
        """This set with more documents; those that it has already change nothing."""
        more = {each for each in deletions if each[0] not in self}
        if not more:
            return self
        table_X3 = np.concatenate([self._table_X3, np.array(list(more), np.int64).reshape(-1, 3)])
        return Deletions(table_X3[np.argsort(table_X3[:, 0])])

    def without(self, first_document: int, last_document: int) -> Deletions:
        """This set without the documents in [first, last)."""
        first, last = np.searchsorted(self._documents_X, [first_document, last_document])
        return Deletions(np.delete(self._table_X3, slice(first, last), axis=0))

    def among(self, manifest: Manifest) -> Deletions:
        """Those of the documents that a snapshot's segments have."""
        entries, documents_X = manifest.segments, self._documents_X
        first_N = np.array([each.first_document for each in entries], np.int64)
        last_N = np.array([each.first_document + each.num_documents for each in entries], np.int64)
        return Deletions(self._table_X3[inside(documents_X, first_N, last_N)])


def inside(rows_R: NDArray[np.int64], first_N: NDArray[np.int64], last_N: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which rows are in an interval [first, last) of these, which ascend and do not overlap: bool [R]."""
    if not len(first_N):
        return np.zeros(len(rows_R), bool)
    # A row below the first interval has place -1, which reads the end of the last: the first test excludes it.
    place_R = np.searchsorted(first_N, rows_R, "right") - 1
    return (place_R >= 0) & (rows_R < last_N[place_R])


@dataclass(frozen=True, slots=True)
class Found:
    """A snapshot's deletions; if a file is damaged, what is wrong (`damage`); and whether its copy `is_lost` too, so
    that the list is an older one."""

    deletions: Deletions
    damage: str = ""
    is_lost: bool = False


def find_deletions(corpus: Path, manifest: Manifest) -> Found:
    """The deletions of a snapshot, as far as they can be read."""
    if manifest.deletions is None:
        return Found(Deletions())
    try:
        return _read(corpus, manifest.deletions)
    except CorruptionError as error:
        for number in reversed(snapshots(corpus)):
            if number < manifest.snapshot:
                with suppress(CorruptionError):
                    older = parse_manifest(corpus / f"manifest-{number}.json").deletions
                    last = _read(corpus, older).deletions if older else Deletions()
                    return Found(last.among(manifest), str(error), True)
        return Found(Deletions(), str(error), True)


def _read(corpus: Path, described: dict[str, Any]) -> Found:
    content, damage = read_either(corpus / described["name"], described)
    return Found(Deletions.decode(content), damage)


def is_recorded(deletions: Deletions, manifest: Manifest) -> bool:
    """Whether a set is the one that a manifest names."""
    return manifest.deletions is not None and sha256_bytes(deletions.encode()) == manifest.deletions["sha256"]
