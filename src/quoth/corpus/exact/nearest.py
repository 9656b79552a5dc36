"""What in a corpus is nearest to a text, by an edit distance.

Knows: documents, characters, BM25, edit distance. Does not know: what makes a quotation faithful.

Shape suffixes: T characters of a document's part.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from quoth.arrays import Ints
from quoth.corpus.corpus import Corpus
from quoth.corpus.exact.find import Shown
from quoth.records import Evidence
from quoth.text.terms import is_unspaced_character

MOST_CHARACTERS = 2000
"""A longer text is looked for, but not compared with what is nearest: that takes time as its length squared."""
NEAREST = 3
_COMPARED = 10
"""BM25's best passages, around which the nearest text is looked for."""
_NUMBER = re.compile(r"\d[.,]\d")
_NEVER = 1 << 30


def cuts(text: str, at: int) -> bool:
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


def nearest(corpus: Corpus, text: str) -> tuple[Evidence, ...]:
    if len(text) > MOST_CHARACTERS:
        return ()
    found: dict[tuple[str, int, int], Evidence] = {}
    for shown, first, last in around(corpus, text):
        part = nearest_part(text, shown.text, first, last)
        if part is not None:
            edits, start, end = part
            place = shown.place(start, end, 1 - edits / max(len(text), end - start))
            found.setdefault((place.document_id, start, end), place)
    return tuple(sorted(found.values(), key=lambda each: -each.score)[:NEAREST])


def around(corpus: Corpus, text: str) -> Iterator[tuple[Shown, int, int]]:
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
        yield Shown(corpus, segment, number), *taken[-1]


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
    whole_T = np.array([not cuts(whole, first + at) for at in place_T.tolist()])
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
