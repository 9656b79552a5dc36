"""What can still be read of a damaged corpus, document by document.

Knows that a document counts as intact if its CRC-32 is the recorded one, even in a segment that cannot be opened. Does
not know how damage is repaired (`repair`), or where the documents go.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from quoth.corpus.deletions import Deletions
from quoth.corpus.layout import segment_path
from quoth.corpus.manifest import SegmentEntry
from quoth.corpus.segment import Segment
from quoth.corpus.snapshot import open_snapshot
from quoth.errors import CorruptionError
from quoth.records import Document


def intact_documents(path: Path, lost: Callable[[str], None]) -> Iterator[Document]:
    """Every document of a corpus that can be read as it was added; `lost` receives a line per segment with others.

    Raises CorpusNotFoundError, and CorruptionError if no manifest or list of deletions can be read.
    """
    snapshot = open_snapshot(path, None)
    opened = {each.name: each for each in snapshot.segments}
    for entry in snapshot.manifest.segments:
        count = bad = 0
        for document in readable(path, entry, snapshot.deletions, opened.get(entry.name)):
            count += 1
            if document is None:
                bad += 1
            else:
                yield document
        if bad:
            lost(f"{segment_path(path, entry.name)}: {bad} of {count} documents cannot be read")


def readable(
    path: Path, entry: SegmentEntry, deletions: Deletions, segment: Segment | None = None
) -> Iterator[Document | None]:
    """The documents of a segment that are not deleted; None in place of one that cannot be read."""
    if segment is None:
        try:
            segment = Segment(segment_path(path, entry.name), entry.first_row, entry.first_document, "", sealed=False)
        except CorruptionError:
            segment = None
    for number in range(entry.num_documents):
        if entry.first_document + number not in deletions:
            yield _document(segment, number)


def _document(segment: Segment | None, number: int) -> Document | None:
    try:
        return None if segment is None else segment.document(number)
    except (CorruptionError, IndexError, ValueError):
        return None
