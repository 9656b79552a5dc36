"""Marks on the pages of a PDF: highlights that any viewer shows, and a page with one as a picture.

Knows rectangles as a `Location` has them, and the characters inside. Does not know answers, or where files are.
"""

import ctypes
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from difflib import SequenceMatcher
from itertools import product
from math import dist, hypot, sqrt
from typing import Any, NamedTuple
from unicodedata import normalize

from quoth_sources.forms import Field, fields_of, form_of
from quoth_sources.pdf import opened
from quoth_sources.source_map import Rectangle, union

YELLOW = (255, 214, 0)
MOST_PIXELS = 8_000_000
Answer = tuple[dict[str, Any], list[bytes]]
"""As of `worker`: nothing, and a picture."""
_FINE = 10_000
"""Steps in a per cent of a page."""
_HYPHENS = "-\xad\u2010\x02\ufffe"
_AROUND, _MOST_DOWN = 30.0, 240.0
"""Points above and below a phrase on a cutting, and of all of it."""
_COLOURS = 16
_NEAR = 36.0
"""How far, in points, the middle of a phrase may be from the middle of its rectangles."""
_OTHER = "it is not the file that was read; index it again, and ask again"


class Mark(NamedTuple):
    """A phrase to highlight: its page, counted from 1, its rectangles there, and a note for whoever clicks on it."""

    page: int
    rectangles: Sequence[Rectangle]
    phrase: str
    note: str = ""


class _Letter(NamedTuple):
    """A character that is not a space: the number of the rectangle that is nearest to its middle, how far away that is
    (0: inside), and its edges."""

    text: str
    part: int
    away: float
    box: Rectangle


def highlighted(content: bytes, marks: Iterable[Sequence[Any]]) -> bytes:
    """The PDF with `Mark`s as annotations, appended to what it is. Raises ValueError."""
    import pypdfium2.raw as pdfium

    with closing(opened(content)) as file:
        for mark in marks:
            _highlight(file, Mark(*mark))
        stream = io.BytesIO()
        file.save(stream, flags=pdfium.FPDF_INCREMENTAL)
    return stream.getvalue()


def picture(content: bytes, mark: Sequence[Any], width: int) -> bytes:
    """A PNG of the page of a `Mark`, this many pixels wide, or fewer if it would have too many. Raises ValueError."""
    with closing(opened(content)) as file:
        _highlight(file, marked := Mark(*mark))
        with closing(file[marked.page - 1]) as page:
            across, down = page.get_size()
            bitmap = page.render(scale=min(width / across, sqrt(MOST_PIXELS / (across * down))))
            stream = io.BytesIO()
            bitmap.to_pil().save(stream, "PNG")
    return stream.getvalue()


def cuttings(content: bytes, marks: Iterable[Sequence[Any]], width: int) -> Iterator[Answer]:
    """For each `Mark` a small PNG of the lines around it, across a page of this many pixels; no bytes if the page has
    other words there. Raises ValueError."""
    import pypdfium2.raw as pdfium

    with closing(opened(content)) as file:
        for mark in map(Mark._make, marks):
            try:
                _highlight(file, mark)
            except ValueError:
                yield {}, [b""]
                continue
            with closing(file[mark.page - 1]) as page:
                yield {}, [_cutting(page, mark, width)]
                pdfium.FPDFPage_RemoveAnnot(page.raw, pdfium.FPDFPage_GetAnnotCount(page.raw) - 1)


def _cutting(page: Any, mark: Mark, width: int) -> bytes:
    from PIL.Image import Quantize

    across, down = page.get_size()
    tops, bottoms = (sorted(each[side] * down / 100 for each in mark.rectangles) for side in (1, 3))
    top = max(tops[0] - _AROUND, 0.0)
    bottom = min(bottoms[-1] + _AROUND, top + _MOST_DOWN, down)
    bitmap = page.render(scale=width / across, crop=(0, down - bottom, 0, top))
    stream = io.BytesIO()
    few = bitmap.to_pil().convert("RGB").quantize(_COLOURS, Quantize.MAXCOVERAGE)  # which keeps the yellow
    few.save(stream, "PNG", optimize=True)
    return stream.getvalue()


def _highlight(file: Any, mark: Mark) -> None:
    if not 0 < mark.page <= len(file):
        raise ValueError(f"it has {len(file)} pages, but a place is on page {mark.page}: {_OTHER}")
    with closing(file[mark.page - 1]) as page:
        rectangles = [_on_page(page, *each) for each in mark.rectangles]
        with closing(page.get_textpage()) as text, form_of(file) as form:
            fields = fields_of(page, form, lambda left, top, right, bottom: (left, bottom, right, top))
            letters = _letters([*_shown(text), *_filled(fields)], rectangles)
        if not (phrase := _phrase(letters, mark.phrase, rectangles)):
            raise ValueError(f"page {mark.page} has other words where the answer was: {_OTHER}")
        boxes = dict[int, list[Rectangle]]()
        for letter in phrase:
            boxes.setdefault(letter.part, []).append(letter.box)
        _annotate(page, [*map(union, boxes.values())], mark.note)


