"""Forms of PDFs: the values that people filled in, each behind its label, as a viewer shows them.

Knows fields (text, boxes to check, buttons to choose one, lists), their tooltips and rectangles, and the words near
them. A field's label is its tooltip, else the text left of it, else above it; of a box to check, the text right of it.
Does not know what a label means, buttons that only do something, signatures, and forms of XFA alone.
"""

import ctypes
from bisect import bisect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

from quoth_sources.source import OFF, ON
from quoth_sources.source_map import Rectangle, union
from quoth_sources.strips import GUTTER, Line, Word, is_rule, said

_HIDDEN, _PASSWORD = 2 | 32, 1 << 13
_FAR, _ABOVE = 1.5, 1.2
"""In heights of a line: how far right of a box its text is at most, and how far above a field its label."""
_LONGEST = 12
"""The most words of a label above a field."""


class Field(NamedTuple):
    """A field where a page shows it: its value ("" if it is empty), tooltip and name, and for a box, that it is one
    and whether it is one of several buttons."""

    place: Rectangle
    value: str
    tooltip: str
    name: str
    is_box: bool = False
    is_choice: bool = False


@contextmanager
def form_of(file: Any) -> Iterator[Any]:
    """pdfium's handle of a file's form, while it is open; None if there is none."""
    import pypdfium2.raw as pdfium

    if file.get_formtype() == pdfium.FORMTYPE_NONE:
        yield None
        return
    settings = pdfium.FPDF_FORMFILLINFO(version=2)
    form = pdfium.FPDFDOC_InitFormFillEnvironment(file.raw, settings)
    try:
        yield form or None
    finally:
        if form:
            pdfium.FPDFDOC_ExitFormFillEnvironment(form)


def fields_of(page: Any, form: Any, place: Callable[[float, float, float, float], Rectangle]) -> list[Field]:
    """The fields of a page that are shown; `place` gives their rectangles."""
    import pypdfium2.raw as pdfium

    if not form:
        return []
    pdfium.FORM_OnAfterLoadPage(page.raw, form)
    try:
        count = pdfium.FPDFPage_GetAnnotCount(page.raw)
        fields = [field for number in range(count) if (field := _field(page, form, number, place))]
    finally:
        pdfium.FORM_OnBeforeClosePage(page.raw, form)
    return [field for field in fields if field.place[2] > field.place[0] and field.place[3] > field.place[1]]


def _field(page: Any, form: Any, number: int, place: Callable[[float, float, float, float], Rectangle]) -> Field | None:
    import pypdfium2.raw as pdfium

    note, box = pdfium.FPDFPage_GetAnnot(page.raw, number), pdfium.FS_RECTF()
    try:
        kind = pdfium.FPDFAnnot_GetFormFieldType(form, note)
        is_hidden = pdfium.FPDFAnnot_GetFlags(note) & _HIDDEN
        if kind not in _values() or is_hidden or not pdfium.FPDFAnnot_GetRect(note, box):
            return None
        value = " ".join(_values()[kind](form, note).split())
        named = (pdfium.FPDFAnnot_GetFormFieldAlternateName, pdfium.FPDFAnnot_GetFormFieldName)
        tooltip, name = (" ".join(_told(call, form, note).split()) for call in named)
        is_choice = kind == pdfium.FPDF_FORMFIELD_RADIOBUTTON
        is_box = is_choice or kind == pdfium.FPDF_FORMFIELD_CHECKBOX
        return Field(place(box.left, box.top, box.right, box.bottom), value, tooltip, name, is_box, is_choice)
    finally:
        pdfium.FPDFPage_CloseAnnot(note)


def filled(words: Sequence[Word], fields: Sequence[Field]) -> list[Word]:
    """The words of a page, with the values of its fields behind their labels."""
    return _Form(words, fields).words() if fields else [*words]


class _Item(NamedTuple):
    """A field's value, its place on the page, and the words there that repeat it or are its label."""

    field: Field
    value: str
    place: Rectangle
    caption: Sequence[int] = ()


