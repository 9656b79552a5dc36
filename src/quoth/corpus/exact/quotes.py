"""Whether and where a text occurs in a corpus, and if it does not, the nearest text.

Knows: documents, characters, BM25, edit distance. Does not know: models, keys.

Shape suffixes: T characters of a document's part, R characters of the text that is looked for.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quoth.arrays import Ints
from quoth.corpus.corpus import Corpus
from quoth.corpus.segment import Segment
from quoth.errors import InputError, UnknownDocumentError, brief
from quoth.fields import Count, checked
from quoth.records import Document, Evidence
from quoth.text.boundaries import STOP_WORDS, begins_note
from quoth.text.terms import analyse, is_unspaced_character
from quoth_sources.source_map import as_json

MOST_CHARACTERS = 2000
"""A longer text is searched for, but without the nearest text, whose search time is quadratic in its length."""
MOST_PLACES = 10_000
"""Maximum number of places counted."""
NEAREST = 3
_COMPARED = 10
"""Number of BM25's best passages to search for the nearest text."""
_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"\d[.,]\d")
_SINGLE, _DOUBLE = "['‘’]", '["“”]'
_MARK = re.compile(f"{_SINGLE}|{_DOUBLE}")
_APART = re.compile(rf"\s|{_SINGLE}|{_DOUBLE}")
_NEVER = 1 << 30


@dataclass(frozen=True, slots=True)
class Verification:
    """Whether and where a text occurs in a corpus, ignoring white space and the style of quotation marks.

    `num_places` is how often it occurs (10,000 means that or more); in `num_whole` of these it is not part of a longer
    word or number. `places` are the first of them, whole ones first. If it does not occur, `nearest` are the most
    similar parts of the corpus, best first. A place's `score` is 1 - edits / the longer text's length: 1 for an exact
    quote.
    """

    text: str
    num_places: int
    num_whole: int
    places: tuple[Evidence, ...]
    nearest: tuple[Evidence, ...] = ()

    @property
    def occurs(self) -> bool:
        """Whether the text occurs at all."""
        return self.num_places > 0

    def to_dict(self) -> dict[str, Any]:
        """The record as JSON, with `occurs`."""
        return {"occurs": self.occurs, **as_json(self)}


def verify_quote(corpus: Corpus, text: str, max_places: int = 10) -> Verification:
    """Look for an exact text in every document of a corpus, ignoring white space and the style of quotation marks.

    Args:
        corpus (Corpus): Where to look.
        text (str): The words of the quote. A run of white space matches any other; straight and curly quotation marks
            or apostrophes match each other.
        max_places (int): Number of places to return. Default: 10.

    Returns:
        How often the text occurs and where, or the nearest text: in and around BM25's best passages, the parts with the
        fewest character edits, with whole words at both ends.

    Raises:
        InputError: A text that is empty or not valid Unicode, `max_places` below 1.
        CorruptionError: A damaged file.

    Example:
        >>> found = quoth.verify_quote(corpus, "an opera in four acts")
        >>> found.occurs, found.places[0].document_id, found.places[0].start, found.places[0].end
        (True, 'carmen', 10, 31)
        >>> nearest = quoth.verify_quote(corpus, "an opera in five acts").nearest[0]
        >>> nearest.context[nearest.start - nearest.context_start : nearest.end - nearest.context_start]
        'an opera in four acts'
    """
    checked("text", text, str)
    checked("max_places", max_places, Count, 10)
    words = text.split()
    if not words:
        raise InputError("the text is empty; give the words of a quote")
    try:
        longest = (max(_APART.split(text), key=len) or words[0]).encode()
    except UnicodeEncodeError:
        raise InputError("the text is not valid Unicode (half of a surrogate pair); give Unicode text") from None
    whole: list[Evidence] = []
    cut: list[Evidence] = []
    num_whole = num_places = 0
    for shown, start, end in islice(_occurrences(corpus, words, longest), MOST_PLACES):
        is_cut = _cuts(shown.text, end) and not begins_note(shown.text, end)
        is_whole = not (is_cut or _cuts(shown.text, start))
        num_places, num_whole = num_places + 1, num_whole + is_whole
        kept = whole if is_whole else cut
        if len(kept) < max_places:
            kept.append(shown.place(start, end, 1.0))
    nearest = () if num_places else _nearest(corpus, " ".join(words))
    return Verification(text, num_places, num_whole, tuple([*whole, *cut][:max_places]), nearest)


