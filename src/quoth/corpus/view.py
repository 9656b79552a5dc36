"""A read-only view of a corpus at one snapshot.

Knows the public side of a snapshot. Does not know who writes, or how to move to another snapshot.

Shape suffixes that differ from the project's: R rows, N hits or documents.
"""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from quoth.corpus.bm25 import LiveWords, Query, count, search
from quoth.corpus.facets import Facets
from quoth.corpus.segment import Damaged, Segment
from quoth.corpus.snapshot import Snapshot, deletion, reason_unlisted
from quoth.corpus.where import parse
from quoth.errors import ComparisonWarning, UnknownDocumentError, brief
from quoth.records import Document, Passage
from quoth.storage import sha256_bytes

if TYPE_CHECKING:
    from quoth.corpus.exact.find import Match
    from quoth.corpus.exact.trace import Trace


class CorpusView:
    """A corpus at one snapshot."""

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
        """The number of the snapshot this object reads. Every commit makes a new one."""
        return self._snapshot.manifest.snapshot

    @property
    def splitter(self) -> str:
        """How texts are split into passages, for example "blocks:120"."""
        return self._snapshot.manifest.splitter

    @property
    def num_documents(self) -> int:
        """Number of documents, without those deleted or in damaged segments."""
        return self._snapshot.num_documents

    @property
    def num_passages(self) -> int:
        """Number of passages, without those of deleted documents or damaged segments."""
        return self._snapshot.num_passages

    @property
    def condition(self) -> str:
        """The condition of a part (`where`); "" for a whole corpus."""
        conditions = self._snapshot.conditions
        return conditions[0] if len(conditions) == 1 else " and ".join(f"({each})" for each in conditions)

    @property
    def notes(self) -> tuple[str, ...]:
        """For a part (`where`): the fields compared with dates that have other values, and how many."""
        return self._snapshot.notes

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The immutable files that make up the corpus, in order of their rows."""
        return self._snapshot.segments

    @property
    def damaged(self) -> tuple[Damaged, ...]:
        """The segments left out because one of their files is damaged: usually none.

        While there are any, BM25 counts words without them, so scores and ranks may differ.
        """
        return self._snapshot.damaged

    @property
    def unlisted(self) -> str:
        """The damage to the list of deletions, and what replaces it; "" if there is none."""
        return reason_unlisted(self._snapshot) if self._snapshot.unlisted else ""

    def passage(self, row: int) -> Passage:
        """One passage, deleted or not.

        Args:
            row (int): Its number in the corpus, as in `Evidence.passage` and `rows_of`.

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
        """The segment that contains a row. Raises InputError if none does."""
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
        """Every document of the snapshot, in the order added.

        Example:
            >>> [document.id for document in corpus.documents()][:3]
            ['genji', 'carmen', 'iceland']
        """
        return (segment.document(number) for segment, number in self.numbered())

    def ids(self) -> Iterator[str]:
        """The id of every document of the snapshot, in the order added.

        Example:
            >>> [*corpus.ids()][:3]
            ['genji', 'carmen', 'iceland']
        """
        return (segment.id(number) for segment, number in self.numbered())

    def numbered(self) -> Iterator[tuple[Segment, int]]:
        """Every document of the snapshot: its segment, and its number there."""
        snapshot = self._snapshot
        return ((segment, number) for segment in snapshot.segments for number in snapshot.live_documents(segment))

    def locate(self, document_id: str) -> tuple[Segment, int]:
        """The segment that contains a document, and its number there. Raises UnknownDocumentError."""
        return self._snapshot.locate(document_id)

    def names(self) -> Iterator[tuple[str, str]]:
        """The id and the title of every document of the snapshot, in the order in which they were added."""
        snapshot = self._snapshot
        records = (
            segment.record(number) for segment in snapshot.segments for number in snapshot.live_documents(segment)
        )
        return ((document_id, title) for document_id, title, _ in records)

    def containing(self, part: bytes) -> Iterator[tuple[Segment, int]]:
        """The documents whose text contains these UTF-8 bytes: their segments, and their numbers there."""
        snapshot = self._snapshot
        for segment in snapshot.segments:
            for document in segment.containing(part):
                if not snapshot.is_deleted(segment, document):
                    yield segment, document

    def num_deleted(self, segment: Segment) -> int:
        """How many of a segment's documents are deleted, or not in this part."""
        return self._snapshot.num_deleted(segment)

    def deleted(self, segment: Segment, numbers_N: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of these documents of a segment are deleted, or not in this part: bool [N]."""
        return self._snapshot.deletions.contain(segment.first_document + numbers_N)

    def live_documents(self, segment: Segment) -> Iterator[int]:
        """The documents of a segment, by their numbers there, that are neither deleted nor outside of this part."""
        return self._snapshot.live_documents(segment)

    def find(self, text: str, limit: int | None = None) -> "list[Match]":
        """Every place where a text occurs word for word, across passages, whatever its typography and its case.

        It begins and ends with whole words; in scripts written without spaces every letter is one. Quotation marks,
        dashes, hyphens at the end of a line, spaces, ligatures and accents typed in two ways make no difference. The
        first call makes the exact index (of 50 MB of text in about 13 seconds) unless `quoth index --exact` did; an
        IndexWarning says so if it takes long. A text without a word, such as an emoji, is looked for in every document,
        which is slow.

        Args:
            text (str): What to look for.
            limit (int | None): Number of places. Default: None, all of them.

        Returns:
            The places, in the order of the documents. `degree` is "exact", "typographic" or "case": how the place
            differs from the text.

        Raises:
            InputError: A text that is empty or not valid Unicode, a limit below 1.
            CorruptionError: A damaged file.

        Example:
            >>> [match] = corpus.find("an Opera in four acts")
            >>> match.document_id, match.start, match.end, match.degree
            ('carmen', 10, 31, 'case')
        """
        from quoth.corpus.exact.find import find

        return find(self, text, limit)

    def count(self, text: str) -> int:
        """The number of places that `find` finds.

        Args:
            text (str): What to look for.

        Returns:
            The number of places.

        Raises:
            InputError: A text that is empty or not valid Unicode.
            CorruptionError: A damaged file.

        Example:
            >>> corpus.count("a river in Africa")
            1
        """
        from quoth.corpus.exact.find import count

        return count(self, text)

    def trace(self, text: str, min_words: int = 6) -> "Trace":
        """The parts of a text that occur in the corpus word for word, as `find` looks for them, and where.

        Args:
            text (str): The text.
            min_words (int): The least number of words of a part; in scripts written without spaces, of letters.
                Default: 6.

        Returns:
            `spans`: the longest parts, the rarest first, each with up to ten places; none is contained in another.
            `coverage`: the share of the text's words in parts that occur in a document, by its id.

        Raises:
            InputError: A text that is not valid Unicode, `min_words` below 1.
            CorruptionError: A damaged file.

        Example:
            >>> traced = corpus.trace("They say that the Nile is a river in Africa, too.")
            >>> traced.spans[0].text, traced.spans[0].num_places, traced.coverage
            ('the Nile is a river in Africa', 1, {'nile': 0.6363636363636364})
        """
        from quoth.corpus.exact.trace import trace

        return trace([self], text, min_words)

    def where(self, condition: str) -> Self:
        """The part of the corpus whose documents meet a condition. A search sees only these.

        It is read-only. Models accept it like any corpus: `reader.over([corpus.where("year >= 2020")])`. If a field is
        compared with a date and only some of its values are dates, a ComparisonWarning says how many are not.

        Args:
            condition (str): Tests of metadata, `id` or `title` with and, or, not: =, !=, <, <=, >, >=, in, between,
                like, is null; add `once` at the end, or pass it alone, to keep only the first of several documents with
                the same text, ignoring case and white space.

        Returns:
            A corpus without the other documents. Rows and files are the same.

        Raises:
            InputError: The condition cannot be parsed, no document has one of its fields, or none has a value of that
                type.

        Example:
            >>> corpus.where("title like '%genji%' or id = 'carmen'").num_documents
            2
        """
        [part] = parts([self], condition)
        return part

    def fields(self) -> dict[str, dict[str, Any]]:
        """The fields of the documents' metadata, which `where` can test.

        Returns:
            Per field the number of `documents` that have it, and its five most frequent `values` with their document
            counts; no values for a field with more than 1,000, and none longer than 200 characters.

        Example:
            >>> corpus.fields()
            {}
        """
        facets = sorted(self.facets.items())
        return {name: {"documents": each.documents, "values": dict(each.most_common(5))} for name, each in facets}

    @property
    def facets(self) -> Facets:
        """The values of each metadata field, counted once per snapshot. Raises CorruptionError."""
        return self._snapshot.facets

    def live(self, rows_R: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of these rows are live passages of this snapshot: bool [R]."""
        return self._snapshot.live(rows_R)

    def live_rows(self) -> NDArray[np.int64]:
        """The rows of all passages of this snapshot, ascending: int64 [num_passages]."""
        return self._snapshot.live_rows()

    @property
    def live_words(self) -> list[LiveWords]:
        """The words of every passage, by segment. Raises CorruptionError."""
        return self._snapshot.live_words

    def bm25(self, query: str, k: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The passages that best match a query's words, by BM25 (Lucene's formula, k1 = 1.2, b = 0.75).

        Args:
            query (str): Words in any script.
            k (int): Number of passages.

        Returns:
            The rows, int64 [N], and the scores, float64 [N], best first, N <= k; ties are in row order.

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
    """The parts of several corpora whose documents meet a condition; a field of one is known in all.

    Warns of values that are not dates, like `notes`. Raises InputError like `CorpusView.where`.
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
    """The notes of parts; with names if there are several."""
    several = [*corpora]
    return [f"{each.name}: {note}" if len(several) > 1 else note for each in several for note in each.notes]


def count_passages(corpora: Iterable[CorpusView]) -> int:
    """The number of passages of several corpora together."""
    return sum(corpus.num_passages for corpus in corpora)


def digest_of(corpus: CorpusView) -> str:
    """The digest of a corpus at its snapshot: of its documents, and how they are stored; and of the condition."""
    return sha256_bytes(f"{corpus._snapshot.manifest.digest} {corpus.condition}".encode())


def documents_of(corpora: Sequence[View], document_id: str) -> list[tuple[View, Document]]:
    """The documents with an id, and the corpora that have them. Raises UnknownDocumentError if there is none."""
    found = []
    for corpus in corpora:
        try:
            found.append((corpus, corpus.document(document_id)))
        except UnknownDocumentError:
            if len(corpora) == 1:
                raise
    if not found:
        names = ", ".join(each.name for each in corpora)
        raise UnknownDocumentError(f"document {brief(document_id)} is in none of the corpora {names}")
    return found
