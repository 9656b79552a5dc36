"""What can be read of a corpus: the documents, passages and words of one snapshot.

Knows a folder and the snapshot that is read. Does not know who writes, when, or how to move to another snapshot.

Shape suffixes: R rows, N hits.
"""

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from quoth.corpus.bm25 import Statistics, count, search
from quoth.corpus.segment import Segment
from quoth.corpus.snapshot import Snapshot
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
        """How texts are split into passages, for example "words:120"."""
        return self._snapshot.manifest.splitter

    @property
    def num_documents(self) -> int:
        """Number of documents, without deleted ones."""
        return self._snapshot.manifest.num_documents

    @property
    def num_passages(self) -> int:
        """Number of passages, without those of deleted documents."""
        return self._snapshot.manifest.num_passages

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The immutable files that the corpus consists of, in the order of their rows."""
        return self._snapshot.segments

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
        return self._snapshot.rows_of(document_id)

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
        return self._snapshot.document(document_id)

    def documents(self) -> Iterator[Document]:
        """Every document of the snapshot, in the order in which they were added.

        Example:
            >>> [document.id for document in corpus.documents()][:3]
            ['genji', 'carmen', 'iceland']
        """
        snapshot = self._snapshot
        for segment in snapshot.segments:
            yield from map(segment.document, snapshot.live_documents(segment))

    def containing(self, part: bytes) -> Iterator[tuple[Segment, int]]:
        """The documents in whose text these bytes of UTF-8 occur: their segments, and their numbers there."""
        return self._snapshot.containing(part)

    def live(self, rows_R: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of these rows are passages of this snapshot, and not deleted: bool [R]."""
        return self._snapshot.live(rows_R)

    def live_rows(self) -> NDArray[np.int64]:
        """The rows of all passages of this snapshot, ascending: int64 [num_passages]."""
        return self._snapshot.live_rows()

    def bm25(
        self, query: str, k: int, statistics: Statistics | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The passages whose words match a query best, by BM25 (Lucene's formula, k1 = 1.2, b = 0.75).

        Args:
            query (str): Words in any script.
            k (int): Number of passages.
            statistics (Statistics | None): Word counts to score with, if several corpora are searched as one (the sum
                of their `word_statistics`). Default: None, those of this snapshot, on which alone the scores then
                depend.

        Returns:
            The rows, int64 [N], and the scores, float64 [N], best first and N <= k; equal scores are in order of row.

        Raises:
            CorruptionError: The words of a segment are damaged.

        Example:
            >>> rows, scores = corpus.bm25("an opera by Bizet", k=1)
            >>> rows.tolist()
            [1]
        """
        parts = self._snapshot.live_words
        return search(parts, query, k, count(parts, query) if statistics is None else statistics)

    def word_statistics(self, query: str) -> Statistics:
        """The word counts that BM25 scores a query with; those of several corpora add up. Raises CorruptionError."""
        return count(self._snapshot.live_words, query)
