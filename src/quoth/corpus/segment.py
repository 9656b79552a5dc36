"""One immutable segment: documents, and the passages they were split into.

Knows how documents and passages lie on disk; does not know other segments, deletions or snapshots. Rows and
document numbers in its files count from 0; the corpus says where they begin in its own count.

    documents.bin   for each document its record, JSON [id, title, metadata], then its text, both UTF-8
    documents.npy   int64 [D + 1, 3]: where the record begins, where the text begins, the first passage
    passages.npy    int64 [P, 5]: document, start and end (characters), start and end (bytes in documents.bin)
    ids.npy         uint64 [2, D]: the hashes of the documents' ids in order, and whose they are
    words.bin       the passages' words (`words`); a segment of the first format has none

Shape suffixes: D documents, P passages, O documents of another segment.
"""

import json
from array import array
from collections.abc import Iterator
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quoth.corpus.words import WordGatherer, Words, indexed_text
from quoth.errors import CorruptionError, DuplicateDocumentError
from quoth.records import Document, Passage
from quoth.storage import check_folder, open_array, open_blob, save_array, seal_folder


def hash_id(document_id: str) -> int:
    """64 bits of an id, by which it is looked up; equal hashes are told apart by the ids themselves."""
    return int.from_bytes(blake2b(document_id.encode("utf-8", "surrogatepass"), digest_size=8).digest())


class Segment:
    """A sealed segment, open for reading. Its passages are the corpus's rows from `first_row` to before `last_row`.

    Raises CorruptionError, naming the file, where a size is wrong or a record cannot be read.
    """

    def __init__(self, path: Path, first_row: int, first_document: int, sha256: str) -> None:
        check_folder(path, sha256)
        self.path = path
        self.name = path.name
        self.first_row = first_row
        self.first_document = first_document
        self.sha256 = sha256
        self._blob = open_blob(path / "documents.bin")
        self._documents_D13: NDArray[np.int64] = open_array(path / "documents.npy")
        self._passages_P5: NDArray[np.int64] = open_array(path / "passages.npy")
        self._hashes_D, self._hashed_D = open_array(path / "ids.npy")
        self.num_documents = len(self._documents_D13) - 1
        self.num_passages = len(self._passages_P5)
        self._words = Words.open(file) if (file := path / "words.bin").exists() else None
        self.last_row = first_row + self.num_passages
        self.last_document = first_document + self.num_documents

    def verify(self) -> None:
        """Reads every byte. Raises CorruptionError naming the file that is damaged."""
        check_folder(self.path, self.sha256, contents=True)

    def passage(self, index: int) -> Passage:
        """The `index`-th passage, in microseconds, reading nothing else."""
        document, start, end, first_byte, last_byte = self._passages_P5[index].tolist()
        document_id, title, metadata = self._record(document)
        text = self._text(first_byte, last_byte)
        return Passage(self.first_row + index, document_id, title, text, start, end, metadata)

    def passages(self) -> Iterator[Passage]:
        """Every passage, in order."""
        return map(self.passage, range(self.num_passages))

    @property
    def has_words(self) -> bool:
        """Whether the passages' words are on disk, as they are but in a segment of the first format."""
        return self._words is not None

    @cached_property
    def words(self) -> Words:
        """The passages' words; where they are not on disk, every text is read and they are kept in memory."""
        return self._words or Words.of(indexed_text(each.title, each.text) for each in self.passages())

    def document(self, index: int) -> Document:
        """The `index`-th document, exactly as it was added."""
        document_id, title, metadata = self._record(index)
        text = self._text(int(self._documents_D13[index, 1]), int(self._documents_D13[index + 1, 0]))
        return Document(document_id, title, text, metadata)

    def passage_range(self, document: int) -> tuple[int, int]:
        """The passages of a document, counted in this segment."""
        return int(self._documents_D13[document, 2]), int(self._documents_D13[document + 1, 2])

    def ranges(self, document: int) -> list[tuple[int, int]]:
        """The character ranges of a document's passages."""
        first, last = self.passage_range(document)
        return [(start, end) for start, end in self._passages_P5[first:last, 1:3].tolist()]

    def find(self, document_id: str) -> int | None:
        """The document of that id, or None."""
        hashed = np.uint64(hash_id(document_id))
        first = int(np.searchsorted(self._hashes_D, hashed, "left"))
        last = int(np.searchsorted(self._hashes_D, hashed, "right"))
        found = self._hashed_D[first:last].tolist()
        return next((each for each in found if self.id(each) == document_id), None)

    def find_all(self, other: "Segment") -> Iterator[int]:
        """The documents whose ids are also in `other`."""
        first_O = np.searchsorted(self._hashes_D, other._hashes_D, "left")
        last_O = np.searchsorted(self._hashes_D, other._hashes_D, "right")
        for o in np.flatnonzero(last_O > first_O).tolist():
            wanted = other.id(int(other._hashed_D[o]))
            found = self._hashed_D[first_O[o] : last_O[o]].tolist()
            yield from (document for document in found if self.id(document) == wanted)

    def id(self, document: int) -> str:
        """The id of a document."""
        return self._record(document)[0]

    def _record(self, document: int) -> tuple[str, str, dict[str, Any]]:
        first, last = self._documents_D13[document, :2].tolist()
        try:
            document_id, title, metadata = json.loads(self._blob[first:last])
        except ValueError as error:
            raise self._damaged(error) from None
        return document_id, title, metadata

    def _text(self, first: int, last: int) -> str:
        try:
            return self._blob[first:last].decode()
        except UnicodeDecodeError as error:
            raise self._damaged(error) from None

    def _damaged(self, error: ValueError) -> CorruptionError:
        return CorruptionError(f"{self.path / 'documents.bin'}: damaged ({error}); `quoth verify` checks all")


