"""What models have in common: corpora to search and to embed; one text in, one list out, many in, a list of lists.

Knows how arguments are spread over texts. Does not know any model.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import reduce
from typing import ClassVar, Literal, TypeVar

from quoth.corpus.corpus import Corpus
from quoth.errors import InputError
from quoth.records import Hit
from quoth.retrieval.fusion import reciprocal_rank
from quoth.retrieval.retriever import Retriever
from quoth.retrieval.sparse import Ranking
from quoth.retrieval.tables import Cost, Shortfall

Texts = str | Sequence[str]
Exclude = Collection[int] | Sequence[Collection[int]]
Corpora = Corpus | Sequence[Corpus] | None
Mode = Literal["bm25", "dense", "hybrid"]
FUSION_DEPTH = 100
"""How deep each ranking is read that becomes one with others."""
_Found = TypeVar("_Found")


class CorpusModel:
    """A model over corpora, whose vectors it stores and searches. `keys` says what has a vector; equal fingerprints
    stand for equal vectors."""

    keys: ClassVar[str]
    fingerprint: str

    def __init__(self, retriever: Retriever) -> None:
        self._retriever = retriever

    def search(self, query: str, k: int = 10, mode: Mode = "bm25") -> list[Hit]:
        """The k best passages by BM25, by vectors (dense), or by both (hybrid: reciprocal rank fusion).

        Raises InputError on another mode or k, or where vectors are missing.
        """
        ways = {"bm25": self.ranked_by_words, "dense": self.ranking, "hybrid": self._hybrid}
        if mode not in ways:
            raise InputError(f"mode {mode!r}; allowed are {', '.join(ways)}")
        check_count(k)
        return self.hits(ways[mode](query, k))

    def ranked_by_words(self, query: str, k: int) -> Ranking:
        """The k best passages by BM25, with their scores."""
        return self._retriever.ranked_by_words(query, k)

    def hits(self, ranking: Ranking) -> list[Hit]:
        """The passages of a ranking."""
        return self._retriever.hits(ranking)

    def ranking(self, query: str, k: int) -> Ranking:
        """The k best passages by vectors, with their scores."""
        return self._retriever.late_interaction(query, k)

    def _hybrid(self, query: str, k: int) -> Ranking:
        depth = max(k, FUSION_DEPTH)
        return reciprocal_rank([self.ranked_by_words(query, depth), self.ranking(query, depth)])[:k]

    def embed(
        self,
        precision: str = "sq8",
        recall: float | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[Shortfall]:
        """Store a vector for every key (token, or passage) of every corpus, for dense search; goes on where a broken
        run stopped.

        Large segments are searched by compressed codes that find the share `recall` of a query's nearest keys (by
        default 0.97); 1 compares every vector. `precision` is sq8, sq4 (half the bytes, less exact), fp16 or fp32.
        Returns the segments whose codes find fewer than asked for. Raises InputError where vectors of another
        precision are stored, LockedError while another process embeds.
        """
        return [short for tables in self._retriever.tables for short in tables.build(precision, recall, progress)]

    def embed_cost(self, precision: str = "sq8") -> Cost:
        """About what `embed` will take, in passages, keys, bytes, seconds; some passages are encoded to know."""
        costs = [tables.cost(precision) for tables in self._retriever.tables]
        return reduce(Cost.plus, costs, Cost(0, 0, 0, 0, 0.0))


def listed(corpora: Corpora) -> list[Corpus]:
    """None, one or several as a list."""
    return [] if corpora is None else [corpora] if isinstance(corpora, Corpus) else list(corpora)


def of_each(text: Texts, many: Callable[[Sequence[str]], list[_Found]]) -> _Found | list[_Found]:
    """What `many` finds for a text, or for each of several."""
    return many([text])[0] if isinstance(text, str) else many(text)


def for_each(exclude: Exclude, count: int) -> list[Collection[int]]:
    """One collection of rows for each of `count` texts. Raises InputError where there are more or fewer."""
    nested: list[Collection[int]] = [each for each in exclude if isinstance(each, Collection)]
    if not nested:
        return [{int(each) for each in exclude if not isinstance(each, Collection)}] * count
    if not len(exclude) == len(nested) == count:
        raise InputError(f"exclude has {len(nested)} collections for {count} texts; give one for each")
    return nested


def check_count(k: int) -> None:
    """Raises InputError where no passage is asked for."""
    if k < 1:
        raise InputError(f"k is {k}; allowed is 1 or more passages")


def check_questions(questions: Sequence[str]) -> None:
    """Raises InputError where one is empty."""
    if not all(question.strip() for question in questions):
        raise InputError("the question is empty; ask one, such as 'Who composed Carmen?'")
