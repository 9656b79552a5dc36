"""All quotations of a draft, judged: each by the source named beside it, if that can be found, and by all corpora.

Knows drafts, and how a source is named: by id, title or file. Does not know what makes a quotation faithful.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from quoth.corpus.corpus import Corpus
from quoth.corpus.exact.changed import Change
from quoth.corpus.exact.drafts import Draft, Quotation, quotations, read_drafts
from quoth.corpus.exact.gate import Judge, Verdict
from quoth.errors import InputError
from quoth.records import Document

_FILE = re.compile(
    r"(?i)[^\s;,()][^;,()]*\.(?:pdf|docx?|odt|rtf|html?|xhtml|md|rst|txt|tex|epub|pptx?|odp|xlsx?|ods|csv|jsonl?|eml|msg|"
    r"tiff?|png|jpe?g|djvu|mp[34]|wav)\b"
)
_PAGE = re.compile(r"(?i),?\s*\b(?:pp?|pages?|s|§+|l|lines?)\b\.?\s*\d.*$")
_YEAR = r"[^\W\d_][^()\n]{0,120}?\b(?:1[5-9]|20)\d\d[a-z]?"
_PAGES = r"(?:(?:pp?|[Ss]|ll?)\. ?)"
_CITED = re.compile(
    rf"\s*\((?P<source>(?:{_YEAR}[,:] ?{_PAGES}?|{_PAGES})\d+(?:[–-]\d+)?|(?<=[.!?…] \(){_YEAR})\)[.,;]?\s*\Z"
)
"""A parenthesis that cites a page, or behind the end of a sentence a year."""
_EMPTY = 3
"""Words below which a document is not text."""


def verify_quotes(corpus: Corpus | Sequence[Corpus], draft: str | Path | Document) -> list[Verdict]:
    """Judge every quotation of a draft: does it occur in the corpus, word for word?

    Args:
        corpus (Corpus | Sequence[Corpus]): Where to look.
        draft (str | Path | Document): A text, with Markdown's markup if it has any; the file of a draft, of any format
            that can be read; or a document that was read.

    Returns:
        A verdict for each quotation, in the order of the text. Empty if there is none.

    Raises:
        InputError: A file that cannot be read or has no text; a text that is not valid Unicode.
        CorruptionError: A damaged file of the corpus.

    Example:
        >>> [verdict] = quoth.verify_quotes(corpus, "They call it “an opera in five acts”.")
        >>> verdict.status, verdict.changes[0].quoted, verdict.changes[0].source
        ('altered', 'five', 'four')
    """
    corpora = [corpus] if isinstance(corpus, Corpus) else [*corpus]
    drafts: Iterable[str | Document | Draft] = read_drafts(draft) if isinstance(draft, Path) else [draft]
    check = Checker(corpora)
    return [verdict for each in drafts for verdict in check(each)]


class Checker:
    """Judges the quotations of drafts by some corpora."""

    def __init__(self, corpora: Sequence[Corpus], most: int = 10) -> None:
        self._corpora, self._judge, self._most = corpora, Judge(corpora, most), most

    def __call__(self, draft: str | Document | Draft) -> list[Verdict]:
        """The verdicts on the quotations of a draft, in order."""
        text = draft if isinstance(draft, str) else (draft.document if isinstance(draft, Draft) else draft).text
        if any("\ud800" <= each <= "\udfff" for each in text):
            raise InputError("the text is not valid Unicode (half of a surrogate pair); give Unicode text")
        return [
            replace(self._verdict(each), quote=each.text, start=each.start, end=each.end) for each in quotations(draft)
        ]

    def _verdict(self, quotation: Quotation) -> Verdict:
        """The verdict on a quotation, or on what is before the citation at its end, if its source has none there."""
        found = self._judged(quotation.text, quotation.source)
        if found.is_faithful or not (cited := _CITED.search(quotation.text)):
            return found
        before = self._judged(quotation.text[: cited.start()], quotation.source or cited["source"])
        behind = (each.context[each.end - each.context_start :].lstrip(" .,;")[:1] for each in before.evidence[-1:])
        if not before.is_faithful or "(" in behind:
            return found
        return replace(before, status="typographic") if before.status == "verbatim" else before

    def _judged(self, text: str, said: str) -> Verdict:
        """The verdict by the source that is named, if there is one; then by all corpora."""
        source, named = self._named(said)
        found = [self._judge_of(*each)(text) for each in named]
        best = min(found, key=lambda each: (not each.is_faithful, each.status == "absent"), default=None)
        if best is not None and best.is_faithful:
            return replace(best, source=source)
        anywhere = replace(self._judge(text), source=source)
        if not source:
            return anywhere
        if best is None or all(self._is_empty(*each) for each in named):
            if anywhere.is_faithful:
                return anywhere
            return replace(anywhere, status="unreadable", evidence=(), changes=())
        if anywhere.is_faithful:  # in another document than the one that is named
            other = anywhere.evidence[0]
            place = (other.document_id, other.document_id, other.start, other.end)
            told = Change("source", source, 0, len(text), *place)
            return replace(anywhere, status="altered", changes=(told, *anywhere.changes))
        return replace(best, source=source)

    def _named(self, said: str) -> tuple[str, list[tuple[Corpus, str]]]:
        """What of the words beside a quotation names a source, and the documents of that name; "" if nothing does."""
        if not said or said.startswith("#"):
            return "", []
        is_link = "://" in said or (" " not in said and ("/" in said or bool(_FILE.fullmatch(said))))
        names = [said, _PAGE.sub("", said)] + (
            [file[0].strip() for file in _FILE.finditer(said)] if not is_link else []
        )
        for name in dict.fromkeys(names):
            if found := self._documents.get(_key(name)):
                return name, found
        file = _FILE.search(said)
        return (said, []) if is_link else (file[0].strip(), []) if file else ("", [])

    @cached_property
    def _documents(self) -> dict[str, list[tuple[Corpus, str]]]:
        """The documents by the names that a draft may give them."""
        known = dict[str, dict[tuple[int, str], tuple[Corpus, str]]]()
        for number, corpus in enumerate(self._corpora):
            for document_id, title in corpus.names():
                for name in (document_id, title):
                    if not name.isdecimal() and (name == document_id or " " in name):  # no "(Paris)"
                        for key in {_key(name), name.casefold(), PurePosixPath(_key(name)).stem}:
                            known.setdefault(key, {})[number, document_id] = corpus, document_id
        return {key: [*found.values()] for key, found in known.items()}

    def _judge_of(self, corpus: Corpus, document_id: str) -> Judge:
        spelled = document_id.replace("'", "''")
        return Judge([corpus.where(f"id = '{spelled}'")], self._most)

    def _is_empty(self, corpus: Corpus, document_id: str) -> bool:
        return len(corpus.document(document_id).text.split()) < _EMPTY


def _key(name: str) -> str:
    """A name as it is looked up: the last part of an address, without what asks and where it leads."""
    path = unquote(re.split("[?#]", name.strip(), maxsplit=1)[0]).rstrip("/")
    return PurePosixPath(path.replace("_", " ")).name.casefold() or name.strip().casefold()
