"""A corpus as one snapshot shows it, for reading.

Knows what is public of a snapshot. Does not know who writes, or how to move to another snapshot.

Shape suffixes that differ from the project's: R rows, N hits.
"""

import warnings
from collections.abc import Iterable, Iterator
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from quoth.corpus.bm25 import LiveWords, Query, count, search
from quoth.corpus.facets import Facets
from quoth.corpus.segment import Damaged, Segment
from quoth.corpus.snapshot import Snapshot, deletion, reason_unlisted
from quoth.corpus.where import parse
from quoth.errors import ComparisonWarning
from quoth.records import Document, Passage


class CorpusView:
    """A corpus as one snapshot shows it."""

    def __init__(self, path: Path, snapshot: Snapshot) -> None:
        self.path = path
        self._snapshot = snapshot

    def __repr__(self) -> str:
        contents = f"documents={self.num_documents}, passages={self.num_passages}, snapshot={self.snapshot}"
        return f"{type(self).__name__}({self.path.name!r}, {contents})"

    @cached_property
    def name(self) -> str:
        """The folder's name without `.quoth`."""
        return self.path.absolute().stem

    @property
    def snapshot(self) -> int:
        """The number of the snapshot that this object reads. Every commit makes a new one."""
        return self._snapshot.manifest.snapshot

    @property
    def splitter(self) -> str:
        """How texts are split into passages, for example "blocks:120"."""
        return self._snapshot.manifest.splitter

    @property
    def num_documents(self) -> int:
        """Number of documents, without deleted ones and those of damaged segments."""
        return self._snapshot.num_documents

    @property
    def num_passages(self) -> int:
        """Number of passages, without those of deleted documents and of damaged segments."""
        return self._snapshot.num_passages

    @property
    def condition(self) -> str:
        """What the documents of a part meet (`where`); "" for a whole corpus."""
        conditions = self._snapshot.conditions
        return conditions[0] if len(conditions) == 1 else " and ".join(f"({each})" for each in conditions)

    @property
    def notes(self) -> tuple[str, ...]:
        """Of a part (`where`): the fields compared with dates that have other values, and how many."""
        return self._snapshot.notes

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The immutable files that the corpus consists of, in the order of their rows."""
        return self._snapshot.segments

    @property
    def damaged(self) -> tuple[Damaged, ...]:
        """The segments without which the corpus is open, because a file of theirs is damaged: usually none.

        As long as there are any, BM25 counts words without them, so that scores and ranks may differ.
        """
        return self._snapshot.damaged

    @property
    def unlisted(self) -> str:
        """The damage of the list of deletions, and its substitute; "" if there is none."""
        return reason_unlisted(self._snapshot) if self._snapshot.unlisted else ""

    def passage(self, row: int) -> Passage:
        """One passage, deleted or not.

        Args:
            row (int): Its number in the corpus, as `Evidence.passage` and `rows_of` give it.

        Returns:
            The passage: `text`, `title`, `document_id`, and `start` and `end` in characters of its document.

        Raises:
            InputError: No segment contains that row.

        Example:
            >>> passage = corpus.passage(0)
            >>> passage.document_id, passage.start, passage.end
            ('genji', 0, 80)
        """
        return self._snapshot.passage(row)

    def segment_of(self, row: int) -> Segment:
        """The segment that contains a passage's row. Raises InputError if none does."""
        return self._snapshot.segment_of(row)

    def rows_of(self, document_id: str) -> list[int]:
        """The rows of a document's passages, in order.

        Args:
            document_id (str): The id it was added with.

        Returns:
            The rows, consecutive and ascending.

        Raises:
            UnknownDocumentError: No document has that id.

        Example:
            >>> corpus.rows_of("carmen")
            [1]
        """
        _, first_row, last_row = deletion(*self._snapshot.locate(document_id))
        return list(range(first_row, last_row))

    def passages(self) -> Iterator[Passage]:
        """Every passage of the snapshot, by row.

        Example:
            >>> [passage.title for passage in corpus.passages()][:2]
            ['The Tale of Genji', 'Carmen']
        """
        snapshot = self._snapshot
        return (snapshot.passage(row) for row in snapshot.live_rows().tolist())

    def document(self, document_id: str) -> Document:
        """One document, exactly as it was added.

        Args:
            document_id (str): The id it was added with.

        Returns:
            The document: `id`, `title`, `text`, `metadata`.

        Raises:
            UnknownDocumentError: No document has that id.

        Example:
            >>> corpus.document("carmen").text[:21]
            'Carmen is an opera in'
        """
        segment, number = self._snapshot.locate(document_id)
        return segment.document(number)

    def documents(self) -> Iterator[Document]:
        """Every document of the snapshot, in the order in which they were added.

        Example:
            >>> [document.id for document in corpus.documents()][:3]
            ['genji', 'carmen', 'iceland']
        """
        return (segment.document(number) for segment, number in self.numbered())

    def ids(self) -> Iterator[str]:
        """The id of every document of the snapshot, in the order in which they were added.

        Example:
            >>> [*corpus.ids()][:3]
            ['genji', 'carmen', 'iceland']
        """
        return (segment.id(number) for segment, number in self.numbered())

    def numbered(self) -> Iterator[tuple[Segment, int]]:
        """Every document of the snapshot: its segment, and its number there."""
        snapshot = self._snapshot
        return ((segment, number) for segment in snapshot.segments for number in snapshot.live_documents(segment))

    def containing(self, part: bytes) -> Iterator[tuple[Segment, int]]:
        """The documents in whose text these bytes of UTF-8 occur: their segments, and their numbers there."""
        snapshot = self._snapshot
        for segment in snapshot.segments:
            for document in segment.containing(part):
                if not snapshot.is_deleted(segment, document):
                    yield segment, document

    def where(self, condition: str) -> Self:
        """The part of the corpus whose documents meet a condition: searched, it is as a corpus of these alone.

        It is for reading. Models take it as any corpus: `reader.over([corpus.where("year >= 2020")])`. A
        ComparisonWarning says how many values of a field are not dates, if others are and they are compared with one.

        Args:
            condition (str): Tests of metadata, `id` or `title` with and, or, not: =, !=, <, <=, >, >=, in, between,
                like, is null; with `once` at its end, or alone: of documents with the same text, ignoring case and
                white space, only the first.

        Returns:
            A corpus without the other documents. Rows and files are the same.

        Raises:
            InputError: The condition cannot be read, no document has a field of it, or none has a value of that kind.

        Example:
            >>> corpus.where("title like '%genji%' or id = 'carmen'").num_documents
            2
        """
        [part] = parts([self], condition)
        return part

    def fields(self) -> dict[str, dict[str, Any]]:
        """What `where` can go by: the fields of the documents' metadata.

        Returns:
            Per field the number of `documents` that have it, and its five most frequent `values` with the numbers of
            their documents; no values of a field with more than 1,000, and none of more than 200 characters.

        Example:
            >>> corpus.fields()
            {}
        """
        facets = sorted(self.facets.items())
        return {name: {"documents": each.documents, "values": dict(each.most_common(5))} for name, each in facets}

    @property
    def facets(self) -> Facets:
        """What documents have as each field of their metadata, counted once per snapshot. Raises CorruptionError."""
        return self._snapshot.facets

    def live(self, rows_R: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of these rows are passages of this snapshot, and not deleted: bool [R]."""
        return self._snapshot.live(rows_R)

    def live_rows(self) -> NDArray[np.int64]:
        """The rows of all passages of this snapshot, ascending: int64 [num_passages]."""
        return self._snapshot.live_rows()

    @property
    def live_words(self) -> list[LiveWords]:
        """The words of every passage, by segment. Raises CorruptionError."""
        return self._snapshot.live_words

    def bm25(self, query: str, k: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The passages whose words match a query best, by BM25 (Lucene's formula, k1 = 1.2, b = 0.75).

        Args:
            query (str): Words in any script.
            k (int): Number of passages.

        Returns:
            The rows, int64 [N], and the scores, float64 [N], best first and N <= k; equal scores are in order of row.

        Raises:
            CorruptionError: The words of a segment are damaged, and so are its passages.

        Example:
            >>> rows, scores = corpus.bm25("an opera by Bizet", k=1)
            >>> rows.tolist()
            [1]
        """
        parts, asked = self.live_words, Query.of(query)
        return search(parts, asked, k, count(parts, asked))


View = TypeVar("View", bound=CorpusView)


def parts(corpora: Iterable[View], condition: str, warn: bool = True) -> list[View]:
    """The parts of several corpora whose documents meet a condition; a field that one of them has is known in all.

    Warns of values that are not dates, as their `notes` do. Raises InputError as `CorpusView.where`.
    """
    read, made = parse(condition), [copy(each) for each in corpora]
    known = notes_of(made)
    for part in made:
        part._snapshot = part._snapshot.where(read)
    read.check()
    for note in notes_of(made) if warn else ():
        if note not in known:
            warnings.warn(ComparisonWarning(note), stacklevel=3)
    return made


def notes_of(corpora: Iterable[CorpusView]) -> list[str]:
    """The notes of parts; of several, with their names."""
    several = [*corpora]
    return [f"{each.name}: {note}" if len(several) > 1 else note for each in several for note in each.notes]


def count_passages(corpora: Iterable[CorpusView]) -> int:
    """The number of passages of several corpora together."""
    return sum(corpus.num_passages for corpus in corpora)
