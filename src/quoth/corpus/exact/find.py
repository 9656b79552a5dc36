"""Where a string occurs in the documents of a corpus, whatever its typography and its case.

Knows documents, foldings and the exact index. Does not know models, or what is asked.

A match begins where a word begins and, if the string ends with a word, ends where one ends; in scripts written without
spaces every letter is a word. A string without a word (an emoji) matches anywhere. Matches may overlap; none crosses
documents.

The index is searched for the string from its first word on; what is before that word is compared in the texts that are
found. A string without a word is looked for in every text.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from quoth.corpus.exact.indexes import indexes
from quoth.corpus.exact.suffixes import Offsets, Pattern, Suffixes, last_cut
from quoth.corpus.segment import Segment
from quoth.errors import CorruptionError, InputError
from quoth.fields import Count, checked
from quoth.records import Evidence, quote_of
from quoth.text.folding import Folded, fold, fold_with_places, is_plain, is_word_end, word_starts
from quoth_sources.source_map import as_json

if TYPE_CHECKING:
    from quoth.corpus.view import CorpusView

Degree = Literal["exact", "typographic", "case"]
"""How a place differs from what was looked for: not at all, in typography, or in case too."""


Place = tuple[Segment, int, int, int]
"""A segment, a document by its number there, and from where to where in its characters."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A folded string, and where its first word begins in it (none: at its end)."""

    text: str
    first: int
    ends_with_word: bool

    @property
    def is_wordless(self) -> bool:
        return self.first == len(self.text)

    @classmethod
    def of(cls, text: str) -> Wanted:
        """Raises InputError if nothing of the text is left."""
        folded = fold(text).strip()
        if not folded:
            raise InputError("the text is empty; give the words that are looked for")
        starts = np.flatnonzero(word_starts(folded)).tolist()
        ends_with_word = folded[-1].isalnum() or not is_word_end(f"{folded}a", len(folded))
        return cls(folded, starts[0] if starts else len(folded), ends_with_word)

    @property
    def pattern(self) -> Pattern:
        """What an index is searched for."""
        return Pattern(self.text[self.first :], self.ends_with_word)


@dataclass(frozen=True, slots=True)
class Match(Evidence):
    """A place where a string occurs: `document.text[start:end]`, and how it differs from what was looked for."""

    degree: Degree = "exact"

    def to_dict(self) -> dict[str, Any]:
        """The place as JSON has it, with its `text`."""
        found = as_json(self)
        del found["score"]
        return {"text": quote_of(self), **found}


def find(corpus: CorpusView, text: str, limit: int | None = None) -> list[Match]:
    """`CorpusView.find`."""
    wanted = Wanted.of(checked_text(text))
    if limit is not None:
        checked("limit", limit, Count, 10)
    return list(islice(matches(corpus, wanted, text, limit), limit))


def count(corpus: CorpusView, text: str) -> int:
    """`CorpusView.count`."""
    wanted = Wanted.of(checked_text(text))
    if wanted.is_wordless:
        return sum(1 for _ in _brute(corpus, wanted))
    return count_places(corpus, wanted)


def count_places(corpus: CorpusView, wanted: Wanted) -> int:
    """The number of matches of a string with a word."""
    pattern, total = wanted.pattern, 0
    for segment, index in indexes(corpus):
        if wanted.first or corpus.num_deleted(segment):
            total += len(live_offsets(corpus, segment, index, wanted))
        else:
            total += index.count(pattern)
    return total


def matches(corpus: CorpusView, wanted: Wanted, text: str, limit: int | None = None) -> Iterator[Match]:
    """The matches of a string, the folding of a text, by row and position: all, or the first so many and some more."""
    if wanted.is_wordless:
        yield from shown(corpus, _brute(corpus, wanted), text)
        return
    for segment, index in indexes(corpus):
        offsets_W = live_offsets(corpus, segment, index, wanted, limit)
        yield from shown(corpus, places_at(segment, index, offsets_W, wanted), text)


def shown(corpus: CorpusView, places: Iterable[Place], text: str) -> Iterator[Match]:
    """These places of a text as matches; those of a document must follow one another."""
    last: Shown | None = None
    for segment, number, start, end in places:
        if last is None or last.segment is not segment or last.number != number:
            last = Shown(corpus, segment, number)
        yield last.match(start, end, text)


def checked_text(text: str) -> str:
    """The text. Raises InputError if it is no valid Unicode."""
    checked("text", text, str)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError("the text is not valid Unicode (half of a surrogate pair); give Unicode text") from None
    return text


def live_offsets(
    corpus: CorpusView, segment: Segment, index: Suffixes, wanted: Wanted, most: int | None = None
) -> Offsets:
    """The bytes of a segment at which the first words of matches begin: of all, or of the first so many and others."""
    num_deleted = corpus.num_deleted(segment)
    offsets_W = index.find(wanted.pattern, None if num_deleted or wanted.first else most)
    if len(offsets_W) and num_deleted:
        offsets_W = offsets_W[~corpus.deleted(segment, index.documents_of(offsets_W))]
    if not wanted.first:
        return offsets_W
    before = wanted.text[: wanted.first].encode()
    told = [(offset, index.is_behind(before, offset)) for offset in offsets_W.tolist()]
    unsure_W = np.array([offset for offset, is_behind in told if is_behind is None], offsets_W.dtype)
    sure = [offset for offset, is_behind in told if is_behind]
    kept = [offset for offset, place in _located(segment, index, unsure_W, wanted) if place]
    return np.array(sorted([*sure, *kept]), offsets_W.dtype)


