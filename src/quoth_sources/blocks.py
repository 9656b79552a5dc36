"""The blocks of a document's text: headings, paragraphs, items, rows, code, as the file marks them.

Knows a block's record and the bytes of many. Does not know formats of files, or how blocks are guessed.

Blocks stand in the order of the text and do not overlap; between two of them are no letters. The bytes are
zlib of int32 [4, blocks], little-endian: gap to the block before, length, number of the kind, level.
"""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

KINDS = ("paragraph", "heading", "item", "row", "code", "caption", "term", "contents", "furniture")
"""`item`: of a list, with its mark; its first paragraph is of its block, others are paragraphs of its level. `term`:
what is defined, or an option; the item behind it is the definition. `row`: of a table or a record; `caption`: of a
picture or a table, the title above a table too; `contents`: a line of a table of contents or an index; `furniture`:
headers and footers of pages, page numbers, navigation."""
UNREAD = frozenset({"contents", "furniture"})
"""Kinds that are neither searched nor quoted as answers."""
Headings = tuple[tuple[int, str], ...]
"""Levels and texts of headings, each below the one before."""


class Block(NamedTuple):
    """`text[start:end]` is of this kind. `level`: of a heading, from 1, the highest; of an item, and of a paragraph or
    code inside one, how many lists it stands in; of a row 1 if it names the columns; else 0."""

    start: int
    end: int
    kind: str
    level: int = 0


def encode(blocks: Iterable[Block]) -> bytes:
    """The bytes of blocks, in order."""
    import numpy as np

    rows = [(start, end, KINDS.index(kind), level) for start, end, kind, level in blocks]
    if not rows:
        return b""
    start_N, end_N, kind_N, level_N = np.array(rows, "<i4").T
    gap_N = start_N - np.concatenate([[0], end_N[:-1]])
    return zlib.compress(np.stack([gap_N, end_N - start_N, kind_N, level_N]).astype("<i4").tobytes(), 9)


def decode(data: bytes) -> NDArray[np.int64]:
    """The blocks of these bytes: [blocks, 4], start, end, number of the kind, level. Raises ValueError if they are no
    blocks."""
    import numpy as np

    try:
        fields_4N = np.frombuffer(zlib.decompress(data) if data else b"", "<i4").reshape(4, -1).astype(np.int64)
    except (zlib.error, ValueError) as error:
        raise ValueError(f"the blocks are damaged ({error})") from None
    gap_N, length_N, kind_N, level_N = fields_4N
    end_N = (gap_N + length_N).cumsum()
    if (fields_4N < 0).any() or (kind_N >= len(KINDS)).any():
        raise ValueError("the blocks are damaged")
    return np.stack([end_N - length_N, end_N, kind_N, level_N], axis=1)


class Outline:
    """The blocks of a text [blocks, 4] as `decode` gives them: those of a part of it, and the headings above."""

    def __init__(self, blocks_N4: NDArray[np.int64], text: str) -> None:
        self._blocks_N4 = blocks_N4
        heads_H4 = blocks_N4[blocks_N4[:, 2] == KINDS.index("heading")]
        self._head_ends = heads_H4[:, 1].tolist()
        self._heads = [(level, heading_name(text[start:end])) for start, end, _, level in heads_H4.tolist()]

    def inside(self, start: int, end: int) -> tuple[Block, ...]:
        """The blocks that have characters from start to end, cut off there."""
        first = int(self._blocks_N4[:, 1].searchsorted(start, "right"))
        last = int(self._blocks_N4[:, 0].searchsorted(end, "left"))
        rows = self._blocks_N4[first:last].tolist()
        return tuple(Block(max(a, start), min(b, end), KINDS[kind], level) for a, b, kind, level in rows)

    def above(self, at: int) -> Headings:
        """The headings above a character, the highest first."""
        path: Headings = ()
        for level, name in reversed(self._heads[: bisect_right(self._head_ends, at)]):
            if not path or level < path[0][0]:
                path = ((level, name), *path)
            if level <= 1:
                break
        return path


def heading_name(text: str) -> str:
    """A heading as it is shown in a path: without Markdown's marks, with single spaces."""
    return " ".join(text.lstrip("#").split())


def with_heading(path: Headings, level: int, name: str) -> Headings:
    """The headings above what comes below another heading."""
    return (*(each for each in path if each[0] < level), (level, name))
