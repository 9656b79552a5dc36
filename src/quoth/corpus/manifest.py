"""The manifest of one snapshot: which segments and which deletions it consists of.

Knows the JSON file and the names of everything in a corpus's folder; does not know what segments hold.

    manifest-<n>.json   snapshot n; the highest n is the current state, and its rename is the commit
    segments/<name>/    immutable, called by its first document's number
    deleted-<n>.npy     the documents deleted up to snapshot n
    keys/<model>/<segment name>/   key tables, which belong to models
    writer.lock         the pid of the writer, if there is one
"""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from quoth.errors import CorpusNotFoundError, CorruptionError
from quoth.storage import atomic_write_json, encode_json, read_json, remove, remove_unless_leased, sha256_bytes

FORMAT = 2
READABLE = (1, 2)
"""Segments of the first format have no words; one index beside them had those of every snapshot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentEntry:
    """A segment of a snapshot; `sha256` is that of its list of checksums."""

    name: str
    first_row: int
    first_document: int
    num_documents: int
    num_passages: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """All there is to know of a snapshot without opening another file.

    A write removes the snapshots below `kept_from` once nobody reads them.
    """

    snapshot: int
    splitter: str
    segments: tuple[SegmentEntry, ...] = ()
    next_row: int = 0
    next_document: int = 0
    num_documents: int = 0
    num_passages: int = 0
    deletions: dict[str, Any] | None = None
    kept_from: int = 0

    def successor(self, **changes: Any) -> "Manifest":
        """The next snapshot's manifest."""
        return replace(self, snapshot=self.snapshot + 1, **changes)


def manifest_path(corpus: Path, snapshot: int) -> Path:
    return corpus / f"manifest-{snapshot}.json"


def segment_path(corpus: Path, name: str) -> Path:
    return corpus / "segments" / name


def deletions_path(corpus: Path, snapshot: int) -> Path:
    return corpus / f"deleted-{snapshot}.npy"


def segment_name(first_document: int) -> str:
    return f"{first_document:012d}"


def snapshots(corpus: Path) -> list[int]:
    """The snapshots that can be opened, oldest first."""
    return _numbers(corpus, "manifest-*.json")


def write_manifest(corpus: Path, manifest: Manifest) -> None:
    """The commit: everything the manifest names must be on disk before."""
    content = {"format": FORMAT, **asdict(manifest)}
    atomic_write_json(manifest_path(corpus, manifest.snapshot), {**content, "sha256": _checksum(content)})


def read_manifest(corpus: Path, snapshot: int | None = None) -> Manifest:
    """A snapshot's manifest, the current one's when None.

    Raises CorpusNotFoundError where there is none, CorruptionError where the file is damaged.
    """
    known = snapshots(corpus)
    if not known:
        raise CorpusNotFoundError(f"{corpus}: corpus not found; `quoth index DOCS -o {corpus}` makes one")
    if snapshot is not None and snapshot not in known:
        raise CorpusNotFoundError(f"{corpus}: no snapshot {snapshot}, compact releases old ones; there are {known}")
    path = manifest_path(corpus, known[-1] if snapshot is None else snapshot)
    content = read_json(path)
    if not isinstance(content, dict) or path.read_bytes() != encode_json(content):
        raise CorruptionError(f"{path}: not as it was written; the file was altered")
    return _parse(content, path)


def _parse(content: dict[str, Any], path: Path) -> Manifest:
    if content.pop("sha256", None) != _checksum(content):
        raise CorruptionError(f"{path}: its SHA-256 is not the one in it; the file was altered")
    if (version := content.pop("format")) not in READABLE:
        raise CorruptionError(f"{path}: format {version}, this version of Quoth reads {FORMAT}; index again")
    content["segments"] = tuple(SegmentEntry(**each) for each in content["segments"])
    for name in ("words", "stale_rows"):  # the first format's
        content.pop(name, None)
    return Manifest(**content)


def _checksum(content: dict[str, Any]) -> str:
    return sha256_bytes(encode_json(content))


def _numbers(corpus: Path, pattern: str) -> list[int]:
    numbers = (path.stem.rpartition("-")[2] for path in corpus.glob(pattern))
    return sorted(int(each) for each in numbers if each.isdecimal())


def sweep(corpus: Path, current: Manifest) -> None:
    """Removes what a killed writer left: nothing that a manifest names."""
    doomed = [*corpus.glob("*.tmp"), *corpus.glob("segments/*.tmp")]
    doomed += [path for path in corpus.glob("segments/*") if path.name >= segment_name(current.next_document)]
    later = (number for number in _numbers(corpus, "deleted-*.npy") if number > current.snapshot)
    doomed += [deletions_path(corpus, number) for number in later]
    _remove_all(doomed)
    _remove_all(_orphaned_keys(corpus))


def release(corpus: Path, before: int, thorough: bool = False) -> bool:
    """Removes the snapshots below `before` that nobody reads, with the files that only they needed.

    Returns whether all of them are gone. `thorough` also removes what a release that was broken off has left.
    """
    old = [number for number in snapshots(corpus) if number < before]
    gone = [number for number in old if remove_unless_leased(manifest_path(corpus, number))]
    if gone or thorough:
        kept = [read_manifest(corpus, number) for number in snapshots(corpus)]
        segments = {entry.name for each in kept for entry in each.segments}
        _remove_all(path for path in corpus.glob("segments/*") if path.name not in segments)
        deletions = {each.deletions["name"] for each in kept if each.deletions is not None}
        _remove_all(path for path in corpus.glob("deleted-*.npy") if path.name not in deletions)
        _remove_all(corpus.glob("bm25*"))  # the first format's
        _remove_all(_orphaned_keys(corpus))
    return len(gone) == len(old)


def _orphaned_keys(corpus: Path) -> Iterator[Path]:
    for path in corpus.glob("keys/*/*"):
        segment = path.name.partition(".")[0]
        if segment.isdecimal() and not segment_path(corpus, segment).exists():
            yield path


def _remove_all(paths: Iterable[Path]) -> None:
    for path in list(paths):
        remove(path)
