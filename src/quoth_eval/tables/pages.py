"""Whether the places of cells are right: grounding F1 by page and by word, on PDFs whose words have known places.

Knows: how a set's texts become pages, boxes that were labelled, ExtractBench's definition. Does not know: how cells are
found.

Source: run-llama/ExtractBench (2026), README and `unified_evidence_metric.py`: a cell is right by page if its value is
accepted and its page is one of the accepted ones; by word if also its box has an intersection over union of 0.5 with an
accepted one. Recall is over the cells whose place is known, precision over the filled ones among them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from quoth.corpus.documents import read_documents
from quoth.errors import InputError
from quoth.reader.model import Reader
from quoth.records import Document
from quoth_eval.report import Table
from quoth_eval.tables.measure import Cells, Counts, Filled, Progress, accepted, by_table, corpus_of, counted, golds
from quoth_eval.tables.sets import ROW, Box, TableSet
from quoth_sources.source_map import Rectangle, union

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 595.0, 842.0, 57.0, 60.0, 60.0
FONT, SIZE, LEADING = "Helvetica", 10.0, 13.0
LEAST_OVERLAP = 0.5


class Word(NamedTuple):
    """A word as it is drawn: its page, from 1, and its rectangle in per cent of the page, from its upper left."""

    text: str
    page: int
    rectangle: Rectangle


@dataclass(frozen=True, slots=True)
class Grounding:
    """Cells whose value is right, whose page is, whose words are; of the cells whose place is known, and of those that
    claim one."""

    counts: Counts
    known: int
    claimed: int
    by_page: int
    by_word: int

    def f1(self, right: int) -> float:
        """The harmonic mean of the shares of the known and of the claimed that are right."""
        return 2 * right / (self.known + self.claimed) if self.known + self.claimed else 0.0

    def to_dict(self) -> dict[str, float]:
        """As JSON has it."""
        own = {"known": self.known, "claimed": self.claimed, "by_page": self.by_page, "by_word": self.by_word}
        return own | {"page_f1": self.f1(self.by_page), "word_f1": self.f1(self.by_word)}

    def table(self) -> Table:
        """As tables are printed, in percent."""
        heads = ["cells", "claimed", "right", "on their page", "on their words", "page F1", "word F1"]
        counted = (self.known, self.claimed, self.counts.right, self.by_page, self.by_word)
        return heads, [[*map(str, counted), *(f"{100 * self.f1(n):.1f}" for n in (self.by_page, self.by_word))]]


Drawn = dict[str, list[Word]]
"""The words of each field as they are drawn, by its label."""


def drawn(documents: Iterable[Document]) -> tuple[bytes, Drawn]:
    """Documents as a PDF, a page or more for each: its title, then its lines, broken at the page's width."""
    try:
        from reportlab.pdfbase.pdfmetrics import stringWidth  # type: ignore[import-untyped]
        from reportlab.pdfgen.canvas import Canvas  # type: ignore[import-untyped]
    except ModuleNotFoundError:
        raise InputError("PDFs are drawn with reportlab, which is not installed: pip install reportlab") from None
    stream, known, page = BytesIO(), Drawn(), 0
    canvas = Canvas(stream, pagesize=(WIDTH, HEIGHT), invariant=1)
    space = stringWidth(" ", FONT, SIZE)
    for document in documents:
        y = 0.0
        for line in (document.title, *document.text.split("\n")):
            label, colon, value = line.partition(": ")
            first, x = len(f"{label}{colon}".split()), LEFT
            y -= LEADING
            for number, text in enumerate(line.split()):
                wide = stringWidth(text, FONT, SIZE)
                if x > LEFT and x + wide > WIDTH - LEFT:
                    x, y = LEFT, y - LEADING
                if y < BOTTOM:
                    if page:
                        canvas.showPage()
                    page, y = page + 1, HEIGHT - TOP
                    canvas.setFont(FONT, SIZE)
                canvas.drawString(x, y, text)
                if value and number >= first:
                    known.setdefault(label, []).append(Word(text, page, _per_cent(x, y, wide)))
                x += wide + space
    canvas.save()
    return stream.getvalue(), known


