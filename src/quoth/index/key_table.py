"""Key tables: the tokens of some passages, which of them a search hit, and what is stored of each token in addition to
its vector, in six bytes.

Knows: rows, character ranges, boundaries, where similarities come from; that few kinds of token make up a text, so that
each token's kind is a number; how this lies on disk. Does not know: how tokens were encoded, or how tables are found.

    kinds.npy    [G] id, group, length in characters and flags of each kind of token
    kind.npy     [N] uint32, each token's kind
    place.npy    [N] where it starts in its passage, in characters (uint16, or uint32 if passages are long)
    origin.npy   [P] where the passage starts in its document
    offsets.npy  [P + 1] the first token of each passage

Shape suffixes that differ from the project's: G kinds of tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from quoth.arrays import Rows, open_array, save_array, save_pieces
from quoth.errors import CorruptionError
from quoth.index.vectors import KeyVectors
from quoth.records import Passage

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus
    from quoth.encoders.keys import EncodedPassage
    from quoth.index.codes import Codes
    from quoth.text.tokenizer import TokenizedPassage

KIND = np.dtype([("id", "<i4"), ("group", "<u8"), ("length", "<i4"), ("flags", "u1")])
FILES = ("kinds", "kind", "place", "origin", "offsets")
REMEDY = "`quoth repair` removes a damaged table, `quoth embed` makes it again"


class Column(Protocol):
    """One value for each token, read at rows as an array is."""

    def __getitem__(self, rows: Any, /) -> Any: ...
    def __len__(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyColumns:
    """Tokens of passages in order: id, group and flags [N], characters of the document from start to end [N], the
    first token of each passage [P + 1], and where each passage starts in its document [P].

    `group_N` names each token's text (`boundaries.spelling` or `surface_group`): equal texts have equal groups.
    """

    ids_N: Column
    group_N: Column
    flags_N: Column
    start_N: Column
    end_N: Column
    offsets_P1: Rows
    origin_P: Rows

    @staticmethod
    def of(passages: Sequence[Passage], tokens: Sequence[TokenizedPassage]) -> KeyColumns:
        """Passages tokenized on the fly, in memory."""
        ranges = [each.offsets_T2 + p.start for each, p in zip(tokens, passages, strict=True)]
        offsets_N2 = np.concatenate([np.zeros((0, 2), np.int64), *ranges])
        return KeyColumns(
            ids_N=np.concatenate([np.zeros(0, np.int32), *(each.ids_T for each in tokens)]).astype(np.int32),
            group_N=np.concatenate([np.zeros(0, np.uint64), *(each.group_T for each in tokens)]).astype(np.uint64),
            flags_N=np.concatenate([np.zeros(0, np.uint8), *(each.flags_T for each in tokens)]).astype(np.uint8),
            start_N=offsets_N2[:, 0],
            end_N=offsets_N2[:, 1],
            offsets_P1=np.cumsum([0, *(len(each.ids_T) for each in tokens)], dtype=np.int64),
            origin_P=np.array([passage.start for passage in passages], np.int64),
        )

    @staticmethod
    def without_tokens(num_passages: int) -> KeyColumns:
        """Passages without any tokens stored."""
        none = KeyColumns.of([], [])
        return replace(none, offsets_P1=np.zeros(num_passages + 1, np.int64), origin_P=np.zeros(num_passages, np.int64))

    def take(self, at_P: Rows) -> Self:
        """These passages alone, in memory."""
        rows_N = ranges(self.offsets_P1, at_P)
        of_tokens = {name: getattr(self, name)[rows_N] for name in ("ids_N", "group_N", "flags_N", "start_N", "end_N")}
        offsets_P1 = np.cumsum([0, *(self.offsets_P1[at_P + 1] - self.offsets_P1[at_P])])
        return replace(self, **of_tokens, offsets_P1=offsets_P1, origin_P=self.origin_P[at_P])


def ranges(offsets_P1: Rows, at_P: Rows) -> Rows:
    """The rows that these passages own, one passage after another."""
    return np.concatenate([np.zeros(0, np.int64), *(np.arange(offsets_P1[p], offsets_P1[p + 1]) for p in at_P)])


def passage_of(offsets_P1: Rows, rows: Any) -> Any:
    """The passage that owns each row."""
    return np.searchsorted(offsets_P1, rows, side="right") - 1


@dataclass(frozen=True, slots=True)
class _OfKind:
    """A value that each token has by its kind."""

    kind_N: NDArray[np.uint32]
    value_G: NDArray[Any]
    file: Path

    def __getitem__(self, rows: Any) -> Any:
        return self.of(self.kind_N[rows])

    def of(self, kind_R: Any) -> Any:
        """The values of these kinds. Raises CorruptionError if there is no such kind."""
        try:
            return self.value_G[kind_R]
        except IndexError:
            raise CorruptionError(f"{self.file}: damaged, a token's kind is out of range; {REMEDY}") from None

    def __len__(self) -> int:
        return len(self.kind_N)


@dataclass(frozen=True, slots=True)
class _Characters:
    """Where each token starts, or ends, in its document."""

    place_N: NDArray[Any]
    length_N: _OfKind | None
    offsets_P1: Rows
    origin_P: Rows

    def __getitem__(self, rows: Any) -> Any:
        rows_R = np.arange(len(self))[rows] if isinstance(rows, slice) else rows
        start_R = self.place_N[rows_R] + self.origin_P[passage_of(self.offsets_P1, rows_R)]
        return start_R if self.length_N is None else start_R + self.length_N[rows_R]

    def __len__(self) -> int:
        return len(self.place_N)


def looked_up(rows: Rows, *columns: Column) -> list[Any]:
    """Several columns at the same rows; a token's kind is read once."""
    first, *others = columns
    if isinstance(first, _OfKind) and all(isinstance(each, _OfKind) and each.kind_N is first.kind_N for each in others):
        kind = first.kind_N[rows]
        return [each.of(kind) for each in columns if isinstance(each, _OfKind)]
    return [each[rows] for each in columns]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyTable(KeyColumns):
    """All-token keys of some passages, in order: a segment's, or passages encoded on the fly.

    A key's local row is implicit: passage p owns rows `offsets_P1[p]` to `offsets_P1[p + 1]`. `passages` are the
    passages, if they are in memory.
    """

    corpus: Corpus
    passage_rows_P: Rows
    vectors: KeyVectors
    live_P: NDArray[np.bool_] | None = None
    codes: Codes | None = None
    passages: Sequence[Passage] = ()

    @classmethod
    def over(cls, columns: KeyColumns, **more: Any) -> KeyTable:
        """A table with these columns and the fields that it has in addition to them."""
        return cls(**{each.name: getattr(columns, each.name) for each in fields(KeyColumns)}, **more)

    @property
    def num_keys(self) -> int:
        return int(self.offsets_P1[-1])

    def passage(self, p: int) -> Passage:
        """The passage that owns the rows from `offsets_P1[p]` on; it is read unless it is in memory."""
        return self.passages[p] if self.passages else self.corpus.passage(int(self.passage_rows_P[p]))

    def places(self, passage_rows: Sequence[int]) -> Rows:
        """The places in the table of those of these passages that it has, ascending."""
        wanted = np.sort(np.array(passage_rows, np.int64))
        at_P = np.searchsorted(self.passage_rows_P, wanted)
        at_P = at_P[at_P < len(self.passage_rows_P)]
        # Ascending rows have ascending places, so it is the last ones that lie beyond the table.
        held_P: Rows = at_P[self.passage_rows_P[at_P] == wanted[: len(at_P)]]
        return held_P

    def take(self, at_P: Rows) -> KeyTable:
        """A table of these passages alone, in memory and without codes."""
        # Not super(): a dataclass with slots is another class than the one in which its methods are defined.
        return replace(
            KeyColumns.take(self, at_P),
            passage_rows_P=self.passage_rows_P[at_P],
            vectors=self.vectors.take(ranges(self.offsets_P1, at_P)),
            live_P=None if self.live_P is None else self.live_P[at_P],
            codes=None,
            passages=(),
        )

    def without(self, passage_rows: Collection[int]) -> KeyTable:
        """The same table with some passages hidden from search."""
        if not passage_rows:
            return self
        kept_P = ~np.isin(self.passage_rows_P, np.fromiter(passage_rows, np.int64))
        return replace(self, live_P=kept_P if self.live_P is None else self.live_P & kept_P)


