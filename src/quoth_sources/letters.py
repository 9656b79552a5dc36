"""The words of a PDF's page as pdfium finds its characters, with raised and lowered characters kept apart.

Knows characters, their rectangles and baselines. Does not know lines, columns or forms. Characters in an unusual place
are looked for at the ends of a word, before its last punctuation and at the end of numbers inside it, not everywhere.
"""

import ctypes
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from math import pi
from statistics import median
from typing import Any
from unicodedata import bidirectional

from quoth_sources.source_map import Rectangle
from quoth_sources.strips import HYPHENS, Word
from quoth_sources.superscripts import lowered, raised

Placer = Callable[[float, float, float, float], Rectangle]
_WORD = re.compile(r"[^\s\x00-\x1f\ufffe\uffff]+\ufffe?")
_SAMPLES = re.compile(r"(?<=.)(?:\d(?=\D)|\w(?=\W+$))")
"""Characters inside a word that tell whether some are raised."""
_SMALL, _TINY = 0.88, 0.4
"""In the height of a word's largest character: a raised one."""
_AWAY = 0.15
"""In the same: how far from the line a raised one is, at least."""
_NOTE = 3
"""The most digits of a raised number that has a space before it."""
_STOPS, _NEAR = '.,;:!?)”’"', 0.5
"""What a mark of a note may be behind, and how near, in heights of a line."""
_NOWHERE = (0.0, 0.0, 0.0, 0.0)
_BACKWARD = ("R", "AL")
"""Unicode's classes of letters that run from right to left."""
_LEAN = 0.02
"""An angle, in radians, of text that runs uphill: its characters are at all heights."""
_SAMPLE = 60
"""Characters of a page that tell how high most are."""


