"""One immutable segment: documents, and the passages they were split into.

Knows how documents and passages lie on disk; does not know other segments, deletions or snapshots. Rows and
document numbers in its files count from 0; the corpus says where they begin in its own count.

    documents.bin   per document its record, JSON [id, title, metadata], then its text, both UTF-8
    documents.npy   int64 [D + 1, 3]: where the record begins, where the text begins, the first passage
    passages.npy    int64 [P, 5]: document, start and end (characters), start and end (bytes in documents.bin)
    ids.npy         uint64 [2, D]: the hashes of the documents' ids, ascending, and whose they are
    checks.npy      uint32 [D + P]: CRC-32 of each document's bytes, then of each passage: its row of the table, its
                    document's record and its own bytes, compared on every read (older segments have none)
    words-2.bin     the passages' words (`bm25`); by the first analyzer, words.bin; in the first format, none
    blocks.bin      the documents' blocks (`quoth_sources.blocks`), one after another (if none: guessed)
    blocks.npy      int64 [D, 3]: the bytes of blocks.bin from where to where that are a document's, and their CRC-32
    places.bin      the documents' source maps (`quoth_sources.source_map`), one after another; only if there are any
    places.npy      int64 [D + P, 3]: the bytes of places.bin from where to where that are a document's map, then those
                    with a passage's part of it, and their CRC-32

Shape suffixes that differ from the project's: D documents, O documents of another segment.
"""

import json
import mmap
import warnings
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any
from weakref import WeakMethod
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from quoth.arrays import open_array, open_blob, save_array
from quoth.corpus.bm25 import WordGatherer, Words, hashes, indexed_text
from quoth.corpus.manifest import SegmentEntry, segment_path
from quoth.errors import CorruptionError, DamageWarning, DuplicateDocumentError, brief, remedy_of
from quoth.records import Document, Passage
from quoth.storage import check_file, check_folder, from_top, naming, seal_folder, sha256_bytes, size_of
from quoth.text.passages import Ranges
from quoth.text.terms import FIRST, LATEST
from quoth_sources.blocks import KINDS, Block, Outline, decode, encode
from quoth_sources.guess import guess
from quoth_sources.source_map import frames_of

PLACES, BLOCKS = "places.bin", "blocks.bin"
OUTLINES = 64
"""Documents whose blocks are kept in memory."""
WORDS = {FIRST: "words.bin", LATEST: f"words-{LATEST}.bin"}
Split = tuple[Document, Ranges]
"""A document, and the character ranges of its passages."""


