"""What every format gives: a text, and where its parts are in the file.

Knows how a text is put together from parts and their places, and how a table is written so that each value is next to
its heading. Does not know any format.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from typing import Any, NamedTuple

from quoth_sources.blocks import Block
from quoth_sources.source_map import Run

MOST_CHARACTERS = 200_000_000
"""Of a document's text."""
ON, OFF = "☒", "☐"
"""A box of a form, ticked and empty."""
_GAPS = ["", " ", "\n", "\n\n"]
_STRANGE = re.compile(r"[\x00\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class Source:
    """A file's text, its runs (`quoth_sources.source_map`), what else is known of it, the kind of its places, warnings,
    and the blocks that the file marks (none: it marks none, and they are guessed)."""

    text: str
    runs: Sequence[Run]
    metadata: Mapping[str, Any]
    kind: str
    notes: Sequence[str] = ()
    blocks: Sequence[Block] = ()


class Piece(NamedTuple):
    """A part of a text, and the place where it is."""

    text: str
    place: tuple[Any, ...]


Cell = Sequence[Piece]


def is_final(error: Exception) -> bool:
    """Whether an error settles that a file cannot be read: one of this package with its reason, or lack of memory or
    depth. After a library's error another way may work."""
    if isinstance(error, (MemoryError, RecursionError)):
        return True
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    raised = "" if trace is None else trace.tb_frame.f_globals.get("__name__", "")
    here = __name__.partition(".")[0]
    kind = here if type(error) is ValueError else type(error).__module__
    return isinstance(error, ValueError) and {each.partition(".")[0] for each in (kind, raised)} == {here}


class Text:
    """A text that grows. Between two parts is at most one gap, the widest that was asked for."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._parts: list[str] = []
        self._runs: list[Run] = []
        self._length = 0
        self._gap = ""
        self._is_held = self._is_joined = False
        self._blocks: list[tuple[int, str, int]] = []
        self.only = ""
        """The kind of all blocks, whatever is asked for: "contents", for example."""

    def block(self, kind: str, level: int = 0) -> None:
        """Begins a block of this kind (`quoth_sources.blocks`) with the next text, and with the mark before it; it ends
        where the next one begins."""
        start = self._length
        if self._is_held and not self._is_joined:
            start -= len(self._parts[-1]) + len(self._parts[-2])
        if self._blocks and self._blocks[-1][0] == start:
            self._blocks.pop()
        self._blocks.append((start, self.only or kind, 0 if self.only else level))

    def paragraph(self, level: int = 0) -> None:
        """Begins a paragraph, unless it is the first of an item, to whose block it belongs."""
        if not self._blocks or not (self._is_held or self._blocks[-1][:2] == (self._length, "item")):
            self.block("paragraph", level)

    def add(self, text: str, *place: Any) -> None:
        """Appends a text that is at this place, or nowhere. Raises ValueError if there is too much."""
        if not text:
            return
        text = text if text.isascii() and "\0" not in text else _STRANGE.sub("\ufffd", text)
        gap = self._gap if self._parts else ""
        start, self._gap, self._is_held = self._length + len(gap), "", False
        self._length = start + len(text)
        self._parts += [gap, text]
        if place:
            self._runs.append((start, self._length, *place))
        if self._length > MOST_CHARACTERS:
            raise ValueError(f"more than {MOST_CHARACTERS:,} characters of text; split it")

    def blocked(self, text: str, blocks: Iterable[Block], *place: Any) -> None:
        """Appends a text that has blocks of its own, at this place."""
        self.add(text, *place)
        start = self._length - len(text)
        self._blocks += [(start + block.start, block.kind, block.level) for block in blocks]

    def pieces(self, pieces: Iterable[Piece]) -> None:
        """Appends pieces, with their white space as single spaces."""
        for text, place in pieces:
            if text[:1].isspace():
                self.gap(" ")
            self.add(" ".join(text.split()), *place)
            if text[-1:].isspace():
                self.gap(" ")

    def code(self, lines: Iterable[str], first: int) -> None:
        """Appends lines as they are, as a part of its own; `first` is the number of the first."""
        for number, line in enumerate(lines, first):
            self.add(line.rstrip(), number)
            self.gap("\n" if line.strip() else "\n\n")
        self.gap()

    def gap(self, gap: str = "\n\n") -> None:
        """Puts a space, the end of a line or of a paragraph before the next text, if any comes."""
        if not self._is_held and (gap != " " or (self._parts and not self._parts[-1].endswith(" "))):
            self._gap = max(self._gap, gap, key=_GAPS.index)

    @property
    def before(self) -> str:
        """The two characters before the next text: white space if a gap is asked for, "" at the beginning."""
        return self._gap or "".join(self._parts[-3:])[-2:]

    def ends_with(self, said: str) -> bool:
        """Whether these words are the last ones."""
        tail: list[str] = []
        while len(tail) < len(self._parts) and sum(map(len, tail)) <= 2 * len(said):
            tail.append(self._parts[-1 - len(tail)])
        return " ".join("".join(reversed(tail)).split()).endswith(said)

    def table(self, rows: Sequence[Sequence[Cell]], headed: int, name: str = "") -> None:
        """Appends rows, a line each: `heading: value | heading: value`, if the first `headed` rows have the headings;
        such a row begins with `name`, as people may ask for it. Headings are nowhere. If one has no value below, all
        have a line of their own as well, or it would be lost."""
        heads = [_joined(column) for column in zip_longest(*rows[:headed], fillvalue=())]
        filled = {number for row in rows[headed:] for number, cell in enumerate(row) if _has_words(cell)}
        named = {number for number, head in enumerate(heads) if head}
        self.gap()
        for row in rows[: 0 if named and named <= filled else headed]:
            self.block("row", 1)
            self._row([cell for number, cell in enumerate(row) if not number or cell is not row[number - 1]], (), "")
        for row in rows[headed:]:
            self.block("row")
            self._row(row, heads if named & filled else (), name)
        self.gap()

    def _row(self, row: Sequence[Cell], heads: Sequence[str], name: str) -> None:
        cells = [(number, cell) for number, cell in enumerate(row) if _has_words(cell)]
        if heads and name and cells:
            self.add(name)
            self.join(" | ")
        for place, (number, cell) in enumerate(cells):
            if place:
                self.join(" | ")
            if number < len(heads) and heads[number]:
                self.add(heads[number])
                self.join(": ")
            self.pieces(cell)
        self.gap("\n")

    def mark(self, mark: str) -> None:
        """Appends the mark of an item, to which the next text belongs, whatever gaps are asked for between; one right
        before it goes."""
        self.unmark()
        self.add(mark)
        self._is_held, self._is_joined = True, False

    def join(self, mark: str) -> None:
        """The same, right behind the text, whatever gap was asked for; a block that begins next does so behind it."""
        self._gap = ""
        self.mark(mark)
        self._is_joined = True

    def unmark(self) -> None:
        """Remove the marker of an empty list item."""
        if self._is_held:
            mark, self._gap, self._is_held = self._parts.pop(), self._parts.pop(), False
            self._length -= len(self._gap) + len(mark)
            if self._blocks:
                start, kind, level = self._blocks[-1]
                self._blocks[-1] = min(start, self._length), kind, level

    def source(self, metadata: Mapping[str, Any], notes: Sequence[str] = ()) -> Source:
        """What was put together, those of these facts that are known, and what is to be told."""
        known = {name: value for name, value in metadata.items() if value not in (None, "")}
        text = "".join(self._parts)
        return Source(text, self._runs, known, self._kind, notes, self._blocked(text))

    def _blocked(self, text: str) -> list[Block]:
        """The blocks that have text. What is before the first is a paragraph."""
        blocks = []
        for (start, kind, level), (end, *_) in pairwise([(0, "paragraph", 0), *self._blocks, (len(text), "", 0)]):
            if said := text[start:end].strip():
                first = text.index(said[0], start)
                blocks.append(Block(first, first + len(said), kind, level))
        return blocks if self._blocks else []


def _joined(column: Sequence[Cell]) -> str:
    """What the cells of a column say, each text once."""
    said = (" ".join("".join(piece.text for piece in cell).split()) for cell in column)
    return " ".join(dict.fromkeys(filter(None, said)))


def _has_words(cell: Cell) -> bool:
    return any(piece.text.strip() for piece in cell)
