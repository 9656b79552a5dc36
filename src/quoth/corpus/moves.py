"""Where the passages of a merged segment were before, so that whatever is kept of them elsewhere can follow.

Knows segments by name, and passages by their numbers in a segment. Does not know what follows, or when: a segment's
moves are kept as long as one of the segments named in them exists, or anything is named after one.

    moves/<segment>/moves.npy   int64 [M, 3]: a segment, by the number of its first document, a passage's number
                                there, and its number in this segment

A passage that moved more than once has a row for each segment that is still needed.

Shape suffixes that differ from the project's: M moves.
"""

from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from quoth.arrays import open_array, save_array
from quoth.corpus.manifest import (
    is_number,
    moves_path,
    saved_moves,
    segment_name,
    segment_of,
    segment_path,
    side_tables,
)
from quoth.errors import CorruptionError
from quoth.storage import check_folder, publish_folder, remove

Moves = NDArray[np.int64]
NO_MOVES: Moves = np.zeros((0, 3), np.int64)


def read_moves(corpus: Path, segment: str) -> Moves:
    """A segment's moves: [M, 3]; none if it was not merged. Raises CorruptionError."""
    folder = moves_path(corpus, segment)
    if not folder.is_dir():
        return NO_MOVES
    check_folder(folder)
    return open_array(folder / "moves.npy", np.int64, (-1, 3))


def moves_from(corpus: Path, segment: str, numbers_P: NDArray[np.int64], first: int) -> Moves:
    """The moves of passages that leave a segment: from these ascending numbers in it to the numbers from `first` on.

    Raises CorruptionError.
    """
    here_P = np.arange(first, first + len(numbers_P))
    now = np.stack([np.full(len(numbers_P), int(segment)), numbers_P, here_P], axis=1)
    # Moves compose: what had come to this segment from another gets its new place too, so one look-up finds any origin.
    before = read_moves(corpus, segment)
    before = before[np.isin(before[:, 0], _of_use(corpus)) & np.isin(before[:, 2], numbers_P)]
    before_then = np.stack([before[:, 0], before[:, 1], first + np.searchsorted(numbers_P, before[:, 2])], axis=1)
    return np.concatenate([now, before_then])


def save_moves(corpus: Path, segment: str, moves_M3: Moves) -> None:
    """Write a segment's moves, completely or not at all."""
    publish_folder(moves_path(corpus, segment), lambda part: save_array(part / "moves.npy", moves_M3))


def sweep_moves(corpus: Path) -> None:
    """Remove the moves that are no longer needed."""
    of_use = _of_use(corpus)
    for folder in saved_moves(corpus):
        with suppress(CorruptionError):  # `verify` reports it
            named = np.isin(read_moves(corpus, folder.name)[:, 0], of_use).any()
            if not (named and segment_path(corpus, folder.name).exists()):
                remove(folder)


def _of_use(corpus: Path) -> list[int]:
    """The segments, by their first documents, that exist or that anything is named after."""
    names = {path.name for path in corpus.glob("segments/*")} | set(map(segment_of, side_tables(corpus)))
    return [int(name) for name in names if is_number(name) and name == segment_name(int(name))]