def places_at(segment: Segment, index: Suffixes, offsets_W: Offsets, wanted: Wanted) -> Iterator[Place]:
    """The places of matches whose first words begin at these bytes. Raises CorruptionError if one is none."""
    for offset, place in _located(segment, index, offsets_W, wanted):
        if place is None:
            raise CorruptionError(f"{segment.name}: its exact index names byte {offset}, where the text is not")
        yield segment, *place


def _located(
    segment: Segment, index: Suffixes, offsets_W: Offsets, wanted: Wanted
) -> Iterator[tuple[int, tuple[int, int, int] | None]]:
    """Each byte, and the document and the characters of its match; None if what is before the first word differs."""
    known, text, at, byte = -1, "", 0, 0
    for offset in offsets_W.tolist():
        number = index.document_of(offset)
        if number != known:
            known, text, at, byte = number, segment.text(number), 0, index.text_begin(number)
        at, byte = at + index.characters(byte, offset), offset
        found = extent(text, at, wanted)
        yield offset, None if found is None else (number, *found)


def extent(text: str, word: int, wanted: Wanted) -> tuple[int, int] | None:
    """The characters of a match whose first word begins at a character of a text; None if there is none."""
    size, ahead = len(wanted.text) - wanted.first, len(wanted.text) + 32
    for more in (1, 4, 16, len(text)):
        begin = _clean_start(text, word, wanted.first + 8 * more) if wanted.first else word
        end = min(word + more * ahead, len(text))
        end = end if end == len(text) else word + last_cut(text[word:end])
        if end == word:
            continue
        folded = fold_with_places(text[begin:end])
        at = _folded_place(folded, word - begin) if begin < word else 0
        is_enough = (end == len(text) or len(folded.text) > at + size) and (begin in (0, word) or at >= wanted.first)
        if is_enough:
            start = at - wanted.first
            if start < 0 or not folded.text.startswith(wanted.text, start):
                return None
            first, last = folded.source(start, at + size)
            return begin + first, begin + last
    return None


def _folded_place(folded: Folded, source: int) -> int:
    """Where a word that begins at a character of the original begins in the folded text."""
    at_S, source_S = folded.starts()
    return int(at_S[np.searchsorted(source_S, source)])


def _clean_start(text: str, word: int, back: int) -> int:
    """A place so many characters before a word, or more, from which the text folds as the whole does."""
    for at in range(word - back, 1, -1):
        if is_plain(text[at]) and text[at - 1] == " " and text[at - 2].isalnum():
            return at
    return 0


def _brute(corpus: CorpusView, wanted: Wanted) -> Iterator[Place]:
    """The matches, by looking at every text."""
    for segment in corpus.segments:
        for number in corpus.live_documents(segment):
            folded = fold_with_places(segment.text(number))
            for start, end in occurrences(wanted, folded):
                yield segment, number, *folded.source(start, end)


class Shown:
    """A document whose places are shown in the passages that they touch."""

    def __init__(self, corpus: CorpusView, segment: Segment, number: int) -> None:
        self.segment, self.number = segment, number
        self.document = segment.document(number)
        self._ranges = segment.ranges(number) or [(0, len(self.document.text))]
        self._first_row = segment.first_row + segment.passage_range(number)[0]
        self._corpus = corpus

    @property
    def document_id(self) -> str:
        return self.document.id

    @property
    def text(self) -> str:
        return self.document.text

    def place(self, start: int, end: int, score: float = 1.0) -> Evidence:
        """A place, and the text of the passages that it touches."""
        first = max(bisect_right(self._ranges, (start, len(self.text))) - 1, 0)
        last = first
        while self._ranges[last][1] < end and last + 1 < len(self._ranges):
            last += 1
        begin, until = min(self._ranges[first][0], start), max(self._ranges[last][1], end)
        row = self._first_row + first
        return Evidence(
            document_id=self.document_id,
            title=self.document.title,
            passage=row,
            start=start,
            end=end,
            context=self.text[begin:until],
            score=score,
            corpus=self._corpus.name,
            context_start=begin,
            source_map=self.document.source_map,
            path=self._corpus.passage(row).path(start) if row < self.segment.last_row else (),
        )

    def match(self, start: int, end: int, wanted: str) -> Match:
        """The match at these characters."""
        place = self.place(start, end)
        known = {each.name: getattr(place, each.name) for each in fields(place)}
        return Match(**known, degree=degree(wanted, self.text[start:end]))


def occurrences(wanted: Wanted, document: Folded) -> Iterator[tuple[int, int]]:
    """The folded ranges of the matches in one document, in order: the definition, by looking at every character."""
    text, starts = document.text, document.starts()[0].tolist()
    at = text.find(wanted.text)
    while at >= 0:
        word, end = at + wanted.first, at + len(wanted.text)
        begins = wanted.first == len(wanted.text) or (
            (found := bisect_left(starts, word)) < len(starts) and starts[found] == word
        )
        if begins and (not wanted.ends_with_word or is_word_end(text, end)):
            yield at, end
        at = text.find(wanted.text, at + 1)


def degree(wanted: str, found: str) -> Degree:
    """How a text that was found differs from the one that was looked for."""
    if found == wanted.strip():
        return "exact"
    return "typographic" if fold(found, case=False).strip() == fold(wanted, case=False).strip() else "case"