def in_memory(corpus: Corpus, passages: Sequence[Passage], encoded: Sequence[EncodedPassage], scale: float) -> KeyTable:
    """A table of passages encoded on the fly, in the order given."""
    vectors = KeyVectors(np.concatenate([each.vectors_TD for each in encoded]), scale)
    rows_P = np.array([passage.row for passage in passages], np.int64)
    columns = KeyColumns.of(passages, [each.tokens for each in encoded])
    return KeyTable.over(columns, corpus=corpus, passage_rows_P=rows_P, vectors=vectors, passages=passages)


@dataclass(frozen=True, slots=True)
class KeyHits:
    """The local rows of one table among the k nearest to the start and to the end query of a blank, and which
    passages are boosted, if any. If the search was `restricted` to some passages, the table holds these alone."""

    keys: KeyTable
    start_rows: Rows
    end_rows: Rows
    boosted_P: NDArray[np.bool_] | None = None
    restricted: bool = False

    def boosting(self, passage_rows: Collection[int]) -> KeyHits:
        """The same hits with every token of those of these passages that are in the table; they are boosted."""
        boosted_P = np.isin(self.keys.passage_rows_P, np.fromiter(passage_rows, np.int64))
        rows = ranges(self.keys.offsets_P1, np.flatnonzero(boosted_P))
        return replace(
            self,
            start_rows=np.union1d(self.start_rows, rows),
            end_rows=np.union1d(self.end_rows, rows),
            boosted_P=boosted_P,
        )

    def in_boosted(self, rows_R: Rows) -> NDArray[np.bool_]:
        """Which of the table's rows are in boosted passages: [R]."""
        if self.boosted_P is None:
            return np.zeros(len(rows_R), np.bool_)
        boosted_R: NDArray[np.bool_] = self.boosted_P[passage_of(self.keys.offsets_P1, rows_R)]
        return boosted_R


