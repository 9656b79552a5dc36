"""The word index's place in the corpus: its files, and whether they are those of the manifest.

Knows that every file of it but two is immutable once written, so that each is hashed once; does not know
how words are ranked (`bm25`). While it changes, and after a kill until the next commit, a marker beside it
says so: then it may be ahead of the manifest, and only files that both know can be checked.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quoth.corpus.bm25 import Analysed, BM25Index, Live
from quoth.storage import atomic_write_bytes, check_file, describe_file, fsync_path

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
        files = sorted(
            each for each in self._folder.iterdir() if each.suffix != ".lock" and not _is_temporary(each.name)
        )
        kept = {name: entry for name, entry in known.items() if name not in _CHANGING}
        return {each.name: kept.get(each.name) or describe_file(each) for each in files}

    def settle(self) -> None:
        """The manifest has caught up."""
        if self.changing:
            self._marker.unlink()
            fsync_path(self._marker.parent)

    def check(self, listing: Listing, contents: bool = False) -> None:
        """Raises CorruptionError for a file that is missing, of another size or (`contents`) altered."""
        ahead = self.changing
        for name, entry in listing.items():
            if _is_temporary(name):
                continue  # a listing of old
            if not ahead or (name not in _CHANGING and (self._folder / name).exists()):
                check_file(self._folder / name, entry, contents)


def _is_temporary(name: str) -> bool:
    """Whether it is a file that a killed writer may have left."""
    return name.startswith(".tmp") or name.endswith(".tmp")
