"""Ways to search for the passages about an entity, and the papers' sparse baseline.

Knows: systems that search, and the characters of an entity in a text. Does not know: the questions, or what counts as a
right result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from quoth.corpus.bm25 import check_not_empty
from quoth.corpus.word_index import indexed_text
from quoth.errors import InputError
from quoth.records import Hit
from quoth.text.terms import analyse
from quoth_eval.system import Searcher
from quoth_eval.task import Answer, Example, Source, System

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus
    from quoth.model.base import CorpusModel, Mode

Range = tuple[int, int]
Search = Callable[[str, Range | None, int], list[Hit]]
"""Asks a system; takes a text, the characters of its entity (None if unknown), and the number of passages."""


class EntitySearcher(Protocol):
    """A system that accepts the entities of a question: Zero-NeR."""

    def search(self, query: str, k: int, *, entities: Sequence[str | Range] | None = None) -> list[Hit]: ...


def by_text(system: Searcher) -> Search:
    """Asks with the whole text; a model recognises entities itself."""
    return lambda text, entity, k: system.search(text, k)


def by_name(system: Searcher) -> Search:
    """Asks with the entity's name alone, or with the text if the entity is unknown."""
    return lambda text, entity, k: system.search(text[slice(*entity)] if entity else text, k)


def by_entity(model: EntitySearcher) -> Search:
    """Asks with the text and the characters of its entity, if known."""
    return lambda text, entity, k: model.search(text, k, entities=[entity] if entity else None)


def by_vectors(model: CorpusModel, mode: Mode = "dense") -> Search:
    """Asks a model with the whole text, by its vectors (or, if `mode` is hybrid, with BM25), whatever its default."""
    return lambda text, entity, k: model.search(text, k, mode)


def searches(
    search: Search, depth: Callable[[Source], int], entity: Callable[[Source], Range | None]
) -> System[Source]:
    """The `depth` best passages that a search finds for each example, given its `entity`."""

    def answer(examples: Sequence[Example[Source]]) -> list[Answer]:
        return [
            Answer(None, [hit.passage for hit in search(each.text, entity(each.source), depth(each.source))])
            for each in examples
        ]

    return answer


class AnseriniBM25:
    """BM25 with Anserini's k1 and b over the same terms as a corpus's own search, in memory (bm25s).

    Scores are those of `corpus.bm25` without the constant factor k1 + 1.
    """

    def __init__(self, corpora: Sequence[Corpus], k1: float = 0.9, b: float = 0.4) -> None:
        try:
            from bm25s import BM25 as Index
        except ImportError:
            remedy = "pip install '.[eval]' in a clone of Quoth"
            raise InputError(f"BM25 with Anserini's k1 and b needs bm25s; {remedy}") from None
        check_not_empty(corpora)
        self._places = [(corpus, row) for corpus in corpora for row in corpus.live_rows().tolist()]
        vocabulary: dict[str, int] = {}
        passages = (corpus.passage(row) for corpus, row in self._places)
        texts = (indexed_text(passage.title, passage.text) for passage in passages)
        ids = [[vocabulary.setdefault(term, len(vocabulary)) for term in analyse(text)] for text in texts]
        self._index = Index(k1=k1, b=b, method="lucene")
        self._index.index((ids, vocabulary), show_progress=False)

    def search(self, query: str, k: int) -> list[Hit]:
        """The k best passages that contain a term of the query, ties by corpus, then row."""
        terms = analyse(query)
        if not terms:
            return []
        scores_P = self._index.get_scores(terms)
        best = [int(i) for i in np.argsort(-scores_P, kind="stable")[:k] if scores_P[i] > 0]
        return [Hit(self._places[i][0].passage(self._places[i][1]), float(scores_P[i])) for i in best]
