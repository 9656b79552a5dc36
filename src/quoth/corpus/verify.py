"""Whether every file in a corpus's folder is as it was written.

Knows what there is to read: manifests, deletions, segments, moves, and the sealed folders next to the passages. Does
not know how to repair them (`repair`).
"""

from pathlib import Path

from quoth.corpus.layout import manifest_path, saved_moves, sealed_beside
from quoth.corpus.manifest import SegmentEntry, check_copy, read_manifest, snapshots
from quoth.corpus.segment import open_segment
from quoth.errors import CorpusNotFoundError, CorruptionError, advising
from quoth.storage import Lease, check_file, check_folder


def verify(path: Path) -> None:
    """Reads every file. Raises CorruptionError naming the first one that is missing or damaged."""
    with advising(path):
        read_manifest(path)
        check_copy(path)
        sound: set[SegmentEntry] = set()
        for number in snapshots(path):
            try:
                _verify_snapshot(path, number, sound)
            except (CorpusNotFoundError, CorruptionError):
                if number in snapshots(path):
                    raise  # not released since it was listed
        for folder in (*saved_moves(path), *sealed_beside(path)):
            check_folder(folder, contents=True)


def _verify_snapshot(path: Path, number: int, sound: set[SegmentEntry]) -> None:
    """Reads the deletions of a snapshot and its segments, but for `sound` ones, to which it adds them; one at a time,
    because each has files open. Raises CorruptionError."""
    manifest = read_manifest(path, number)
    lease = Lease(manifest_path(path, number))  # so that `compact` keeps its files
    if manifest.deletions is not None:
        check_file(path / manifest.deletions["name"], manifest.deletions, contents=True)
    for entry in manifest.segments:
        if entry not in sound:
            open_segment(path, entry).verify()
            sound.add(entry)
    del lease
