"""Where a query looks: inside BM25's passages, or at every token of embedded corpora.

Knows: corpora, key tables, encoding passages on the fly with a bounded cache, ways to find passages.
Does not know: phrases and answers.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from quoth.corpus.bm25 import PassageRef, Ranking, check_not_empty
from quoth.encoders.keys import EncodedPassage, KeyEncoder
from quoth.index.key_table import KeyHits, KeyTable, in_memory, passage_of
from quoth.index.search import num_live, search_tables
from quoth.index.tables import KeyTables
from quoth.index.vectors import Neighbours
from quoth.records import Passage
from quoth.text.tokenizer import CACHED_PASSAGES
from quoth.timing import step

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus


@dataclass(frozen=True, slots=True, eq=False)
class KeyAt:
    """A key that is near to a query: its similarity, its table and its row there."""

    similarity: float
    keys: KeyTable
    row: int

    @property
    def start(self) -> int:
        """Where the key's text begins in its document."""
        return int(self.keys.start_N[self.row])

    @property
    def end(self) -> int:
        """Where the key's text ends."""
        return int(self.keys.end_N[self.row])


def _passage(corpora: Sequence[Corpus], place: PassageRef) -> Passage:
    number, row = place
    return corpora[number].passage(row)


class Retriever:
    """Searches several corpora as one; if `only` is given, every token of those segments alone."""

    def __init__(self, corpora: Sequence[Corpus], encoder: KeyEncoder, only: Collection[str] | None = None) -> None:
        self.corpora, self.encoder = list(corpora), encoder
        self.tables = [KeyTables(corpus, encoder, only) for corpus in self.corpora]
        self._cache: OrderedDict[PassageRef, EncodedPassage] = OrderedDict()
        self._read = lru_cache(CACHED_PASSAGES)(partial(_passage, self.corpora))
        self._lock = threading.Lock()

    def key_tables(self) -> list[KeyTable]:
        """The tables of every segment; passages added since the last embedding are encoded now, if they are few.

        Raises InputError or EncoderMismatchError if vectors are missing.
        """
        check_not_empty(self.corpora)
        found: list[KeyTable] = []
        for number, tables in enumerate(self.tables):
            stored, late = tables.open()
            found += stored
            if late:
                places = [(number, row) for row in late]
                found.append(self._fresh(number, places, self._encoded(places)))
        return found

    def boost(self, hits: Sequence[KeyHits], places: Collection[PassageRef]) -> list[KeyHits]:
        """The same hits, together with the tokens of these passages, which are boosted."""
        return [each.boosting([row for n, row in places if self.corpora[n] is each.keys.corpus]) for each in hits]

    def gather(self, groups: Sequence[Collection[PassageRef]]) -> list[list[KeyTable]]:
        """For each group of places their tables, by corpus and row, stored passages before fresh ones.

        Stored vectors are read; passages without are encoded now, all groups' together, unless the cache holds them.
        """
        stored: list[list[tuple[list[KeyTable], list[PassageRef]]]] = []
        for group in groups:
            stored.append([])
            for number, tables in enumerate(self.tables):
                mine = sorted(place for place in group if place[0] == number)
                found, held = tables.stored([row for _, row in mine])
                stored[-1].append((found, [place for place in mine if place[1] not in held]))
        encoded = self._encoded({place for parts in stored for _, fresh in parts for place in fresh})
        return [
            [
                keys
                for number, (found, fresh) in enumerate(parts)
                for keys in (*found, *([self._fresh(number, fresh, encoded)] if fresh else []))
            ]
            for parts in stored
        ]

    def _fresh(self, number: int, places: Sequence[PassageRef], encoded: dict[PassageRef, EncodedPassage]) -> KeyTable:
        """The tokens of passages of one corpus, encoded on the fly."""
        passages, keys = [self.passage(place) for place in places], [encoded[place] for place in places]
        return in_memory(self.corpora[number], passages, keys, self.encoder.scale)

    def _encoded(self, places: Collection[PassageRef]) -> dict[PassageRef, EncodedPassage]:
        with self._lock:
            found = {place: self._cache[place] for place in places if place in self._cache}
            for place in found:
                self._cache.move_to_end(place)
        fresh = sorted(place for place in places if place not in found)
        if not fresh:
            return found
        # The lock is not held while passages are encoded: two threads may encode the same one, which costs time and
        # gives the same vectors.
        passages = [self.passage(place) for place in fresh]
        with step("encode"):
            encoded = dict(zip(fresh, self.encoder.encode(passages), strict=True))
        with self._lock:
            self._cache.update(encoded)
            while len(self._cache) > CACHED_PASSAGES:
                self._cache.popitem(last=False)
        return found | encoded

    def passage(self, place: PassageRef) -> Passage:
        """The passage at a place; it is read unless it was read lately."""
        return self._read(place)

    def late_interaction(self, query: str, k: int) -> Ranking:
        """The k best passages by late interaction: Σ over the query's tokens of the largest similarity in the
        passage (MaxSim, Khattab and Zaharia 2020), over every stored token."""
        q_TD = self.encoder.words(query)
        found: Ranking = []
        for keys in self.key_tables():
            number = self.corpora.index(keys.corpus)
            score_P = _max_sim(keys, q_TD)
            for p in np.argsort(-score_P, kind="stable")[:k]:
                if score_P[p] > -np.inf:
                    found.append((float(score_P[p]), (number, int(keys.passage_rows_P[p]))))
        return sorted(found, key=lambda pair: (-pair[0], pair[1]))[:k]

    def nearest_passages(self, q_QD: NDArray[np.float32], k: int, exclude: Sequence[Collection[int]]) -> list[Ranking]:
        """For each query the passages of `nearest_keys`, with their largest similarity."""
        found = self.nearest_keys(q_QD, k, exclude)
        return [[(key.similarity, place) for place, key in each.items()] for each in found]

    def nearest_keys(
        self, q_QD: NDArray[np.float32], k: int, exclude: Sequence[Collection[int]]
    ) -> list[dict[PassageRef, KeyAt]]:
        """For each query the k distinct passages that hold the nearest keys, with the nearest key of each.

        Largest similarity first, ties by corpus, then row; `exclude[q]` are rows that query q never sees. The search
        goes deeper until there are enough passages.
        """
        tables = self.key_tables()
        numbers = [self.corpora.index(keys.corpus) for keys in tables]
        total = sum(map(num_live, tables))
        count = k + max(map(len, exclude), default=0)
        # A passage may hold many of the nearest keys, and how many is not known beforehand. Doubling searches at most
        # twice as deep as needed, and ends at the number of live keys: a part may have fewer than k passages.
        while True:
            found = search_tables(tables, q_QD, count)
            best: list[dict[PassageRef, KeyAt]] = []
            for q, hidden in enumerate(exclude):
                nearest = _best_of_each(zip(tables, numbers, (each[q] for each in found), strict=True), count)
                seen = ((place, key) for place, key in nearest.items() if place[1] not in hidden)
                best.append(dict(islice(seen, k)))
            if count >= total or all(len(each) == k for each in best):
                return best
            count = min(2 * count, total)

    def keys_in(self, places: Collection[PassageRef], q_QD: NDArray[np.float32]) -> dict[PassageRef, list[KeyAt]]:
        """For each of these passages its nearest key to each query; a passage without keys is left out."""
        found: dict[PassageRef, list[KeyAt]] = {}
        for keys in self.gather([places])[0]:
            number = self.corpora.index(keys.corpus)
            sims_QN = keys.vectors.similarities(q_QD)
            for row, first, last in zip(keys.passage_rows_P, keys.offsets_P1, keys.offsets_P1[1:], strict=False):
                if first < last:
                    best_Q = first + sims_QN[:, first:last].argmax(axis=1)
                    found[(number, int(row))] = [
                        KeyAt(float(sims_N[n]), keys, int(n)) for n, sims_N in zip(best_Q, sims_QN, strict=True)
                    ]
        return found


