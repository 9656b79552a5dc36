"""OpenDocument texts: paragraphs, headings, lists, tables and notes, each with the number of its paragraph, as `docx`
counts them."""

from quoth.sources.opendocument import Lists, Writer, body_of, characters
from quoth.sources.source import Piece, Source, Text


def read(content: bytes) -> Source:
    """The text of an OpenDocument text. Raises ValueError if it cannot be opened, or is another kind of document."""
    body, facts = body_of(content, "text")
    text = Text("element")
    Writer(text, Lists(content)).blocks(body.iterchildren("{*}*"))
    for number, note in enumerate(body.iter("{*}note-body"), 1):
        text.gap()
        text.pieces([Piece(characters(note), (f"note {number}",))])
    return text.source(facts)
