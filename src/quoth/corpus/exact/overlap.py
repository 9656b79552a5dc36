"""Which documents of two collections share runs of words, and where.

Knows: documents, foldings, hashes of words in a row. Does not know: models, or why it is asked.

A run is compared as folded text: typography and case make no difference, punctuation between its words does. The first
collection is read once, in blocks of words whose hashes are sorted in memory; the second is read once for each block.
A hash only proposes: every run is compared as text.

Shape suffixes: N characters, W words, G runs of n words ("grams") of a document, P pairs of equal grams, R shared runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quoth.arrays import Ints
from quoth.corpus.view import CorpusView
from quoth.errors import InputError
from quoth.fields import Count, checked
from quoth.records import Document
from quoth.text.folding import Folded, fold_with_places
from quoth.text.folding import words as words_of

WORDS = 13
"""Words in a row that count as shared (GPT-3's check of training texts: Brown et al. 2020, appendix C)."""
BLOCK_WORDS = 1 << 23
"""Words of the first collection in memory at once: about 300 MB."""
PAIRS = 1 << 22
"""Pairs of equal grams that are looked at together."""
_SLICE = 1 << 18
"""Words that are hashed together."""
_BASE = 0x9E3779B97F4A7C15
_MIX = np.uint64(0xD6E8FEB86659FD93)
Hashes = NDArray[np.uint64]
Documents = CorpusView | Iterable[Document]


@dataclass(frozen=True, slots=True)
class Place:
    """A range of characters of a document."""

    document_id: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Run:
    """Words in a row that two documents share: as many as there are, and their text in the second document."""

    words: int
    a: Place
    b: Place
    text: str


@dataclass(frozen=True, slots=True)
class Side:
    """A document of a pair: its words, and how many of them are in a run, each counted once."""

    document_id: str
    words: int
    shared: int

    @property
    def share(self) -> float:
        """The share of its words that are in a run."""
        return self.shared / self.words


@dataclass(frozen=True, slots=True)
class Overlap:
    """What two documents share: the longest runs, in the order of the second document. A run that lies inside of a
    longer one in both documents is left out."""

    a: Side
    b: Side
    runs: tuple[Run, ...]

    def to_dict(self) -> dict[str, Any]:
        """The record as JSON has it, with the shares."""
        sides = {name: {**asdict(side), "share": side.share} for name, side in (("a", self.a), ("b", self.b))}
        return asdict(self) | sides


def overlap(a: Documents, b: Documents, words: int = WORDS) -> Iterator[Overlap]:
    """Find the documents of two collections that share runs of words.

    Args:
        a (CorpusView | Iterable[Document]): A corpus, or documents. It is read once; of two, the larger one.
        b (CorpusView | Iterable[Document]): A corpus, or documents that can be read several times: once for every 8
            million words of `a`.
        words (int): The least number of words of a run, 2 or more. In scripts written without spaces every letter is a
            word. Default: 13.

    Returns:
        An iterator of the pairs of documents that share a run, each pair once.

    Raises:
        InputError: `words` below 2, or `b` is an iterator, which can be read only once.

    Example:
        >>> copy = quoth.Document("copy", "", "He said: “Carmen is an opera in four acts.”")
        >>> [pair] = quoth.overlap(corpus, [copy], words=5)
        >>> pair.a.document_id, pair.b.shared, pair.runs[0].text
        ('carmen', 7, 'Carmen is an opera in four acts')
    """
    if checked("words", words, Count, WORDS) < 2:
        raise InputError(f"words is {words}; it must be 2 or more")
    if isinstance(b, Iterator):
        raise InputError("b is an iterator, which can be read only once; give a corpus or a list of documents")
    return _overlaps(a, b, words)


def _overlaps(a: Documents, b: Documents, size: int) -> Iterator[Overlap]:
    for block in _blocks(_documents(a), size):
        for document in _documents(b):
            yield from block.shared_with(document)


def _documents(given: Documents) -> Iterator[Document]:
    return given.documents() if isinstance(given, CorpusView) else iter(given)


@dataclass(frozen=True, slots=True)
class _Text:
    """A folded document, and where its words begin and end."""

    document_id: str
    folded: Folded
    start_W: Ints
    end_W: Ints

    @classmethod
    def of(cls, document: Document) -> _Text:
        folded = fold_with_places(document.text)
        start_W, end_W = words_of(folded.text).T
        small = np.int32 if len(folded.text) < 1 << 31 else np.int64
        return cls(document.id, folded, start_W.astype(small), end_W.astype(small))

    def words(self, first: int, last: int) -> str:
        """The folded text of the words from `first` to before `last`."""
        return self.folded.text[self.start_W[first] : self.end_W[last - 1]]

    def place(self, first: int, last: int) -> Place:
        """Where these words are in the document."""
        return Place(self.document_id, *self.folded.source(int(self.start_W[first]), int(self.end_W[last - 1])))

    def grams(self, size: int) -> Hashes:
        """The hash of every `size` words in a row: uint64 [G]."""
        count = len(self.start_W) - size + 1
        parts = [self._hashed(at, min(at + _SLICE, count), size) for at in range(0, count, _SLICE)]
        return np.concatenate([np.zeros(0, np.uint64), *parts])

    def _hashed(self, first: int, last: int, size: int) -> Hashes:
        """Σ c_i · B^i over the characters of a gram, divided by B^(where it begins), in the integers modulo 2^64:
        differences of one running sum, as B is odd and so has an inverse."""
        begin = int(self.start_W[first])
        part = self.folded.text[begin : self.end_W[last + size - 2]]
        codes_N = np.frombuffer(part.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.uint64) + np.uint64(1)
        codes_N *= _MIX
        codes_N ^= codes_N >> np.uint64(32)
        length = 1 << len(part).bit_length()
        sums_N = np.append(np.uint64(0), np.cumsum(codes_N * _powers(_BASE, length)[: len(part)]))
        start_G, end_G = self.start_W[first:last] - begin, self.end_W[first + size - 1 : last + size - 1] - begin
        hashed: Hashes = (sums_N[end_G] - sums_N[start_G]) * _powers(pow(_BASE, -1, 1 << 64), length)[start_G]
        return hashed


@lru_cache(maxsize=4)
def _powers(base: int, count: int) -> Hashes:
    """1, B, B², … modulo 2^64."""
    powers_N = np.full(count, base, np.uint64)
    powers_N[0] = 1
    return np.multiply.accumulate(powers_N)


def _blocks(documents: Iterable[Document], size: int) -> Iterator[_Block]:
    texts, count = list[_Text](), 0
    for text in map(_Text.of, documents):
        texts.append(text)
        count += len(text.start_W)
        if count >= BLOCK_WORDS:
            yield _Block(texts, size)
            texts, count = [], 0
    if texts:
        yield _Block(texts, size)


class _Block:
    """Documents with the sorted hashes of their grams. Words are numbered through all documents."""

    def __init__(self, texts: Sequence[_Text], size: int) -> None:
        self._texts, self._size = texts, size
        self._firsts = np.cumsum([0, *(len(text.start_W) for text in texts)])
        hashes = [text.grams(size) for text in texts]
        numbers = [first + np.arange(len(each)) for first, each in zip(self._firsts, hashes, strict=False)]
        hash_G, number_G = np.concatenate(hashes), np.concatenate(numbers)
        order_G = np.argsort(hash_G, kind="stable")
        self._hash_G, self._number_G = hash_G[order_G], number_G[order_G]

    def shared_with(self, document: Document) -> Iterator[Overlap]:
        """What each of the documents shares with another."""
        other = _Text.of(document)
        found_R3 = self._found(other.grams(self._size))
        texts_R = np.searchsorted(self._firsts, found_R3[:, 0], "right") - 1
        cuts = np.flatnonzero(np.diff(texts_R, prepend=-1, append=-1)).tolist()
        for first, last in pairwise(cuts):
            number = int(texts_R[first])
            text = self._texts[number]
            ranges_R3 = found_R3[first:last] - [self._firsts[number], 0, 0]
            sound = [each for run in ranges_R3.tolist() for each in _confirmed(text, other, run, self._size)]
            if sound:
                yield _told(text, other, np.array(sound), document.text)

    def _found(self, hash_G: Hashes) -> Ints:
        """The longest runs of equal hashes, in the order of the documents here: the first word of each here, its first
        word there, and how many words: [R, 3]."""
        order_G = np.argsort(hash_G)  # sorted ones are found in half the time
        low_G = np.searchsorted(self._hash_G, hash_G[order_G])
        high_G = np.searchsorted(self._hash_G, hash_G[order_G], "right")
        has_G = low_G < high_G
        known_K, low_K, count_K = order_G[has_G], low_G[has_G], (high_G - low_G)[has_G]
        ends_K = np.cumsum(count_K)
        runs = [np.zeros((0, 3), np.int64)]
        at = 0
        while at < len(known_K):
            before = int(ends_K[at] - count_K[at])
            stop = max(at + 1, int(np.searchsorted(ends_K, before + PAIRS, "right")))
            there_P = np.repeat(known_K[at:stop], count_K[at:stop])
            within_P = np.arange(before, int(ends_K[stop - 1])) - np.repeat(
                (ends_K - count_K)[at:stop], count_K[at:stop]
            )
            here_P = self._number_G[np.repeat(low_K[at:stop], count_K[at:stop]) + within_P]
            runs.append(_joined(np.stack([here_P - there_P, there_P, np.ones(len(there_P), np.int64)], axis=1)))
            at = stop
        shift_R, there_R, grams_R = _joined(np.concatenate(runs)).T
        found_R3 = np.stack([shift_R + there_R, there_R, grams_R + self._size - 1], axis=1)
        return found_R3[np.lexsort((there_R, found_R3[:, 0]))]


def _joined(rows_P3: Ints) -> Ints:
    """Runs (how far the first word here is from the one there; the first word there; how many grams), those joined
    that continue one another."""
    rows_P3 = rows_P3[np.lexsort((rows_P3[:, 1], rows_P3[:, 0]))]
    shift_P, first_P, grams_P = rows_P3.T
    continues_P = (shift_P[1:] == shift_P[:-1]) & (first_P[1:] == first_P[:-1] + grams_P[:-1])
    begins_R = np.flatnonzero(np.append(True, ~continues_P)[: len(rows_P3)])
    joined_R3 = rows_P3[begins_R]
    if len(begins_R):
        joined_R3[:, 2] = np.add.reduceat(grams_P, begins_R)
    return joined_R3


def _confirmed(a: _Text, b: _Text, run: Sequence[int], size: int) -> Iterator[tuple[int, int, int]]:
    """A run of equal hashes if its texts are equal; if a hash was equal by chance, the runs that are."""
    first_a, first_b, words = run
    if a.words(first_a, first_a + words) == b.words(first_b, first_b + words):
        yield first_a, first_b, words
        return
    grams = 0
    for at in range(words - size + 2):
        begin_a, begin_b = first_a + at, first_b + at
        if at <= words - size and a.words(begin_a, begin_a + size) == b.words(begin_b, begin_b + size):
            grams += 1
        elif grams:
            yield begin_a - grams, begin_b - grams, grams + size - 1
            grams = 0


def _told(a: _Text, b: _Text, runs_R3: Ints, text: str) -> Overlap:
    """The pair, in the order of the second document, whose text is given."""
    runs_R3 = runs_R3[np.lexsort((runs_R3[:, 0], runs_R3[:, 1]))]
    runs = []
    for first_a, first_b, words in _outer(runs_R3).tolist():
        place = b.place(first_b, first_b + words)
        shown = text[place.start : place.end]
        runs.append(Run(words, a.place(first_a, first_a + words), place, shown))
    side_a, side_b = (
        Side(each.document_id, len(each.start_W), _covered(runs_R3[:, [at, 2]])) for at, each in enumerate((a, b))
    )
    return Overlap(side_a, side_b, tuple(runs))


def _outer(runs_R3: Ints) -> Ints:
    """The runs that do not lie inside of another one in both documents."""
    first_R2, end_R2 = runs_R3[:, :2], runs_R3[:, :2] + runs_R3[:, 2:]
    if (first_R2[1:, 1] >= end_R2[:-1, 1]).all():
        return runs_R3
    others = zip(first_R2, end_R2, strict=True)
    alone_R = [((first_R2 <= first_2) & (end_R2 >= end_2)).all(axis=1).sum() == 1 for first_2, end_2 in others]
    return runs_R3[alone_R]


def _covered(ranges_R2: Ints) -> int:
    """How many words are in ranges (the first, and how many), each counted once."""
    first_R, count_R = ranges_R2[np.argsort(ranges_R2[:, 0], kind="stable")].T
    end_R = np.maximum.accumulate(first_R + count_R)
    return int((end_R - np.maximum(first_R, np.append(0, end_R[:-1]))).clip(0).sum())
