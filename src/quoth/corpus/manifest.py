"""The names of everything in a corpus's folder, and the manifest: of which segments and deletions a snapshot consists.

    manifest-<n>.json   snapshot n; the highest n is the current state, and its rename is the commit
    committed.json      a copy of the last manifest, written after the commit: it shows if that one is lost
    segments/<name>/    immutable, named after the number of its first document
    deleted-<n>.npy     the documents deleted up to snapshot n
    origins-<n>.json    which documents came from which file: what changed in it until snapshot n (`origins`)
    *.copy.*            a copy of each of these two
    moves/<name>/       where the passages of a merged segment were (`moves`)
    keys/<owner>/       what others keep next to the passages
    exact/<segment>/    where words begin, sorted by what follows (`exact`); made again if it is lost
    repair/<name>/      a segment that is being rebuilt
    seen.json           the times of files that were read, only to save reading them again (`seen`)
    writer.lock         the pid of the writer, if there is one, and space that is freed when the disk is full

`keys/<owner>/` has one owner, who holds its `writer.lock` while writing; so has `exact/`. A folder in it belongs to the
segment it is named after, if any, and is sealed unless its name ends in .part or .tmp. Does not know what segments
contain, or what others keep.
"""

from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, cast

from quoth.errors import CorpusNotFoundError, CorruptionError
from quoth.storage import (
    CHECKSUMS,
    COMMITTED,
    FILE_FIELDS,
    Fields,
    atomic_write_bytes,
    check_fields,
    encode_json,
    fsync_path,
    read_json_and_bytes,
    sha256_bytes,
    size_of,
)

BESIDE, EXACT = "keys", "exact"
REPAIR = "repair"
LOCK = "writer.lock"
FORMAT = 4
READABLE = (1, 2, 3, 4)
"""Segments of the first format have no words: one index outside them had the words of every snapshot. The third has
`bypassed`; the fourth has `origins`, a copy of each list of deletions, and always a copy of the last manifest."""


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
    """All that is known of a snapshot without opening another file.

    A write removes the snapshots below `kept_from` once nobody reads them. `bypassed` names the segments that were
    damaged when documents were added: if one is repaired, later segments may have newer versions of its documents.
    `origins` are files of which a later one has what changed since the earlier ones.
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
    bypassed: tuple[str, ...] = ()
    origins: tuple[dict[str, Any], ...] = ()
    format: int = FORMAT

    def successor(self, **changes: Any) -> "Manifest":
        """The next snapshot's manifest."""
        return replace(self, snapshot=self.snapshot + 1, format=FORMAT, **changes)

    @property
    def written_twice(self) -> list[dict[str, Any]]:
        """Name, size and SHA-256 of each file that it names and that has a copy, if it `has_copies`."""
        return [*([self.deletions] if self.deletions else []), *self.origins]

    @property
    def has_copies(self) -> bool:
        """Whether this snapshot's format writes lists of deletions and origins twice."""
        return self.format >= 4

    @property
    def digest(self) -> str:
        """Equal for equal manifests, in any process."""
        return sha256_bytes(encode_json(asdict(self)))


_SEGMENT_FIELDS: Fields = {field.name: (cast(type, field.type),) for field in fields(SegmentEntry)}
_FIELDS: Fields = {field.name: (cast(type, field.type),) for field in fields(Manifest)} | {
    "segments": (list,),
    "deletions": (dict, type(None)),
    "bypassed": (list,),
    "origins": (list,),
}


def manifest_path(corpus: Path, snapshot: int) -> Path:
    return corpus / f"manifest-{snapshot}.json"


def segment_path(corpus: Path, name: str) -> Path:
    return corpus / "segments" / name


def segment_name(first_document: int) -> str:
    return f"{first_document:012d}"


def deletions_path(corpus: Path, snapshot: int) -> Path:
    return corpus / f"deleted-{snapshot}.npy"


def origins_path(corpus: Path, snapshot: int) -> Path:
    return corpus / f"origins-{snapshot}.json"


def is_number(name: str) -> bool:
    """Whether a name is a number as Quoth writes it: other scripts have digits too."""
    return name.isascii() and name.isdecimal()


def moves_path(corpus: Path, segment: str) -> Path:
    return corpus / "moves" / segment


def saved_moves(corpus: Path) -> list[Path]:
    """The folders of all segments' moves."""
    return [folder for folder in sorted(corpus.glob("moves/*")) if is_number(folder.name)]


def exact_path(corpus: Path, segment: str) -> Path:
    return corpus / EXACT / segment


def exact_indexes(corpus: Path) -> list[Path]:
    """The exact indexes of all segments."""
    return [folder for folder in sorted(corpus.glob(f"{EXACT}/*")) if is_number(folder.name)]


