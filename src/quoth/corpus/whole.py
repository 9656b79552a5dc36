"""A document from what was read of a file, or of a message in one, and what is told of the reading.

Does not know formats, or who reads.
"""

import warnings

from quoth.errors import FileWarning
from quoth.records import Document
from quoth.sources.worker import Read


def document_of(name: str, read: Read, document_id: str, title: str) -> Document:
    """The document, with its own title if it has one; warnings tell its notes under `name`. Raises ValueError if it has
    no text, and a note says why."""
    if read.notes and not read.text:
        raise ValueError(read.notes[0])
    for note in read.notes:
        warnings.warn(FileWarning(f"{name}: {note}"), stacklevel=2)
    facts = {key: value for key, value in read.metadata.items() if key != "title"}
    return Document(document_id, read.metadata.get("title") or title, read.text, facts, read.source_map)
