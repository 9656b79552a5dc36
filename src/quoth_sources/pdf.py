"""PDF: words with their rectangles, as `layout` puts them in order.

Knows characters on pages as pdfium finds them. Does not know pictures: a scanned page has no text.
"""

import ctypes
import re
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import groupby, islice
from math import pi
from operator import itemgetter
from typing import Any
from unicodedata import normalize

from quoth_sources.blocks import Block
from quoth_sources.forms import fields_of, filled, form_of
from quoth_sources.layout import Writer, joins_in
from quoth_sources.letters import Letters, Placer
from quoth_sources.source import Source, Text
from quoth_sources.source_map import Rectangle
from quoth_sources.strips import Page, Word, strips_of, without_heads

_NAMELESS = ("untitled", "(anonymous)", "anonymous", "unspecified")
_OF_A_FILE = re.compile(
    r"(?:Microsoft (?:Word|PowerPoint|Excel) - )?(.*?)(?:\.(?:docx?|pptx?|xlsx?|odt|pdf|indd|rtf))?"
)
"""A title that a program has made of a file's name."""
_MOST_PAGES = 100_000
_LEADER = re.compile(r"(?:[.…·] ?){3,}\s*(?:\d+|[ivxlc]+)(?:, \d+)*$")
"""Dots at the end of a line of a table of contents or an index, and its numbers of pages."""
_NUMBER = re.compile(r"(?:\w+\s+)?(?:\d+(?:\.\d+)*|[A-Z](?:\.\d+)*|[IVXLC]+)[.:)]*\s+")
"""Of a title: 3.1, A.2, Chapter 3."""
_MOST_TITLES, _MOST_LINES, _LONGEST = 10_000, 3, 300
"""Titles of an outline; blocks that are one title; characters of a title."""
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
    source = text.source(
        {
            "title": _title(facts),
            "author": _fact(facts, "Author"),
            "date": "-".join(date.groups()) if date else "",
            "pages": len(pages),
        }
    )
    return replace(source, blocks=_outlined(source, _outline(file)))


def _outline(file: Any) -> dict[int, list[tuple[set[str], int]]]:
    """The titles of a file's outline as `_keys` has them, and their levels, by the numbers of the pages to which they
    lead."""
    titles: dict[int, list[tuple[set[str], int]]] = {}
    for each in islice(file.get_toc(), _MOST_TITLES):
        to, keys = each.get_dest(), _keys(each.get_title())
        if keys and to is not None and (page := to.get_index()) is not None:
            titles.setdefault(page + 1, []).append((keys, each.level + 1))
    return titles


def _outlined(source: Source, titles: Mapping[int, Sequence[tuple[set[str], int]]]) -> list[Block]:
    """The blocks of a text, the titles of an outline as headings; none if no title is found: the file marks nothing."""
    starts, blocks = [run[0] for run in source.runs], list[Block]()
    pages = [source.runs[max(bisect(starts, block.start) - 1, 0)][2] for block in source.blocks] if titles else []
    for page, group in groupby(zip(pages, source.blocks, strict=True), itemgetter(0)) if titles else ():
        here = _with_headings(source.text, [block for _, block in group], titles.get(page, ()))
        blocks += _with_contents(source.text, here)
    return blocks if any(block.kind == "heading" for block in blocks) else []


def _with_headings(text: str, blocks: list[Block], titles: Sequence[tuple[set[str], int]]) -> list[Block]:
    """The blocks of a page, of which up to three in a row may be a title."""
    parts = [blocks[at : at + count] for count in range(1, _MOST_LINES + 1) for at in range(len(blocks) - count + 1)]
    parts = [part for part in parts if titles and part[-1].end - part[0].start < _LONGEST]
    keyed = [(part, _keys(text[part[0].start : part[-1].end])) for part in parts if text[part[0].start].isalnum()]
    for title, level in titles:
        if part := next(
            (part for part, keys in keyed if keys & title and part[0] in blocks and part[-1] in blocks), None
        ):
            at = blocks.index(part[0])
            blocks[at : at + len(part)] = [Block(part[0].start, part[-1].end, "heading", level)]
    return blocks


def _with_contents(text: str, blocks: Sequence[Block]) -> list[Block]:
    """The blocks of a page; if at least half of its text is lines with dots that lead to a number, all from the first
    of these to the last, and a chapter's number before, are of a table of contents or an index."""
    lines = [at for at, block in enumerate(blocks) if _LEADER.search(text, block.start, block.end)]
    size = sum(block.end - block.start for block in blocks)
    if not lines or 2 * sum(blocks[at].end - blocks[at].start for at in lines) < size:
        return [*blocks]
    first, last = lines[0], lines[-1]
    first -= first > 0 and text[blocks[first - 1].start : blocks[first - 1].end].isdigit()
    return [
        block._replace(kind="contents", level=0) if first <= at <= last and block.kind != "heading" else block
        for at, block in enumerate(blocks)
    ]


def _keys(title: str) -> set[str]:
    """The letters and digits of a title, with its number and without."""
    title = normalize("NFKC", title)
    forms = (title, title[found.end() :] if (found := _NUMBER.match(title)) else title)
    return {"".join(filter(str.isalnum, form.casefold())) for form in forms} - {""}


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