class Segment:
    """A sealed segment, open for reading. Its passages are the corpus's rows from `first_row` to before `last_row`.

    Raises CorruptionError, naming the file, if a size is wrong or a record cannot be read. A damaged one can be opened
    with `sealed=False`, for `document` alone, which compares what it reads.
    """

    def __init__(self, path: Path, first_row: int, first_document: int, sha256: str, sealed: bool = True) -> None:
        self._files = check_folder(path, sha256, but=WORDS.values()) if sealed else {}
        self._maps_words = False
        self.path = path
        self.name = path.name
        self.first_row = first_row
        self.first_document = first_document
        self.sha256 = sha256
        self._blob = open_blob(path / "documents.bin")
        self._documents_D13: NDArray[np.int64] = open_array(path / "documents.npy", np.int64, (-1, 3))
        self._passages_P5: NDArray[np.int64] = open_array(path / "passages.npy", np.int64, (-1, 5))
        self._hashes_D, self._hashed_D = open_array(path / "ids.npy", np.uint64, (2, -1))
        self.num_documents = len(self._documents_D13) - 1
        self.num_passages = len(self._passages_P5)
        self._checks_DP: NDArray[np.uint32] | None = None
        if not sealed or (path / "checks.npy").exists():  # without checks nothing tells an intact document
            self._checks_DP = open_array(path / "checks.npy", np.uint32, (self.num_documents + self.num_passages,))
        self._places = Parts(path / PLACES) if sealed and PLACES in self._files else None
        self._blocks = Parts(path / BLOCKS) if sealed and BLOCKS in self._files else None
        # Not of the method itself: a segment that keeps itself keeps its files until everything is collected.
        own = WeakMethod(self._read_outline)
        self._outline = lru_cache(OUTLINES)(lambda document: own()(document))  # type: ignore[misc]
        ends = [len(self._blob), len(self._blob), self.num_passages]
        if sealed and (len(self._hashes_D) != self.num_documents or self._documents_D13[-1:].tolist() != [ends]):
            raise CorruptionError(f"{path / 'documents.npy'}: damaged, it does not match the files next to it")
        self.last_row = first_row + self.num_passages
        self.last_document = first_document + self.num_documents

    @property
    def num_bytes(self) -> int:
        """Bytes of its documents."""
        return len(self._blob)

    @property
    def entry(self) -> SegmentEntry:
        """This segment's entry in a manifest."""
        return SegmentEntry(
            name=self.name,
            first_row=self.first_row,
            first_document=self.first_document,
            num_documents=self.num_documents,
            num_passages=self.num_passages,
            sha256=self.sha256,
        )

    def has_its_sizes(self) -> bool:
        """Whether the files that are open are as long as they were: reading a mapped one past its end is fatal."""
        opened = (each for each in self._files.items() if each[0] not in WORDS.values() or self._maps_words)
        with suppress(CorruptionError):
            return all(size_of(self.path / name) == expected["size"] for name, expected in opened)
        return False

    def verify(self) -> None:
        """Reads every byte. Raises CorruptionError naming the file that is damaged."""
        check_folder(self.path, self.sha256, contents=True)

    def passage(self, index: int) -> Passage:
        """The `index`-th passage, in microseconds: nothing else is read."""
        row = self._passages_P5[index]
        document, start, end, first_byte, last_byte = row.tolist()
        if not 0 <= document < self.num_documents:
            raise self._damaged(f"passage {index} belongs to no document", "passages.npy")
        if self._checks_DP is not None:
            first, last = self._documents_D13[document, :2].tolist()
            found = passage_check(row.tobytes(), self._blob[first:last], self._blob[first_byte:last_byte])
            self._compare(self.num_documents + index, found, f"passage {index}")
        document_id, title, metadata = self.record(document)
        text = self._text(first_byte, last_byte)
        places, outline = self._part(self._places, self.num_documents + index), self._outline(document)
        blocks, headings = outline.inside(start, end), outline.above(start)
        return Passage(self.first_row + index, document_id, title, text, start, end, metadata, places, blocks, headings)

    def passages(self) -> Iterator[Passage]:
        """Every passage, in order."""
        return map(self.passage, range(self.num_passages))

    @property
    def has_words(self) -> bool:
        """Whether the passages' words are on disk: always, except in a segment of the first format."""
        return WORDS[self._analyzer] in self._files

    @property
    def _analyzer(self) -> int:
        """The analyzer that made the passages' words."""
        return max((each for each, name in WORDS.items() if name in self._files), default=FIRST)

    @cached_property
    def words(self) -> Words:
        """The passages' words. If they are not on disk, or damaged, which is not checked before and told by a
        DamageWarning, all passages are read and their words kept in memory.

        Raises CorruptionError if the passages are damaged too.
        """
        if self.has_words:
            name = WORDS[self._analyzer]
            try:
                check_file(self.path / name, self._files[name])
                words = Words.open(self.path / name, self._analyzer)
                self._maps_words = True
                return words
            except CorruptionError as error:
                instead = "until it is repaired, every process that searches reads all texts of the segment first"
                warnings.warn(DamageWarning(f"{error}; {instead}: {remedy_of(self.path.parents[1])}"), stacklevel=2)
        by_blocks = self._blocks is not None
        texts = (
            indexed_text(passage.title, passage.text, passage.path() if by_blocks else ())
            for passage in self.passages()
        )
        return Words.of(texts, self._analyzer)

    def document(self, index: int) -> Document:
        """The `index`-th document, exactly as it was added."""
        begin, middle = self._documents_D13[index, :2].tolist()
        end = int(self._documents_D13[index + 1, 0])
        if self._checks_DP is not None:
            self._compare(index, crc32(self._blob[begin:end]), f"document {index}")
        document_id, title, metadata = self.record(index)
        text = self._text(middle, end)
        source_map, blocks = self._part(self._places, index), self._part(self._blocks, index)
        return Document(document_id, title, text, metadata, source_map, blocks)

    def holds(self, index: int, document: Document) -> bool:
        """Whether the `index`-th document equals this one, to the byte."""
        begin, middle = self._documents_D13[index, :2].tolist()
        end = int(self._documents_D13[index + 1, 0])
        same = (self._blob[begin:middle], self._blob[middle:end]) == _encoded(document)
        same = same and self._part(self._places, index) == document.source_map
        return same and document.blocks in (b"", self._part(self._blocks, index))

    def digest(self, index: int) -> str:
        """The SHA-256 of all that `holds` compares."""
        begin, end = int(self._documents_D13[index, 0]), int(self._documents_D13[index + 1, 0])
        parts = (self._blob[begin:end], self._part(self._places, index), self._part(self._blocks, index))
        return sha256_bytes(b"".join(len(each).to_bytes(8) + each for each in parts))

    def passage_range(self, document: int) -> tuple[int, int]:
        """The first passage of a document and the one after its last, counted in this segment."""
        return int(self._documents_D13[document, 2]), int(self._documents_D13[document + 1, 2])

    def ranges(self, document: int) -> Ranges:
        """The character ranges of a document's passages."""
        first, last = self.passage_range(document)
        return [(start, end) for start, end in self._passages_P5[first:last, 1:3].tolist()]

    def layout(self) -> tuple[mmap.mmap | bytes, NDArray[np.int64]]:
        """The bytes of its documents, and from where to where each text is in them: int64 [D, 2]."""
        return self._blob, np.stack([self._documents_D13[:-1, 1], self._documents_D13[1:, 0]], axis=1)

    def text(self, document: int) -> str:
        """A document's text. Raises CorruptionError."""
        return self._text(int(self._documents_D13[document, 1]), int(self._documents_D13[document + 1, 0]))

    def find(self, document_id: str) -> int | None:
        # Ids with equal hashes are compared themselves: a collision costs one more read, never a wrong document.
        [hashed] = hashes([document_id])
        first, last = (np.searchsorted(self._hashes_D, hashed, side) for side in ("left", "right"))
        found = self._hashed_D[first:last].tolist()
        return next((document for document in found if self.id(document) == document_id), None)

    def find_all(self, other: "Segment") -> Iterator[int]:
        """The documents whose ids are also in `other`."""
        first_O, last_O = (np.searchsorted(self._hashes_D, other._hashes_D, side) for side in ("left", "right"))
        for o in np.flatnonzero(last_O > first_O).tolist():
            wanted = other.id(int(other._hashed_D[o]))
            found = self._hashed_D[first_O[o] : last_O[o]].tolist()
            yield from (document for document in found if self.id(document) == wanted)

    def containing(self, part: bytes) -> Iterator[int]:
        """The documents in whose text these bytes of UTF-8 occur, in order; one byte or more."""
        # One pass over records and texts alike, at the speed of memory: nothing is decoded. A match may begin in a
        # record, so the document's text is searched again. The bytes of whole characters match no part of others.
        at = self._blob.find(part)
        while at >= 0:
            document = int(np.searchsorted(self._documents_D13[:, 0], at, "right")) - 1
            end = int(self._documents_D13[document + 1, 0])
            if self._blob.find(part, int(self._documents_D13[document, 1]), end) >= 0:
                yield document
            at = self._blob.find(part, end)

    def id(self, document: int) -> str:
        return self.record(document)[0]

    def record(self, document: int) -> tuple[str, str, dict[str, Any]]:
        """A document's id, title and metadata."""
        first, last = self._documents_D13[document, :2].tolist()
        try:
            document_id, title, metadata = from_top(partial(json.loads, self._blob[first:last]))
        except (ValueError, TypeError, RecursionError) as error:
            raise self._damaged(error) from None
        return document_id, title, metadata

    def _text(self, first: int, last: int) -> str:
        try:
            return self._blob[first:last].decode()
        except UnicodeDecodeError as error:
            raise self._damaged(error) from None

    def _part(self, parts: "Parts | None", number: int) -> bytes:
        try:
            return b"" if parts is None else parts.part(number)
        except ValueError as error:
            raise self._damaged(error, parts.name if parts else "") from None

    def _read_outline(self, document: int) -> Outline:
        text = self.text(document)
        try:
            return Outline(decode(self._part(self._blocks, document) or encode(guess(text))), text)
        except ValueError as error:
            raise self._damaged(error, BLOCKS) from None

    def _compare(self, place: int, found: int, what: str) -> None:
        assert self._checks_DP is not None
        if int(self._checks_DP[place]) != found:
            raise self._damaged(f"{what} is not as it was written", "documents.bin")

    def _damaged(self, reason: object, name: str = "documents.bin") -> CorruptionError:
        return CorruptionError(f"{self.path / name}: damaged ({reason}); {remedy_of(self.path.parents[1])}")


