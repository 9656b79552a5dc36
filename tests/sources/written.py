"""Files as people's programs write them: PDF by reportlab, Office by python-docx, openpyxl and python-pptx."""

import io
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from docx import Document
from openpyxl import Workbook
from pptx import Presentation
from pptx.util import Inches
from reportlab.pdfgen.canvas import Canvas

from quoth import records
from quoth.corpus.documents import read_each
from quoth.errors import RecordError
from quoth_sources.worker import Worker

A4 = (595.0, 842.0)


def read_in(worker: Worker, format: str, content: bytes) -> records.Document:
    """What a worker reads of a file of this format. Raises ValueError that says why there is nothing."""
    bad = list[RecordError]()
    with NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        found = [*read_each([(format, Path(file.name), "file")], worker, bad.append, {})]
    if bad:
        raise ValueError(bad[0].reason)
    return found[0]


def pdf(*pages: Callable[[Canvas], Any], **options: Any) -> bytes:
    """A PDF whose pages are drawn by these functions."""
    stream = io.BytesIO()
    canvas = Canvas(stream, pagesize=A4, invariant=1, **options)
    for draw in pages:
        draw(canvas)
        canvas.showPage()
    canvas.save()
    return stream.getvalue()


def lines(*texts: str, left: float = 72, top: float = 720, size: float = 11) -> Callable[[Canvas], None]:
    """Draws lines one below the other."""

    def draw(canvas: Canvas) -> None:
        canvas.setFont("Helvetica", size)
        for number, text in enumerate(texts):
            canvas.drawString(left, top - 1.25 * size * number, text)

    return draw


def both(*parts: Callable[[Canvas], Any]) -> Callable[[Canvas], None]:
    """Draws several things on one page."""
    return lambda canvas: [part(canvas) for part in parts] and None


def docx(*blocks: str | tuple[str, str] | Sequence[Sequence[str]], **properties: Any) -> bytes:
    """A Word document of paragraphs, paragraphs with a style, and tables."""
    document = Document()
    for block in blocks:
        if isinstance(block, str):
            document.add_paragraph(block)
        elif isinstance(block, tuple):
            document.add_paragraph(block[1], style=block[0])
        else:
            table = document.add_table(len(block), len(block[0]))
            for row, values in enumerate(block):
                for column, value in enumerate(values):
                    table.cell(row, column).text = value
    for name, value in properties.items():
        setattr(document.core_properties, name, value)
    stream = io.BytesIO()
    document.save(stream)
    return stream.getvalue()


def xlsx(**sheets: Sequence[Sequence[Any]]) -> bytes:
    """A workbook of sheets and their rows."""
    book = Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def pptx(*slides: tuple[str, str, str], table: Sequence[Sequence[str]] = ()) -> bytes:
    """Slides with a title, a body and notes; the last one with a table, if it is given."""
    presentation = Presentation()
    for title, body, notes in slides:
        slide = presentation.slides.add_slide(presentation.slide_layouts[1])
        slide.shapes.title.text, slide.placeholders[1].text = title, body
        if notes:
            slide.notes_slide.notes_text_frame.text = notes
    if table:
        shape = slide.shapes.add_table(len(table), len(table[0]), Inches(1), Inches(1), Inches(4), Inches(1))
        for row, values in enumerate(table):
            for column, value in enumerate(values):
                shape.table.cell(row, column).text = value
    stream = io.BytesIO()
    presentation.save(stream)
    return stream.getvalue()


def repacked(content: bytes, change: Callable[[str, bytes], bytes], **more: bytes) -> bytes:
    """An archive with other contents."""
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, change(name, old.read(name)))
        for name, part in more.items():
            new.writestr(name, part)
    return stream.getvalue()
