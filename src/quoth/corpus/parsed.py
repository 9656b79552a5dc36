"""Files that are one document each, and whose text is not their characters: markup, PDF, web pages, Office.

Knows how a file's text and its source map become a document. Does not know how a format is read (`quoth.sources`).
"""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from quoth.errors import InputError
from quoth.records import Document
from quoth.source_map import encode
from quoth.sources.files import PARSERS, bare, check_parsers, decode, tell
from quoth.sources.source import Source
from quoth.sources.worker import Worker

if TYPE_CHECKING:
    from quoth.corpus.documents import Reader, Records

_MOST_BYTES = 1 << 30


def read_marked(stream: IO[bytes], name: str, read: Callable[[str], Source]) -> "Records":
    """A text with markup, without it."""
    try:
        text, encoding = decode(stream.read())
    except ValueError as error:
        yield 1, error
    else:
        tell(name, encoding)
        source = read(text)
        yield 0, _of_file(name, source.text, encode(source.kind, source.runs), source.metadata)


def parsers(worker: Worker) -> "dict[str, Reader]":
    """The readers of the formats that a parser reads in this process."""
    return {format: partial(_read_parsed, format=format, worker=worker) for format in PARSERS}


def _read_parsed(stream: IO[bytes], name: str, format: str, worker: Worker) -> "Records":
    """A file that a parser reads, in a process of its own."""
    content = stream.read(_MOST_BYTES + 1)
    try:
        check_parsers([format])
        if len(content) > _MOST_BYTES:
            raise ValueError(f"more than {_MOST_BYTES:,} bytes; split it")
        yield 0, _of_file(name, *worker.read(format, content, name))
    except InputError as error:
        yield 0, ValueError(str(error))
    except ValueError as error:
        yield 0, error


def _of_file(name: str, text: str, source_map: bytes, facts: Mapping[str, Any]) -> Document:
    """The one document of a file, whose id is its name, and its title what the file says, or its name."""
    metadata = {key: value for key, value in facts.items() if key != "title"}
    return Document(name, facts.get("title") or bare(Path(name)).stem, text, metadata, source_map)