class Parts:
    """A file of what a segment's documents, or its passages behind them, have, each with its CRC-32."""

    def __init__(self, file: Path) -> None:
        self._blob, self.name = open_blob(file), file.name
        self._parts_N3: NDArray[np.int64] = open_array(file.with_suffix(".npy"), np.int64, (-1, 3))

    def part(self, number: int) -> bytes:
        """What one of them has. Raises ValueError if it is damaged."""
        begin, end, expected = self._parts_N3[number].tolist()
        if crc32(part := self._blob[begin:end]) != expected:
            raise ValueError(f"part {number} is not as it was written")
        return part


class PartWriter:
    """Writes a file of `Parts`, straight to disk."""

    def __init__(self, file: Path) -> None:
        self._file, self._stream = file, file.open("wb")
        self._documents, self._passages = array("q"), array("q")

    def add(self, part: bytes, inside: Iterable[tuple[int, int]] = ()) -> None:
        """Appends what a document has; `inside` it are the bytes of its passages."""
        begin = self._stream.tell()
        self._documents.extend((begin, begin + len(part), crc32(part)))
        for first, last in inside:
            self._passages.extend((begin + first, begin + last, crc32(part[first:last])))
        with naming(self._file):
            self._stream.write(part)

    def seal(self, even_empty: bool) -> None:
        """Writes the table. A file without bytes is removed, unless it is kept `even_empty`."""
        with naming(self._file):
            size = self._stream.tell()
            self._stream.close()
        if size or even_empty:
            parts_N3 = np.array(self._documents + self._passages, np.int64).reshape(-1, 3)
            save_array(self._file.with_suffix(".npy"), parts_N3)
        else:
            self._file.unlink()

    def close(self) -> None:
        self._stream.close()