class _Form:
    """The words of a page and its fields. A word belongs to the label of one field at most."""

    def __init__(self, words: Sequence[Word], fields: Sequence[Field]) -> None:
        self._words: list[Word | None] = [*sorted(words, key=_middle_of_word)]
        self._middles = [*map(_middle_of_word, filter(None, self._words))]
        self._fields = sorted(fields, key=lambda field: (_middle(field.place), field.place))
        self._field_middles = [_middle(field.place) for field in self._fields]
        self._line = median(word.bottom - word.top for word in words) if words else 12.0
        self._taken = set[int]()
        self._new = list[Word]()

    def words(self) -> list[Word]:
        items = [*self._items()]
        labels = dict[int, list[int]]()
        for find in (self._left_of, self._above, partial(self._left_of, far=1e9)):
            for number, item in enumerate(items):
                if number not in labels and (label := [*item.caption] or find(item.field)):
                    labels[number] = label
                    self._taken.update(label)
        heads = dict[tuple[int, int], tuple[float, str]]()
        after: Word | None = None
        for number, item in enumerate(items):
            after = self._write(item, labels.get(number, []), after, heads)
        return [word for word in (*self._words, *self._new) if word]

    def _items(self) -> Iterator[_Item]:
        """The fields, a group of buttons as one. Boxes with a text behind them and no tooltip are marked there."""
        groups = dict[str, list[tuple[Field, list[int]]]]()
        for field in self._fields:
            caption = self._right_of(field) if field.is_box else []
            self._taken.update(caption)
            if field.is_choice:
                groups.setdefault(field.name, []).append((field, caption))
            elif caption and not field.tooltip:
                self._mark(field, caption)
            else:
                yield _Item(field, field.value, field.place, caption)
        for group in groups.values():
            yield from self._choice(group)

    def _choice(self, group: Sequence[tuple[Field, list[int]]]) -> Iterator[_Item]:
        """One of several buttons: what is written behind it, or what the file calls it."""
        chosen = [(field, caption) for field, caption in group if field.value]
        first = group[0][0]
        has_label = first.tooltip or self._left_of(first) or self._above(first)
        for field, caption in group:
            if caption and not (field.value and has_label):
                self._mark(field, caption)
        for field, caption in chosen[:1] if has_label else [each for each in chosen if not each[1]]:
            words = self._of(caption)
            place = union([word[:4] for word in words]) if words else field.place
            for number in caption:
                self._words[number] = None
            yield _Item(first, said(words) or field.value, place)

    def _mark(self, field: Field, caption: Sequence[int]) -> None:
        first = self._of(caption)[0]
        mark, left = ON if field.value else OFF, min(field.place[2], first.left) - 0.01
        self._new.append(first._replace(left=left, right=first.left, text=mark, at=field.place))

    def _write(
        self, item: _Item, label: list[int], after: Word | None, heads: dict[tuple[int, int], tuple[float, str]]
    ) -> Word | None:
        """Puts a value behind its label, behind the value before it if it has none, or where it is."""
        field, told = item.field, item.field.tooltip if item.value else ""
        column = round(field.place[0]), round(field.place[2])
        near = self._of(label)
        if told and near and _bare(said(near)) == _bare(told):
            told = ""
        elif told and near and _bare(said(near)) not in _bare(told):
            near, label = [], []
        if not told and not near and column in heads and 0 <= field.place[1] - heads[column][0] < self._line:
            told = heads[column][1]  # the heading of a column of fields
        if not told and not near and after and after.at and _is_next(after.at, field.place, 2 * self._line):
            start = after
        elif near and not told:
            start = self._label(label, near, field)
        elif near:
            start = near[0]._replace(text=_with_colon(told), at=(), is_field=True)
            for number in label:
                self._words[number] = None
            self._new += [start] * bool(item.value)
        else:
            top = min((_middle(field.place) - self._line / 2), field.place[1] + self._line / 2)
            start = Word(field.place[0], top, field.place[0], top + self._line, _with_colon(told), at=(), is_field=True)
            self._new += [start] * bool(item.value and told)
        if (near and near[-1].bottom <= field.place[1] + self._line / 2) or (told and column in heads):
            heads[column] = field.place[3], told or said(near).rstrip(":")
        if not item.value:
            return None
        goes_on = near and not start.is_field
        right = field.place[2] if goes_on else start.right + 0.02
        value = start._replace(left=start.right + 0.01, right=right, text=item.value, at=item.place)
        self._new.append(value)
        return value

    def _label(self, label: list[int], near: Line, field: Field) -> Word:
        """The last word of a label, with a colon, unless its sentence goes on behind the field."""
        behind = [] if field.is_box else self._right_of(field, taken=True)
        if behind and not (first := self._of(behind)[0].text[0]).isupper() and not first.isdigit():
            return near[-1]
        start = near[-1]._replace(text=_with_colon(near[-1].text), is_field=True)
        self._words[label[-1]] = start
        return start

    def _of(self, numbers: Sequence[int]) -> Line:
        return [word for number in numbers if (word := self._words[number])]

    def _row(self, low: float, high: float, taken: bool = False) -> list[tuple[int, Word]]:
        """The words whose middles are at these heights, from left to right; those of labels if they may be `taken`."""
        numbers = range(bisect(self._middles, low), bisect(self._middles, high))
        free = (number for number in numbers if taken or number not in self._taken)
        found = [(number, word) for number in free if (word := self._words[number])]
        return sorted(found, key=lambda each: each[1])

    def _beside(self, field: Field, taken: bool = False) -> tuple[list[tuple[int, Word]], list[Rectangle]]:
        """The words at the height of a field's first line, and the other fields there."""
        _, top, _, bottom = field.place
        low, high = top - 0.3 * self._line, bottom + 0.3 * self._line
        high = top + 1.5 * self._line if bottom - top > 2.5 * self._line else high
        near = range(bisect(self._field_middles, low), bisect(self._field_middles, high))
        return self._row(low, high, taken), [self._fields[at].place for at in near if self._fields[at] is not field]

    def _left_of(self, field: Field, far: float = 4.0) -> list[int]:
        """The text that ends left of a field, at most so many lines away, and begins behind the field before."""
        words, others = self._beside(field)
        start = field.place[0]
        least = max((right for _, _, right, _ in others if right <= start + 1), default=-1e9)
        label = list[int]()
        edge = start
        for number, word in reversed(words):
            if word.right > start + 0.5 * self._line:
                continue
            if word.left < least - 1 or edge - word.right > (GUTTER if label else far) * self._line:
                break
            edge = word.left
            if label or not is_rule(word.text):
                label.insert(0, number)
        return label

    def _right_of(self, field: Field, taken: bool = False) -> list[int]:
        """The text that begins close behind a field, unless another text is closer before it."""
        words, others = self._beside(field, taken)
        edge = end = field.place[2]
        most = min((left for left, *_ in others if left >= end - 1), default=1e9)
        found = list[int]()
        for number, word in words:
            if word.left < end - 0.3 * self._line:
                continue
            if word.left - edge > (GUTTER if found else _FAR) * self._line or word.right > most + 1:
                break
            found.append(number)
            edge = word.right
        before = max((word.right for _, word in words if word.right <= field.place[0] + 1), default=-1e9)
        if found and field.place[0] - before < self._words[found[0]].left - end:  # type: ignore[union-attr]
            return []
        return found

    def _above(self, field: Field) -> list[int]:
        """The text that ends above a field, near its left edge."""
        left, top, right, _ = field.place
        row = self._row(top - (_ABOVE + 0.5) * self._line, top + 0.3 * self._line)
        words = [(number, word) for number, word in row if not is_rule(word.text)]
        over = [(number, word) for number, word in words if word.right > left and word.left < right]
        if not over:
            return []
        lowest = max(_middle_of_word(word) for _, word in over)
        row = [each for each in words if abs(_middle_of_word(each[1]) - lowest) < self._line / 3]
        pieces = [[row[0]]]
        for before, each in pairwise(row):
            if each[1].left - before[1].right > GUTTER * self._line:
                pieces.append([])
            pieces[-1].append(each)
        for piece in pieces:
            if piece[-1][1].right > left and piece[0][1].left < right:
                near = piece[0][1].left > left - 3 * self._line and len(piece) <= _LONGEST
                return [number for number, _ in piece] if near else []
        return []


