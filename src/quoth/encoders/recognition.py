"""Which characters of a passage name an entity: by a model, by a list of names, or as its document says.

Knows: the ways that a setting can name, and gold links in a document's metadata. Does not know: what becomes of the
entities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

from quoth.corpus.corpus import Corpus
from quoth.encoders.name_list import NameList
from quoth.encoders.pretrained import is_luke
from quoth.encoders.tagger import Tagger
from quoth.errors import InputError
from quoth.records import Passage, TaggedSpan

TITLES, LINKS = "titles", "links"


class Recognizer(Protocol):
    """Finds the entities of passages and questions. Equal fingerprints stand for equal entities."""

    fingerprint: str

    def of_passages(self, passages: Sequence[Passage]) -> list[list[TaggedSpan]]:
        """Each passage's entities as characters of its text, in order."""
        ...

    def of_texts(self, texts: Sequence[str]) -> list[list[TaggedSpan]]:
        """Each text's."""
        ...


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
    document. A link that a passage's edge cuts is left out. Texts without a document have none."""

    fingerprint = "links 1"

    def of_passages(self, passages: Sequence[Passage]) -> list[list[TaggedSpan]]:
        """As `Recognizer.of_passages`. Raises InputError naming a document with broken links."""
        return [sorted(_links(each), key=lambda span: (span.start, span.end)) for each in passages]

    def of_texts(self, texts: Sequence[str]) -> list[list[TaggedSpan]]:
        """None in any text."""
        return [[] for _ in texts]


def _links(passage: Passage) -> Iterable[TaggedSpan]:
    for each in passage.metadata.get(LINKS, ()):
        match each:
            case [int(start), int(end), str(target)] if 0 <= start < end:
                here = TaggedSpan(start - passage.start, end - passage.start, target)
                if here.start >= 0 and passage.text[here.start : here.end].strip() and here.end <= len(passage.text):
                    yield here
            case _:
                raise InputError(
                    f"document {passage.document_id!r}: link {each!r} is not [start, end, target]; mend its metadata"
                )


def load_recognizer(name: str, corpora: Sequence[Corpus], device: str | None, base: str | None) -> Recognizer:
    """The recognizer that a setting names: "titles" (of the corpora's documents as they are now), "links", a file of
    names (.txt), a LUKE for span classification, or a tagger as `Tagger.load` takes it.

    Raises InputError, ModelNotFoundError.
    """
    kinds: dict[str, Callable[[], Any]] = {
        TITLES: lambda: ByText(NameList.of_titles(*corpora)),
        LINKS: Links,
    }
    if name in kinds:
        found: Recognizer = kinds[name]()
        return found
    if name.endswith(".txt"):
        return ByText(NameList.read(Path(name)))
    if is_luke(name):
        from quoth.encoders.luke_tagger import LukeTagger

        return ByText(LukeTagger.load(name, device))
    return ByText(Tagger.load(name, device, base=base))