@dataclass(frozen=True, slots=True)
class Damaged:
    """A segment that cannot be opened, and why."""

    entry: SegmentEntry
    reason: str


def open_segment(corpus: Path, entry: SegmentEntry) -> Segment:
    """The segment of an entry in a manifest. Raises CorruptionError."""
    folder = segment_path(corpus, entry.name)
    segment = Segment(folder, entry.first_row, entry.first_document, entry.sha256)
    if (segment.num_documents, segment.num_passages) != (entry.num_documents, entry.num_passages):
        raise CorruptionError(f"{folder}: its number of documents is not the one in the manifest")
    return segment


def passage_check(row: bytes, record: bytes, text: bytes) -> int:
    """The CRC-32 of everything that a passage is read from."""
    return crc32(text, crc32(record, crc32(row)))


class SegmentWriter:
    """Writes one segment, texts straight to disk: in memory are 68 bytes per passage, the ids and the words.

    >>> with SegmentWriter(folder) as writer:
    ...     writer.add(document, ranges)
    >>> sha256 = writer.seal()

    Raises DuplicateDocumentError if an id occurs twice.
    """

    def __init__(self, path: Path, analyzer: int = LATEST, with_blocks: bool = True) -> None:
        path.mkdir(parents=True)
        self._with_blocks = with_blocks
        self.path = path
        self._analyzer = analyzer
        self.num_passages = 0
        self._ids: dict[str, int] = {}
        self._documents = array("q")
        self._passages = array("q")
        self._document_checks = array("I")
        self._passage_checks = array("I")
        self._words = WordGatherer(analyzer)
        self._stream = (path / "documents.bin").open("wb")
        self._places, self._blocks = PartWriter(path / PLACES), PartWriter(path / BLOCKS)

    @property
    def num_documents(self) -> int:
        return len(self._ids)

    def add(self, document: Document, ranges: Ranges) -> None:
        """Appends a document whose passages are these character ranges, in order and without overlap."""
        if document.id in self._ids:
            raise DuplicateDocumentError(f"document {brief(document.id)} occurs twice; leave one out")
        record, text = _encoded(document)
        blocks = (document.blocks or encode(guess(document.text))) if self._with_blocks else b""
        outline = Outline(decode(blocks), document.text)
        begin = self._stream.tell()
        self._documents.extend((begin, begin + len(record), self.num_passages))
        self._document_checks.append(crc32(text, crc32(record)))
        # The check of a passage covers its row and the record too: an altered offset would quote other characters.
        for (start, end), (first, last) in zip(ranges, _byte_ranges(document.text, ranges), strict=True):
            shift = begin + len(record)
            row = array("q", (self.num_documents, start, end, shift + first, shift + last))
            self._passages.extend(row)
            passage = Passage(
                0, "", document.title, document.text[start:end], start, end, headings=outline.above(start)
            )
            self._words.add(indexed_text(document.title, passage.text, passage.path()))
            self._passage_checks.append(passage_check(row.tobytes(), record, text[first:last]))
        with naming(self.path / "documents.bin"):
            self._stream.write(record)
            self._stream.write(text)
        self._places.add(document.source_map, _places_of(document.source_map, ranges))
        self._blocks.add(blocks)
        self._ids[document.id] = self.num_documents
        self.num_passages += len(ranges)

    def seal(self, with_checks: bool = True, with_words: bool = True) -> str:
        """Writes the tables, flushes everything to disk and returns the SHA-256 of the list of checksums."""
        size = self._stream.tell()
        with naming(self.path / "documents.bin"):
            self._stream.close()
        self._documents.extend((size, size, self.num_passages))
        save_array(self.path / "documents.npy", np.array(self._documents, np.int64).reshape(-1, 3))
        save_array(self.path / "passages.npy", np.array(self._passages, np.int64).reshape(-1, 5))
        if with_checks:
            save_array(self.path / "checks.npy", np.array(self._document_checks + self._passage_checks, np.uint32))
        hashes_D = hashes(self._ids)
        order_D = np.argsort(hashes_D, kind="stable")
        save_array(self.path / "ids.npy", np.stack([hashes_D[order_D], order_D.astype(np.uint64)]))
        self._places.seal(even_empty=False)
        self._blocks.seal(even_empty=self._with_blocks)
        if with_words:
            self._words.words().save(self.path / WORDS[self._analyzer])
        return seal_folder(self.path)

    def __enter__(self) -> "SegmentWriter":
        return self

    def __exit__(self, *exception: object) -> None:
        with suppress(OSError) if exception[0] else nullcontext():  # a full disk is reported once
            self._stream.close()
            self._places.close()
            self._blocks.close()


