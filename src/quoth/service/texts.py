"""What a service finds in texts without any model: a document in several corpora, and the words that a search matched.

Knows: corpora and how words are searched. Does not know: HTTP, models.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress

from quoth.corpus.corpus import Corpus
from quoth.errors import UnknownDocumentError, brief
from quoth.records import Document
from quoth.text.boundaries import STOP_WORDS
from quoth.text.terms import analyse

_WORD = re.compile(r"\w+")


def document_of(corpora: Sequence[Corpus], document_id: str) -> tuple[Corpus, Document]:
    """A document, and the first corpus that has it. Raises UnknownDocumentError."""
    if len(corpora) == 1:
        return corpora[0], corpora[0].document(document_id)
    for corpus in corpora:
        with suppress(UnknownDocumentError):
            return corpus, corpus.document(document_id)
    names = ", ".join(each.name for each in corpora)
    raise UnknownDocumentError(f"document {brief(document_id)} is in none of the corpora {names}")


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
