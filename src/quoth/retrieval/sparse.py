"""BM25 over several corpora as one.

Knows: how their hits come together. Does not know: models.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain
from numbers import Integral
from typing import TYPE_CHECKING

from quoth.corpus.bm25 import count
from quoth.errors import EmptyCorpusError, InputError
from quoth.records import Hit

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus

PassageRef = tuple[int, int]
"""A corpus's number and a passage's row in it."""
Ranking = list[tuple[float, PassageRef]]
"""Places with their scores, best first."""


def check_not_empty(corpora: Sequence[Corpus]) -> None:
    """Raises EmptyCorpusError if no corpus has a passage."""
    if not any(corpus.num_passages for corpus in corpora):
        paths = ", ".join(str(corpus.path) for corpus in corpora) or "no corpus given"
        first = corpora[0].path if corpora else "DIR"
        raise EmptyCorpusError(f"{paths}: no passage to search; `quoth add {first} DOCS` adds documents")


def check_count(k: int) -> None:
    """Raises InputError unless k is a whole number of 1 or more."""
    if not isinstance(k, Integral):
        raise InputError(f"k is {k!r}; it must be a whole number")
    if k < 1:
        raise InputError(f"k is {k}; it must be 1 or more; try k=10")


def best_places(corpora: Sequence[Corpus], query: str, k: int, exclude: Collection[int] = ()) -> Ranking:
    """BM25's k best live passages over all corpora but the rows `exclude`, ties by corpus, then row.

    Several corpora are searched as one: scores depend on all their passages, and are those of one corpus of them all.
    Raises EmptyCorpusError.
    """
    check_not_empty(corpora)
    statistics = count(chain.from_iterable(corpus.live_words for corpus in corpora), query)
    scored: Ranking = []
    for number, corpus in enumerate(corpora):
        rows, scores = corpus.bm25(query, k + len(exclude), statistics)
        kept = [(s, (number, r)) for r, s in zip(rows.tolist(), scores.tolist(), strict=True) if r not in exclude]
        scored.extend(kept)
    return sorted(scored, key=lambda pair: (-pair[0], pair[1]))[:k]


def bm25(corpora: Sequence[Corpus], query: str, k: int) -> list[Hit]:
    """The k best passages by BM25. Raises InputError, EmptyCorpusError."""
    check_count(k)
    return [Hit(corpora[number].passage(row), score) for score, (number, row) in best_places(corpora, query, k)]
