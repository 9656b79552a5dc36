"""Pages as a person reads them: their columns, paragraphs and tables in order, as a text with the place of each word.

Knows strips of words; hyphens at the ends of lines. Does not know PDF.

If an empty column goes down through several strips, they are read column by column where the columns are prose, else
row by row, as a table.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, zip_longest
from statistics import median
from typing import Any

from quoth_sources.cells import are_marks, is_bullet, is_headed, is_mark, rows_of
from quoth_sources.columns import count_lines, halves_of, is_prose, labels_of, parts_of, tables_of
from quoth_sources.dictionary import dictionary
from quoth_sources.source import Piece, Text
from quoth_sources.source_map import WHOLE
from quoth_sources.strips import (
    GUTTER,
    HYPHENS,
    Line,
    Page,
    Strip,
    Word,
    columns_of,
    groups_of,
    height_of,
    in_order,
    is_rule,
    said,
    top_of,
    words_of,
)

_ENDS = ".!?:;…)]”’\"'"
_AROUND = ".,;:!?()[]“”‘’\"'"
_ITEM = re.compile(r"\(?(?:\d{1,3}[.)]|[a-zA-Z]\))[^\W\d]")
"""An item whose number touches its first word."""
_ADDRESS = re.compile(r"[@/]|\w\.\w")
_LEADER = 2
"""The most characters of a word of dots that is a leader or an ellipsis, not a line across the page."""
_BESIDE = 8
"""At least so many lines of prose are beside a line of notes in its margin."""


def joins_in(pages: Iterable[Page]) -> Callable[[str, str], bool]:
    """Whether a word that is cut at a hyphen is one word: unless the text has it with the hyphen, and only so, or has
    neither, and English has its halves but not the whole: of a compound ("state-of-the-art") those at the hyphen. No
    word is cut behind one letter (X-ray), and addresses keep their hyphens."""
    seen = {word.text.strip(_AROUND).lower() for page in pages for strip in page.strips for word in words_of(strip)}

    def joins(head: str, tail: str) -> bool:
        head, tail = head.lstrip(_AROUND), tail.rstrip(_AROUND)
        if not tail[:1].islower():
            return False
        whole, halves = (head + tail).lower(), (head.lower(), tail)
        if whole in seen or "-".join(halves) in seen:
            return whole in seen
        last, first = head.lower().rpartition("-")[2], tail.partition("-")[0]
        if len(last) == 1 or _ADDRESS.search(head + tail):
            return False
        return last + first in dictionary() or not dictionary().issuperset((last, first))

    return joins


class Writer:
    """Writes pages into a text, paragraph by paragraph."""

    def __init__(self, text: Text, joins: Callable[[str, str], bool]) -> None:
        self._text, self._joins = text, joins
        self._number, self._scale, self._turn = 0, (1.0, 1.0), 0
        self._last = ""
        self._is_first = False
        self._heads: Strip = []

    def page(self, number: int, page: Page) -> None:
        self._number, self._scale, self._is_first = number, (WHOLE / page.width, WHOLE / page.height), True
        self._turn = page.turn
        self._layout(page.strips)
        self._paragraph([page.aside] * bool(page.aside))

    def _layout(self, strips: Sequence[Strip]) -> None:
        for is_form, some in groupby(strips, lambda strip: any(word.is_field for word in words_of(strip))):
            if is_form:
                self._text.gap()
                for strip in some:
                    self._text.block("row")
                    self._form(strip)
                self._text.gap()
            else:
                self._blocks([*some])

    def _blocks(self, strips: Sequence[Strip]) -> None:
        prose = list[tuple[Strip, Strip]]()
        for group, cuts in groups_of(strips):
            columns = columns_of(group, cuts)
            while cuts and are_marks(group, columns[0]):  # and those of lower levels
                cuts = cuts[1:]
                columns = columns_of(group, cuts)
            if len(columns) == 2 and (labels := labels_of(columns[0], columns[1])):
                # The first lines may end the paragraph before.
                prose += [(strip, []) for strip in columns[1][: labels[0][0]] if strip]
                self._prose(prose)
                prose = []
                self._labelled(columns[0], columns[1], labels)
                continue
            if (side := _side_of_notes(columns)) is not None:
                prose += zip(columns[1 - side], columns[side], strict=True)
                continue
            is_read_down = cuts and all(map(is_prose, columns))
            if len(parts := columns if is_read_down else halves_of(columns) or parts_of(columns)) > 1:
                parts = [[strip for strip in part if strip] for part in parts]
                while prose and (begun := _goes_on(prose[-1], parts)) is not None:
                    parts[begun].insert(0, prose.pop()[0])
                self._prose(prose)
                prose = []
                for part in parts:
                    self._blocks(part)
                continue
            # What is above a table's headings may end the paragraph before it.
            above = next((number for number, strip in enumerate(group) if cuts and len(strip) > 1), len(group))
            prose += [(strip, []) for strip in group[:above]]
            if above < len(group):
                self._prose(prose)
                prose = []
                if len(tables := tables_of(group[above:])) > 1:
                    for table in tables:
                        self._blocks(table)
                else:
                    self._table(group[above:], cuts)
        self._prose(prose)

    def _labelled(
        self, labels: Sequence[Strip], text: Sequence[Strip], starts: Sequence[tuple[int, Sequence[int]]]
    ) -> None:
        """Writes running text, with each label before its paragraph."""
        for (start, numbers), following in zip_longest(starts, starts[1:]):
            lines = [words_of(labels[number]) for number in numbers]
            self._text.gap()
            self._text.block("paragraph")
            self._add(lines)
            self._text.join(" | " if any(map(str.isalpha, said(lines[-1]))) else " ")
            self._is_first = False
            self._blocks([strip for strip in text[start : following and following[0]] if strip])

    def _prose(self, noted: Sequence[tuple[Strip, Strip]]) -> None:
        """Writes paragraphs of strips, each with the note in its margin; a paragraph's notes come before it."""
        strips = [strip for strip, _ in noted if strip]
        if not strips:
            return
        left = min(strip[0][0].left for strip in strips)
        right = max(strip[-1][-1].right for strip in strips)
        usual = median(map(height_of, strips))
        paragraph, beside = list[Line](), list[Line]()
        for strip, note in noted:
            line = words_of(strip)
            if line and paragraph and _begins(paragraph[-1], line, left, right, usual):
                self._paragraph(beside)
                self._paragraph(paragraph)
                paragraph, beside = [], []
            paragraph += [line] * bool(line)
            beside += [words_of(note)] * bool(note)
        self._paragraph(beside)
        self._paragraph(paragraph)

    def _paragraph(self, lines: Sequence[Line]) -> None:
        if not lines:
            return
        # A sentence may continue from the page before.
        continues = self._is_first and self._last[-1:].isalpha() and lines[0][0].text[0].islower()
        self._text.gap(" " if continues else "\n\n")
        if len(lines[0]) > 1 and is_bullet(lines[0][0].text):
            self._text.block("item", 1)
        elif not continues:
            self._text.paragraph()
        self._is_first, self._heads = False, []
        self._add(lines)
        self._last = lines[-1][-1].text

    def _add(self, lines: Sequence[Line]) -> None:
        for text, *place in self._pieces(lines):
            if text == " ":
                self._text.gap(text)
            else:
                self._text.add(text, *place)

    def _form(self, strip: Strip) -> None:
        """Writes what is beside each other in a form: labels and their values, and each label without one as a line of
        its own, so that what comes next is no value."""
        has_value = is_leader = False
        for piece in strip:
            was_leader, is_leader = is_leader, all(map(is_rule, (word.text for word in piece)))
            if has_value and piece[-1].at:
                self._text.join(" | ")
            else:
                self._text.gap(" " if is_leader or was_leader else "\n")
            self._add([piece])
            has_value = bool(piece[-1].at)
        self._text.gap("\n")
        self._last, self._is_first, self._heads = "", False, []

    def _pieces(self, lines: Sequence[Line]) -> Iterator[tuple[Any, ...]]:
        """The words and the spaces between them, without the hyphens of words that are cut at the end of a line."""
        ordered = map(in_order, lines)
        words = [(word, word is line[-1]) for line in ordered for word in line]
        for (word, ends), following in zip_longest(words, [word for word, _ in words[1:]]):
            text = word.text.replace("\ufffe", "-")
            is_cut = (
                ends and following is not None and len(text) > 1 and text[-1] in HYPHENS and text[-2] not in HYPHENS
            )
            if is_cut:
                text = text[:-1] + ("" if self._joins(text[:-1], following.text) else "-")
            yield text, *self._place(word, word.right if len(text) == len(word.text) else word.stem)
            if following is not None and not is_cut:
                yield (" ",)

    def _place(self, word: Word, right_edge: float) -> tuple[int, ...]:
        if word.at == ():
            return ()
        across, down = self._scale
        left, top, right, bottom = word.at or (word.left, word.top, right_edge, word.bottom)
        left, top, right, bottom = (
            round(left * across),
            round(top * down),
            round(right * across),
            round(bottom * down),
        )
        if left < 0 or top < 0 or right > WHOLE or bottom > WHOLE:  # what is off the page
            left, top, right, bottom = (min(max(edge, 0), WHOLE) for edge in (left, top, right, bottom))
        if self._turn == 1:
            left, top, right, bottom = WHOLE - bottom, left, WHOLE - top, right
        elif self._turn == 2:
            left, top, right, bottom = WHOLE - right, WHOLE - bottom, WHOLE - left, WHOLE - top
        elif self._turn == 3:
            left, top, right, bottom = top, WHOLE - right, bottom, WHOLE - left
        return self._number, left, top, right, bottom

    def _table(self, strips: Sequence[Strip], cuts: Sequence[float]) -> None:
        rows = rows_of(strips, cuts)
        headed = is_headed(rows)
        if self._heads and not headed:  # it continues from the page before, or below a gap
            above, height = top_of(strips[0]), height_of(strips[0])
            heads = [
                [word._replace(top=above - 3 * height, bottom=above - 2 * height) for word in piece]
                for piece in self._heads
            ]
            continued = rows_of([heads, *strips], cuts)
            headed = is_headed(continued)
            rows = continued if headed else rows
        self._is_first, self._heads = False, [cell for cell in rows[0] if cell] if headed else []
        self._text.table([[self._cell(cell) for cell in row] for row in rows], headed)

    def _cell(self, words: Line) -> list[Piece]:
        return [Piece(text, tuple(place)) for text, *place in self._pieces([words])] if words else []


