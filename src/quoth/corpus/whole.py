"""A document from a file, or a message in one, that a parser reads, and what is told of the reading.

Knows who reads which format, but no format. Called where files are read, in the process of `quoth_sources.worker`.
"""

import re
import warnings
from importlib import import_module
from typing import IO, Any

from quoth.errors import FileWarning
from quoth.records import Document
from quoth_sources import libreoffice
from quoth_sources.blocks import encode as encode_blocks
from quoth_sources.formats import WRITES
from quoth_sources.limits import allow
from quoth_sources.source import Source
from quoth_sources.source_map import encode
from quoth_sources.worker import why_not

_PART = 1 << 20
_LINE = re.compile(r"([^\r\n]*)(?:\r\n|\r|\n|\Z)")


def whole(stream: IO[bytes], most: int, remedy: str = "split it") -> bytes:
    """All bytes of a file, for which there is time from now on. Raises ValueError if there are more than these."""
    parts, size = list[bytes](), 0
    while part := stream.read(_PART):
        parts.append(part)
        size += len(part)
        if size > most:
            raise ValueError(f"more than {most:,} bytes; {remedy}")
    allow(size)
    return b"".join(parts)


def document_of(format: str, content: bytes | str, name: str, document_id: str, title: str) -> Document:
    """The document that these bytes are, or characters, if the format is one of text: with its own title if it has one.
    Warnings tell its notes under `name`. Raises ValueError if it cannot be read, or has no text and a note says why."""
    try:
        read = _read(format, content)
    except Exception as error:  # every parser raises its own
        cause = error.__cause__ if isinstance(error.__cause__, OSError) else None  # a retry may succeed
        raise ValueError(why_not(error)) from cause
    if read.notes and not read.text:
        raise ValueError(read.notes[0])
    for note in read.notes:
        warnings.warn(FileWarning(f"{name}: {note}"), stacklevel=2)
    facts = {key: value for key, value in read.metadata.items() if key != "title"}
    return Document(
        document_id,
        read.metadata.get("title") or title,
        read.text,
        facts,
        encode(read.kind, read.runs),
        encode_blocks(read.blocks),
    )


def _read(format: str, content: Any) -> Source:
    if format == "text":
        return _as_it_is(content)
    if format in WRITES:
        return libreoffice.read(content, format)
    read: Source = import_module(f"quoth_sources.{format}").read(content)
    return read


def _as_it_is(text: str) -> Source:
    """A text as it is, and where its lines are."""
    lines = enumerate(_LINE.finditer(text), 1)
    return Source(text, [(*line.span(1), number) for number, line in lines if line[1]], {}, "line")
