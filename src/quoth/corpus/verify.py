"""Whether everything in a corpus's folder is as it was written.

Knows what there is to read: manifests, deletions, segments, sealed key tables. Does not know how to
mend them (`repair`).
"""

from pathlib import Path

from quoth.corpus.manifest import check_copy, read_manifest, remedy_of, snapshots
from quoth.corpus.segment import Segment
from quoth.corpus.snapshot import Snapshot
from quoth.errors import advising
from quoth.storage import check_folder


def verify(path: Path) -> None:
    """Reads every file. Raises CorruptionError naming the first one that is lost or damaged."""
    with advising(remedy_of(path)):
        read_manifest(path)
        check_copy(path)
        segments: dict[str, Segment] = {}
        for number in snapshots(path):
            snapshot = Snapshot(path, read_manifest(path, number), segments.values())
            snapshot.verify_deletions()
            segments.update((segment.name, segment) for segment in snapshot.segments)
        for segment in segments.values():
            segment.verify()
        for folder in sealed_keys(path):
            check_folder(folder, contents=True)


def sealed_keys(path: Path) -> list[Path]:
    """The folders below `keys/` that are complete: tables, whole or partial, codes, settings."""
    found = sorted(path.glob("keys/*/*"))
    return [
        each
        for each in found
        if each.name.isdecimal() or each.suffix in (".codes", ".partial") or each.name == "settings"
    ]
