"""Predictions as citations in standard formats: web annotations, character locations, links to a text.

Knows: documents, the formats. Does not know: how predictions were made.

Offsets count Unicode code points, as Python does. JavaScript counts UTF-16 units, in which an emoji counts two, so the
formats have both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from typing import Any
from urllib.parse import quote

import regex

from quoth.corpus.corpus import Corpus
from quoth.errors import InputError, UnknownDocumentError
from quoth.records import Document, Evidence, Prediction, quote_of

CONTEXT = 32
"""Code points quoted before and after a phrase: more if these do not make it unique."""
MOST_WORDS = 8
"""Words of context in a link, before the phrase and after it."""
UNIT = "code points"


@dataclass(frozen=True, slots=True)
class Citation:
    """A place of a document: `document.text[start:end]` is `exact`, and `prefix` and `suffix` are around it.

    `document_index` numbers the documents cited together, in order of citation. `url` is the document's metadata of
    that name, or "". `directive` finds the place in a page: "text=…".
    """

    document_id: str
    document_index: int
    title: str
    url: str
    exact: str
    prefix: str
    suffix: str
    start: int
    end: int
    start_utf16: int
    end_utf16: int
    directive: str

    def selector(self) -> dict[str, Any]:
        """The target of a web annotation: the document, a TextQuoteSelector and a TextPositionSelector.

        Source: Web Annotation Data Model, sections 4.2.4 and 4.2.5 (W3C Recommendation, 2017).
        """
        quoted = {"type": "TextQuoteSelector", "exact": self.exact, "prefix": self.prefix, "suffix": self.suffix}
        position = {"type": "TextPositionSelector", "start": self.start, "end": self.end}
        return {
            "type": "SpecificResource",
            "source": self.url or self.document_id,
            "selector": [quoted, position | self._counted()],
        }

    def char_location(self) -> dict[str, Any]:
        """A character-location citation, as APIs of language models have it; `end_char_index` is exclusive."""
        return {
            "type": "char_location",
            "cited_text": self.exact,
            "document_index": self.document_index,
            "document_title": self.title,
            "document_id": self.document_id,
            "start_char_index": self.start,
            "end_char_index": self.end,
        } | self._counted()

    def link(self) -> str:
        """The document's URL with a text fragment, which browsers scroll to and highlight; without a URL, the fragment.

        Source: URL Fragment Text Directives (WICG).
        """
        page = self.url.partition(":~:")[0]
        return f"{page}{'' if '#' in page else '#'}:~:{self.directive}"

    def to_dict(self) -> dict[str, Any]:
        """The record as JSON, with its unit and its link."""
        return {**asdict(self), "unit": UNIT, "link": self.link()}

    def _counted(self) -> dict[str, Any]:
        return {"unit": UNIT, "start_utf16": self.start_utf16, "end_utf16": self.end_utf16}


def cite(predictions: Iterable[Prediction], corpus: Corpus | Sequence[Corpus]) -> list[tuple[Citation, ...]]:
    """Cite every quoted place of predictions.

    Args:
        predictions (Iterable[Prediction]): The answers of `fill` or `ask` to a text.
        corpus (Corpus | Sequence[Corpus]): The corpus searched, or all of them, in the same state.

    Returns:
        For each prediction the citations of its evidence, in the same order.

    Raises:
        InputError: A place not in the corpus, or no longer.

    Example:
        >>> best, *_ = quoth.cite(reader.ask("Who composed Carmen?", top_k=1), corpus)
        >>> best[0].char_location()["cited_text"], best[0].start, best[0].end
        ('Georges Bizet', 35, 48)
        >>> best[0].link()
        '#:~:text=Georges%20Bizet'
    """
    corpora = [corpus] if isinstance(corpus, Corpus) else list(corpus)
    known: dict[tuple[str, str], tuple[int, Document]] = {}

    def cited(place: Evidence) -> Citation:
        key = place.corpus, place.document_id
        if key not in known:
            known[key] = len(known), _document(place, corpora)
        return _citation(place, *known[key])

    return [tuple(map(cited, each.evidence)) for each in predictions]


def _document(place: Evidence, corpora: Sequence[Corpus]) -> Document:
    phrase = quote_of(place)
    for corpus in corpora:
        if place.corpus in ("", corpus.name):
            try:
                document = corpus.document(place.document_id)
            except UnknownDocumentError:
                continue
            if document.text[place.start : place.end] == phrase:
                return document
    raise InputError(
        f"document {place.document_id!r} of corpus {place.corpus!r} has no {phrase!r} at {place.start}; give the "
        "corpus that was searched, as it was then"
    )


def _citation(place: Evidence, index: int, document: Document) -> Citation:
    text, start, end = document.text, place.start, place.end
    first, last = _context(text, start, end)
    url = document.metadata.get("url")
    return Citation(
        document_id=document.id,
        document_index=index,
        title=document.title,
        url=url if isinstance(url, str) and url.startswith(("http://", "https://")) else "",
        exact=text[start:end],
        prefix=text[first:start],
        suffix=text[end:last],
        start=start,
        end=end,
        start_utf16=len(text[:start].encode("utf-16-le")) // 2,
        end_utf16=len(text[:end].encode("utf-16-le")) // 2,
        directive=text_directive(text, start, end),
    )


def _context(text: str, start: int, end: int) -> tuple[int, int]:
    """Where the context of a range begins and ends: `CONTEXT` code points from it, doubled until no other place has the
    same; no letter is cut from its marks and no emoji from its parts."""
    length = CONTEXT
    while True:
        first, last = max(start - length, 0), min(end + length, len(text))
        first = next((at for at in _clusters(text, first, start) if at >= first), start)
        last = max((at for at in _clusters(text, end, last + 1) if at <= last), default=end)
        quoted = text[first:last]
        if (text.find(quoted), text.rfind(quoted)) == (first, first) or (first, last) == (0, len(text)):
            return first, last
        length *= 2


def _clusters(text: str, first: int, last: int) -> list[int]:
    """The boundaries of grapheme clusters from `first` to `last`; before a white space there is always one."""
    spaces = (at for at in range(first, max(first - 8 * CONTEXT, 0), -1) if at < len(text) and text[at].isspace())
    begin = next(spaces, max(first - 8 * CONTEXT, 0))
    lengths = map(len, regex.findall(r"\X", text[begin : last + CONTEXT]))
    return [at for at in accumulate(lengths, initial=begin) if first <= at <= last]


def text_directive(text: str, start: int, end: int) -> str:
    """The directive `text=[prefix-,]textStart[,textEnd][,-suffix]` of a text fragment that finds `text[start:end]`.

    Context is added, a word at a time on each side and none from other lines, until no earlier place matches, ignoring
    case; at most `MOST_WORDS`. A phrase of several lines is named by the first and the last.
    """
    lines = [each for each in map(str.strip, text[start:end].splitlines()) if each]
    before = text[:start].rpartition("\n")[2].split()
    after = text[end:].partition("\n")[0].split()
    for count in range(MOST_WORDS + 1):
        prefix, suffix = before[max(len(before) - count, 0) :], after[:count]
        if _first(text, prefix, text[start:end].split(), suffix) == start:
            break
    parts = [f"{_encoded(' '.join(prefix))}-"] if prefix else []
    parts += [_encoded(" ".join(line.split())) for line in (lines if len(lines) < 2 else (lines[0], lines[-1]))]
    parts += [f"-{_encoded(' '.join(suffix))}"] if suffix else []
    return f"text={','.join(parts)}"


def _first(text: str, prefix: Sequence[str], words: Sequence[str], suffix: Sequence[str]) -> int:
    """Where the words first occur with this context, any white space between them; -1 if nowhere."""
    before, exact, after = (r"\s+".join(map(re.escape, each)) for each in (prefix, words, suffix))
    found = re.search(rf"{before}\s*({exact})\s*{after}", text, re.IGNORECASE)
    return found.start(1) if found else -1


def _encoded(text: str) -> str:
    """A part of a directive: percent-encoded, and the dash too, which is its syntax as comma and ampersand are."""
    return quote(text, safe="").replace("-", "%2D")
