"""OpenDocument presentations: titles, texts, lists, tables and notes, each with the number of its slide and of its
paragraph there. Shapes come in the order in which they lie on one another, titles first."""

from collections.abc import Iterable
from typing import Any

from quoth_sources.office import Archive
from quoth_sources.opendocument import Characters, Lists, Writer, attribute, body_of, finished, styled
from quoth_sources.source import Piece, Source, Text

_LEFT_OUT = ("header", "footer", "page-number", "date-time")
"""What is on every slide."""


def read(content: bytes) -> Source:
    """The text of an OpenDocument presentation. Raises ValueError if it cannot be opened, or is another kind."""
    archive, text = Archive(content), Text("slide")
    body, lists, characters = body_of(archive, "presentation"), Lists(archive), Characters(archive)
    hidden = styled(body, "visibility", "hidden")
    for number, slide in enumerate(body.iterchildren("{*}page"), 1):
        if attribute(slide, "style-name") in hidden:
            continue
        text.gap()
        shapes = _shown(slide.iterchildren("{*}*"))
        Writer(text, lists, characters, number).blocks(
            sorted(shapes, key=lambda shape: attribute(shape, "class") != "title")
        )
        text.gap()
        notes = _shown(slide.iterfind("{*}notes/{*}*"))
        for paragraph in [each for shape in notes for each in shape.iter("{*}p")]:
            text.gap("\n")
            text.block("paragraph")
            text.pieces([Piece(characters.of(paragraph), (number, "notes"))])
    return finished(text, archive)


def _shown(shapes: Iterable[Any]) -> list[Any]:
    return [shape for shape in shapes if attribute(shape, "class") not in _LEFT_OUT]
