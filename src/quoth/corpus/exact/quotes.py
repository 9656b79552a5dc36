"""Whether and where a text occurs in a corpus, and if it does not, the nearest text.

Knows: documents, characters, and the gate's verdicts. Does not know: models, keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from quoth.corpus.corpus import Corpus
from quoth.corpus.exact.changed import Change, Status
from quoth.corpus.exact.find import Shown
from quoth.corpus.exact.gate import Judge
from quoth.corpus.exact.nearest import NEAREST, cuts, nearest
from quoth.errors import InputError
from quoth.fields import Count, checked
from quoth.records import Evidence
from quoth.text.boundaries import STOP_WORDS, begins_note
from quoth.text.terms import analyse
from quoth_sources.source_map import as_json

MOST_PLACES = 10_000
"""Maximum number of places counted."""
_WORD = re.compile(r"\w+")
_SINGLE, _DOUBLE = "['‘’]", '["“”]'
_MARK = re.compile(f"{_SINGLE}|{_DOUBLE}")
_APART = re.compile(rf"\s|{_SINGLE}|{_DOUBLE}")


@dataclass(frozen=True, slots=True)
class Verification:
    """Whether and where a text occurs in a corpus, ignoring white space and the style of quotation marks.

    `num_places` is how often it occurs (10,000 means that or more); in `num_whole` of these it is not part of a longer
    word or number. `places` are the first of them, whole ones first. If it does not occur, `nearest` are the most
    similar parts of the corpus, best first. A place's `score` is 1 - edits / the longer text's length: 1 for an exact
    quote.

    `status` judges the text as a quotation (`quoth.verify_quotes`): what a careful editor may do leaves it faithful,
    though it then does not occur. `changes` are the differences from the first of `nearest`, or of `places`.
    """

    text: str
    num_places: int
    num_whole: int
    places: tuple[Evidence, ...]
    nearest: tuple[Evidence, ...] = ()
    status: Status = "absent"
    changes: tuple[Change, ...] = ()

    @property
    def occurs(self) -> bool:
        """Whether the text occurs at all."""
        return self.num_places > 0

    def to_dict(self) -> dict[str, Any]:
        """The record as JSON, with `occurs`."""
        return {"occurs": self.occurs, **as_json(self)}


def verify_quote(corpus: Corpus, text: str, max_places: int = 10) -> Verification:
    """Look for an exact text in every document of a corpus, ignoring white space and the style of quotation marks.

    `status` also says whether it is a faithful quotation, as `verify_quotes` judges those of a draft.

    Args:
        corpus (Corpus): Where to look.
        text (str): The words of the quote. A run of white space matches any other; straight and curly quotation marks
            or apostrophes match each other.
        max_places (int): Number of places to return. Default: 10.

    Returns:
        How often the text occurs and where, or the nearest text: the places of the verdict, then, in and around BM25's
        best passages, the parts with the fewest character edits, with whole words at both ends.

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
    return verify_in([corpus], text, max_places)


def verify_in(corpora: Sequence[Corpus], text: str, max_places: int = 10) -> Verification:
    """`verify_quote` in several corpora; what is nearest is told if the text occurs in none. Raises as it does."""
    found = [_verify(corpus, text, max_places) for corpus in corpora]
    whole = [place for one in found for place in one.places[: one.num_whole]]
    cut = [place for one in found for place in one.places[one.num_whole :]]
    num_places, num_whole = sum(one.num_places for one in found), sum(one.num_whole for one in found)
    verdict = Judge(corpora)(text)
    told: dict[tuple[str, str, int, int], Evidence] = {}
    if not num_places:
        others = sorted((place for one in found for place in one.nearest), key=lambda place: -place.score)
        for place in (*verdict.evidence, *others):
            told.setdefault((place.corpus, place.document_id, place.start, place.end), place)
    places, near = tuple([*whole, *cut][:max_places]), tuple(told.values())[: max(NEAREST, len(verdict.evidence))]
    return Verification(text, num_places, num_whole, places, near, verdict.status, verdict.changes)


def _verify(corpus: Corpus, text: str, max_places: int) -> Verification:
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
        is_cut = cuts(shown.text, end) and not begins_note(shown.text, end)
        is_whole = not (is_cut or cuts(shown.text, start))
        num_places, num_whole = num_places + 1, num_whole + is_whole
        kept = whole if is_whole else cut
        if len(kept) < max_places:
            kept.append(shown.place(start, end, 1.0))
    near = () if num_places else nearest(corpus, " ".join(words))
    return Verification(text, num_places, num_whole, tuple([*whole, *cut][:max_places]), near)


def _occurrences(corpus: Corpus, words: Sequence[str], longest: bytes) -> Iterator[tuple[Shown, int, int]]:
    """Where the words follow each other, in the order of the documents; `longest` is in one of the words."""
    pattern = re.compile(r"\s+".join(map(_as_typed, words)))
    for segment, number in corpus.containing(longest):
        shown = Shown(corpus, segment, number)
        for match in pattern.finditer(shown.text):
            yield shown, *match.span()


def _as_typed(word: str) -> str:
    """A pattern of the word with its quotation marks straight or curly."""
    return _MARK.sub(lambda mark: _SINGLE if mark[0] in _SINGLE else _DOUBLE, re.escape(word))


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
