"""Names in other scripts, from the first sentences of encyclopaedia pages: "Athens (…; Modern Greek: Αθήνα, …".

Knows: how a page states a name's spelling in another language. Does not know: how it is asked.

NPM's test set is not published in parts; this is its heuristic (Min et al. 2022, §6.1), over any documents that keep
such spellings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from quoth.records import Document

LANGUAGES = (
    "Arabic",
    "Armenian",
    "Belarusian",
    "Bengali",
    "Bulgarian",
    "Chinese",
    "Georgian",
    "Greek",
    "Hebrew",
    "Hindi",
    "Japanese",
    "Kazakh",
    "Korean",
    "Macedonian",
    "Mongolian",
    "Persian",
    "Russian",
    "Serbian",
    "Tamil",
    "Telugu",
    "Thai",
    "Ukrainian",
    "Urdu",
)
FIRST = 600
"""A spelling must occur within this many characters of a document's start."""
_AROUND = " '\"“”.\u200d\u200e\u200f"
_SPELLING = re.compile(rf"\b({'|'.join(LANGUAGES)}): *([^;,()\[\]:\n]+)")
_QUALIFIER = re.compile(r" *\([^()]*\)$|,.*$")


@dataclass(frozen=True, slots=True)
class Translation:
    """A name, its spelling in a language, and the place of the spelling: `document.text[start:end]`."""

    document_id: str
    name: str
    language: str
    spelling: str
    start: int
    end: int


def find_translations(documents: Iterable[Document]) -> Iterator[Translation]:
    """The spellings of documents' titles in languages of other scripts, at most one per document and language.

    The title, without its qualifier ("Georgia (country)", "Paris, Texas"), must occur in the text before them, and a
    spelling must have letters, none of them Latin.
    """
    for document in documents:
        name = _QUALIFIER.sub("", document.title).strip()
        seen = set[str]()
        for match in _SPELLING.finditer(document.text[:FIRST]):
            language, spelling = match[1], match[2].strip(_AROUND)
            start = match.start(2) + match[2].find(spelling)
            stated = name and name.casefold() in document.text[: match.start()].casefold()
            if stated and language not in seen and _foreign(spelling):
                seen.add(language)
                yield Translation(document.id, name, language, spelling, start, start + len(spelling))


def _foreign(text: str) -> bool:
    letters = [char for char in text if char.isalpha()]
    return bool(letters) and not any(char.isascii() for char in letters)