def _goes_on(noted: tuple[Strip, Strip], parts: Sequence[Sequence[Strip]]) -> int | None:
    """Which part of a page begins with a line close above it, that is in the same column."""
    line, note = words_of(noted[0]), noted[1]
    for number, part in enumerate(parts if not note else ()):
        height = height_of(part[0])
        left, right = min(strip[0][0].left for strip in part), max(strip[-1][-1].right for strip in part)
        close = top_of(part[0]) - line[0].bottom < 0.6 * height
        alike = abs(line[0].bottom - line[0].top - height) < 0.15 * height
        if close and alike and abs(line[0].left - left) < 0.5 * height and line[-1].right < right + 0.5 * height:
            return number
    return None


def _side_of_notes(columns: Sequence[Sequence[Strip]]) -> int | None:
    """Which of two columns has nothing but a few notes or the numbers of lines in the margin of the other, which is
    prose."""
    for side in (0, 1) if len(columns) == 2 else ():
        notes = sum(map(bool, columns[side]))
        few = len(columns[side]) >= _BESIDE * max(notes, 1)
        if (few or count_lines(columns[side], columns[1 - side])) and is_prose(columns[1 - side]):
            return side
    return None


def _begins(before: Line, line: Line, left: float, right: float, usual: float) -> bool:
    """Whether a line begins a paragraph: after a gap, in another size, at a mark, indented below the end of a sentence,
    after a short line, or after one in which its first word had room, and before and after a rule."""
    height, last = line[-1].bottom - line[-1].top, before[-1].bottom - before[-1].top
    apart = line[0].top - before[0].bottom > 0.6 * usual or abs(height - last) > 0.15 * max(height, last)
    said, below = before[-1].text[-1], abs(line[0].left - before[0].left) < 0.3 * usual
    indented = line[0].left > left + 0.8 * usual and before[0].left < left + 0.3 * usual and said in _ENDS
    short = before[-1].right < right - 0.2 * (right - left) and said in ".!?:"
    room = line[-1].right - before[-1].right > line[0].right - line[0].left + 0.5 * height
    ended = room and below and said not in HYPHENS
    numbered = len(line) > 1 and line[1].left - line[0].right > GUTTER * height and is_mark(line[0].text)
    ruled = any(all(is_rule(word.text) and len(word.text) > _LEADER for word in each) for each in (before, line))
    listed = _ITEM.match(before[0].text) is not None or said == ":"
    marked = is_bullet(line[0].text) or (listed and _ITEM.match(line[0].text) is not None)
    return apart or indented or short or ended or numbered or ruled or marked
