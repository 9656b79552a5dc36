"""OpenDocument texts: paragraphs, headings, lists, tables and notes, each with the number of its paragraph, as `docx`
counts them."""

from quoth_sources.office import Archive
from quoth_sources.opendocument import Characters, Lists, Writer, body_of, finished, mark_of
from quoth_sources.source import Piece, Source, Text
from quoth_sources.superscripts import raised


def read(content: bytes) -> Source:
    """The text of an OpenDocument text. Raises ValueError if it cannot be opened, or is another kind of document."""
    archive, text = Archive(content), Text("element")
    body = body_of(archive, "text")
    characters = Characters(archive)
    Writer(text, Lists(archive), characters).blocks(body.iterchildren("{*}*"))
    for number, note in enumerate(body.iter("{*}note-body"), 1):
        text.gap()
        text.block("paragraph")
        if mark := mark_of(note.getparent()):
            text.mark(f"{raised(mark, '.')} ")
        text.pieces([Piece(characters.of(note), (f"note {number}",))])
    return finished(text, archive)
