"""Key tables as search and prediction see them: the tokens of some passages, and which of them a search hit.

Knows: rows, character ranges, boundaries, and where similarities come from.
Does not know: how tokens were encoded or stored.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from quoth.records import Passage
from quoth.retrieval.key_columns import Column, KeyColumns, ranges
from quoth.retrieval.vectors import KeyVectors

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus
    from quoth.encoders.key_encoder import EncodedPassage
    from quoth.retrieval.codes import Codes


@dataclass(frozen=True, slots=True)
class KeyTable:
    """All-token keys of some passages, in order: a segment's, or passages encoded on the fly.

    A key's local row is implicit: passage p owns rows `offsets_P1[p]` to `offsets_P1[p + 1]`.
    `group_N` names each token's text (`boundaries.spelling` or `surface_group`): equal texts have equal groups.
    """

    corpus: Corpus
    passage_rows_P: NDArray[np.int64]
    offsets_P1: NDArray[np.int64]
    ids_N: Column
    start_N: Column
    end_N: Column
    group_N: Column
    flags_N: Column
    vectors: KeyVectors
    live_P: NDArray[np.bool_] | None = None
    codes: Codes | None = None
    passages: Sequence[Passage] = ()

    @classmethod
    def of(
        cls,
        corpus: Corpus,
        passage_rows_P: NDArray[np.int64],
        columns: KeyColumns,
        vectors: KeyVectors,
        codes: Codes | None = None,
        passages: Sequence[Passage] = (),
    ) -> KeyTable:
        """A table of these passages with these columns, none of them deleted; `passages` are they, if in memory."""
        return cls(
            corpus=corpus,
            passage_rows_P=passage_rows_P,
            offsets_P1=columns.offsets_P1,
            ids_N=columns.ids_N,
            start_N=columns.start_N,
            end_N=columns.end_N,
            group_N=columns.group_N,
            flags_N=columns.flags_N,
            vectors=vectors,
            codes=codes,
            passages=passages,
        )

    @property
    def num_keys(self) -> int:
        return int(self.offsets_P1[-1])

    def passage(self, p: int) -> Passage:
        """The passage that owns the rows from `offsets_P1[p]` on; it is read unless it is in memory."""
        return self.passages[p] if self.passages else self.corpus.passage(int(self.passage_rows_P[p]))

    def holding(self, passage_rows: Sequence[int]) -> list[int]:
        """The passages, of these, that are in the table."""
        wanted = np.array(passage_rows, np.int64)
        at = np.searchsorted(self.passage_rows_P, wanted).clip(max=len(self.passage_rows_P) - 1)
        held: list[int] = wanted[self.passage_rows_P[at] == wanted].tolist() if len(self.passage_rows_P) else []
        return held

    def take(self, passage_rows: Sequence[int]) -> KeyTable:
        """A table of these passages alone, in ascending order; all must be in this one."""
        at_P = np.searchsorted(self.passage_rows_P, np.sort(np.array(passage_rows, np.int64)))
        offsets_P1 = np.asarray(self.offsets_P1)
        rows_N = ranges(offsets_P1, at_P)
        return replace(
            self,
            passage_rows_P=self.passage_rows_P[at_P],
            offsets_P1=np.cumsum([0, *(offsets_P1[at_P + 1] - offsets_P1[at_P])]),
            ids_N=self.ids_N[rows_N],
            start_N=self.start_N[rows_N],
            end_N=self.end_N[rows_N],
            group_N=self.group_N[rows_N],
            flags_N=self.flags_N[rows_N],
            vectors=self.vectors.take(rows_N),
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
    return KeyTable.of(corpus, rows_P, columns, vectors, passages=passages)


@dataclass(frozen=True, slots=True)
class KeyHits:
    """The local rows of one table among the k nearest to the start and to the end query of a blank, and which
    passages are boosted, if any. If the search was `restricted` to some passages, the table holds these alone."""

    keys: KeyTable
    start_rows: NDArray[np.int64]
    end_rows: NDArray[np.int64]
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
