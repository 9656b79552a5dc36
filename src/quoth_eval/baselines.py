"""Baselines: the most frequent phrases of the corpus, or of BM25's best passage, and BM25 with other parameters.

Knows: phrases and how often they occur, terms. Does not know: vectors.

Both baselines of blanks know the kind of the blank, which models do not, and propose only phrases of that kind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from quoth.corpus.bm25 import check_not_empty, indexed_text
from quoth.corpus.corpus import Corpus
from quoth.datasets.blanks import MAX_WORDS, Blank, may_answer, words
from quoth.datasets.judging import normalise
from quoth.errors import InputError
from quoth.records import Hit, Passage
from quoth.text.terms import analyse
from quoth.text.tokenizer import MASK
from quoth_eval.task import HITS

Answers = tuple[str, ...]
System = Callable[[Sequence[Blank]], list[Answers]]
"""Maps blanks to the answers to each, best first."""


class PassageSearch(Protocol):
    """What the baselines need of a corpus."""

    def bm25(self, query: str, k: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]: ...

    def passage(self, row: int) -> Passage: ...

    def passages(self) -> Iterable[Passage]: ...


def most_frequent(texts: Sequence[str], kind: str, top_k: int = HITS) -> Answers:
    """The most frequent phrases of a kind in the texts, of 1 to `MAX_WORDS` words, spelled as they first occur.

    Case and spaces are ignored. Equal counts are ordered by first occurrence, shorter phrases first. A phrase is never
    more frequent than without its last word, so phrases that cannot reach the best `top_k` are not extended.
    """
    words_of = [words(text) for text in texts]
    alive = [(t, i) for t, ranges in enumerate(words_of) for i in range(len(ranges))]
    found: list[tuple[int, int, int, int, str]] = []
    for length in range(1, MAX_WORDS + 1):
        alive = [(t, i) for t, i in alive if i + length <= len(words_of[t])]
        phrases = [texts[t][words_of[t][i][0] : words_of[t][i + length - 1][1]] for t, i in alive]
        keys = [normalise(phrase) for phrase in phrases]
        counts, met = Counter(keys), set[str]()
        for (t, i), key, phrase in zip(alive, keys, phrases, strict=True):
            ends = (texts[t][slice(*words_of[t][at])] for at in (i, i + length - 1))
            if key not in met and may_answer(kind, *ends):
                found.append((-counts[key], t, i, length, phrase))
            met.add(key)
        found = sorted(found)[:top_k]
        least = -found[-1][0] if len(found) == top_k else 0
        alive = [where for where, key in zip(alive, keys, strict=True) if counts[key] >= least]
    return tuple(phrase for *_, phrase in found)


def frequent_phrases(corpus: PassageSearch) -> System:
    """Gives every blank of a kind the same answers: the most frequent phrases of the corpus."""
    texts = [passage.text for passage in corpus.passages()]

    @cache
    def best(kind: str) -> Answers:
        return most_frequent(texts, kind)

    return lambda blanks: [best(blank.kind) for blank in blanks]


def bm25_phrases(corpus: PassageSearch) -> System:
    """Answers with the most frequent phrases of BM25's best passage for the query, other than the blank's own."""

    def answer(blank: Blank) -> Answers:
        rows, _ = corpus.bm25(blank.text.replace(MASK, " "), 2)
        others = [int(row) for row in rows if int(row) != blank.row]
        return most_frequent([corpus.passage(others[0]).text], blank.kind) if others else ()

    return lambda blanks: [answer(blank) for blank in blanks]


class OtherBM25:
    """BM25 with other k1 and b (Anserini's by default) over the same terms as a corpus's own search, by bm25s.

    Scores are those of `corpus.bm25` without the constant factor k1 + 1.
    """

    def __init__(self, corpora: Sequence[Corpus], k1: float = 0.9, b: float = 0.4) -> None:
        try:
            from bm25s import BM25 as Index
        except ImportError:
            remedy = "pip install '.[eval]' in a clone of Quoth"
            raise InputError(f"BM25 with other k1 and b needs bm25s; {remedy}") from None
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