def verify_quotes(corpora: Sequence[Corpus], text: str, max_places: int = 10) -> Verification:
    """`verify_quote` in several corpora; what is nearest is told if the text occurs in none. Raises as it does."""
    found = [verify_quote(corpus, text, max_places) for corpus in corpora]
    whole = [place for one in found for place in one.places[: one.num_whole]]
    cut = [place for one in found for place in one.places[one.num_whole :]]
    nearest = sorted((place for one in found for place in one.nearest), key=lambda place: -place.score)
    num_places, num_whole = sum(one.num_places for one in found), sum(one.num_whole for one in found)
    told = () if num_places else tuple(nearest[:NEAREST])
    return Verification(text, num_places, num_whole, tuple([*whole, *cut][:max_places]), told)


def _occurrences(corpus: Corpus, words: Sequence[str], longest: bytes) -> Iterator[tuple[_Shown, int, int]]:
    """Where the words follow each other, in the order of the documents; `longest` is in one of the words."""
    pattern = re.compile(r"\s+".join(map(_as_typed, words)))
    for segment, number in corpus.containing(longest):
        shown = _Shown(corpus, segment, number)
        for match in pattern.finditer(shown.text):
            yield shown, *match.span()


def _as_typed(word: str) -> str:
    """A pattern of the word with its quotation marks straight or curly."""
    return _MARK.sub(lambda mark: _SINGLE if mark[0] in _SINGLE else _DOUBLE, re.escape(word))


class _Shown:
    """A document whose places are shown in their passages."""

    def __init__(self, corpus: Corpus, segment: Segment, number: int) -> None:
        self._document = segment.document(number)
        self._ranges = segment.ranges(number)
        self._first_row = segment.first_row + segment.passage_range(number)[0]
        self._corpus = corpus.name
        self.text = self._document.text

    def place(self, start: int, end: int, score: float) -> Evidence:
        """A place and the text of the passages that it touches."""
        first = max(bisect_right(self._ranges, (start, len(self.text))) - 1, 0)
        last = first
        while self._ranges[last][1] < end and last + 1 < len(self._ranges):
            last += 1
        begin = self._ranges[first][0]
        return Evidence(
            document_id=self._document.id,
            title=self._document.title,
            passage=self._first_row + first,
            start=start,
            end=end,
            context=self.text[begin : self._ranges[last][1]],
            score=score,
            corpus=self._corpus,
            context_start=begin,
            source_map=self._document.source_map,
        )


def _cuts(text: str, at: int) -> bool:
    """Whether a cut before character `at` is inside a word, a number or a letter with its marks."""
    if not 0 < at < len(text):
        return False
    before, after = text[at - 1], text[at]
    if unicodedata.category(after).startswith("M"):
        return True
    if before.isalnum() and after.isalnum():
        if before.isascii() and after.isascii():
            return True
        return not (is_unspaced_character(before) or is_unspaced_character(after))
    return any(_NUMBER.match(text, first) is not None for first in (at - 2, at - 1) if first >= 0)


def _nearest(corpus: Corpus, text: str) -> tuple[Evidence, ...]:
    if len(text) > MOST_CHARACTERS:
        return ()
    found: dict[tuple[str, int, int], Evidence] = {}
    for shown, first, last in _parts(corpus, text):
        nearest = nearest_part(text, shown.text, first, last)
        if nearest is not None:
            edits, start, end = nearest
            place = shown.place(start, end, 1 - edits / max(len(text), end - start))
            found.setdefault((place.document_id, start, end), place)
    return tuple(sorted(found.values(), key=lambda each: -each.score)[:NEAREST])


def _parts(corpus: Corpus, text: str) -> Iterator[tuple[_Shown, int, int]]:
    """The passages that share most with a text, each with as much around it as the text is long."""
    rows, _ = corpus.bm25(text, _COMPARED)
    seen: dict[str, list[tuple[int, int]]] = {}
    for row in rows.tolist():
        passage = corpus.passage(row)
        taken = seen.setdefault(passage.document_id, [])
        if any(first <= passage.start and passage.end <= last for first, last in taken):
            continue
        segment = corpus.segment_of(row)
        number = segment.find(passage.document_id)
        assert number is not None
        taken.append((max(passage.start - len(text), 0), passage.end + len(text)))
        yield _Shown(corpus, segment, number), *taken[-1]


