"""Slides: titles, texts, tables and notes, each with the number of its slide and the name of its shape.

Knows shapes in the order in which they were made, those of groups among them. Does not know how a slide looks.
"""

from collections.abc import Iterable
from typing import Any

from quoth.sources.headings import is_headed
from quoth.sources.office import facts, opened
from quoth.sources.source import Piece, Source, Text

_LEFT_OUT = ("HEADER", "FOOTER", "SLIDE_NUMBER", "DATE")
"""What is on every slide."""


def read(content: bytes) -> Source:
    """The text of a presentation. Raises ValueError if it cannot be opened."""
    from pptx import Presentation

    presentation = Presentation(opened(content))
    text = Text("slide")
    for number, slide in enumerate(presentation.slides, 1):
        title = slide.shapes.title
        others = [shape for shape in slide.shapes if title is None or shape.shape_id != title.shape_id]
        _shapes(text, others if title is None else [title, *others], number)
        if slide.has_notes_slide and (notes := slide.notes_slide.notes_text_frame) is not None:
            _paragraphs(text, notes, (number, "notes"), is_list=False)
    return text.source(facts(presentation.core_properties))


def _shapes(text: Text, shapes: Iterable[Any], slide: int) -> None:
    for shape in shapes:
        if hasattr(shape, "shapes"):
            _shapes(text, shape.shapes, slide)
        elif getattr(shape, "has_table", False):
            rows = [
                [[Piece(cell.text, (slide, f"{shape.name}, row {r}, cell {c}"))] for c, cell in enumerate(row.cells, 1)]
                for r, row in enumerate(shape.table.rows, 1)
            ]
            said = [[cell[0].text.strip() for cell in row] for row in rows]
            text.table(rows, is_headed(said))
        elif shape.has_text_frame:
            kind = shape.placeholder_format.type if shape.is_placeholder else None
            name = "" if kind is None else kind.name
            if name not in _LEFT_OUT:
                _paragraphs(text, shape.text_frame, (slide, shape.name), is_list=name in ("BODY", "OBJECT"))


def _paragraphs(text: Text, frame: Any, place: tuple[int, str], is_list: bool) -> None:
    """Appends a frame's paragraphs; in a body that has several, each is an item of a list."""
    filled = [each.text.replace("\v", "\n") for each in frame.paragraphs if each.text.strip()]
    text.gap()
    for paragraph in filled:
        text.gap("\n")
        if is_list and len(filled) > 1:
            text.mark("- ")
        text.pieces([Piece(paragraph, place)])
    text.gap()
