"""OpenDocument presentations: titles, texts, lists, tables and notes, each with the number of its slide and of its
paragraph there. Shapes come in the order in which they lie on one another, titles first."""

from typing import Any

from quoth.sources.opendocument import Lists, Writer, attribute, body_of, characters
from quoth.sources.source import Piece, Source, Text


def read(content: bytes) -> Source:
    """The text of an OpenDocument presentation. Raises ValueError if it cannot be opened, or is another kind."""
    body, facts = body_of(content, "presentation")
    text, lists = Text("slide"), Lists(content)
    for number, slide in enumerate(body.iterchildren("{*}page"), 1):
        text.gap()
        Writer(text, lists, number).blocks(sorted(slide.iterchildren("{*}*"), key=_is_no_title))
        text.gap()
        for paragraph in slide.iterfind("{*}notes//{*}p"):
            text.gap("\n")
            text.pieces([Piece(characters(paragraph), (number, "notes"))])
    return text.source(facts)


def _is_no_title(shape: Any) -> bool:
    return attribute(shape, "class") != "title"