def open_columns(folder: Path) -> KeyColumns:
    """Map what `save_columns` wrote. Raises CorruptionError naming a damaged file."""
    kinds_G = open_array(folder / "kinds.npy", KIND, (-1,))
    offsets_P1 = open_array(folder / "offsets.npy", np.int64, (-1,))
    if not len(offsets_P1) or offsets_P1[0] or (np.diff(offsets_P1) < 0).any():
        raise CorruptionError(f"{folder / 'offsets.npy'}: damaged, its numbers do not ascend from 0; {REMEDY}")
    kind_N = open_array(folder / "kind.npy", np.uint32, (int(offsets_P1[-1]),))
    place_N = open_array(folder / "place.npy", None, (len(kind_N),))
    origin_P = open_array(folder / "origin.npy", np.int64, (len(offsets_P1) - 1,))
    if place_N.dtype.kind != "u":
        raise CorruptionError(f"{folder / 'place.npy'}: damaged, its type is {place_N.dtype}; {REMEDY}")
    values = {name: np.ascontiguousarray(kinds_G[name]) for name in KIND.names or ()}
    of_kind = {name: _OfKind(kind_N, value_G, folder / "kind.npy") for name, value_G in values.items()}
    return KeyColumns(
        ids_N=of_kind["id"],
        group_N=of_kind["group"],
        flags_N=of_kind["flags"],
        start_N=_Characters(place_N, None, offsets_P1, origin_P),
        end_N=_Characters(place_N, of_kind["length"], offsets_P1, origin_P),
        offsets_P1=offsets_P1,
        origin_P=origin_P,
    )


def save_columns(folder: Path, pieces: Callable[[], Iterable[KeyColumns]]) -> None:
    """Write the tokens of all pieces, one after another; `pieces` is called three times, and gives the same each time.

    One piece, and every kind of token, are in memory at a time.
    """
    offsets, origins = [np.zeros(1, np.int64)], [np.zeros(0, np.int64)]
    kinds_G, total, longest = np.zeros(0, KIND), 0, 0
    for piece in pieces():
        kinds_G = np.union1d(kinds_G, _kinds(piece))
        offsets.append(piece.offsets_P1[1:] + total)
        origins.append(piece.origin_P)
        total += len(piece.ids_N)
        longest = max(longest, int(_places(piece).max(initial=0)))
    save_array(folder / "kinds.npy", kinds_G)
    save_array(folder / "offsets.npy", np.concatenate(offsets))
    save_array(folder / "origin.npy", np.concatenate(origins))
    # Two bytes per token do for passages below 65,536 characters, which nearly all are.
    narrow = np.uint16 if longest < 1 << 16 else np.uint32
    kinds = save_pieces(folder / "kind.npy", _numbers(kinds_G, pieces()))
    places = save_pieces(folder / "place.npy", (_places(piece).astype(narrow) for piece in pieces()))
    assert kinds == places == total


def _numbers(kinds_G: NDArray[Any], pieces: Iterable[KeyColumns]) -> Iterator[NDArray[np.uint32]]:
    for piece in pieces:
        distinct, number_N = np.unique(_kinds(piece), return_inverse=True)
        yield np.searchsorted(kinds_G, distinct).astype(np.uint32)[number_N]


def _kinds(piece: KeyColumns) -> NDArray[Any]:
    kinds_N = np.empty(len(piece.ids_N), KIND)
    kinds_N["id"], kinds_N["group"], kinds_N["flags"] = piece.ids_N[:], piece.group_N[:], piece.flags_N[:]
    kinds_N["length"] = piece.end_N[:] - piece.start_N[:]
    return kinds_N


def _places(piece: KeyColumns) -> Rows:
    places: Rows = piece.start_N[:] - np.repeat(piece.origin_P, np.diff(piece.offsets_P1))
    return places
