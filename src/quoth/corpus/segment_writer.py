"""Documents on their way into a corpus: splitting them into passages, and segments that other processes write.

Knows how documents become a finished segment, complete or absent. Does not know rows or snapshots.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from uuid import uuid4

from quoth.corpus.documents import check_document
from quoth.corpus.passages import get_splitter
from quoth.corpus.segment import SegmentWriter, Split
from quoth.errors import InputError, brief
from quoth.files import fsync_path
from quoth.records import Document
from quoth.storage import publish_directory


def split_documents(
    documents: Iterable[Document], splitter: str, progress: Callable[[int], None] | None = None
) -> Iterator[Split]:
    """Every document with its passages' character ranges; `progress` receives the count so far. Raises InputError."""
    ranges_of = get_splitter(splitter)
    for count, document in enumerate(documents, 1):
        if not isinstance(document, Document):
            what = f"{type(document).__name__}, not a quoth.Document"
            raise InputError(f"document {count} is a {what}; give quoth.Document(id, title, text, metadata)")
        try:
            check_document(document)
        except (ValueError, TypeError, RecursionError) as error:
            raise InputError(f"document {count}, {brief(document.id)}: {error}; fix it or leave it out") from None
        yield document, ranges_of(document.text)
        if progress is not None:
            progress(count)


def write_segment(folder: Path, documents: Iterable[Split]) -> None:
    """Writes documents, with their passages' character ranges, as one finished segment into a new folder.

    A process that dies leaves a folder whose name ends in .tmp. Raises DuplicateDocumentError if an id occurs twice.
    """
    part = folder.with_name(f"{folder.stem}.{uuid4().hex}.tmp")
    try:
        with SegmentWriter(part) as writer:
            for each in documents:
                writer.add(*each)
            writer.seal()
        publish_directory(part, folder)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise


def take_in(folder: Path, final: Path) -> None:
    """Moves a finished segment to its place among the corpus's segments."""
    folder.replace(final)
    fsync_path(final.parent)
