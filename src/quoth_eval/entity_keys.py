"""One key per passage or all of its keys: does entity search need them all? (Hoshi et al. 2022)

Knows: keys as arrays, how to read a model's stored keys into them, and how to search those. Does not know: questions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from quoth.arrays import Rows
from quoth.corpus.bm25 import indexed_text
from quoth.encoders.keys import Vectors
from quoth.encoders.tokens import unit
from quoth.records import Hit, Passage
from quoth_eval.rarity import TermCounts, count_terms, entity_idf

if TYPE_CHECKING:
    from quoth.zero_ner.model import ZeroNER


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of passages 0 to P − 1, in order: texts and vectors [N, D]; passage p has rows `offsets_P1[p:p + 2]`."""

    texts: tuple[str, ...]
    vectors_ND: Vectors
    offsets_P1: Rows

    def only(self, rows: Rows) -> Keys:
        """The keys at these rows (ascending), for the same passages."""
        texts = tuple(self.texts[row] for row in rows.tolist())
        return Keys(texts, self.vectors_ND[rows], np.searchsorted(rows, self.offsets_P1))


def stored_keys(model: ZeroNER) -> tuple[list[Passage], Keys]:
    """A model's live passages and their stored keys. Raises InputError if vectors are missing."""
    passages: list[Passage] = []
    texts: list[str] = []
    vectors, counts = [], [0]
    for keys in model.tables():
        live_P = np.ones(len(keys.passage_rows_P), np.bool_) if keys.live_P is None else keys.live_P
        whole = keys.take(np.flatnonzero(live_P))
        vectors.append(whole.vectors.similarities(np.eye(model.encoder.dimensions, dtype=np.float32)).T)
        for row, first, last in zip(whole.passage_rows_P, whole.offsets_P1, whole.offsets_P1[1:], strict=False):
            passage = keys.corpus.passage(int(row))
            places = zip(whole.start_N[first:last], whole.end_N[first:last], strict=True)
            texts += [
                passage.text[start - passage.start : end - passage.start] or passage.title for start, end in places
            ]
            passages.append(passage)
            counts.append(int(last - first))
    return passages, Keys(tuple(texts), np.concatenate(vectors), np.cumsum(counts, dtype=np.int64))


def max_pool(q_D: Vectors, vectors_ND: Vectors, offsets_P1: Rows) -> NDArray[np.float64]:
    """Each passage's score, the highest cosine of its keys with the query: [P]; −inf without a key. All vectors have
    length 1. Zero-NeR, §3."""
    cosine_N = vectors_ND @ q_D
    scores_P = np.full(len(offsets_P1) - 1, -np.inf)
    has_keys_P = np.diff(offsets_P1) > 0
    if has_keys_P.any():
        scores_P[has_keys_P] = np.maximum.reduceat(cosine_N, offsets_P1[:-1][has_keys_P])
    return scores_P


def single_key(offsets_P1: Rows, choose: Callable[[int, int], int]) -> Rows:
    """The row of one key per passage that has keys; `choose` gets a passage's first row and the one after its last."""
    ends = zip(offsets_P1[:-1].tolist(), offsets_P1[1:].tolist(), strict=True)
    return np.array([choose(start, end) for start, end in ends if start < end], np.int64)


def at_random(seed: int = 0) -> Callable[[int, int], int]:
    """Chooses a key at random."""
    rng = np.random.default_rng(seed)
    return lambda start, end: int(rng.integers(start, end))


def rarest(texts: Sequence[str], counts: TermCounts) -> Callable[[int, int], int]:
    """Chooses the key whose rarest term has the highest IDF, the first of equals; keys without terms come last."""
    idfs = [counts.idfs(text) for text in texts]
    values_N = np.array([entity_idf(terms) if terms else -np.inf for terms in idfs])
    return lambda start, end: start + int(values_N[start:end].argmax())


def single_key_search(
    model: ZeroNER, keep: str, seed: int = 0
) -> Callable[[str, tuple[int, int] | None, int], list[Hit]]:
    """A search with all keys of each passage ("all"), one at random ("random"), or the rarest ("idf"), for questions
    whose entity is given, ties by passage; nothing is found for others. Raises InputError if vectors are missing."""
    passages, keys = stored_keys(model)
    if keep == "random":
        keys = keys.only(single_key(keys.offsets_P1, at_random(seed)))
    elif keep == "idf":
        counts = count_terms((indexed_text(passage.title, passage.text) for passage in passages), keys.texts)
        keys = keys.only(single_key(keys.offsets_P1, rarest(keys.texts, counts)))
    unit_ND = unit(keys.vectors_ND)

    def search(text: str, entity: tuple[int, int] | None, k: int) -> list[Hit]:
        if entity is None:
            return []
        (q_D,) = unit(model.encoder.queries(text, [entity]))
        scores_P = max_pool(q_D, unit_ND, keys.offsets_P1)
        best = np.argsort(-scores_P, kind="stable")[:k].tolist()
        return [Hit(passages[at], float(scores_P[at])) for at in best if scores_P[at] > -np.inf]

    return search
