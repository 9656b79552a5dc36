"""PDF: words with their rectangles, as `layout` puts them in order.

Knows characters on pages as pdfium finds them. Does not know pictures: a scanned page has no text.
"""

import ctypes
import re
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from math import pi
from typing import Any

from quoth.source_map import Rectangle
from quoth.sources.forms import fields_of, filled, form_of
from quoth.sources.layout import Writer, joins_in
from quoth.sources.letters import Letters, Placer
from quoth.sources.source import Source, Text
from quoth.sources.strips import Page, Word, strips_of, without_heads

_NAMELESS = ("untitled", "(anonymous)", "anonymous", "unspecified")
_OF_A_FILE = re.compile(
    r"(?:Microsoft (?:Word|PowerPoint|Excel) - )?(.*?)(?:\.(?:docx?|pptx?|xlsx?|odt|pdf|indd|rtf))?"
)
"""A title that a program has made of a file's name."""
_MOST_PAGES = 100_000
_SAMPLE = 200
"""Characters of a page whose angles are looked at."""


def read(content: bytes) -> Source:
    """The text of a PDF. Raises ValueError if it cannot be opened, or has no text."""
    file = opened(content)
    if len(file) > _MOST_PAGES:
        raise ValueError(f"{len(file):,} pages, but at most {_MOST_PAGES:,} are read; split it")
    with form_of(file) as form:
        pages = [_page(file, number, form) for number in range(len(file))]
    if not any(page.strips for page in pages):
        what = "no text in it, so its pages may be scanned pictures"
        raise ValueError(f"{what}; recognise their text first, with OCR, for example by ocrmypdf")
    facts = file.get_metadata_dict(skip_empty=True)
    date = re.match(r"D:(\d{4})(\d\d)(\d\d)", facts.get("ModDate") or facts.get("CreationDate") or "")
    text = Text("page")
    writer = Writer(text, joins_in(pages))
    for number, page in enumerate(without_heads(pages), 1):
        writer.page(number, page)
    return text.source(
        {
            "title": _title(facts),
            "author": _fact(facts, "Author"),
            "date": "-".join(date.groups()) if date else "",
            "pages": len(pages),
        }
    )


def _fact(facts: Mapping[str, str], name: str) -> str:
    value = " ".join(facts.get(name, "").split())
    return "" if value.lower() in _NAMELESS else value


def _title(facts: Mapping[str, str]) -> str:
    """The title without what a program adds that made it of a file's name."""
    found = _OF_A_FILE.fullmatch(_fact(facts, "Title"))
    return found[1] if found else ""


def opened(content: bytes) -> Any:
    """The file as pdfium has it. Raises ValueError."""
    import pypdfium2

    try:
        return pypdfium2.PdfDocument(content)
    except pypdfium2.PdfiumError as error:
        locked = "password" in str(error).lower()
        raise ValueError("it is encrypted; save it without a password" if locked else f"not a PDF ({error})") from None


def _page(file: Any, number: int, form: Any) -> Page:
    import pypdfium2

    try:
        page = file[number]
    except pypdfium2.PdfiumError:
        return Page(1, 1, [])  # damaged: the others are still read
    with closing(page), closing(page.get_textpage()) as text_page:
        count = text_page.count_chars()
        quarters = partial(_quarters, text_page, page.get_rotation() + 180 * _is_over(text_page, count))
        (width, height), turn = page.get_size(), _turn(count, quarters)
        words, aside = list[Word](), list[Word]()
        place = _placer(page, turn)
        for word, is_level in Letters(text_page, place).words(lambda at: quarters(at) in (turn, None)):
            (words if is_level else aside).append(word)
        words = filled(words, fields_of(page, form, place))
        return Page(*((height, width) if turn % 2 else (width, height)), strips_of(words), turn, aside)


def _turn(count: int, quarters: Callable[[int], int | None]) -> int:
    """By how many quarters of a circle, clockwise, most of so many characters are turned as they are shown."""
    turns = Counter(quarters(at) for at in range(0, count, count // _SAMPLE + 1))
    del turns[None]
    return turns.most_common(1)[0][0] or 0 if turns else 0


def _quarters(text_page: Any, rotation: int, at: int) -> int | None:
    """The same of one character of a page that is shown turned by so many degrees; None if it is not known."""
    import pypdfium2.raw as pdfium

    angle = pdfium.FPDFText_GetCharAngle(text_page.raw, at)
    return round(angle / (pi / 2) + rotation / 90) % 4 if angle >= 0 else None


def _is_over(text_page: Any, count: int) -> bool:
    """Whether most of so many characters have a size below nothing, which turns them upside down."""
    import pypdfium2.raw as pdfium

    sizes = [float(pdfium.FPDFText_GetFontSize(text_page.raw, at)) for at in range(0, count, count // _SAMPLE + 1)]
    return 2 * sum(size < 0 for size in sizes) > len(sizes)


def _placer(page: Any, turn: int) -> Placer:
    """From a rectangle in a page's own coordinates to points from its upper left, turned so that its text is level."""
    import pypdfium2.raw as pdfium

    width, height = page.get_size()
    x, y = ctypes.c_int(), ctypes.c_int()

    def shown(left: float, top: float) -> tuple[float, float]:
        pdfium.FPDF_PageToDevice(page.raw, 0, 0, 1_000_000, 1_000_000, 0, left, top, x, y)
        across, down = x.value * width / 1_000_000, y.value * height / 1_000_000
        return ((across, down), (down, width - across), (width - across, height - down), (height - down, across))[turn]

    # The three corners of a large square give the linear map.
    (x0, y0), (x1, y1), (x2, y2) = shown(0, 0), shown(1000, 0), shown(0, 1000)
    xx, yx, xy, yy = (x1 - x0) / 1000, (y1 - y0) / 1000, (x2 - x0) / 1000, (y2 - y0) / 1000

    def upright(left: float, top: float, right: float, bottom: float) -> Rectangle:
        return x0 + xx * left, y0 + yy * top, x0 + xx * right, y0 + yy * bottom

    def turned(left: float, top: float, right: float, bottom: float) -> Rectangle:
        one, other = x0 + xx * left + xy * top, x0 + xx * right + xy * bottom
        first, second = y0 + yx * left + yy * top, y0 + yx * right + yy * bottom
        return min(one, other), min(first, second), max(one, other), max(first, second)

    return upright if yx == xy == 0 and xx > 0 > yy else turned
