"""Which parts of a text occur word for word in corpora, and where.

Knows words, foldings and the exact index. Does not know who asks, or how a trace is shown.

A span is a run of words of the text that occurs in a corpus as `find` looks for it, and is contained in no longer one.
If the words from i to before j occur, so do those to before j - 1; so for each first word the last one is found by
doubling steps, and only beyond the end of the span before it, because what ends earlier is contained in that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from quoth.corpus.exact.find import Match, Wanted, checked_text, count_places, live_offsets, matches
from quoth.corpus.exact.indexes import indexes
from quoth.fields import Count, checked
from quoth.text.folding import fold_with_places, words

if TYPE_CHECKING:
    from quoth.corpus.view import CorpusView

MIN_WORDS = 6
MOST_PLACES = 10
MOST_DOCUMENTS = 1000
"""Documents whose coverage is told: those with the highest."""


@dataclass(frozen=True, slots=True)
class TracedSpan:
    """A part of a text, `text[start:end]`, that occurs in a corpus; how often; and its first places."""

    start: int
    end: int
    text: str
    num_places: int
    places: tuple[Match, ...]

    def to_dict(self) -> dict[str, Any]:
        """The span as JSON has it."""
        own = {"start": self.start, "end": self.end, "text": self.text, "num_places": self.num_places}
        return own | {"places": [place.to_dict() for place in self.places]}


@dataclass(frozen=True, slots=True)
class Trace:
    """The spans of a text that occur word for word, the rarest first.

    `coverage` is, for each document by its id, the share of the text's words in spans that occur in it, the highest
    first; of several corpora their names are in front of the ids: "corpus: id". `share` is that of words in any span.
    """

    spans: tuple[TracedSpan, ...]
    coverage: dict[str, float]
    share: float

    def to_dict(self) -> dict[str, Any]:
        """The trace as JSON has it."""
        return {"coverage": self.coverage, "share": self.share, "spans": [span.to_dict() for span in self.spans]}


def trace(corpora: Sequence[CorpusView], text: str, min_words: int = MIN_WORDS) -> Trace:
    """`CorpusView.trace`, in several corpora. Raises as it does."""
    checked_text(text)
    checked("min_words", min_words, Count, MIN_WORDS)
    traced = _Text(corpora, text)
    found = [(_span(traced, first, last), first, last) for first, last in traced.spans(min_words)]
    found.sort(key=lambda each: (each[0].num_places, each[1] - each[2], each[0].start))
    covered = {at for _, first, last in found for at in range(first, last)}
    share = len(covered) / max(len(traced.words), 1)
    coverage = _coverage(traced, [(first, last) for _, first, last in found])
    return Trace(tuple(span for span, _, _ in found), coverage, share)


class _Text:
    """A text that is traced: its words, and what they are looked for in."""

    def __init__(self, corpora: Sequence[CorpusView], text: str) -> None:
        self.text, self.corpora = text, corpora
        self.folded = fold_with_places(text)
        self.words: list[tuple[int, int]] = [(start, end) for start, end in words(self.folded.text).tolist()]
        self.indexes = [(corpus, *each) for corpus in corpora for each in indexes(corpus)]

    @cached_property
    def begins(self) -> list[int]:
        """The words at which a span may begin."""
        starts = {start: number for number, (start, _) in enumerate(self.words)}
        return [starts[start] for start in self.folded.starts()[0].tolist()]

    def wanted(self, first: int, last: int) -> Wanted:
        """The words from `first` to before `last`."""
        return Wanted(self.folded.text[self.words[first][0] : self.words[last - 1][1]], 0, True)

    def spans(self, min_words: int) -> Iterator[tuple[int, int]]:
        """The words of each span, from and to before; in the order of the text."""
        end = 0
        for first in self.begins:
            least = max(first + min_words, end + 1)
            if least <= len(self.words) and self.occurs(first, least):
                end = self._longest(first, least)
                yield first, end

    def _longest(self, first: int, last: int) -> int:
        """The furthest word to before which the words from `first` on occur; to before `last` they do."""
        step, most = 1, len(self.words)
        while last + step <= most and self.occurs(first, last + step):
            last, step = last + step, 2 * step
        high = min(last + step, most + 1)
        while last + 1 < high:
            middle = (last + high) // 2
            last, high = (middle, high) if self.occurs(first, middle) else (last, middle)
        return last

    def occurs(self, first: int, last: int) -> bool:
        wanted = self.wanted(first, last)
        pattern = wanted.pattern
        return any(
            index.occurs(pattern)
            and (not corpus.num_deleted(segment) or len(live_offsets(corpus, segment, index, wanted)))
            for corpus, segment, index in self.indexes
        )


def _span(traced: _Text, first: int, last: int) -> TracedSpan:
    wanted = traced.wanted(first, last)
    start, end = traced.folded.source(traced.words[first][0], traced.words[last - 1][1])
    text = traced.text[start:end]
    num_places = sum(count_places(corpus, wanted) for corpus in traced.corpora)
    places = chain.from_iterable(matches(corpus, wanted, text, MOST_PLACES) for corpus in traced.corpora)
    return TracedSpan(start, end, text, num_places, tuple(islice(places, MOST_PLACES)))


def _coverage(traced: _Text, spans: list[tuple[int, int]]) -> dict[str, float]:
    """The share of the words in spans that occur in a document, by documents."""
    covered: dict[tuple[int, int], int] = {}  # a bit for each word, by index and document
    for first, last in spans:
        wanted, bits = traced.wanted(first, last), (1 << last) - (1 << first)
        for at, (corpus, segment, index) in enumerate(traced.indexes):
            if len(offsets_W := live_offsets(corpus, segment, index, wanted)):
                for number in np.unique(index.documents_of(offsets_W)).tolist():
                    covered[at, number] = covered.get((at, number), 0) | bits
    best = sorted(covered.items(), key=lambda each: -each[1].bit_count())[:MOST_DOCUMENTS]
    shares = {}
    for (at, number), bits in best:
        corpus, segment, _ = traced.indexes[at]
        name = f"{corpus.name}: " if len(traced.corpora) > 1 else ""
        shares[name + segment.id(number)] = bits.bit_count() / len(traced.words)
    return shares