class Letters:
    """The characters of a page; `place` gives their rectangles as the page is read."""

    def __init__(self, text_page: Any, place: Placer) -> None:
        import pypdfium2.raw as pdfium

        self._raw, self._place, self._box = text_page.raw, place, pdfium.FS_RECTF()
        self._box_of, self._origin_of = pdfium.FPDFText_GetLooseCharBox, pdfium.FPDFText_GetCharOrigin
        self._angle_of = pdfium.FPDFText_GetCharAngle
        self.text = _text(text_page)
        shown = [at for at in range(0, len(self.text), len(self.text) // _SAMPLE + 1) if not self.text[at].isspace()]
        self._usual = median([box[3] - box[1] for box in map(self._at, shown)] or [0])

    def words(self, is_level: Callable[[int], bool]) -> Iterator[tuple[Word, bool]]:
        """The words, and whether each is level: `is_level` tells it of a character, by its number."""
        before, before_at, end = _NOWHERE, 0, -1e9
        for found in _WORD.finditer(self.text):
            start, text = found.start(), found[0]
            first, last = self._at(start), self._at(found.end() - 1)
            left, right = min(first[0], last[0]), max(first[2], last[2])
            if not is_level(start):
                yield Word(left, min(first[1], last[1]), right, max(first[3], last[3]), text), False
            elif self._is_mixed(found, first, last):
                yield from ((word, True) for word in self._mixed(text, start))
            elif first[1] < (last[1] + last[3]) / 2 < first[3]:
                stem = self._at(found.end() - 2)[2] if len(text) > 1 and text[-1] in HYPHENS else 0.0
                if text.isdigit() and len(text) <= _NOTE and self._is_beside(first, before, end):
                    side = self._side(first, self._baseline(before_at) - self._baseline(start), before[3] - before[1])
                    text = raised(text, " ") if side > 0 else lowered(text, " ") if side < 0 else text
                is_backward = first[0] > last[0] if len(text) > 1 else bidirectional(text) in _BACKWARD
                yield Word(left, first[1], right, first[3], text, stem, is_backward=is_backward), True
            else:  # it continues elsewhere
                yield from ((Word(*self._at(start + n), letter), True) for n, letter in enumerate(text))
            before, before_at, end = first, start, right if text[-1].isalnum() or text[-1] in _STOPS else -1e9

    def _is_beside(self, box: Rectangle, before: Rectangle, end: float) -> bool:
        """Whether a smaller character is on the line of the word before, and close to where that ends."""
        high = before[3] - before[1]
        level = before[1] - high / 2 < (box[1] + box[3]) / 2 < before[3] + high / 2
        return level and box[3] - box[1] < _SMALL * high and abs(box[0] - end) < _NEAR * high

    def _at(self, index: int) -> Rectangle:
        box = self._box
        self._box_of(self._raw, index, box)
        return self._place(box.left, box.top, box.right, box.bottom)

    def _is_mixed(self, found: re.Match[str], first: Rectangle, last: Rectangle) -> bool:
        """Whether a word has characters of different heights."""
        sizes = [first[3] - first[1], last[3] - last[1]]
        for sample in () if found[0].isalpha() else _SAMPLES.finditer(found[0]):
            box = self._at(found.start() + sample.start())
            sizes.append(box[3] - box[1])
        return min(sizes) < _SMALL * max(sizes)

    def _mixed(self, text: str, start: int) -> list[Word]:
        """A word with characters of different heights: as one, with marks for those that are raised or lowered."""
        boxes = [self._at(start + at) for at in range(len(text))]
        high = max(bottom - top for _, top, _, bottom in boxes)
        base = next(at for at, (_, top, _, bottom) in enumerate(boxes) if bottom - top == high)
        _, above, _, below = boxes[base]
        if any(not above - high / 2 < (top + bottom) / 2 < below + high / 2 for _, top, _, bottom in boxes):
            return [Word(*box, letter) for box, letter in zip(boxes, text, strict=True)]  # it continues elsewhere
        line, is_straight = self._baseline(start + base), self._angle_of(self._raw, start) % (pi / 2) < _LEAN
        sides = [
            self._side(box, line - self._baseline(start + at), high) if is_straight else 0
            for at, box in enumerate(boxes)
        ]
        told = "".join(
            self._told(text, [*run], sides, boxes) for _, run in groupby(range(len(text)), sides.__getitem__)
        )
        _, top, _, bottom = boxes[base if told != text else 0]
        lefts, _, rights, _ = zip(*boxes, strict=True)
        stem = rights[-2] if text[-1] in HYPHENS else 0.0
        is_backward = boxes[0][0] > boxes[-1][0]
        return [Word(min(lefts), top, max(rights), bottom, told, stem, is_backward=is_backward)]

    def _side(self, box: Rectangle, up: float, high: float) -> int:
        """1 for a character that is raised so far above the line, -1 for one that is lowered, else 0."""
        if not _TINY * high < box[3] - box[1] < _SMALL * high:
            return 0
        return 1 if up > _AWAY * high else -1 if up < -_AWAY / 3 * high else 0

    def _told(self, text: str, run: Sequence[int], sides: Sequence[int], boxes: Sequence[Rectangle]) -> str:
        """A run of characters on one side of the line, as it is written. Letters that others follow on the line, or as
        large as most on the page, are no superscript: a logo, or what is beside a large initial."""
        said, side = text[run[0] : run[-1] + 1], sides[run[0]]
        following = text[run[-1] + 1 : run[-1] + 2]
        is_large = max(boxes[at][3] - boxes[at][1] for at in run) > _SMALL * self._usual
        if not side or (not any(map(str.isdigit, said)) and (following.isalpha() or is_large)):
            return said
        before = text[run[0] - 1] if run[0] else ""
        return raised(said, before) if side > 0 else lowered(said, before)

    def _baseline(self, index: int) -> float:
        x, y = ctypes.c_double(), ctypes.c_double()
        self._origin_of(self._raw, index, x, y)
        return self._place(x.value, y.value, x.value, y.value)[1]


def _text(text_page: Any) -> str:
    """What a page says, a character for each that pdfium counts."""
    import pypdfium2.raw as pdfium

    count, raw = text_page.count_chars(), text_page.raw
    buffer = (ctypes.c_ushort * (count + 1))()
    written = pdfium.FPDFText_GetText(raw, 0, count, buffer)
    text = bytes(buffer)[: 2 * count].decode("utf-16-le", "replace")
    if written != count + 1 or len(text) != count:  # some are unknown, or beyond the first plane, where they take two
        text = "".join(chr(pdfium.FPDFText_GetUnicode(raw, at) or 0) for at in range(count)).replace("\x02", "\ufffe")
    return text
