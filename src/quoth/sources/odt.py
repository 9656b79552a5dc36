"""OpenDocument texts: paragraphs, headings, lists, tables and notes, each with the number of its paragraph, as `docx`
counts them."""

from quoth.sources.office import Archive
from quoth.sources.opendocument import Lists, Writer, body_of, characters, finished
from quoth.sources.source import Piece, Source, Text


def read(content: bytes) -> Source:
    """The text of an OpenDocument text. Raises ValueError if it cannot be opened, or is another kind of document."""
    archive, text = Archive(content), Text("element")
    body = body_of(archive, "text")
    Writer(text, Lists(archive)).blocks(body.iterchildren("{*}*"))
    for number, note in enumerate(body.iter("{*}note-body"), 1):
        text.gap()
        text.pieces([Piece(characters(note), (f"note {number}",))])
    return finished(text, archive)
