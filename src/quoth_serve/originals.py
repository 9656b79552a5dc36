"""Documents as they are shown: a part of the text, the page of a PDF as a picture, the file itself.

Knows that only files of documents that were read from files are shown, one at a time, each by a parser in a process of
its own. Does not know where a folder has a file, nor how a page is drawn.
"""

# No postponed annotations: FastAPI reads those of functions within functions.

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from os import fstat
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Protocol
from urllib.parse import quote

from fastapi import FastAPI, Query
from starlette.responses import Response, StreamingResponse

from quoth.corpus.corpus import Corpus
from quoth.corpus.view import documents_of
from quoth.errors import InputError, brief
from quoth.records import Document
from quoth_serve.batches import BatchQueue
from quoth_serve.limits import BoundError, Limits, check_unicode
from quoth_serve.replies import DocumentName, DocumentPlace, PagePlace
from quoth_sources.limits import SECONDS
from quoth_sources.marks import Mark
from quoth_sources.originals import original, path_of
from quoth_sources.source_map import locate
from quoth_sources.worker import Worker

MEMORY = 2 << 30
"""Of the process that draws pages."""
PART = 1 << 18
"""Bytes of a file that are sent at once."""


class Opened(Protocol):
    """Corpora at one snapshot."""

    @property
    def corpora(self) -> Sequence[Corpus]: ...


def part(corpora: Sequence[Corpus], place: DocumentPlace, limits: Limits) -> dict[str, Any]:
    """A document of the first corpus that has it, as `replies.DocumentReply` has it.

    Raises UnknownDocumentError, InputError.
    """
    corpus, document = documents_of(corpora, place.id)[0]
    length = len(document.text)
    start = min(place.start, length)  # a part that is not there is empty, as Python's slices are
    end = length if place.end is None else max(start, min(place.end, length))
    if end - start > limits.reply:
        raise BoundError(f"the text has {length:,} characters; at most {limits.reply:,} at once: give start and end")
    return {
        "corpus": corpus.name,
        "snapshot": corpus.snapshot,
        "id": document.id,
        "title": document.title,
        "metadata": dict(document.metadata),
        "text": document.text[start:end],
        "start": start,
        "end": end,
        "length": length,
    }


class Originals:
    """The files that documents were read from, below a folder. One request is at work while others wait."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self._folder, self._limits = folder, limits
        self.queue = BatchQueue(replace(limits, concurrency=1))
        self._worker = Worker(min(limits.timeout, SECONDS), MEMORY)

    def page(self, corpora: Sequence[Corpus], place: PagePlace) -> Response:
        """The page of a PDF with these characters marked, as a PNG. Raises UnknownDocumentError, InputError."""
        if not 0 < place.end - place.start <= self._limits.text:
            raise BoundError(f"end must be above start, by at most {self._limits.text:,}")
        document = _of_file(corpora, place)
        where = locate(document.source_map, place.start, place.end)
        if where is None or where.page is None:
            raise InputError(f"{brief(place.id)}: these characters are not on a page of a PDF; ask for its text")
        mark = Mark(where.page, where.rectangles, document.text[place.start : place.end])
        content = original(self._folder, document.id, self._limits.file)
        try:
            drawn = self._worker.made("quoth_sources.marks.picture", content, mark=mark, width=place.width)
        except ValueError as error:
            raise InputError(f"{brief(place.id)}: {error}") from None
        return Response(drawn, media_type="image/png")

    def file(self, corpora: Sequence[Corpus], place: DocumentName) -> Response:
        """A document's file, to be saved: a browser does not open it here. Raises UnknownDocumentError, InputError."""
        document = _of_file(corpora, place)
        path = path_of(self._folder, document.id)
        try:
            stream = path.open("rb")
        except OSError as error:
            raise InputError(f"{brief(place.id)}: its file cannot be read ({error.strerror})") from None
        headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(path.name, safe='')}"}
        headers["Content-Length"] = str(fstat(stream.fileno()).st_size)
        return StreamingResponse(_parts(stream), media_type="application/octet-stream", headers=headers)

    def close(self) -> None:
        """Returns when everything that was accepted is done."""
        self.queue.close()
        self._worker.close()


def _parts(stream: BinaryIO) -> Iterator[bytes]:
    with stream:
        yield from iter(partial(stream.read, PART), b"")


def _of_file(corpora: Sequence[Corpus], place: DocumentName) -> Document:
    """A document that was read from a file: only then is its id known to be that file's path."""
    _, document = documents_of(corpora, place.id)[0]
    if not document.source_map:
        raise InputError(f"{brief(place.id)} was not read from a file of its own; ask for its text")
    return document


def add_originals(api: FastAPI, originals: Originals, view: Callable[..., Awaitable[Opened]]) -> None:
    """The routes that show pages and files."""

    async def corpora(place: DocumentName) -> Sequence[Corpus]:
        check_unicode("id", place.id)
        return (await view(place.corpus, place.snapshot)).corpora

    @api.get("/v1/documents/page", response_class=Response, responses=_content("image/png"))
    async def page(place: Annotated[PagePlace, Query()]) -> Response:
        """The page of a PDF as a picture, with the characters from `start` to `end` of the document marked."""
        found = await corpora(place)
        return await originals.queue.reply(lambda: originals.page(found, place))

    @api.get("/v1/documents/file", response_class=Response, responses=_content("application/octet-stream"))
    async def file(place: Annotated[DocumentName, Query()]) -> Response:
        """The file that a document was read from."""
        found = await corpora(place)
        return await originals.queue.reply(lambda: originals.file(found, place))


def _content(kind: str) -> dict[int | str, dict[str, Any]]:
    return {200: {"content": {kind: {"schema": {"type": "string", "format": "binary"}}}}}
