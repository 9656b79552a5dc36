"""Open retrieval over SQuAD: a corpus of its paragraphs, one passage each, and of passages of other pages.

Knows: how the corpus is made. Does not know: how it is searched or how answers are judged.
"""

from __future__ import annotations

import heapq
import shutil
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from itertools import chain
from pathlib import Path

from quoth.corpus.corpus import Corpus
from quoth.corpus.documents import read_documents
from quoth.errors import InputError
from quoth.records import Document
from quoth.text.passages import DEFAULT_SPLITTER, WHOLE, get_splitter


def squad_corpus(
    path: str | Path,
    paragraphs: Sequence[Document],
    distractors: Sequence[str] = (),
    count: int | None = None,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Corpus:
    """A new corpus of the paragraphs and `count` passages (None: all) of the documents in the files `distractors`.

    Raises InputError if the folder is not empty, or if there are fewer passages.
    """
    corpus = Corpus.create(path, splitter=WHOLE)
    titles = {paragraph.title for paragraph in paragraphs}
    try:
        corpus.add(chain(paragraphs, draw_passages(distractors, titles, count, seed)), progress)
    except BaseException:
        shutil.rmtree(path)
        raise
    return corpus


def draw_passages(paths: Sequence[str], titles: set[str], count: int | None, seed: int) -> Iterator[Document]:
    """Passages of the documents, split as in a corpus, each as a document `distractor:ID:NUMBER`.

    Documents with one of `titles` (ignoring case) are left out. Draws `count` passages (None: all) at random by their
    ids: the same for the same seed, whatever the order of the files; a smaller count draws a subset of a larger one's.
    Raises InputError if there are fewer.
    """
    passages = _passages(paths, {title.casefold() for title in titles}) if paths else iter(())
    if count is None:
        yield from passages
        return
    drawn = heapq.nsmallest(count, passages, key=lambda passage: blake2b(f"{seed} {passage.id}".encode()).digest())
    if len(drawn) < count:
        raise InputError(f"{count:,} distractors requested, but there are {len(drawn):,} passages; give more documents")
    yield from drawn


def _passages(paths: Sequence[str], left_out: set[str]) -> Iterator[Document]:
    split = get_splitter(DEFAULT_SPLITTER)
    for document in read_documents(*paths):
        if document.title.casefold() not in left_out:
            for number, (start, end) in enumerate(split(document.text)):
                yield Document(f"distractor:{document.id}:{number}", document.title, document.text[start:end])
