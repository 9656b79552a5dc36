"""Where a string occurs in the documents of a corpus, whatever its typography and its case.

Knows documents and foldings. Does not know models, or what is asked.

A match begins where a word begins and, if the string ends with a word, ends where one ends; in scripts written without
spaces every letter is a word. A string without a word (an emoji) matches anywhere. Matches may overlap; none crosses
documents.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from quoth.errors import InputError
from quoth.records import Located
from quoth.text.folding import Folded, fold, fold_with_places, is_word_end, word_starts

Degree = Literal["exact", "typographic", "case"]
"""How a place differs from what was looked for: not at all, in typography, or in case too."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A folded string, and where its first word begins in it (none: at its end)."""

    text: str
    first: int
    ends_with_word: bool

    @classmethod
    def of(cls, text: str) -> Wanted:
        """Raises InputError if nothing of the text is left."""
        folded = fold(text).strip()
        if not folded:
            raise InputError("the text is empty; give the words that are looked for")
        starts = np.flatnonzero(word_starts(folded)).tolist()
        return cls(folded, starts[0] if starts else len(folded), folded[-1].isalnum() or not is_word_end(folded + "a", len(folded)))


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