def _per_cent(x: float, y: float, wide: float) -> Rectangle:
    """A word on its baseline, from the font's descent to its ascent."""
    left, right = 100 * x / WIDTH, 100 * (x + wide) / WIDTH
    return left, 100 * (HEIGHT - y - 0.75 * SIZE) / HEIGHT, right, 100 * (HEIGHT - y + 0.21 * SIZE) / HEIGHT


def grounded(given: TableSet, fields: dict[str, str], reader: Reader, folder: Path, progress: Progress) -> Grounding:
    """Draws each row of a set as a PDF, reads these back, asks a table over them, and looks where its cells are.
    `fields` are the labels of the fields that answer, by column."""
    places, files = dict[str, Drawn](), dict[str, Path]()
    for number, (row, own) in enumerate(given.rows.items()):
        content, places[row] = drawn(own)
        files[row] = folder / f"{number}.pdf"
        files[row].write_bytes(content)
    given = replace(given, name=f"{given.name}, as PDF")
    corpus, is_new = corpus_of(
        given,
        folder,
        lambda: (replace(each, metadata={ROW: row}) for row, path in files.items() for each in read_documents(path)),
    )
    began = time.process_time()
    cells = by_table(given, corpus, Reader(reader.reader, [corpus], reader.name), progress)
    counts = counted("table", given, cells, time.process_time() - began if is_new else None)
    return _judged(given, counts, cells, lambda row, name, text: lines_of(quoted(text, places[row][fields[name]])))


def labelled(given: TableSet, counts: Counts, cells: Cells) -> Grounding:
    """Looks where cells are that were asked over a set whose boxes are known."""
    return _judged(given, counts, cells, lambda row, name, _: given.boxes[row][name])


def _judged(
    given: TableSet, counts: Counts, cells: Cells, boxes: Callable[[str, str, str], Sequence[Box]]
) -> Grounding:
    known = [(row, name) for row, name, _ in golds(given)]
    right = [(row, name) for row, name, gold in golds(given) if accepted(gold, cells.get((row, name)))]
    both = [(cells[each], boxes(*each, cells[each].text)) for each in right]
    pages, words = (sum(judge(cell, own) for cell, own in both) for judge in (on_page, on_words))
    return Grounding(counts, len(known), len(cells.keys() & known), pages, words)


def lines_of(words: Iterable[Word]) -> list[Box]:
    """A box for each line of these words."""
    lines = dict[tuple[int, float], list[Rectangle]]()
    for each in words:
        lines.setdefault((each.page, each.rectangle[1]), []).append(each.rectangle)
    return [Box(page, union(own)) for (page, _), own in lines.items()]


def on_page(cell: Filled, boxes: Iterable[Box]) -> bool:
    """Whether a cell is on a page of these boxes."""
    return cell.place.get("location", {}).get("page") in {each.page for each in boxes}


def on_words(cell: Filled, boxes: Iterable[Box]) -> bool:
    """Whether a rectangle of a cell is one of these boxes."""
    location = cell.place.get("location", {})
    return any(
        each.page == location.get("page") and overlap(each.rectangle, tuple(own)) >= LEAST_OVERLAP
        for each in boxes
        for own in location.get("rectangles", ())
    )


def quoted(text: str, field: Sequence[Word]) -> Sequence[Word]:
    """The words of a field that a quotation has: the first run of them with its text, else all."""
    said = _plain(text)
    for start in range(len(field)):
        for end in range(start + 1, len(field) + 1):
            run = _plain(" ".join(each.text for each in field[start:end]))
            if said in run:
                while said in _plain(" ".join(each.text for each in field[start + 1 : end])):
                    start += 1
                return field[start:end]
            if len(run) > 2 * len(said) + 40:
                break
    return field


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", text.casefold()).strip()


def overlap(one: Rectangle, other: Rectangle) -> float:
    """Intersection over union of two rectangles."""
    wide = min(one[2], other[2]) - max(one[0], other[0])
    high = min(one[3], other[3]) - max(one[1], other[1])
    inside = max(wide, 0.0) * max(high, 0.0)
    both = sum((right - left) * (bottom - top) for left, top, right, bottom in (one, other))
    return inside / (both - inside) if inside else 0.0
