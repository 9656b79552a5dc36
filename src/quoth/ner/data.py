"""CoNLL files: one word and its label per line, an empty line after each sentence.

Knows: the columns, the label schemes (IO and BIO), WNUT 2017's names of classes, how a file is divided into parts. Does
not know: what the texts are used for.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate

from quoth.corpus.documents import read_text
from quoth.errors import InputError
from quoth.ner.tags import spans_of_labels
from quoth.records import TaggedSpan, TaggedText

PARTS = {"train": range(3, 10), "dev": range(2, 3), "test": range(2)}
"""Tenths of the documents: remainders modulo ten of the digest of a document's text."""

CLASSES = {
    "person": "PER",
    "location": "LOC",
    "corporation": "ORG",
    "group": "ORG",
    "creative-work": "MISC",
    "product": "MISC",
}
"""WNUT 2017's six classes (Derczynski et al. 2017) mapped to the four of CoNLL 2003."""

_BREAK = "-DOCSTART-"
_SPEC = re.compile(r"(?P<path>.+?)(?::(?P<part>train|dev|test))?", re.DOTALL)

Line = tuple[int, str, str]
"""A line's number, its word and its label."""


def read_conll(spec: str) -> list[list[TaggedText]]:
    """The documents of a CoNLL file (compressed or not), each a list of sentences: words joined by spaces.

    The first column is the word, the last its label. A -DOCSTART- line begins a document; in a file without any, each
    sentence is one. "FILE:train", "FILE:dev" and "FILE:test" take 70, 10 and 20 % of the documents, chosen by the
    digest of their text. Raises InputError naming the file and the line.
    """
    match = _SPEC.fullmatch(spec)
    path, part = (match["path"], match["part"]) if match else (spec, None)
    documents = [[_sentence(lines) for lines in document] for document in _documents(path)]
    chosen = [document for document in documents if part is None or _tenth(document) in PARTS[part]]
    if not chosen:
        raise InputError(f"{spec}: no sentence; give a CoNLL file: one word and its label per line")
    return chosen


def _documents(path: str) -> list[list[list[Line]]]:
    """The file's lines, grouped into sentences and these into documents."""
    documents: list[list[list[Line]]] = [[]]
    sentence: list[Line] = []
    divided = False
    for number, text in enumerate(read_text(path).split("\n"), start=1):
        columns = text.split()
        if columns and columns[0] != _BREAK:
            sentence.append(_word(path, number, columns))
            continue
        if sentence:
            documents[-1].append(sentence)
            sentence = []
        if columns:
            divided = True
            documents.append([])
    if sentence:
        documents[-1].append(sentence)
    if not divided:
        return [[lines] for lines in documents[0]]
    return [document for document in documents if document]


def _word(path: str, number: int, columns: Sequence[str]) -> Line:
    label = columns[-1]
    if len(columns) < 2 or not (label == "O" or (label[:2] in ("B-", "I-") and len(label) > 2)):
        shown = " ".join(columns)[:40]
        raise InputError(f"{path}:{number}: {shown!r}; it must be a word and O, B-CLASS or I-CLASS")
    return number, columns[0], label


def _sentence(lines: Sequence[Line]) -> TaggedText:
    words = [word for _, word, _ in lines]
    starts = accumulate((len(word) + 1 for word in words), initial=0)
    ranges = [(start, start + len(word)) for start, word in zip(starts, words, strict=False)]
    spans = spans_of_labels(ranges, [label for *_, label in lines])
    named = (replace(span, label=CLASSES.get(span.label, span.label)) for span in spans)
    return TaggedText(" ".join(words), tuple(named))


def _tenth(document: Sequence[TaggedText]) -> int:
    text = "\n".join(sentence.text for sentence in document)
    return int.from_bytes(hashlib.sha256(text.encode("utf-8")).digest()[:8], "big") % 10


def joined(sentences: Iterable[TaggedText]) -> TaggedText:
    """Sentences as one text, joined by spaces."""
    texts: list[str] = []
    spans: list[TaggedSpan] = []
    at = 0
    for sentence in sentences:
        texts.append(sentence.text)
        spans += (TaggedSpan(at + span.start, at + span.end, span.label) for span in sentence.spans)
        at += len(sentence.text) + 1
    return TaggedText(" ".join(texts), tuple(spans))
