"""Documents on their way into a corpus: split into passages; as segments that other processes write beside it.

Knows how documents become a finished segment and its passages' analysed words, whole or absent. Does not know
rows and snapshots.

What `Corpus.add_written` takes in:

    <name>.tmp/segment/      a sealed segment
    <name>.tmp/words.jsonl   for each passage the terms and characters by which it is found
"""

import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from uuid import uuid4

from quoth.corpus.analysis import analyse_with_characters
from quoth.corpus.bm25 import Analysed
from quoth.corpus.documents import check_document
from quoth.corpus.passages import Ranges, get_splitter
from quoth.corpus.segment import Segment, SegmentWriter
from quoth.errors import InputError
from quoth.records import Document, Passage
from quoth.storage import fsync_path, publish_directory

Split = tuple[Document, Ranges]


def split_documents(
    documents: Iterable[Document], splitter: str, progress: Callable[[int], None] | None = None
) -> Iterator[Split]:
    """Each document with its passages' character ranges; `progress` is told the count. Raises InputError."""
    ranges_of = get_splitter(splitter)
    for count, document in enumerate(documents, 1):
        try:
            check_document(document)
        except (ValueError, TypeError, RecursionError) as error:
            raise InputError(f"document {count}, {document.id!r}: {error}; mend it or leave it out") from None
        yield document, ranges_of(document.text)
        if progress is not None:
            progress(count)


def indexed_text(passage: Passage) -> str:
    """What BM25 finds a passage by."""
    return f"{passage.title} {passage.text}"


def write_segment(folder: Path, documents: Iterable[Split]) -> None:
    """Writes documents, with their passages' character ranges, as one finished segment into a new folder.

    A process that dies leaves a folder that ends in .tmp. Raises DuplicateDocumentError where an id comes twice.
    """
    part = folder.with_name(f"{folder.stem}.{uuid4().hex}.tmp")
    part.mkdir()
    try:
        with SegmentWriter(part / "segment") as writer:
            for each in documents:
                writer.add(*each)
            segment = Segment(writer.path, 0, 0, writer.seal())
        with (part / "words.jsonl").open("w", encoding="utf-8") as stream:
            for passage in segment.passages():
                stream.write(json.dumps(analyse_with_characters(indexed_text(passage)), ensure_ascii=False) + "\n")
        publish_directory(part, folder)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise


def take_in(folder: Path, final: Path) -> None:
    """Moves a segment that was written to where the corpus has its segments, its words beside it."""
    (folder / "segment").replace(final)
    (folder / "words.jsonl").replace(_words(final))
    folder.rmdir()
    fsync_path(final.parent)


def texts(segment: Segment) -> Iterator[tuple[int, str | Analysed]]:
    """Each passage's row, and what BM25 finds it by: analysed where that was done already."""
    words = _words(segment.path)
    if not words.is_file():
        yield from ((each.row, indexed_text(each)) for each in segment.passages())
        return
    with words.open(encoding="utf-8") as stream:
        for row, line in zip(range(segment.first_row, segment.last_row), stream, strict=True):
            terms, characters = json.loads(line)
            yield row, (terms, characters)


def forget_words(segment: Segment) -> None:
    """Removes the analysed words, which are in the index now."""
    _words(segment.path).unlink(missing_ok=True)


def _words(final: Path) -> Path:
    return final.with_name(f"{final.name}.words.tmp")
