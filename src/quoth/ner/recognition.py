"""Which characters of a passage name an entity: by a model, by a list of names, or as its document says.

Knows: the ways that a setting can name, and gold links in a document's metadata. Does not know: what becomes of the
entities.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any, Protocol

from quoth.corpus.corpus import Corpus
from quoth.encoders.entity_encoder import Recognizer
from quoth.encoders.pretrained import is_luke
from quoth.errors import InputError
from quoth.ner.name_list import NameList
from quoth.ner.tagger import Tagger
from quoth.records import Passage, TaggedSpan

TITLES, LINKS = "titles", "links"


class Namer(Protocol):
    """What finds names in a text alone: `Tagger`, `LukeTagger`, `NameList`."""

    fingerprint: str

    def names(self, texts: Sequence[str]) -> list[list[TaggedSpan]]: ...


class ByText:
    """Entities by what the text says."""

    def __init__(self, namer: Namer) -> None:
        self.fingerprint, self._namer = namer.fingerprint, namer

    def of_passages(self, passages: Sequence[Passage]) -> list[list[TaggedSpan]]:
        """As `Recognizer.of_passages`."""
        return self._namer.names([each.text for each in passages])

    def of_texts(self, texts: Sequence[str]) -> list[list[TaggedSpan]]:
        """As `Recognizer.of_texts`."""
        return self._namer.names(texts)


class Links:
    """Entities as documents tell them: `links` of the metadata, a list of [start, end, target] in characters of the
    document. A link that is empty, or cut by a passage's edge, is left out. Texts without a document have none."""

    fingerprint = "links 1"

    def of_passages(self, passages: Sequence[Passage]) -> list[list[TaggedSpan]]:
        """As `Recognizer.of_passages`. Raises InputError naming a document with broken links."""
        return [self._inside(each) for each in passages]

    def _inside(self, passage: Passage) -> list[TaggedSpan]:
        links = read_links(passage.document_id, passage.metadata)
        whole = [each for each in links if passage.start <= each.start and each.end <= passage.end]
        moved = [replace(each, start=each.start - passage.start, end=each.end - passage.start) for each in whole]
        return sorted((each for each in moved if passage.text[each.start : each.end].strip()), key=astuple)

    def of_texts(self, texts: Sequence[str]) -> list[list[TaggedSpan]]:
        """None in any text."""
        return [[] for _ in texts]


def read_links(document_id: str, metadata: Mapping[str, Any]) -> list[TaggedSpan]:
    """The links of a document: its characters, and the target as the label.

    Raises InputError, naming the document, where they are no list of [start, end, target].
    """
    links = metadata.get(LINKS) or []
    for each in links if isinstance(links, list) else [links]:
        match each:
            case [int(start), int(end), str()] if 0 <= start <= end and not {type(start), type(end)} - {int}:
                continue
        raise InputError(f"document {document_id!r}: link {each!r} is not [start, end, target]; mend its metadata")
    return [TaggedSpan(*each) for each in links]


def load_recognizer(name: str, corpora: Sequence[Corpus], device: str | None, base: str | None) -> Recognizer:
    """The recognizer that a setting names: "titles" (of the corpus's documents as they are now), "links", a file of
    names (.txt), a LUKE for span classification, or a tagger as `Tagger.load` takes it.

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
