"""The words of a segment: the passages in which a word occurs, how often, and how many words the passages have.

Knows texts, analysed by `analysis`, passages counted from 0, and the one file `words.bin`. Does not know rows,
deletions or scores.

A passage has two fields: its terms, and the single characters of its unspaced runs, which are searched if a query's
term is such a character. The file contains, one after the other:

    uint64 [W]      the hashes of the words, ascending
    int64 [W + 1]   where a word's occurrences begin
    int32 [O]       the passages in which a word occurs, ascending per word
    uint [O]        how often it occurs there, in as many bytes as the largest needs
    int32 [2, P]    the passages' numbers of terms and of characters

Two words count as one if their hashes are equal: among a million words, with a probability of 1 in 30 million.

Shape suffixes that differ from the project's: O occurrences (a word in a passage), Q the words of a query.
"""

from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quoth.arrays import open_arrays, save_arrays
from quoth.text.terms import analyse_with_characters, is_unspaced_character

Numbers = NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True)
class Words:
    """The words of some passages. Immutable; a file is mapped, and only what is needed is read."""

    hashes_W: NDArray[np.uint64]
    first_W1: NDArray[np.int64]
    passages_O: NDArray[np.int32]
    counts_O: Numbers
    lengths_2P: NDArray[np.int32]

    @classmethod
    def open(cls, path: Path) -> "Words":
        """Raises CorruptionError if the file cannot be read."""
        return cls(*open_arrays(path, 5))

    @classmethod
    def of(cls, texts: Iterable[str]) -> "Words":
        """The words of passages with these texts."""
        gathered = WordGatherer()
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
        if not len(self.hashes_W):
            return [slice(0, 0)] * len(hashes_Q)
        # The minimum keeps a hash beyond the last one in range; whether it is there is compared next.
        place_Q = np.minimum(np.searchsorted(self.hashes_W, hashes_Q), len(self.hashes_W) - 1)
        there_Q = (self.hashes_W[place_Q] == hashes_Q).tolist()
        first_Q, last_Q = self.first_W1[place_Q].tolist(), self.first_W1[place_Q + 1].tolist()
        return [slice(*each[:2]) if each[2] else slice(0, 0) for each in zip(first_Q, last_Q, there_Q, strict=True)]


class WordGatherer:
    """Gathers the words of passages, in order: 8 bytes of memory per occurrence, about 40 at the end."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._words = array("I")
        self._counts = array("I")
        self._distinct = array("I")
        self._lengths = array("i")

    def add(self, text: str) -> None:
        """The next passage."""
        terms, characters = analyse_with_characters(text)
        counts = Counter(terms)
        if characters:
            counts = Counter(term for term in terms if not is_unspaced_character(term))
            counts.update(characters)
        numbers = self._numbers
        self._words.extend([numbers.setdefault(word, len(numbers)) for word in counts])
        self._counts.extend(counts.values())
        self._distinct.append(len(counts))
        self._lengths.extend((len(terms), len(characters)))

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
        )


def hashes(words: Iterable[str]) -> NDArray[np.uint64]:
    """The 64 bits by which a word is looked up."""
    digests = (blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest() for word in words)
    return np.array([int.from_bytes(digest) for digest in digests], np.uint64)


def indexed_text(title: str, text: str) -> str:
    """The text by which a passage is searched."""
    return f"{title} {text}"
