"""A shard: some segments of a corpus, searched, expanded and scored where their vectors are.

Knows: one blank at a time and its own segments' candidates; of the others' it needs only sums. Does not know: other
shards, or how it is reached.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from quoth.answers.equations import Sums
from quoth.answers.evidence import Quoter, Quotes
from quoth.answers.options import ResolvedOptions
from quoth.answers.ranking import Groups, Occurrences, Scored, group_equal, group_score, places_of
from quoth.arrays import Doubles, Rows
from quoth.encoders.tokens import TokenEncoder
from quoth.errors import EncoderMismatchError, InputError, QuothError
from quoth.index.key_table import KeyHits, KeyTable
from quoth.index.retriever import Retriever
from quoth.index.search import search_tables
from quoth.index.vectors import Neighbours, joined
from quoth.npm.phrases import ScoredPhrases, ScoredTokens

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus

REMEMBERED = 16
"""A shard keeps the work of at most this many questions: each question comes three to five times, then never again."""


@dataclass(frozen=True, slots=True)
class ShardQuery:
    """A blank as every shard is asked about it: start and end query [D] (NPM-single takes only the start's), how many
    neighbours, and passages by row: searched alone (None: every token), boosted, and never seen."""

    start_D: NDArray[np.float32]
    end_D: NDArray[np.float32]
    options: ResolvedOptions
    k: int
    inside: tuple[int, ...] | None = None
    boosted: tuple[int, ...] = ()
    hidden: frozenset[int] = frozenset()
    id: str = field(default_factory=lambda: uuid4().hex)


Layout = tuple[tuple[int, int], ...]
"""A shard's tables: per table, its first passage and number of tokens. Rows mean nothing without it."""


class TablesChangedError(QuothError):
    """A shard's tables are not those its rows refer to: somebody has embedded in the meantime."""


@dataclass(frozen=True, slots=True)
class Nearest:
    """A shard's k nearest tokens to the start and to the end query, by rows of all its tables."""

    starts: Neighbours
    ends: Neighbours
    layout: Layout


@dataclass(frozen=True, slots=True)
class Taken:
    """Which of a shard's tokens are among the k nearest overall to the start and to the end query, and the sums over
    all shards as far as they are known."""

    start_rows: Rows
    end_rows: Rows
    layout: Layout
    sums: Sums = field(default_factory=Sums)


@dataclass(frozen=True, slots=True)
class Partial:
    """A shard's phrases by their first occurrence: names [G], and logs of their scores in this shard [G]."""

    key_G: NDArray[np.uint64]
    log_score_G: Doubles


class Shard:
    """Answers questions about some segments. If the work on a question was forgotten it is done again, so that any
    replica can take any call.

    Raises InputError or EncoderMismatchError if vectors are missing, TablesChangedError.
    """

    def __init__(self, corpus: Corpus, encoder: TokenEncoder, segments: Collection[str]) -> None:
        self._corpus, self._segments = corpus, frozenset(segments)
        self._retriever = Retriever([corpus], encoder, self._segments)
        self._single = encoder.config.num_masks == 1
        self._known: OrderedDict[str, _Work] = OrderedDict()
        self._lock = threading.Lock()

    def has_vectors(self) -> bool:
        """Whether every token can be searched: all have vectors, but for passages that are few enough to encode."""
        try:
            self._retriever.key_tables()
        except (InputError, EncoderMismatchError):
            return False
        return True

    def nearest(self, question: ShardQuery) -> Nearest:
        """The k nearest of this shard's tokens to the start and to the end query."""
        work = self._work(question)
        q_2D = np.stack([question.start_D, question.end_D])
        found = search_tables(work.tables, q_2D, question.k)
        starts, ends = ([both[which] for both in found] for which in (0, 1))
        nearest_start, nearest_end = (_shifted(each, work.bases, question.k) for each in (starts, ends))
        return Nearest(nearest_start, nearest_end, work.layout)

    def sums(self, question: ShardQuery, taken: Taken) -> Sums:
        """This shard's part of the sums."""
        return self._work(question).scored(taken).sums(taken.sums)

    def groups(self, question: ShardQuery, taken: Taken) -> Partial:
        """This shard's phrases."""
        return self._work(question).groups(taken)

    def quote(self, question: ShardQuery, taken: Taken, names: Sequence[int]) -> list[Quotes]:
        """Where these phrases occur here, with shares of the phrase's score here. This is a question's last call."""
        found = self._work(question).quote(taken, names)
        with self._lock:
            self._known.pop(question.id, None)
        return found

    def _work(self, question: ShardQuery) -> _Work:
        with self._lock:
            known = self._known.get(question.id)
        if known:
            return known
        fresh = _Work(question, self._tables(question), self._single)
        with self._lock:
            work = self._known.setdefault(question.id, fresh)
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
            return work

    def _tables(self, question: ShardQuery) -> list[KeyTable]:
        if question.inside is None:
            return [table.without(question.hidden) for table in self._retriever.key_tables()]
        mine = [row for row in question.inside if self._corpus.segment_of(row).name in self._segments]
        return self._retriever.gather([[(0, row) for row in mine]])[0]


class _Work:
    """The work done so far on one question."""

    def __init__(self, question: ShardQuery, tables: list[KeyTable], single: bool) -> None:
        self.tables, self._question, self._single = tables, question, single
        self._scored: Scored | None = None
        self._groups: tuple[Groups, Occurrences] | None = None
        self._lock = threading.Lock()

    @cached_property
    def bases(self) -> Rows:
        """Where each table's rows begin among the shard's."""
        return np.cumsum([0, *(table.num_keys for table in self.tables)])

    @cached_property
    def layout(self) -> Layout:
        """The layout that rows refer to."""
        return tuple((int(table.passage_rows_P[0]), table.num_keys) for table in self.tables)

    def scored(self, taken: Taken) -> Scored:
        """The candidates with their similarities."""
        if taken.layout != self.layout:
            raise TablesChangedError("the shard's tables have changed; ask again")
        with self._lock:
            if self._scored is None:
                question, hits = self._question, self._hits(taken)
                if self._single:
                    self._scored = ScoredTokens(hits, question.start_D, question.options)
                else:
                    self._scored = ScoredPhrases(hits, question.start_D, question.end_D, question.options)
            return self._scored

    def _hits(self, taken: Taken) -> list[KeyHits]:
        starts, ends = (self._by_table(rows) for rows in (taken.start_rows, taken.end_rows))
        restricted, boosted = self._question.inside is not None, self._question.boosted
        hits = [KeyHits(*each, restricted=restricted) for each in zip(self.tables, starts, ends, strict=True)]
        return [each.boosting(boosted) for each in hits] if boosted else hits

    def _by_table(self, rows: Rows) -> list[Rows]:
        cuts = np.searchsorted(rows, self.bases)
        return [rows[cuts[t] : cuts[t + 1]] - self.bases[t] for t in range(len(self.tables))]

    def groups(self, taken: Taken) -> Partial:
        key_C = self.scored(taken).key_C
        if not len(key_C):
            return Partial(key_C, np.zeros(0))
        groups, found = self._grouped(taken)
        order = np.argsort(np.minimum.reduceat(found.rising_C[groups.order_C], groups.bounds_G1[:-1]))
        scores = group_score(found.log_score_C, groups)
        return Partial(key_C[groups.first_G[order]], scores[order])

    def _grouped(self, taken: Taken) -> tuple[Groups, Occurrences]:
        """The candidates with their scores, equal ones grouped."""
        scored = self.scored(taken)
        with self._lock:
            if self._groups is None:
                self._groups = group_equal(scored.key_C), scored.occurrences(taken.sums)
            return self._groups

    def quote(self, taken: Taken, names: Sequence[int]) -> list[Quotes]:
        key_C = self.scored(taken).key_C
        if not len(key_C):
            return [Quotes()] * len(names)
        groups, found = self._grouped(taken)
        quoter, key_G = Quoter(found), key_C[groups.first_G]
        most = self._question.options.max_evidence
        found_G = [np.flatnonzero(key_G == np.uint64(name)) for name in names]
        return [
            quoter.quotes(places_of(found, groups, int(at[0]), 1.0), most) if len(at) else Quotes() for at in found_G
        ]


def _shifted(found: Sequence[Neighbours], bases: Rows, k: int) -> Neighbours:
    """The k nearest of all tables, by rows of the shard."""
    whole = Neighbours(np.zeros(0, np.int64), np.zeros(0, np.float32))
    for each, base in zip(found, bases.tolist(), strict=False):
        whole = joined(whole, Neighbours(each.rows_K + base, each.sims_K), k)
    return whole
