"""The interface between encoders and key tables: vectors of passages, each with the span of the passage it stands for.

Knows: the interface. Does not know: which spans get a vector, or how it is computed.

NPM's spans are tokens, REALM's is the whole passage, Zero-NeR's are named entities and the title.
Shape suffixes that differ from the project's: T spans of a passage.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from quoth.records import Passage
from quoth.text.boundaries import MAY_END, MAY_START
from quoth.text.tokenizer import TokenizedPassage

Vectors = NDArray[np.floating[Any]]
TextSpan = tuple[str, int, int]
"""A passage's text, and the start and end of the characters that a key stands for."""


@dataclass(frozen=True, slots=True)
class EncodedPassage:
    """A passage's spans (tokens or longer ones) and their vectors [T, D]."""

    tokens: TokenizedPassage
    vectors_TD: NDArray[np.float32]


def span_keys(spans: Sequence[tuple[int, int]]) -> TokenizedPassage:
    """Spans of characters in the form of a tokenized passage, for keys that are not tokens."""
    zeros_T, flags_T = np.zeros(len(spans), np.uint64), np.full(len(spans), MAY_START | MAY_END, np.uint8)
    offsets_T2 = np.array(spans, np.int64).reshape(-1, 2)
    return TokenizedPassage(zeros_T.astype(np.int32), offsets_T2, flags_T, zeros_T, ())


class KeyEncoder(Protocol):
    """Makes keys and queries; their similarity is `scale` times their dot product.

    Equal fingerprints mean equal keys. `keys` says what gets a key: "tokens", "passages" or "entities".
    """

    keys: str
    name: str
    fingerprint: str
    dimensions: int
    scale: float

    def encode(self, passages: Sequence[Passage]) -> list[EncodedPassage]:
        """The keys of each passage, with spans of its text."""
        ...

    def words(self, query: str) -> NDArray[np.float32]:
        """The vectors to search for passages with, given a text: [T, D]. Raises InputError if the text has none."""
        ...

    def queries_at(self, places: Iterable[TextSpan], count: int) -> NDArray[np.float32]:
        """Sample queries like those of users, made from the first suitable places: [Q, D], at most `count`."""
        ...
