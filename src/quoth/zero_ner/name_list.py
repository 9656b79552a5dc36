"""A recogniser from a list of names, such as the titles of a corpus: finds their exact occurrences in texts.

Knows: names, word boundaries. Does not know: models, kinds of names, alternative spellings.

Case matters: titles of Wikipedia begin with a capital whatever they name, so "autism" is not a name just because
"Autism" is a title. Only white space may differ ("New\\nYork").
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from quoth.corpus.documents import read_text
from quoth.errors import InputError
from quoth.records import TaggedSpan
from quoth.text.boundaries import BOUNDARIES_VERSION, STOP_WORDS, words

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus

NAME = "NAME"
NAME_LIST_VERSION = 1
"""Incremented when the rules change, so that spans tagged by older rules are not mistaken for current ones."""

_NEVER = STOP_WORDS | {word.capitalize() for word in STOP_WORDS}
_DISAMBIGUATION = re.compile(r"(?<=\S)\s+\([^()]*\)$")


class NameList:
    """Finds the names of a list. `fingerprint` identifies the set of names and the rules.

    Some names are ignored, since they would be wrong nearly everywhere: those of one character ("A"), those without a
    letter (numbers are quantities, and years are found as dates), and English stop words ("If", from the title
    "If (magazine)").
    """

    def __init__(self, names: Iterable[str], name: str = "names") -> None:
        """Raises InputError if no name is left."""
        self.name = name
        self._names = frozenset(filter(_is_findable, map(_one_line, names)))
        if not self._names:
            raise InputError(f"{name}: no name to look for; give names of several letters, such as Rome")
        lines = "\n".join([f"{NAME_LIST_VERSION} {BOUNDARIES_VERSION}", *sorted(self._names)])
        self.fingerprint = hashlib.sha256(lines.encode("utf-8", "surrogatepass")).hexdigest()
        self._lengths = _lengths_by_first_word(self._names)

    @classmethod
    def read(cls, path: str | Path) -> NameList:
        """The names in a file, compressed or not, one per line.

        Raises InputError if it cannot be read or contains no name, or naming a line that is not UTF-8.
        """
        return cls(read_text(path).split("\n"), str(path))

    @classmethod
    def of_titles(cls, *corpora: Corpus) -> NameList:
        """The titles of all documents, without a disambiguation in parentheses: "Mercury" for "Mercury (planet)".

        Raises InputError if no title is a name.
        """
        titles = (document.title.strip() for corpus in corpora for document in corpus.documents())
        name = f"titles of {', '.join(corpus.name for corpus in corpora)}"
        return cls((_DISAMBIGUATION.sub("", title) for title in titles), name)

    def names(self, texts: Sequence[str]) -> list[list[TaggedSpan]]:
        """The names in each text as character ranges of whole words, in order. Of names that overlap, the one that
        starts first is kept; of those, the longest. Raises InputError for a string in place of a list."""
        if isinstance(texts, str):
            raise InputError("texts is a string; it must be a list of texts: write [text]")
        return [self._spans(text) for text in texts]

    def _spans(self, text: str) -> list[TaggedSpan]:
        places = words(text)
        spans = []
        at = 0
        while at < len(places):
            count = self._longest(text, places, at)
            if count:
                spans.append(TaggedSpan(places[at][0], places[at + count - 1][1], NAME))
            at += count or 1
        return spans

    def _longest(self, text: str, places: Sequence[tuple[int, int]], at: int) -> int:
        """The number of words of the longest name that starts at this word; 0 if none does."""
        start, end = places[at]
        for count in self._lengths.get(text[start:end], ()):
            if at + count <= len(places) and _one_line(text[start : places[at + count - 1][1]]) in self._names:
                return count
        return 0


def _one_line(text: str) -> str:
    """`text` with white space collapsed to single spaces and trimmed."""
    return " ".join(text.split())


def _is_findable(name: str) -> bool:
    return len(name) > 1 and any(map(str.isalpha, name)) and name not in _NEVER


def _lengths_by_first_word(names: Iterable[str]) -> dict[str, list[int]]:
    """For each first word of a name, the numbers of words of the names that start with it, largest first."""
    counts: defaultdict[str, set[int]] = defaultdict(set)
    for name in names:
        places = words(name)
        counts[name[: places[0][1]]].add(len(places))
    return {first: sorted(lengths, reverse=True) for first, lengths in counts.items()}
