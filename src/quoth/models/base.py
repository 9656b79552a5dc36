"""What models have in common: corpora to search and to embed; one text in, one list out, many in, a list of lists.

Knows how arguments are spread over texts. Does not know any model.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import reduce
from typing import Literal, TypeVar

from quoth.corpus.corpus import Corpus
from quoth.errors import InputError
from quoth.records import Hit
from quoth.retrieval.retriever import Retriever
from quoth.retrieval.tables import Cost, Shortfall

Texts = str | Sequence[str]
Exclude = Collection[int] | Sequence[Collection[int]]
Corpora = Corpus | Sequence[Corpus] | None
Mode = Literal["bm25", "dense", "hybrid"]
_Found = TypeVar("_Found")


class CorpusModel:
    """A model over corpora, whose vectors it stores and searches."""

    def __init__(self, retriever: Retriever) -> None:
        self._retriever = retriever

    def search(self, query: str, k: int = 10, mode: Mode = "bm25") -> list[Hit]:
        """The k best passages. Raises InputError on another mode or k, or when vectors are missing for `dense`."""
        ways: dict[str, Callable[[str, int], list[Hit]]] = {
            "bm25": self._retriever.bm25,
            "dense": self._retriever.dense,
            "hybrid": self._retriever.hybrid,
        }
        if mode not in ways:
            raise InputError(f"mode {mode!r}; allowed are {', '.join(ways)}")
        if k < 1:
            raise InputError(f"k is {k}; allowed is 1 or more passages")
        return ways[mode](query, k)

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


def check_questions(questions: Sequence[str]) -> None:
    """Raises InputError where one is empty."""
    if not all(question.strip() for question in questions):
        raise InputError("the question is empty; ask one, such as 'Who composed Carmen?'")
