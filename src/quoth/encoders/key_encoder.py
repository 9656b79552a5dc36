"""What every model's encoder gives the key tables: vectors of passages, each addressed to a span of it.

Knows: the shape of the agreement. Does not know: which spans, or how a vector comes about.

NPM's spans are tokens; REALM's is the whole passage; Zero-NeR's are named entities and the title.
Shape suffixes: T spans of a passage, Q queries, D dimensions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from quoth.records import Passage
from quoth.tokenizers.boundaries import MAY_END, MAY_START
from quoth.tokenizers.text import TokenizedPassage

Vectors = NDArray[np.floating[Any]]
Place = tuple[str, int, int]
"""A passage's text and the characters of it that a key stands for."""


@dataclass(frozen=True, slots=True)
class EncodedPassage:
    """A passage's spans, tokens or longer ones, and their vectors [T, D]."""

    tokens: TokenizedPassage
    vectors_TD: NDArray[np.float32]


def span_keys(spans: Sequence[tuple[int, int]]) -> TokenizedPassage:
    """Spans of a passage's characters in the place of its tokens."""
    zeros_T, flags_T = np.zeros(len(spans), np.uint64), np.full(len(spans), MAY_START | MAY_END, np.uint8)
    offsets_T2 = np.array(spans, np.int64).reshape(-1, 2)
    return TokenizedPassage(zeros_T.astype(np.int32), offsets_T2, flags_T, zeros_T, ())


def unit(vectors_TD: Vectors) -> Vectors:
    """The vectors at length 1; zeros stay."""
    lengths_T1 = np.linalg.norm(vectors_TD, axis=1, keepdims=True)
    made: Vectors = vectors_TD / np.maximum(lengths_T1, np.float32(1e-12))
    return made


class KeyEncoder(Protocol):
    """Makes keys and queries that are compared by `scale` times their dot product.

    Equal fingerprints stand for equal keys. `keys` says what has one: "tokens", "passages", "entities".
    """

    keys: str
    name: str
    fingerprint: str
    dimensions: int
    scale: float

    def encode(self, passages: Sequence[Passage]) -> list[EncodedPassage]:
        """The keys of each passage, at characters of its text."""
        ...

    def words(self, query: str) -> NDArray[np.float32]:
        """The vectors that a text asks for passages with: [T, D]. Raises InputError on a text that has none."""
        ...

    def queries_at(self, places: Iterable[Place], count: int) -> NDArray[np.float32]:
        """Queries as users ask them, made from the first places that lend themselves to it: [Q, D], of `count`
        places at most."""
        ...