def _best_of_each(found: Iterable[tuple[KeyTable, int, Neighbours]], count: int) -> dict[PassageRef, KeyAt]:
    """The nearest key in each passage that holds one of the `count` nearest keys of all tables, nearest first."""
    nearest = [
        ((number, int(keys.passage_rows_P[passage_of(keys.offsets_P1, row)])), KeyAt(sim, keys, row))
        for keys, number, near in found
        for row, sim in zip(near.rows_K.tolist(), near.sims_K.tolist(), strict=True)
    ]
    best: dict[PassageRef, KeyAt] = {}
    for place, key in sorted(nearest, key=lambda pair: (-pair[1].similarity, pair[0]))[:count]:
        best.setdefault(place, key)
    return best


def _max_sim(keys: KeyTable, q_TD: NDArray[np.float32]) -> NDArray[np.float64]:
    """Σ_t max over a passage's tokens of sim(q_t, c); −inf for deleted and empty passages: [P]."""
    score_P = np.full(len(keys.passage_rows_P), -np.inf)
    filled_P = np.diff(keys.offsets_P1) > 0
    starts = np.asarray(keys.offsets_P1[:-1])[filled_P]
    if len(starts):
        best = np.zeros(len(starts))
        for q_D in q_TD:
            best += np.maximum.reduceat(keys.vectors.similarities(q_D[None])[0], starts)
        score_P[filled_P] = best
    if keys.live_P is not None:
        score_P[~keys.live_P] = -np.inf
    return score_P
