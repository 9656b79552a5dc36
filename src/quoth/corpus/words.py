"""The word index's place in the corpus: its files, and whether they are those of the manifest.

Knows that every file of it but two is immutable once written, so that each is hashed once; does not know
how words are ranked (`bm25`). While it changes, and after a kill until the next commit, a marker beside it
says so: then it may be ahead of the manifest, and only files that both know can be checked.
"""

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quoth.corpus.bm25 import Analysed, BM25Index, Live
from quoth.errors import CorruptionError
from quoth.storage import atomic_write_bytes, check_file, describe_file, fsync_path, publish_directory

Listing = dict[str, dict[str, Any]]
"""Size and SHA-256 of each file, as the manifest keeps them."""

_CHANGING = ("meta.json", ".managed.json")


class WordIndex:
    """The word index of the corpus at `path`."""

    def __init__(self, path: Path) -> None:
        self._folder = path / "bm25"
        self._marker = path / "bm25.changing"
        self._bm25 = BM25Index(self._folder)

    @property
    def changing(self) -> bool:
        """Whether the index may be ahead of the manifest."""
        return self._marker.exists()

    def search(self, query: str, k: int, live: Live) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """`BM25Index.search`."""
        return self._bm25.search(query, k, live)

    def update(
        self, add: Iterable[tuple[int, str | Analysed]], discard_from: int, delete: Iterable[int], known: Listing
    ) -> Listing:
        """`BM25Index.update`, to be followed by the commit of the listing returned, and then by `settle`."""
        atomic_write_bytes(self._marker, b"")
        self._bm25.update(add, discard_from=discard_from, delete=delete)
        return self._listed({name: entry for name, entry in known.items() if name not in _CHANGING})

    def settle(self) -> None:
        """The manifest has caught up."""
        if self.changing:
            self._marker.unlink()
            fsync_path(self._marker.parent)

    def check(self, listing: Listing, contents: bool = False) -> None:
        """Raises CorruptionError for a file that is missing, of another size or (small, or `contents`) altered."""
        ahead = self.changing
        for name, entry in listing.items():
            if _is_temporary(name):
                continue  # a listing of old
            file = self._folder / name
            if not ahead or (name not in _CHANGING and file.exists()):
                check_file(file, entry, contents)
            elif name in _CHANGING and not file.exists():
                raise CorruptionError(f"{file}: the file is missing")
        if contents:
            self._bm25.search("a", 1, lambda rows: np.ones(len(rows), np.bool_))

    def make_again(self, entries: Iterable[tuple[int, str | Analysed]]) -> Listing:
        """A new index of these entries in place of the old one, to be followed by the commit of its listing.

        Until that commit it is not the manifest's, as the old one was not: whoever is stopped begins anew.
        """
        fresh = self._folder.with_name(f"{self._folder.name}.tmp")
        shutil.rmtree(fresh, ignore_errors=True)
        BM25Index(fresh).update(entries)
        self.settle()
        publish_directory(fresh, self._folder)
        self._bm25 = BM25Index(self._folder)
        return self._listed({})

    def _listed(self, kept: Listing) -> Listing:
        """Every file of the index; those of `kept` are not read again."""
        files = sorted(
            each for each in self._folder.iterdir() if each.suffix != ".lock" and not _is_temporary(each.name)
        )
        return {each.name: kept.get(each.name) or describe_file(each) for each in files}


def _is_temporary(name: str) -> bool:
    """Whether it is a file that a killed writer may have left."""
    return name.startswith(".tmp") or name.endswith(".tmp")