def _on_page(page: Any, left: float, top: float, right: float, bottom: float) -> Rectangle:
    """Left, bottom, right and top in the page's own coordinates of a rectangle in per cent of what is shown."""
    import pypdfium2.raw as pdfium

    x, y = ctypes.c_double(), ctypes.c_double()

    def point(across: float, down: float) -> tuple[float, float]:
        size = 100 * _FINE
        pdfium.FPDF_DeviceToPage(page.raw, 0, 0, size, size, 0, round(across * _FINE), round(down * _FINE), x, y)
        return x.value, y.value

    (x0, y0), (x1, y1) = point(left, top), point(right, bottom)
    return min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)


def _letters(shown: Iterable[tuple[str, Rectangle]], rectangles: Sequence[Rectangle]) -> list[_Letter]:
    found = []
    for text, edges in shown:
        away, part = min((_away(each, *_middle(edges)), number) for number, each in enumerate(rectangles))
        found.append(_Letter(_plain(text), part, away, edges))
    return found


def _shown(text_page: Any) -> Iterator[tuple[str, Rectangle]]:
    """The characters of a page that are not spaces, and their edges."""
    import pypdfium2.raw as pdfium

    box = pdfium.FS_RECTF()
    for at in range(text_page.count_chars()):
        text = chr(pdfium.FPDFText_GetUnicode(text_page.raw, at))
        if text != "\0" and not text.isspace():
            pdfium.FPDFText_GetLooseCharBox(text_page.raw, at, box)
            yield text, (box.left, box.bottom, box.right, box.top)


def _filled(fields: Iterable[Field]) -> Iterator[tuple[str, Rectangle]]:
    """The same of the values of fields, as if all characters were equally wide."""
    for field in fields:
        left, low, right, high = field.place
        step = (right - left) / max(len(field.value), 1)
        for at, text in enumerate(field.value):
            if not text.isspace():
                yield text, (left + at * step, low, left + (at + 1) * step, high)


def _plain(text: str) -> str:
    """A character that is not raised or lowered."""
    plain = normalize("NFKC", text)
    return plain if len(plain) == 1 else text


def _away(box: Rectangle, x: float, y: float) -> float:
    return hypot(max(box[0] - x, 0, x - box[2]), max(box[1] - y, 0, y - box[3]))


def _phrase(letters: Sequence[_Letter], phrase: str, rectangles: Sequence[Rectangle]) -> Sequence[_Letter]:
    """The letters of a phrase: as it occurs at the rectangles, or those inside, if they are like it; or none.

    A rectangle may begin or end next to a letter, because it has a part of a word as if all its characters were equally
    wide. A phrase occurs nowhere if it has headings of a table in it.
    """
    inside = sorted((letter for letter in letters if not letter.away), key=lambda letter: letter.part)
    for among, hyphens in product((letters, inside), ("", _HYPHENS)):
        if found := _occurrence(among, phrase, hyphens, union(rectangles)):
            return found
    wanted = "".join(map(_plain, "".join(phrase.split())))
    alike = SequenceMatcher(None, wanted, "".join(letter.text for letter in inside), autojunk=False)
    same = sum(block.size for block in alike.get_matching_blocks())
    return inside if 2 * same > len(inside) else []


def _occurrence(letters: Sequence[_Letter], phrase: str, hyphens: str, place: Rectangle) -> Sequence[_Letter]:
    """The letters of the occurrence that is nearest to a place, if any is near; these hyphens may lack."""
    kept = [number for number, letter in enumerate(letters) if letter.text not in hyphens or not hyphens]
    said = "".join(letters[number].text for number in kept)
    wanted = "".join(_plain(each) for each in phrase if not each.isspace() and each not in hyphens)
    best, nearest = list[_Letter](), _NEAR
    for found in re.finditer(f"(?={re.escape(wanted)})", said) if wanted else ():
        occurrence = letters[kept[found.start()] : kept[found.start() + len(wanted) - 1] + 1]
        distance = dist(_middle(union(letter.box for letter in occurrence)), _middle(place))
        if distance < nearest:
            best, nearest = [*occurrence], distance
    return best


def _middle(box: Rectangle) -> tuple[float, float]:
    return (box[0] + box[2]) / 2, (box[1] + box[3]) / 2


def _annotate(page: Any, boxes: Sequence[Rectangle], note: str) -> None:
    import pypdfium2.raw as pdfium

    annotation = pdfium.FPDFPage_CreateAnnot(page.raw, pdfium.FPDF_ANNOT_HIGHLIGHT)
    try:
        pdfium.FPDFAnnot_SetColor(annotation, pdfium.FPDFANNOT_COLORTYPE_Color, *YELLOW, 255)
        pdfium.FPDFAnnot_SetFlags(annotation, pdfium.FPDF_ANNOT_FLAG_PRINT)
        for left, low, right, high in boxes:
            corners = pdfium.FS_QUADPOINTSF(left, high, right, high, left, low, right, low)
            pdfium.FPDFAnnot_AppendAttachmentPoints(annotation, corners)
        left, low, right, high = union(boxes)
        pdfium.FPDFAnnot_SetRect(annotation, pdfium.FS_RECTF(left, high, right, low))
        for key, value in ((b"T", "Quoth"), (b"Contents", note)):
            content = f"{value}\0".encode("utf-16-le", "replace")
            pdfium.FPDFAnnot_SetStringValue(
                annotation, key, (ctypes.c_ushort * (len(content) // 2)).from_buffer_copy(content)
            )
    finally:
        pdfium.FPDFPage_CloseAnnot(annotation)