def blocks_of(document: Document) -> list[Block]:
    """A document's blocks, guessed if its file marks none. Raises ValueError."""
    rows = decode(document.blocks).tolist() if document.blocks else []
    return [Block(start, end, KINDS[kind], level) for start, end, kind, level in rows] or guess(document.text)


def _places_of(source_map: bytes, ranges: Ranges) -> Iterator[tuple[int, int]]:
    """The bytes of a source map that say where each passage is."""
    frames = [*frames_of(source_map)] if source_map else []
    firsts, lasts = [frame[0] for frame in frames], [frame[1] for frame in frames]
    for start, end in ranges:
        inside = frames[bisect_right(lasts, start) : bisect_left(firsts, end)]
        yield (inside[0][2], inside[-1][3]) if inside else (0, 0)


def _encoded(document: Document) -> tuple[bytes, bytes]:
    """A document's record and its text, as they are on disk."""
    record = [document.id, document.title, dict(document.metadata)]
    return from_top(partial(json.dumps, record, ensure_ascii=False)).encode(), document.text.encode()


def _byte_ranges(text: str, ranges: Ranges) -> Iterator[tuple[int, int]]:
    """The byte ranges, in the text's UTF-8, of character ranges in order."""
    if text.isascii():
        yield from ranges
        return
    position = size = 0
    for start, end in ranges:
        first = size + len(text[position:start].encode())
        size = first + len(text[start:end].encode())
        position = end
        yield first, size
