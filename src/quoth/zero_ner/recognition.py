"""Which characters of a passage name an entity: by a model, by a list of names, or by the links of its document.

Knows: the recognisers that a setting can name, and gold links in a document's metadata. Does not know: what the
entities are used for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from quoth.errors import InputError
from quoth.hub import is_luke
from quoth.ner.tagger import Tagger
from quoth.records import Passage, TaggedSpan
from quoth.zero_ner.keys import Recognizer
from quoth.zero_ner.name_list import NameList

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus

TITLES, LINKS = "titles", "links"


class Namer(Protocol):
    """Finds names from the text alone: `Tagger`, `LukeTagger`, `NameList`."""

    fingerprint: str

    def names(self, texts: Sequence[str]) -> list[list[TaggedSpan]]: ...


class ByText:
    """Entities recognised from the text."""

    def __init__(self, namer: Namer) -> None:
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
        from quoth.ner.luke_tagger import LukeTagger

        return ByText(LukeTagger.load(name, device))
    return ByText(Tagger.load(name, device, base=base))
