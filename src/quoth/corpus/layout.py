"""The names of everything in a corpus's folder.

    manifest-<n>.json   snapshot n; the highest n is the current state, and its rename is the commit
    committed.json      a copy of the last manifest, written after the commit: it shows if that one is lost
    segments/<name>/    immutable, named after the number of its first document
    deleted-<n>.npy     the documents deleted up to snapshot n
    moves/<name>/       where the passages of a merged segment were (`moves`)
    keys/<owner>/       what others keep next to the passages
    origins.json        which documents were read from which folder (`origins`)
    writer.lock         the pid of the writer, if there is one, and space that is freed when the disk is full

`keys/<owner>/` has one owner, who holds its `writer.lock` while writing. A folder in it belongs to the segment it is
named after, if any, and is sealed unless its name ends in .part or .tmp. Does not know what files and folders contain,
or whether they are still needed.
"""

from pathlib import Path

COMMITTED = "committed.json"
BESIDE = "keys"
LOCK = "writer.lock"
ORIGINS = "origins.json"
UNFINISHED = (".part", ".tmp")


def manifest_path(corpus: Path, snapshot: int) -> Path:
    return corpus / f"manifest-{snapshot}.json"


def segment_path(corpus: Path, name: str) -> Path:
    return corpus / "segments" / name


def segment_name(first_document: int) -> str:
    return f"{first_document:012d}"


def deletions_path(corpus: Path, snapshot: int) -> Path:
    return corpus / f"deleted-{snapshot}.npy"


def is_number(name: str) -> bool:
    """Whether a name is a number as Quoth writes it: other scripts have digits too."""
    return name.isascii() and name.isdecimal()


def moves_path(corpus: Path, segment: str) -> Path:
    return corpus / "moves" / segment


def saved_moves(corpus: Path) -> list[Path]:
    """The folders of all segments' moves."""
    return [each for each in sorted(corpus.glob("moves/*")) if is_number(each.name)]


def kept_beside(corpus: Path) -> list[Path]:
    """Everything kept by any owner, finished or not."""
    return [path for path in sorted((corpus / BESIDE).glob("*/*")) if path.name != LOCK]


def sealed_beside(corpus: Path) -> list[Path]:
    """The folders that are complete."""
    found = kept_beside(corpus)
    return [each for each in found if each.is_dir() and each.suffix not in UNFINISHED and each.name[0] != "."]


def segment_of(path: Path) -> str:
    """The name of the segment that a folder belongs to, if it belongs to one."""
    return path.name.partition(".")[0]


def locks_beside(corpus: Path) -> list[Path]:
    """The lock of every owner."""
    return sorted((corpus / BESIDE).glob(f"*/{LOCK}"))
