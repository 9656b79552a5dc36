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

from quoth.corpus.exact.find import Match, Wanted, checked_text, live_offsets, places_at, shown
from quoth.corpus.exact.indexes import indexes
from quoth.corpus.exact.suffixes import Offsets
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
    spans: list[tuple[int, int, TracedSpan]] = []
    by_document: dict[tuple[int, int], int] = {}  # by index and document, a bit for each word that is covered
    covered = 0
    for first, last in traced.spans(min_words):
        offsets = traced.offsets(first, last)
        bits = (1 << last) - (1 << first)
        covered |= bits
        for at, offsets_W in offsets.items():
            for number in np.unique(traced.indexes[at][2].documents_of(offsets_W)).tolist():
                by_document[at, number] = by_document.get((at, number), 0) | bits
        span = traced.span(first, last, offsets)
        spans.append((span.num_places, first - last, span))
    spans.sort(key=lambda each: each[:2])
    share = covered.bit_count() / max(len(traced.words), 1)
    return Trace(tuple(span for _, _, span in spans), traced.coverage(by_document), share)


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
        """Whether the words from `first` to before `last` occur."""
        wanted = self.wanted(first, last)
        pattern = wanted.pattern
        return any(
            index.occurs(pattern)
            and (not corpus.num_deleted(segment) or len(live_offsets(corpus, segment, index, wanted)) > 0)
            for corpus, segment, index in self.indexes
        )

    def offsets(self, first: int, last: int) -> dict[int, Offsets]:
        """Where the words from `first` to before `last` occur, by index."""
        wanted = self.wanted(first, last)
        found = {at: live_offsets(*each, wanted) for at, each in enumerate(self.indexes)}
        return {at: offsets_W for at, offsets_W in found.items() if len(offsets_W)}

    def span(self, first: int, last: int, offsets: dict[int, Offsets]) -> TracedSpan:
        """The words from `first` to before `last`, which occur there."""
        wanted = self.wanted(first, last)
        start, end = self.folded.source(self.words[first][0], self.words[last - 1][1])
        text = self.text[start:end]
        places = chain.from_iterable(self._matches(at, few, wanted, text) for at, few in offsets.items())
        num_places = sum(map(len, offsets.values()))
        return TracedSpan(start, end, text, num_places, tuple(islice(places, MOST_PLACES)))

    def _matches(self, at: int, offsets_W: Offsets, wanted: Wanted, text: str) -> Iterator[Match]:
        corpus, segment, index = self.indexes[at]
        return shown(corpus, places_at(segment, index, offsets_W[:MOST_PLACES], wanted), text)

    def coverage(self, by_document: dict[tuple[int, int], int]) -> dict[str, float]:
        """The shares of the words whose bits are set, the highest first."""
        best = sorted(by_document.items(), key=lambda each: -each[1].bit_count())[:MOST_DOCUMENTS]
        shares = {}
        for (at, number), bits in best:
            corpus, segment, _ = self.indexes[at]
            name = f"{corpus.name}: " if len(self.corpora) > 1 else ""
            shares[name + segment.id(number)] = bits.bit_count() / len(self.words)
        return shares
