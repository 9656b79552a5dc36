"""REALM's training examples: texts with a salient span hidden (salient span masking, Guu et al. 2020 §3.4).

Knows: corpora, taggers, which tokens become masks. Does not know: encoders and losses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quoth.corpus.corpus import Corpus
from quoth.errors import InputError
from quoth.ner.tagger import Tagger
from quoth.realm.config import Salience
from quoth.records import Passage, TaggedSpan
from quoth.text.boundaries import MAY_END, MAY_START, boundary_flags
from quoth.text.tokenizer import PairTokenizer

MASKED_SHARE = 0.15
"""The share of the tokens that masking "tokens" hides."""
SPAN_LENGTH = 0.2
MAX_SPAN_TOKENS = 10
"""Random spans as in SpanBERT (Joshi et al. 2020): geometric lengths with this probability, up to this many tokens."""


@dataclass(frozen=True, slots=True)
class Masked:
    """A text as token ids with masks, their positions [M] and the ids they hide [M], the text from the first hidden
    token to the last, the passage it comes from, and the characters of what is shown before and after that text."""

    ids: list[int]
    masks_M: NDArray[np.int64]
    hidden_M: NDArray[np.int64]
    answer: str
    passage: Passage
    before: str = ""
    after: str = ""


class MaskedTexts:
    """Draws examples from a corpus. Each is a run of a passage's tokens, `room` at most.

    Raises InputError if there is no passage to draw from.
    """

    def __init__(
        self, corpus: Corpus, tokenizer: PairTokenizer, room: int, masking: Salience, tagger: Tagger | None = None
    ) -> None:
        self.corpus, self._tokenizer, self._room, self._masking = corpus, tokenizer, room, masking
        self._tagger = tagger
        self._rows_P = corpus.live_rows()
        if not len(self._rows_P):
            raise InputError(f"{corpus.path}: no passage to train on; give documents with text")

    def draw(self, count: int, rng: np.random.Generator, masking: Salience | None = None) -> list[Masked]:
        """At most `count` examples: a passage with nothing to mask gives none. `masking` replaces the usual one."""
        masking = masking or self._masking
        passages = [self.corpus.passage(row) for row in rng.choice(self._rows_P, count).tolist()]
        pieces = self._tokenizer.pieces([passage.text for passage in passages])
        salient: list[list[TaggedSpan]] = [[] for _ in passages]
        if masking == "salient":
            assert self._tagger is not None
            salient = self._tagger.spans([passage.text for passage in passages])
        found: list[Masked] = []
        for passage, (ids, ranges), tagged in zip(passages, pieces, salient, strict=True):
            if masking == "salient":
                window, at_T = self._salient(ranges, tagged, rng)
            else:
                window, at_T = self._random(passage.text, ranges, masking, rng)
            if not len(at_T):
                continue
            shown_T, hidden_M = np.array(ids), np.array(ids)[at_T]
            shown_T[at_T] = self._tokenizer.mask_id
            shown = shown_T[window.start : window.stop].tolist()
            start, end = ranges[at_T[0]][0], ranges[at_T[-1]][1]
            sides = passage.text[ranges[window[0]][0] : start], passage.text[end : ranges[window[-1]][1]]
            found.append(Masked(shown, at_T - window.start, hidden_M, passage.text[start:end], passage, *sides))
        return found

    def _salient(
        self, ranges: Sequence[tuple[int, int]], tagged: Sequence[TaggedSpan], rng: np.random.Generator
    ) -> tuple[range, NDArray[np.int64]]:
        """The tokens to show, around one of the spans; and the tokens of that span, to hide."""
        if not tagged:
            return range(0), np.zeros(0, np.int64)
        # One of them, however many there are: a second hidden name would need passages of its own, and eq. 1 has one z.
        span = tagged[int(rng.integers(len(tagged)))]
        at_T = np.array([t for t, (start, end) in enumerate(ranges) if start < span.end and end > span.start], np.int64)
        at_T = at_T[: self._room]  # a span longer than all that is read
        if not len(at_T):
            return range(0), at_T
        # With the span in the middle, or as near to it as the text allows.
        first = min(max(int(at_T[0] + at_T[-1] + 1 - self._room) // 2, 0), max(len(ranges) - self._room, 0))
        return range(first, min(first + self._room, len(ranges))), at_T

    def _random(
        self, text: str, ranges: Sequence[tuple[int, int]], masking: Salience, rng: np.random.Generator
    ) -> tuple[range, NDArray[np.int64]]:
        """The tokens to show, anywhere in the text, and those of them to hide."""
        first = int(rng.integers(max(len(ranges) - self._room, 0) + 1))
        window = range(first, min(first + self._room, len(ranges)))
        if masking != "tokens":
            return window, _random_span(text, ranges, window, rng, 1 if masking == "word" else MAX_SPAN_TOKENS)
        count = min(max(1, round(MASKED_SHARE * len(window))), len(window))
        return window, np.sort(rng.permutation(np.arange(window.start, window.stop))[:count])


def _random_span(
    text: str, ranges: Sequence[tuple[int, int]], window: range, rng: np.random.Generator, longest: int
) -> NDArray[np.int64]:
    """A run of whole words, `longest` tokens at most or a single word."""
    flags_T = boundary_flags(text, np.array(ranges, np.int64).reshape(-1, 2))[window.start : window.stop]
    starts = np.flatnonzero(flags_T & MAY_START)
    if not len(starts):
        return starts
    first = int(rng.choice(starts))
    last = first + min(int(rng.geometric(SPAN_LENGTH)), longest)
    ends = np.flatnonzero(flags_T[first:] & MAY_END) + first
    if not len(ends):
        return ends
    # The longest run of whole words within the drawn length; the first word itself if it has more pieces than that.
    end = int(ends[ends < last].max(initial=ends[0]))
    return np.arange(window.start + first, window.start + end + 1)