def side_tables(corpus: Path) -> list[Path]:
    """Everything kept by any owner, finished or not."""
    return [path for path in sorted((corpus / BESIDE).glob("*/*")) if path.name != LOCK]


def sealed_folders(corpus: Path) -> list[Path]:
    """The folders next to the segments that are complete: moves, exact indexes, and what any owner keeps."""
    kept = [path for path in side_tables(corpus) if path.is_dir() and path.suffix not in (".part", ".tmp")]
    return [*saved_moves(corpus), *exact_indexes(corpus), *(path for path in kept if path.name[0] != ".")]


def segment_of(path: Path) -> str:
    """The name of the segment that a folder belongs to, if it belongs to one."""
    return path.name.partition(".")[0]


def side_locks(corpus: Path) -> list[Path]:
    """The lock of every owner."""
    return sorted([*(corpus / BESIDE).glob(f"*/{LOCK}"), *corpus.glob(f"{EXACT}/{LOCK}")])


def snapshots(corpus: Path) -> list[int]:
    """The snapshots that can be opened, oldest first."""
    return _numbers(corpus, "manifest-*.json")


def write_manifest(corpus: Path, manifest: Manifest) -> None:
    """The commit: everything that the manifest names must be on disk before, but for names in the corpus's folder."""
    fsync_path(corpus)
    content = asdict(manifest)
    encoded = encode_json({**content, "sha256": sha256_bytes(encode_json(content))})
    atomic_write_bytes(manifest_path(corpus, manifest.snapshot), encoded)
    with suppress(OSError):  # everything is committed; if the disk is full, an older copy remains
        atomic_write_bytes(corpus / COMMITTED, encoded)


def read_manifest(corpus: Path, snapshot: int | None = None) -> Manifest:
    """A snapshot's manifest, by default the current one's.

    Raises CorpusNotFoundError if there is none, CorruptionError if the file is damaged or lost.
    """
    while True:
        copy = _content(corpus / COMMITTED)  # before the list, which then has its snapshot or a later one
        known = snapshots(corpus)
        if snapshot is None and copy != _content(manifest_path(corpus, known[-1] if known else 0)):
            _check_not_lost(corpus, known)
        if not known:
            if not corpus.exists() or (corpus.is_dir() and not any(corpus.iterdir())):
                raise CorpusNotFoundError(f"{corpus}: corpus not found; `quoth index DOCS -o {corpus}` makes one")
            kind, remedy = "a folder" if corpus.is_dir() else "a file", f"`quoth index {corpus} -o NAME.quoth`"
            raise CorpusNotFoundError(f"{corpus} is {kind} but not a corpus; {remedy} makes one from its documents")
        if snapshot is not None and snapshot not in known:
            message = f"{corpus}: no snapshot {snapshot} (compact releases old ones); use one of {known}"
            raise CorpusNotFoundError(message)
        number = known[-1] if snapshot is None else snapshot
        path = manifest_path(corpus, number)
        try:
            manifest = parse_manifest(path)
        except CorruptionError:
            if number in snapshots(corpus):
                raise
            continue  # released since it was listed
        if manifest.snapshot != number:
            raise CorruptionError(f"{path}: contains the manifest of snapshot {manifest.snapshot}")
        return manifest


def _content(path: Path) -> bytes:
    with suppress(FileNotFoundError, CorruptionError):
        size_of(path)
        return path.read_bytes()
    return b""


def _check_not_lost(corpus: Path, known: list[int]) -> None:
    copied = committed(corpus)
    if copied is None:
        return _check_named(corpus, known[-1]) if known else None
    if copied.snapshot <= max(snapshots(corpus), default=-1):
        return
    left: list[Path] = []
    with suppress(CorruptionError):
        left = unnamed(corpus, read_manifest(corpus, known[-1])) if known else []
    names = f"; the files it named are there: {', '.join(path.name for path in left)}" if left else ""
    raise CorruptionError(
        f"{manifest_path(corpus, copied.snapshot)}: the file is missing (the manifest of the last commit){names}"
    )


def _check_named(corpus: Path, last: int) -> None:
    """Raises CorruptionError if there is no copy of the last manifest, but more than the last one names: without the
    copy, what a lost manifest named looks like the leftovers of a killed writer."""
    try:
        current = parse_manifest(manifest_path(corpus, last))
    except CorruptionError:
        return  # its reader says so
    # What a commit may have named: a sealed segment, or a list of deletions.
    written = [path for path in unnamed(corpus, current) if path.suffix != ".tmp"]
    left = [path for path in written if path.is_file() or (path / CHECKSUMS).is_file()]
    if left and committed(corpus) is None and snapshots(corpus)[-1:] == [last]:
        names = ", ".join(path.name for path in left)
        raise CorruptionError(
            f"{corpus / COMMITTED}: missing or damaged, and no manifest names {names}: restore the last manifest from "
            f"a backup, or delete {names} to stay at snapshot {last}"
        )