class SegmentWriter:
    """Writes one segment, texts straight to disk: what it holds in memory is 40 bytes a passage, the ids and the words.

    >>> with SegmentWriter(folder) as writer:
    ...     writer.add(document, ranges)
    >>> sha256 = writer.seal()

    Raises DuplicateDocumentError where an id comes twice.
    """

    def __init__(self, path: Path) -> None:
        path.mkdir(parents=True)
        self.path = path
        self.num_passages = 0
        self._ids: dict[str, int] = {}
        self._documents = array("q")
        self._passages = array("q")
        self._words = WordGatherer()
        self._stream = (path / "documents.bin").open("wb")

    @property
    def num_documents(self) -> int:
        return len(self._ids)

    def add(self, document: Document, ranges: list[tuple[int, int]]) -> None:
        """Appends a document whose passages are these character ranges, in order, none overlapping."""
        if document.id in self._ids:
            raise DuplicateDocumentError(f"document {document.id!r} comes twice; leave one out")
        fields = [document.id, document.title, dict(document.metadata)]
        record = json.dumps(fields, ensure_ascii=False).encode()
        begin = self._stream.tell()
        self._documents.extend((begin, begin + len(record), self.num_passages))
        self._stream.write(record)
        for (start, end), (first, last) in zip(ranges, _byte_ranges(document.text, ranges), strict=True):
            shift = begin + len(record)
            self._passages.extend((self.num_documents, start, end, shift + first, shift + last))
            self._words.add(indexed_text(document.title, document.text[start:end]))
        self._stream.write(document.text.encode())
        self._ids[document.id] = self.num_documents
        self.num_passages += len(ranges)

    def seal(self) -> str:
        """Writes the tables, flushes everything to disk and returns the SHA-256 of the list of checksums."""
        size = self._stream.tell()
        self._stream.close()
        self._documents.extend((size, size, self.num_passages))
        save_array(self.path / "documents.npy", np.array(self._documents, np.int64).reshape(-1, 3))
        save_array(self.path / "passages.npy", np.array(self._passages, np.int64).reshape(-1, 5))
        hashes_D = np.array([hash_id(each) for each in self._ids], np.uint64)
        order_D = np.argsort(hashes_D, kind="stable")
        save_array(self.path / "ids.npy", np.stack([hashes_D[order_D], order_D.astype(np.uint64)]))
        self._words.words().save(self.path / "words.bin")
        return seal_folder(self.path)

    def __enter__(self) -> "SegmentWriter":
        return self

    def __exit__(self, *exception: object) -> None:
        self._stream.close()


def _byte_ranges(text: str, ranges: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Where character ranges, in order, lie in the text's UTF-8."""
    if text.isascii():
        yield from ranges
        return
    position = size = 0
    for start, end in ranges:
        first = size + len(text[position:start].encode())
        size = first + len(text[start:end].encode())
        position = end
        yield first, size
