"""What others keep in a corpus's folder next to its passages.

Knows only the names. `keys/<owner>/` has one owner, who holds its `writer.lock` while writing. A folder in it belongs
to the segment it is named after, if any, and is sealed unless its name ends in .part or .tmp. Does not know what the
folders contain, or whether they are still needed: their owner knows, and can make them again.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from quoth.storage import WriterLock

BESIDE = "keys"
LOCK = "writer.lock"
UNFINISHED = (".part", ".tmp")


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


@contextmanager
def owners_waiting(corpus: Path) -> Iterator[None]:
    """Keeps every owner from writing during the block. Raises LockedError if one is writing already."""
    with ExitStack() as held:
        for lock in sorted((corpus / BESIDE).glob(f"*/{LOCK}")):
            held.enter_context(WriterLock(lock))
        yield
