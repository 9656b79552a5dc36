"""BM25: the words of passages, and the scores of a query's over segments, and over several corpora as one.

    ln(1 + (N - n_t + 0.5) / (n_t + 0.5)) * (k1 + 1) * f / (f + k1 * (1 - b + b * length / average))

summed over the query's terms t, a repeated one as often as it occurs (Robertson and Zaragoza 2009, eq. 3.15, with
Lucene's idf), in 64 bits. N, n_t and the average length are counted over exactly the passages that are searched, and
add up over several corpora.

A passage has two fields: its terms, and the single characters of its unspaced runs, which are searched if a query's
term is such a character. A file contains them, for passages counted from 0, one after the other:

    uint64 [W]      the hashes of the words, ascending
    int64 [W + 1]   where a word's occurrences begin
    int32 [O]       the passages in which a word occurs, ascending per word
    uint [O]        how often it occurs there, in as many bytes as the largest needs
    int32 [2, P]    the passages' numbers of words and of characters

Two words count as one if their hashes are equal: among a million words, with a probability of 1 in 30 million.
Words that come from different analyzers (`terms`) are searched together, each with the query's terms by its own.

Knows words, which passages are deleted, how several corpora's hits come together. Does not know documents or models.

Shape suffixes that differ from the project's: O occurrences (a word in a passage), X deleted passages of a segment, Q a
query's terms, N hits.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import accumulate, chain
from itertools import count as numbering
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quoth.arrays import Doubles, Rows, open_arrays, save_arrays
from quoth.errors import EmptyCorpusError
from quoth.fields import Count, checked
from quoth.records import Hit, Hits
from quoth.text.terms import LATEST, analyse, analyse_apart, is_unspaced_character

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus

PassageRef = tuple[int, int]
"""A corpus's number and a passage's row in it."""
Ranking = list[tuple[float, PassageRef]]
"""Places with their scores, best first."""
K1, B = 1.2, 0.75
MOST_TITLE = 1000
"""Characters of a title that are indexed: they are with every passage, so that a document needs room in proportion."""
_SLACK = 1e-9
"""Bounds are widened by this share of themselves, which exceeds the rounding of a sum of scores."""
_LOOKUP_COST = 8
"""Looking up a passage among a word's occurrences takes about as long as scoring this many of them."""


@dataclass(frozen=True, slots=True)
class Words:
    """The words of some passages. Immutable; a file is mapped, and only what is needed is read."""

    hashes_W: NDArray[np.uint64]
    first_W1: NDArray[np.int64]
    passages_O: NDArray[np.int32]
    counts_O: NDArray[np.integer[Any]]
    lengths_2P: NDArray[np.int32]
    analyzer: int = LATEST

    @classmethod
    def open(cls, path: Path, analyzer: int = LATEST) -> Words:
        """Raises CorruptionError if the file cannot be read."""
        hashes_W, first_W1, passages_O, counts_O, lengths_2P = open_arrays(path, 5)
        return cls(hashes_W, first_W1, passages_O, counts_O, lengths_2P, analyzer)

    @classmethod
    def of(cls, texts: Iterable[str], analyzer: int = LATEST) -> Words:
        gathered = WordGatherer(analyzer)
        for text in texts:
            gathered.add(text)
        return gathered.words()

    def save(self, path: Path) -> None:
        save_arrays(path, [self.hashes_W, self.first_W1, self.passages_O, self.counts_O, self.lengths_2P])

    @property
    def num_passages(self) -> int:
        return int(self.lengths_2P.shape[1])

    def find(self, hashes_Q: NDArray[np.uint64]) -> list[slice]:
        """Where the occurrences of every word are; an empty slice for a word that does not occur."""
        left_Q, right_Q = (np.searchsorted(self.hashes_W, hashes_Q, side) for side in ("left", "right"))
        return list(map(slice, self.first_W1[left_Q].tolist(), self.first_W1[right_Q].tolist()))


