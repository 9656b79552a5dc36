"""The documents deleted up to a snapshot, as intervals of passage rows.

Knows numbers only: a document's passages are consecutive rows, so each deletion is one interval.

Shape suffixes that differ from the project's: X deleted documents.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quoth.arrays import open_array, save_array
from quoth.storage import describe_file, fsync_path

Deletion = tuple[int, int, int]
"""A document's number, its first passage row, and the row after its last."""


class Deletions:
    """A set of deleted documents; immutable."""

    def __init__(self, deleted_X3: NDArray[np.int64] | None = None) -> None:
        self._table_X3 = np.empty((0, 3), np.int64) if deleted_X3 is None else deleted_X3
        self._documents_X, self._first_X, self._last_X = np.ascontiguousarray(self._table_X3.T)

    @classmethod
    def open(cls, path: Path) -> "Deletions":
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
        if not len(self):
            return np.zeros(len(rows_R), bool)
        # Ordered by document, the intervals are ordered by row too, and disjoint: one bisection per row decides.
        place_R = np.searchsorted(self._first_X, rows_R, "right") - 1
        hidden_R: NDArray[np.bool_] = (place_R >= 0) & (rows_R < self._last_X[place_R])
        return hidden_R

    def plus(self, deletions: Iterable[Deletion]) -> "Deletions":
        """This set with more documents, which must not be in it yet."""
        table_X3 = np.concatenate([self._table_X3, np.array(list(deletions), np.int64).reshape(-1, 3)])
        return Deletions(table_X3[np.argsort(table_X3[:, 0])])

    def without(self, first_document: int, last_document: int) -> "Deletions":
        """This set without the documents in [first, last)."""
        first, last = np.searchsorted(self._documents_X, [first_document, last_document])
        return Deletions(np.delete(self._table_X3, slice(first, last), axis=0))
