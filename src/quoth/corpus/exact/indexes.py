"""The exact indexes of a corpus: made when they are first needed, opened once, made again if damaged.

Knows folders, locks and what making costs. Does not know what is looked for.

    exact/<segment>/    the index of the segment of that name (`suffixes`), sealed; no manifest names it
    exact/writer.lock   held by whoever makes indexes

Each is made in a temporary folder that gets its name when it is complete, so a kill leaves nothing but a folder that
the next one to make an index removes. If the folder cannot be written, the index is kept in memory.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from quoth.corpus.exact.suffixes import Suffixes, sorted_parts, write
from quoth.corpus.manifest import EXACT, LOCK, exact_path
from quoth.errors import CorruptionError, DamageWarning, IndexWarning, LockedError
from quoth.storage import WriterLock, make_folder, publish_folder, refuse_unless_plain, remove

if TYPE_CHECKING:
    from quoth.corpus.segment import Segment
    from quoth.corpus.view import CorpusView

SECONDS_PER_BYTE, BYTES_PER_BYTE = 2.7e-7, 0.8
"""What making an index takes, and its size: measured on 50 MB of English text, on one core of an AMD EPYC."""
TOLD_FROM_SECONDS = 2.0
Progress = Callable[[int, int], None]
"""Receives how many bytes of text are done, and of how many."""
_opened: WeakKeyDictionary[Segment, Suffixes] = WeakKeyDictionary()
_making = RLock()


def indexes(corpus: CorpusView) -> list[tuple[Segment, Suffixes]]:
    """The index of every segment, in the order of their rows. Those that are missing are made; an IndexWarning says
    what that takes, if it takes long. Raises CorruptionError if a text is damaged."""
    opened = [(segment, _opened.get(segment)) for segment in corpus.segments]
    found = [(segment, index) for segment, index in opened if index is not None]
    if len(found) == len(opened):
        return found
    make(corpus)
    return [(segment, _opened[segment]) for segment in corpus.segments]


def make(corpus: CorpusView, progress: Progress | None = None, required: bool = False) -> None:
    """Makes the indexes of the segments that have none.

    If they cannot be written, an IndexWarning says so, and they are kept in memory; if they are `required` on disk, it
    raises OSError, or LockedError if another process is making them. Raises CorruptionError if a text is damaged.
    """
    with _making:
        if not (lacking := missing(corpus)):
            return
        seconds, size = cost(lacking)
        if seconds >= TOLD_FROM_SECONDS:
            takes = f"takes about {seconds:.0f} seconds and {size / 1e6:.0f} MB on disk, once"
            warnings.warn(IndexWarning(f"{corpus.path}: making its exact index {takes}"), stacklevel=2)
        try:
            _write(corpus.path, lacking, progress)
        except (OSError, LockedError) as error:
            if required:
                raise
            reason = f"{corpus.path}: its exact index cannot be written ({error})"
            warnings.warn(IndexWarning(f"{reason}, so it is made in the memory of this process"), stacklevel=2)
            for segment, each in _following(lacking, progress):
                _opened[segment] = Suffixes(segment, [*sorted_parts(segment, each)])


def missing(corpus: CorpusView) -> list[Segment]:
    """The segments without an index. A damaged one is told by a DamageWarning."""
    return [segment for segment in corpus.segments if not _open(corpus.path, segment, tell=True)]


def cost(segments: Iterable[Segment]) -> tuple[float, int]:
    """The seconds that making their indexes takes, about, and the bytes on disk."""
    size = sum(segment.num_bytes for segment in segments)
    return SECONDS_PER_BYTE * size, int(BYTES_PER_BYTE * size)


def _write(corpus: Path, lacking: list[Segment], progress: Progress | None) -> None:
    folder = corpus / EXACT
    refuse_unless_plain(folder)
    make_folder(folder)
    with WriterLock(folder / LOCK):
        for left in folder.glob("*.tmp"):
            remove(left)
        for segment, each in _following(lacking, progress):
            if not _open(corpus, segment):  # another process may have made it since
                publish_folder(exact_path(corpus, segment.name), partial(write, segment=segment, progress=each))
                assert _open(corpus, segment)


def _following(segments: list[Segment], progress: Progress | None) -> Iterator[tuple[Segment, Callable[[int], None]]]:
    """Each segment, and what receives how many of its bytes are done."""
    total, done = sum(segment.num_bytes for segment in segments), 0

    def tell(before: int, here: int) -> None:
        if progress is not None:
            progress(before + here, total)

    for segment in segments:
        yield segment, partial(tell, done)
        done += segment.num_bytes


def _open(corpus: Path, segment: Segment, tell: bool = False) -> bool:
    """Whether a segment's index is open, or can be opened."""
    folder = exact_path(corpus, segment.name)
    if segment in _opened:
        return True
    try:
        index = Suffixes.open(folder, segment) if folder.is_dir() else None
    except CorruptionError as error:
        index = None
        if tell:
            warnings.warn(DamageWarning(f"{error}; the exact index is made again"), stacklevel=3)
    if index is not None:
        _opened[segment] = index
    return index is not None