class WordGatherer:
    """Gathers the words of passages, added in order: 8 bytes of memory per occurrence, about 40 at the end."""

    def __init__(self, analyzer: int = LATEST) -> None:
        self._analyzer = analyzer
        self._numbers = defaultdict[str, int](numbering().__next__)
        self._words = array("I")
        self._counts = array("I")
        self._distinct = array("I")
        self._lengths = array("i")

    def add(self, text: str) -> None:
        words, joined, characters = analyse_apart(text, self._analyzer)
        counts = Counter(words)
        if characters:
            counts = Counter(term for term in words if not is_unspaced_character(term))
            counts.update(characters)
        counts.update(joined)
        self._words.extend(map(self._numbers.__getitem__, counts))
        self._counts.extend(counts.values())
        self._distinct.append(len(counts))
        self._lengths.extend((len(words), len(characters)))

    def words(self) -> Words:
        """Everything gathered so far."""
        hashes_W, place_W = np.unique(hashes(self._numbers), return_inverse=True)
        word_O = place_W.astype(np.uint32)[np.asarray(self._words)]
        # Stable, so that a word's passages stay ascending: `bm25` looks passages up among them by bisection.
        order_O = np.argsort(word_O, kind="stable")
        counts_O = np.asarray(self._counts)
        passages_O = np.repeat(np.arange(len(self._distinct), dtype=np.int32), np.asarray(self._distinct))
        per_word_W = np.bincount(word_O, minlength=len(hashes_W))
        return Words(
            hashes_W,
            np.concatenate([np.zeros(1, np.int64), np.cumsum(per_word_W, dtype=np.int64)]),
            passages_O[order_O],
            counts_O[order_O].astype(np.min_scalar_type(int(counts_O.max(initial=0)))),
            np.ascontiguousarray(np.asarray(self._lengths, np.int32).reshape(-1, 2).T),
            self._analyzer,
        )


def hashes(words: Iterable[str]) -> NDArray[np.uint64]:
    """The 64 bits by which a word, or a document's id, is looked up."""
    digests = (blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest() for word in words)
    return np.array([int.from_bytes(digest) for digest in digests], np.uint64)


def indexed_text(title: str, text: str, path: Sequence[str] = ()) -> str:
    """The text by which a passage is searched: its own behind the title and the headings above, or whole words of
    long ones."""
    head = " ".join([title, *path])
    if len(head) > MOST_TITLE:
        head = head[: MOST_TITLE + 1].rpartition(" ")[0] or head[:MOST_TITLE]
    return f"{head} {text}"


@dataclass(frozen=True, slots=True)
class Query:
    """The distinct terms of a query with the number of times that each occurs in it, and their hashes [Q]."""

    times: Counter[str]
    hashes_Q: NDArray[np.uint64]

    text: str
    analyzer: int

    @classmethod
    def of(cls, text: str, analyzer: int = LATEST) -> Query:
        times = Counter(sorted(analyse(text, analyzer)))
        return cls(times, hashes(times), text, analyzer)

    def by(self, analyzer: int) -> Query:
        """The same query by this analyzer."""
        return self if analyzer == self.analyzer else Query.of(self.text, analyzer)


@dataclass(frozen=True, slots=True)
class Statistics:
    """What a query's scores depend on besides the passage: the number of passages searched, their total numbers of
    terms and of single characters, and how many of them contain each of the query's terms.
    """

    num_passages: int
    num_terms: int
    num_characters: int
    holders: Counter[str]

    def __add__(self, other: Statistics) -> Statistics:
        return Statistics(
            self.num_passages + other.num_passages,
            self.num_terms + other.num_terms,
            self.num_characters + other.num_characters,
            self.holders + other.holders,
        )

    def idf(self, term: str) -> float:
        holders = self.holders[term]
        return math.log(1 + (self.num_passages - holders + 0.5) / (holders + 0.5))


@dataclass(frozen=True, slots=True)
class _Term:
    """A term of a query that occurs in some passage."""

    weight: float
    """Its idf times how often it occurs in the query."""
    field: int
    """Which row of `Words.lengths_2P` is its field's."""
    average: float
    hashed: np.uint64

    @property
    def bound(self) -> float:
        """Every passage's score for this term is below this."""
        return self.weight * (K1 + 1)

    def scores(self, counts_O: NDArray[np.integer[Any]], lengths_O: NDArray[np.int32]) -> Doubles:
        """The term's scores in passages of these lengths that contain it this many times: [O]."""
        frequency_O = counts_O.astype(np.float64)
        norm_O = lengths_O * (K1 * B / self.average) + K1 * (1 - B)
        return self.bound * frequency_O / (frequency_O + norm_O)


