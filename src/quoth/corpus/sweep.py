"""What is removed from a corpus's folder: the leftovers of a killed writer, and snapshots that nobody reads.

Knows which files the manifests name. Of what is kept next to the passages it knows one thing only: whatever is named
after a segment that was never committed must go, because the next segment gets that name.
"""

from collections.abc import Iterable
from pathlib import Path

from quoth.corpus.layout import is_number, kept_beside, manifest_path, segment_name, segment_of
from quoth.corpus.manifest import Manifest, read_manifest, snapshots, unnamed
from quoth.corpus.moves import sweep_moves
from quoth.storage import remove, remove_unless_leased

TEMPORARY = ("*.tmp", "segments/*.tmp", "moves/*.tmp")


def sweep(corpus: Path, current: Manifest) -> None:
    """Removes the leftovers of a killed writer, and nothing that a manifest names."""
    first = segment_name(current.next_document)
    called = [path for path in (*corpus.glob("moves/*"), *kept_beside(corpus)) if is_number(segment_of(path))]
    _remove_all(path for path in called if segment_of(path) >= first)
    temporary = (path for pattern in TEMPORARY for path in corpus.glob(pattern))
    _remove_all([*temporary, *unnamed(corpus, current)])


def release(corpus: Path, before: int, thorough: bool = False) -> bool:
    """Removes the snapshots below `before` that nobody reads, with the files that only they used.

    Returns whether all of them are gone. `thorough` also removes the leftovers of an interrupted release.
    """
    old = [number for number in snapshots(corpus) if number < before]
    gone = [number for number in old if remove_unless_leased(manifest_path(corpus, number))]
    if gone or thorough:
        kept = [read_manifest(corpus, number) for number in snapshots(corpus)]
        segments = {entry.name for each in kept for entry in each.segments}
        _remove_all(path for path in corpus.glob("segments/*") if path.name not in segments)
        deletions = {each.deletions["name"] for each in kept if each.deletions is not None}
        _remove_all(path for path in corpus.glob("deleted-*.npy") if path.name not in deletions)
        _remove_all(corpus.glob("bm25*"))  # of the first format
        sweep_moves(corpus)
    return len(gone) == len(old)


def _remove_all(paths: Iterable[Path]) -> None:
    for path in list(paths):
        remove(path)