def _middle(place: Rectangle) -> float:
    return (place[1] + place[3]) / 2


def _middle_of_word(word: Word) -> float:
    return (word.top + word.bottom) / 2


def _is_next(before: Rectangle, place: Rectangle, far: float) -> bool:
    return before[1] < _middle(place) < before[3] and -1 <= place[0] - before[2] < far


def _bare(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def _with_colon(text: str) -> str:
    return text if text[-1:] in (":", "?", "") else f"{text.rstrip('.')}:"


def _values() -> dict[int, Callable[[Any, Any], str]]:
    import pypdfium2.raw as pdfium

    return {
        pdfium.FPDF_FORMFIELD_TEXTFIELD: _text,
        pdfium.FPDF_FORMFIELD_COMBOBOX: _chosen,
        pdfium.FPDF_FORMFIELD_LISTBOX: _chosen,
        pdfium.FPDF_FORMFIELD_CHECKBOX: _checked,
        pdfium.FPDF_FORMFIELD_RADIOBUTTON: _checked,
    }


def _text(form: Any, note: Any) -> str:
    import pypdfium2.raw as pdfium

    is_secret = pdfium.FPDFAnnot_GetFormFieldFlags(form, note) & _PASSWORD
    return "" if is_secret else _told(pdfium.FPDFAnnot_GetFormFieldValue, form, note)


def _chosen(form: Any, note: Any) -> str:
    import pypdfium2.raw as pdfium

    count = max(pdfium.FPDFAnnot_GetOptionCount(form, note), 0)
    chosen = (at for at in range(count) if pdfium.FPDFAnnot_IsOptionSelected(form, note, at))
    labels = [_told(pdfium.FPDFAnnot_GetOptionLabel, form, note, at) for at in chosen]
    return ", ".join(filter(None, labels)) or _text(form, note)


def _checked(form: Any, note: Any) -> str:
    """The value of a checked box: the file's name for it if that has a letter, or else that it is checked."""
    import pypdfium2.raw as pdfium

    if not pdfium.FPDFAnnot_IsChecked(form, note):
        return ""
    value = _told(pdfium.FPDFAnnot_GetFormFieldExportValue, form, note)
    return value if any(map(str.isalpha, value)) else ON


def _told(call: Callable[..., int], form: Any, note: Any, *more: int) -> str:
    """What a function of pdfium writes into a buffer, in UTF-16."""
    size = call(form, note, *more, None, 0)
    buffer = (ctypes.c_ushort * (size // 2 + 1))()
    call(form, note, *more, buffer, size)
    return bytes(buffer)[: max(size - 2, 0)].decode("utf-16-le", "replace").replace("\0", "")