def _weighted(query: Query, statistics: Statistics) -> list[_Term]:
    """The terms of a query that occur in some passage, the heaviest first."""
    terms: list[_Term] = []
    for (term, number), hashed in zip(query.times.items(), query.hashes_Q, strict=True):
        if statistics.holders[term]:
            field = int(is_unspaced_character(term))
            average = (statistics.num_terms, statistics.num_characters)[field] / statistics.num_passages
            terms.append(_Term(number * statistics.idf(term), field, average, hashed))
    return sorted(terms, key=lambda term: -term.weight)


class LiveWords:
    """The words of a segment's passages without the deleted ones; the passages' rows begin at `first_row`."""

    def __init__(self, words: Words, first_row: int = 0, deleted_X: NDArray[np.int64] | Sequence[int] = ()) -> None:
        self.words = words
        self.first_row = first_row
        self._deleted_X = np.asarray(deleted_X, np.int64)

    @cached_property
    def _live_P(self) -> NDArray[np.bool_]:
        live_P = np.ones(self.words.num_passages, np.bool_)
        live_P[self._deleted_X] = False
        return live_P

    @cached_property
    def _lengths(self) -> tuple[int, int]:
        lengths_2P = self.words.lengths_2P
        terms, characters = (lengths_2P.sum(1, np.int64) - lengths_2P[:, self._deleted_X].sum(1, np.int64)).tolist()
        return terms, characters

    def statistics(self, query: Query) -> Statistics:
        """The statistics of the live passages, for the terms of a query."""
        holders, query = Counter[str](), query.by(self.words.analyzer)
        for term, occurrences in zip(query.times, self.words.find(query.hashes_Q), strict=True):
            passages_O = self.words.passages_O[occurrences]
            if len(self._deleted_X) * _LOOKUP_COST >= len(passages_O):
                holders[term] = int(np.count_nonzero(self._live_P.take(passages_O)))
            else:
                holders[term] = len(passages_O) - int(_look_up(self._deleted_X, passages_O)[0].sum())
        return Statistics(self.words.num_passages - len(self._deleted_X), *self._lengths, holders)

    def best(self, question: Sequence[_Term], k: int, floor: float) -> tuple[Rows, Doubles]:
        """Every live passage that may be among the k best, if those score `floor` or more: rows and scores.

        Terms are added up, the heaviest first. The most that the lighter terms can still add decides which passages may
        reach the k-th best score so far; if these are few, only they are looked up (MaxScore: Turtle and Flood 1995).
        """
        # Safe, because a bound exceeds every score: frequency / (frequency + norm) is below 1. `_SLACK` exceeds what
        # rounding takes from a sum, so that a passage whose score equals the k-th best is never lost: ties rank by row.
        words = self.words
        found = zip(question, words.find(np.array([term.hashed for term in question])), strict=True)
        terms = [(term, occurrences) for term, occurrences in found if occurrences.stop > occurrences.start]
        rests = list(accumulate(term.bound for term, _ in reversed(terms)))[::-1]
        if not terms or rests[0] < floor * (1 - _SLACK):
            return np.empty(0, np.int64), np.empty(0, np.float64)
        scores_P = np.zeros(words.num_passages)
        for (term, at), rest in zip(terms, rests, strict=True):
            passages_O, counts_O = words.passages_O[at], words.counts_O[at]
            reach = floor * (1 - _SLACK) - rest
            # While the lighter terms could lift any passage to the floor, all are candidates.
            candidates_C = np.flatnonzero(scores_P >= reach) if reach > 0 else None
            if candidates_C is not None and len(candidates_C) * _LOOKUP_COST < len(passages_O):
                there_C, at_C = _look_up(candidates_C, passages_O)
                passages_O, counts_O = passages_O[at_C[there_C]], counts_O[at_C[there_C]]
            elif len(self._deleted_X):
                live_L = np.flatnonzero(self._live_P.take(passages_O))
                passages_O, counts_O = passages_O.take(live_L), counts_O.take(live_L)
            scores_P[passages_O] += term.scores(counts_O, words.lengths_2P[term.field, passages_O])
            # Scores only grow: the k-th best of some of them is a floor for the k-th best of all at the end.
            floor = max(floor, _kth_best(scores_P[passages_O], k))
        found_N = np.flatnonzero(scores_P >= floor if floor else scores_P)
        return found_N + self.first_row, scores_P[found_N]


def count(parts: Iterable[LiveWords], query: Query) -> Statistics:
    """The statistics on which a query's scores over these passages depend."""
    return sum((part.statistics(query) for part in parts), Statistics(0, 0, 0, Counter()))