def nearest_part(text: str, whole: str, first: int, last: int) -> tuple[int, int, int] | None:
    """The range inside `whole[first:last]` that takes the fewest edits to become `text`: edits, start and end in
    `whole`; None if no word begins there.

    It has whole words at both ends. An edit inserts, deletes or replaces a character; any white space is a space. Of
    ranges with as few edits the first to end. Source: Sellers, *The theory and computation of evolutionary distances*,
    1980.
    """
    part = whole[first:last]
    codes_T = np.array([ord(" ") if each.isspace() else ord(each) for each in part], np.int64)
    place_T = np.arange(len(part) + 1)
    whole_T = np.array([not _cuts(whole, first + at) for at in place_T.tolist()])
    space_T = codes_T == ord(" ")
    starts_T = whole_T & ~np.append(space_T, True)
    ends_T = whole_T & ~np.append(True, space_T)
    # One row of the table at a time, all places at once: a numpy pass per character of the text. A place where no range
    # may begin costs `_NEVER`, far below what 64 bits hold, so that sums of it do not overflow.
    distance_T, from_T = _inserted(np.where(starts_T, 0, _NEVER), place_T, place_T)
    for character in text:
        distance_T, from_T = _edited(distance_T, from_T, codes_T != ord(character), place_T)
    end = int(np.argmin(np.where(ends_T, distance_T, _NEVER)))
    start = int(from_T[end])
    if distance_T[end] >= _NEVER or not ends_T[end] or start >= end:
        return None
    return int(distance_T[end]), first + start, first + end


def _edited(distance_T: Ints, from_T: Ints, other_T: NDArray[np.bool_], place_T: Ints) -> tuple[Ints, Ints]:
    """The next row of the table of distances, and where the best range that ends at a place begins."""
    replaced_T = distance_T[:-1] + other_T
    best_T, begin_T = distance_T + 1, from_T.copy()
    is_replaced_T = replaced_T <= best_T[1:]
    best_T[1:][is_replaced_T] = replaced_T[is_replaced_T]
    begin_T[1:][is_replaced_T] = from_T[:-1][is_replaced_T]
    return _inserted(best_T, begin_T, place_T)


def _inserted(best_T: Ints, begin_T: Ints, place_T: Ints) -> tuple[Ints, Ints]:
    """A row with insertions: D[j] = min over i <= j of E[i] + (j - i), which a running minimum of E[i] - i gives."""
    shifted_T = best_T - place_T
    least_T = np.minimum.accumulate(shifted_T)
    # Of equal minima the last, which has the fewest insertions.
    source_T = np.maximum.accumulate(np.where(shifted_T == least_T, place_T, 0))
    return least_T + place_T, begin_T[source_T]


def documents_of(corpora: Sequence[Corpus], document_id: str) -> list[tuple[Corpus, Document]]:
    """The documents with an id, and the corpora that have them. Raises UnknownDocumentError if there is none."""
    found = []
    for corpus in corpora:
        try:
            found.append((corpus, corpus.document(document_id)))
        except UnknownDocumentError:
            if len(corpora) == 1:
                raise
    if not found:
        names = ", ".join(each.name for each in corpora)
        raise UnknownDocumentError(f"document {brief(document_id)} is in none of the corpora {names}")
    return found


def word_ranges(query: str, text: str) -> list[tuple[int, int]]:
    """The words of a text, from character to character, that share a search term with a query. Its stop words count
    only if it has no others.

    Example:
        >>> word_ranges("operas of Bizet", "Carmen is an opera by Georges Bizet.")
        [(13, 18), (30, 35)]
    """
    words = query.split()
    telling = [word for word in words if word.casefold() not in STOP_WORDS] or words
    wanted = set(analyse(" ".join(telling)))
    return [each.span() for each in _WORD.finditer(text) if not wanted.isdisjoint(analyse(each[0]))]
