"""Slides that are shown: titles, texts, tables and notes, each with the number of its slide and the name of its shape.

Knows shapes in the order in which they were made, those of groups among them. Does not know how a slide looks.
"""

import io
import posixpath
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from quoth_sources import tables
from quoth_sources.levels import joined
from quoth_sources.office import STRICT, Archive, kind_of, opened, root_of
from quoth_sources.source import Piece, Source, Text
from quoth_sources.tables import Box, Grid, boxed

_LEFT_OUT = ("HEADER", "FOOTER", "SLIDE_NUMBER", "DATE")
"""What is on every slide."""
_TITLES, _BODIES = ("TITLE", "CENTER_TITLE", "VERTICAL_TITLE"), ("BODY", "OBJECT")
_TYPES = {
    "presentation.xml$": "presentationml.presentation.main",
    "slides/[^/]*$": "presentationml.slide",
    "notesSlides/[^/]*$": "presentationml.notesSlide",
}
_READ = ("officeDocument", "slide", "notesSlide")
"""The kinds of relations that lead to texts, not to layouts and pictures."""
_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"


def read(content: bytes) -> Source:
    """The text of a presentation. Raises ValueError if it cannot be opened."""
    archive, text = Archive(content), Text("slide")
    presentation = _opened(archive, content)
    for number, slide in enumerate(presentation._element.get_or_add_sldIdLst(), 1):
        with archive.survived(f"slide {number}"):
            _slide(text, presentation.part.related_slide(slide.rId), number)
    return text.source(archive.facts(), [*archive.notes.values()])


def _opened(archive: Archive, content: bytes) -> Any:
    """A presentation as python-pptx has it."""
    from pptx import Presentation

    try:
        return Presentation(opened(content))
    except Exception:  # what is saved as "strict", or as a show, has other names; or it is damaged
        try:
            return Presentation(io.BytesIO(archive.changed(STRICT, partial(_cut, archive), types=_TYPES)))
        except Exception:
            raise ValueError("it has no slides that can be read: it is not a presentation, or is damaged") from None


def _cut(archive: Archive, name: str, part: bytes) -> bytes:
    """A file of a presentation, without relations to what is not read, or cannot be."""
    from lxml import etree

    if not name.endswith(".rels") or (root := root_of(part)[0]) is None:
        return part
    space = "http://schemas.openxmlformats.org/package/2006/relationships"
    new, folder = etree.Element(f"{{{space}}}Relationships"), posixpath.dirname(posixpath.dirname(name))
    for each in root.iterchildren("{*}Relationship"):
        file = posixpath.normpath(posixpath.join("/", folder, each.get("Target", "")))[1:]
        target = archive.xml(file) if each.get("Type", "").rpartition("/")[2] in _READ else None
        if target is not None and "}" in target.tag:
            etree.SubElement(new, f"{{{space}}}Relationship", dict(each.attrib))
    return bytes(etree.tostring(new))


def _slide(text: Text, slide: Any, number: int) -> None:
    if slide._element.get("show") in ("0", "false"):
        return
    _unwrap(slide.shapes.element)
    title = slide.shapes.title
    others = [shape for shape in slide.shapes if shape != title]
    _shapes(text, others if title is None else [title, *others], number)
    if slide.has_notes_slide and (notes := slide.notes_slide.notes_text_frame) is not None:
        _paragraphs(text, notes, (number, "notes"))


def _unwrap(shapes: Any) -> None:
    """Puts shapes that are there twice, for new and for old programs, where python-pptx sees the new ones."""
    for both in [*shapes.iter(_MC + "AlternateContent")]:
        for shape in both.findall(f"{_MC}Choice[1]/*"):
            both.addprevious(shape)


def _shapes(text: Text, shapes: Iterable[Any], slide: int) -> None:
    for shape in shapes:
        if hasattr(shape, "shapes"):
            _shapes(text, shape.shapes, slide)
        elif getattr(shape, "has_table", False):
            tables.write(text, [*_rows(shape.table, slide, shape.name)])
        elif shape.has_text_frame:
            kind = shape.placeholder_format.type if shape.is_placeholder else None
            name = "" if kind is None else kind.name
            if name not in _LEFT_OUT:
                _paragraphs(text, shape.text_frame, (slide, shape.name), name)


def _rows(table: Any, slide: int, name: str) -> Iterator[list[Box]]:
    """What each cell says; one that spans several rows is repeated in each."""
    grid = Grid()
    for r, row in enumerate(table.rows, 1):
        grid.begin()
        for c, cell in enumerate(row.cells, 1):
            if not cell.is_spanned:
                paragraphs = cell.text_frame.paragraphs
                is_bold = all(run.font.bold for each in paragraphs for run in each.runs if run.text.strip())
                across, down = (cell.span_width, cell.span_height) if cell.is_merge_origin else (1, 1)
                said = "\n".join(map(_characters, paragraphs))
                box = boxed([Piece(said, (slide, f"{name}, row {r}, cell {c}"))], across, is_bold)
                grid.add(box, across, down)
        yield grid.end()


def _paragraphs(text: Text, frame: Any, place: tuple[int, str], name: str = "") -> None:
    """Appends the paragraphs of a frame; `name` is that of its placeholder's kind. In a body that has several, each is
    an item of a list."""
    filled = [(said, each.level + 1) for each in frame.paragraphs if (said := _characters(each)).strip()]
    is_list = name in _BODIES and len(filled) > 1
    text.gap()
    if name in _TITLES:
        text.block("heading", 1)
    for paragraph, level in filled:
        text.gap("\n")
        if is_list:
            text.block("item", level)
            text.mark("- ")
        elif name not in _TITLES:
            text.block("paragraph")
        text.pieces([Piece(paragraph, place)])
    text.gap()


def _characters(paragraph: Any) -> str:
    """The text of a paragraph, with what is raised or lowered as such."""
    return joined(_run(part) for part in paragraph._p.iterchildren())


def _run(part: Any) -> tuple[str, str]:
    """The text of a run, a field or a break, and whether it is raised: by per cent, or a text that ends in "%"."""
    if kind_of(part) == "br":
        return "\n", ""
    raised = (part.xpath("string(a:rPr/@baseline)") if kind_of(part) in ("r", "fld") else "").strip()
    level = "" if not raised.strip("+-0.%") else "sub" if raised.startswith("-") else "super"
    return (part.findtext("{*}t") or "").replace("\v", "\n"), level
