"""Whether every file in a corpus's folder is as it was written.

Knows what there is to read: manifests, deletions, segments, moves, and the sealed folders next to the passages. Does
not know how to repair them (`repair`).
"""

from contextlib import suppress
from pathlib import Path

from quoth.corpus.layout import saved_moves, sealed_beside
from quoth.corpus.manifest import check_copy, read_manifest, snapshots
from quoth.corpus.segment import Segment
from quoth.corpus.snapshot import open_snapshot
from quoth.errors import CorpusNotFoundError, advising
from quoth.storage import check_folder


def verify(path: Path) -> None:
    """Reads every file. Raises CorruptionError naming the first one that is missing or damaged."""
    with advising(path):
        read_manifest(path)
        check_copy(path)
        segments: dict[str, Segment] = {}
        opened = []  # whose files `compact` keeps
        for number in snapshots(path):
            with suppress(CorpusNotFoundError):  # released since it was listed
                opened.append(open_snapshot(path, number, segments.values()))
                opened[-1].verify_deletions()
                segments.update((segment.name, segment) for segment in opened[-1].segments)
        for segment in segments.values():
            segment.verify()
        for folder in (*saved_moves(path), *sealed_beside(path)):
            check_folder(folder, contents=True)
