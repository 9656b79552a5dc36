"""Which characters of a passage name an entity: by a model, by a list of names, or by the links of its document.

Knows: the recognisers that a setting can name, and gold links in a document's metadata. Does not know: what the
entities are used for.

In a list of names case matters: titles of Wikipedia begin with a capital whatever they name, so "autism" is not a name
just because "Autism" is a title. Only white space may differ ("New\\nYork").
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quoth.corpus.documents import read_text
from quoth.errors import InputError, needs_torch
from quoth.hub import is_luke
from quoth.ner.tagger import Tagger
from quoth.records import Passage, TaggedSpan
from quoth.text.boundaries import BOUNDARIES_VERSION, STOP_WORDS, words
from quoth.zero_ner.keys import Recognizer

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus
    from quoth.zero_ner.luke_tagger import LukeTagger

TITLES, LINKS = "titles", "links"
NAME = "NAME"
NAME_LIST_VERSION = 1
"""Incremented when the rules change, so that spans tagged by older rules are not mistaken for current ones."""

_NEVER = STOP_WORDS | {word.capitalize() for word in STOP_WORDS}
_DISAMBIGUATION = re.compile(r"(?<=\S)\s+\([^()]*\)$")


class ByText:
    """Entities recognised from the text alone."""

    def __init__(self, namer: Tagger | LukeTagger | NameList) -> None:
        self.fingerprint, self._namer = namer.fingerprint, namer

    def of_passages(self, passages: Sequence[Passage]) -> list[list[TaggedSpan]]:
        """As `Recognizer.of_passages`."""
        return self._namer.names([passage.text for passage in passages])

    def of_texts(self, texts: Sequence[str]) -> list[list[TaggedSpan]]:
        """As `Recognizer.of_texts`."""
        return self._namer.names(texts)


class Links:
    """Entities from documents' metadata: `links`, a list of [start, end, target] in characters of the document.

    A link that is empty, or cut by a passage's edge, is left out. Texts without a document have no entities.
    """

    fingerprint = "links 1"

    def of_passages(self, passages: Sequence[Passage]) -> list[list[TaggedSpan]]:
        """As `Recognizer.of_passages`. Raises InputError naming a document with invalid links."""
        return [self._inside(passage) for passage in passages]

    def _inside(self, passage: Passage) -> list[TaggedSpan]:
        links = read_links(passage.document_id, passage.metadata)
        whole = [link for link in links if passage.start <= link.start and link.end <= passage.end]
        moved = [replace(link, start=link.start - passage.start, end=link.end - passage.start) for link in whole]
        return sorted((link for link in moved if passage.text[link.start : link.end].strip()), key=astuple)

    def of_texts(self, texts: Sequence[str]) -> list[list[TaggedSpan]]:
        """No entities: texts have no metadata."""
        return [[] for _ in texts]


def read_links(document_id: str, metadata: Mapping[str, Any]) -> list[TaggedSpan]:
    """The links of a document as spans of its characters, labelled with their targets.

    Raises InputError, naming the document, unless they are a list of [start, end, target].
    """
    links = metadata.get(LINKS) or []
    for link in links if isinstance(links, list) else [links]:
        match link:
            case [int(start), int(end), str()] if 0 <= start <= end and not {type(start), type(end)} - {int}:
                continue
        raise InputError(f"document {document_id!r}: link {link!r} is not [start, end, target]; fix its metadata")
    return [TaggedSpan(*link) for link in links]


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
            start, end = places[at]
            for count in self._lengths.get(text[start:end], ()):  # the longest first
                last = places[at + count - 1][1] if at + count <= len(places) else start
                if _one_line(text[start:last]) in self._names:
                    spans.append(TaggedSpan(start, last, NAME))
                    at += count - 1
                    break
            at += 1
        return spans


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


def load_recognizer(name: str, corpora: Sequence[Corpus], device: str | None, base: str | None) -> Recognizer:
    """The recognizer that a setting names: "titles" (those of the corpus's current documents), "links", a file of
    names (.txt), a LUKE for span classification, or any tagger that `Tagger.load` accepts.

    Raises InputError, ModelNotFoundError.
    """
    if name == TITLES:
        if len(corpora) != 1:
            raise InputError(f"recognizer {name!r} with {len(corpora)} corpora; give one, or a file of names (.txt)")
        return ByText(NameList.of_titles(corpora[0]))
    if name == LINKS:
        return Links()
    if name.endswith(".txt"):
        return ByText(NameList.read(Path(name)))
    if is_luke(name):
        with needs_torch(name):
            from quoth.zero_ner.luke_tagger import LukeTagger  # only here: it imports LUKE of transformers
        return ByText(LukeTagger.load(name, device))
    return ByText(Tagger.load(name, device, base=base))