def search(parts: Sequence[LiveWords], query: Query, k: int, statistics: Statistics) -> tuple[Rows, Doubles]:
    """The `k` best live passages for any of the query's terms: rows int64 [N], scores float64 [N], N <= k.

    Best score first, equal scores by row. N = 0 if no passage contains any of the terms.
    """
    question = {each: _weighted(query.by(each), statistics) for each in {part.words.analyzer for part in parts}}
    rows_N, scores_N = np.empty(0, np.int64), np.empty(0, np.float64)
    for part in parts if k > 0 else ():
        floor = float(scores_N[-1]) if len(scores_N) == k else 0.0
        more, theirs = part.best(question[part.words.analyzer], k, floor)
        rows_N, scores_N = _best(np.append(rows_N, more), np.append(scores_N, theirs), k)
    return rows_N, scores_N


def check_not_empty(corpora: Sequence[Corpus]) -> None:
    """Raises EmptyCorpusError if no corpus has a passage."""
    if not any(corpus.num_passages for corpus in corpora):
        paths = ", ".join(str(corpus.path) for corpus in corpora) or "no corpus given"
        first = corpora[0].path if corpora else "DIR"
        if corpora and (condition := corpora[0].condition):
            raise EmptyCorpusError(f"{paths}: no document where {condition}; `quoth info {first}` shows the fields")
        raise EmptyCorpusError(f"{paths}: no passage to search; `quoth add {first} DOCS` adds documents")


def best_places(corpora: Sequence[Corpus], query: str, k: int, exclude: Collection[int] = ()) -> Ranking:
    """BM25's k best live passages over all corpora but the rows `exclude`, ties by corpus, then row.

    Several corpora are searched as one: scores depend on all their passages, and are those of one corpus of them all.
    Raises EmptyCorpusError.
    """
    check_not_empty(corpora)
    asked, words = Query.of(query), [corpus.live_words for corpus in corpora]
    statistics = count(chain.from_iterable(words), asked)
    scored: Ranking = []
    for number, parts in enumerate(words):
        rows, scores = search(parts, asked, k + len(exclude), statistics)
        scored += [(s, (number, r)) for r, s in zip(rows.tolist(), scores.tolist(), strict=True) if r not in exclude]
    return sorted(scored, key=lambda pair: (-pair[0], pair[1]))[:k]


def holders(corpora: Sequence[Corpus], words: Iterable[str]) -> dict[str, int]:
    """The number of live passages with each of these words, or with others of its stem; words in none are left out."""
    terms = {word: analyse(word) for word in words}
    asked = Query.of(" ".join(terms))
    found = count(chain.from_iterable(corpus.live_words for corpus in corpora), asked).holders
    return {word: most for word, its in terms.items() if (most := max(map(found.__getitem__, its), default=0))}


def bm25(corpora: Sequence[Corpus], query: str, k: int) -> Hits:
    """The k best passages by BM25. Raises InputError, EmptyCorpusError."""
    checked("k", k, Count, 10)
    return hits_of(corpora, best_places(corpora, query, k))


def hits_of(corpora: Sequence[Corpus], ranking: Ranking) -> Hits:
    """The passages of a ranking, with the names of their corpora."""
    found = ((score, corpora[number], row) for score, (number, row) in ranking)
    return Hits(Hit(corpus.passage(row), score, corpus=corpus.name) for score, corpus, row in found)


def _best(rows_N: Rows, scores_N: Doubles, k: int) -> tuple[Rows, Doubles]:
    if len(scores_N) > k:
        keep_N = scores_N >= _kth_best(scores_N, k)
        rows_N, scores_N = rows_N[keep_N], scores_N[keep_N]
    order_N = np.lexsort((rows_N, -scores_N))[:k]
    return rows_N[order_N], scores_N[order_N]


def _kth_best(scores_N: Doubles, k: int) -> float:
    return float(np.partition(scores_N, -k)[-k]) if len(scores_N) >= k else 0.0


def _look_up(passages_C: Rows, passages_O: NDArray[np.int32]) -> tuple[NDArray[np.bool_], Rows]:
    """Which of these passages contain a word (which occurs at least once), and where in its list: [C]."""
    at_C = np.minimum(np.searchsorted(passages_O, passages_C), len(passages_O) - 1)
    return passages_O[at_C] == passages_C, at_C