def keep_copy(corpus: Path, current: Manifest) -> None:
    """Makes the copy of the last manifest if there is none, before anything is written that no manifest names."""
    if committed(corpus) is None:
        with suppress(OSError):  # the disk is full
            atomic_write_bytes(corpus / COMMITTED, manifest_path(corpus, current.snapshot).read_bytes())


def committed(corpus: Path) -> Manifest | None:
    """The copy of the last manifest; None if it cannot be read."""
    with suppress(CorruptionError):
        return parse_manifest(corpus / COMMITTED)
    return None


def check_copy(corpus: Path) -> None:
    """Raises CorruptionError if the copy of the last manifest is damaged or missing; corpora of earlier versions may
    have none, nor does one whose making was killed."""
    if not (copy := corpus / COMMITTED).exists():
        current = read_manifest(corpus)
        if not (current.has_copies and current.snapshot):
            return
    copied = parse_manifest(copy)
    with suppress(CorpusNotFoundError):  # released: a later one was committed after the copy was read
        if read_manifest(corpus, copied.snapshot) != copied:
            raise CorruptionError(f"{copy}: no longer a copy of {manifest_path(corpus, copied.snapshot).name}")


def parse_manifest(path: Path) -> Manifest:
    """The manifest in a file. Raises CorruptionError if it is not as it was written."""
    content, written = read_json_and_bytes(path)  # once: a copy may be replaced at any time
    if not isinstance(content, dict) or written != encode_json(content):
        raise CorruptionError(f"{path}: not as it was written; the file was altered")
    if content.pop("sha256", None) != sha256_bytes(encode_json(content)):
        raise CorruptionError(f"{path}: its content does not match the SHA-256 in it; the file was altered")
    if (version := content.get("format")) not in READABLE:
        remedy = "install a newer Quoth" if isinstance(version, int) and version > READABLE[-1] else "index again"
        raise CorruptionError(f"{path}: format {version}, but this version of Quoth reads {READABLE[-1]}; {remedy}")
    for name in ("words", "stale_rows"):  # of the first format
        content.pop(name, None)
    content = {"bypassed": [], "origins": [], **content}
    check_fields(path, content, _FIELDS)
    if content["deletions"] is not None:
        check_fields(path, content["deletions"], {"name": (str,), **FILE_FIELDS})
    content["segments"] = tuple(
        SegmentEntry(**check_fields(path, entry, _SEGMENT_FIELDS)) for entry in content["segments"]
    )
    content["bypassed"] = tuple(map(str, content["bypassed"]))
    content["origins"] = tuple(check_fields(path, each, {"name": (str,), **FILE_FIELDS}) for each in content["origins"])
    manifest = Manifest(**content)
    # A manifest may come from a stranger: it must not name a file that Quoth does not write, or one outside the corpus.
    named = all(entry.name == segment_name(entry.first_document) for entry in manifest.segments)
    inside = all(Path(each["name"]).name == each["name"] for each in manifest.written_twice)
    known = {entry.name for entry in manifest.segments}
    if not named or not inside or not known.issuperset(manifest.bypassed):
        raise CorruptionError(f"{path}: damaged, it names files that do not belong to a corpus")
    return manifest


def _numbers(corpus: Path, pattern: str) -> list[int]:
    numbers = (path.stem.rpartition("-")[2] for path in corpus.glob(pattern))
    return sorted(int(number) for number in numbers if is_number(number))


def numbered(corpus: Path) -> list[Path]:
    """The lists of deletions, the origins and their copies."""
    found = [*corpus.glob("deleted-*.npy"), *corpus.glob("origins-*.json")]
    return sorted(path for path in found if is_number(path.name.split("-")[1].split(".")[0]))


def unnamed(corpus: Path, current: Manifest) -> list[Path]:
    """What was written for a snapshot later than the current one."""
    segments = [path for path in corpus.glob("segments/*") if path.name >= segment_name(current.next_document)]
    later = [path for path in numbered(corpus) if int(path.name.split("-")[1].split(".")[0]) > current.snapshot]
    return [*segments, *later]


def continues(corpus: Path, latest: Manifest, seen: Manifest) -> bool:
    """Whether a folder still has the corpus that had the manifest `seen`, on which somebody has a lease, so that no
    writer removes it. Two corpora whose manifests are equal have the same documents in the same rows."""
    if latest.snapshot <= seen.snapshot:
        return latest == seen
    try:
        return read_manifest(corpus, seen.snapshot) == seen
    except CorpusNotFoundError:
        return False
    except CorruptionError:
        return True
