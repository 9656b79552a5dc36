"""Word documents: paragraphs, headings, lists, tables and notes, each with the number of its paragraph.

Knows the body in its order: `paragraph 3` is the third of the body that is not in a table, `table 1, row 2, cell 3` a
cell. Does not know pages, which Word makes when it shows a document, nor heads and feet of pages.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

from quoth_sources import tables
from quoth_sources.numbering import Numbering
from quoth_sources.office import STRICT, Archive, kind_of_styles, whole
from quoth_sources.source import Piece, Source, Text
from quoth_sources.superscripts import raised
from quoth_sources.tables import COVERED, EMPTY, Box, boxed
from quoth_sources.wordml import Styles, W, attribute, below, hexadecimal, is_on
from quoth_sources.wordtext import NOTES, characters, inside, label_of, mark_notes, prepare

_KINDS = ("styles", "numbering", "footnotes", "endnotes")
_GONE = {W + name for name in ("vanish", "del", "moveFrom")}
"""What the mark of a paragraph has that is not to be seen."""
_MOST_SPANNED = 100
_DEEP = re.compile("(?i)list (?:bullet|number) ([2-5])")
_AROUND = ("sdt", "sdtContent", "ins", "customXml", "smartTag")
"""What paragraphs may be inside of."""
_QUOTED = re.compile("(?i)quot|block text")
_BODY = 9
"""The level of text in Word's outline, below those of headings, which are counted from 0."""


def read(content: bytes) -> Source:
    """The text of a Word document. Raises ValueError if it cannot be opened."""
    archive = Archive(content)
    main = archive.related().get("officeDocument", "word/document.xml")
    document = archive.xml(main, STRICT)
    if (body := below(document, "body")) is None:
        raise ValueError("it has no text: it is not a Word document, or is damaged")
    related, folder = archive.related(main), posixpath.dirname(main)
    parts = {kind: archive.xml(related.get(kind, posixpath.join(folder, f"{kind}.xml")), STRICT) for kind in _KINDS}
    styles = Styles(parts.get("styles"))
    for part in (document, parts["footnotes"], parts["endnotes"]):
        prepare(part, styles)
    marks = {kind: mark_notes(document, kind) for kind in NOTES}
    writer = _Writer(Text("element"), styles, Numbering(parts["numbering"], styles))
    writer.blocks(body)
    for kind in NOTES:
        writer.notes(parts[f"{kind}s"], marks[kind])
    return writer.text.source(archive.facts(), [*archive.notes.values()])


def quoted(content: bytes) -> bytes:
    """The numbers of the paragraphs of a Word document's body whose style is one for quotations."""
    archive = Archive(content)
    main = archive.related().get("officeDocument", "word/document.xml")
    document, folder = archive.xml(main, STRICT), posixpath.dirname(main)
    styles = Styles(archive.xml(archive.related(main).get("styles", posixpath.join(folder, "styles.xml")), STRICT))
    paragraphs = [*_body_paragraphs(below(document, "body"))]
    named = (styles.based(attribute(below(each, "pPr", "pStyle"))) for each in paragraphs)
    found = (any(_QUOTED.search(attribute(below(style, "name"))) for style in each) for each in named)
    return " ".join(str(number) for number, is_quoted in enumerate(found, 1) if is_quoted).encode()


def _body_paragraphs(parent: Any) -> Iterator[Any]:
    """The paragraphs that count, in order."""
    for child in () if parent is None else parent.iterchildren():
        kind = str(child.tag).removeprefix(W)
        if kind == "p":
            yield child
        elif kind in _AROUND:
            yield from _body_paragraphs(child)


class _Row(NamedTuple):
    row: Any
    cells: Sequence[Any]


class _Writer:
    def __init__(self, text: Text, styles: Styles, numbering: Numbering) -> None:
        self.text, self._styles, self._numbering = text, styles, numbering
        self._paragraphs = self._tables = self._notes = 0

    def blocks(self, parent: Any, cell: str = "") -> None:
        """Appends the paragraphs and tables of a part, also those of content controls in it; `cell` is the place of a
        part in a table."""
        for child in parent.iterchildren():
            kind = str(child.tag).removeprefix(W)
            if kind == "p":
                self._paragraphs += not cell
                self._paragraph(child, cell or f"paragraph {self._paragraphs}")
            elif kind == "tbl":
                self._tables += 1
                self._table(child, f"table {self._tables}")
            elif kind in _AROUND:
                self.blocks(child, cell)

    def notes(self, part: Any, marks: Mapping[str, str]) -> None:
        """Appends the notes of a part, if there is one, by their ids with their marks; those without a text only draw
        lines, and do not count."""
        for note in () if part is None else part.iterchildren(W + "*"):
            if said := "\n".join(map(characters, _outermost(note))).strip():
                self.text.gap()
                self.text.block("paragraph")
                self._notes += 1
                if mark := marks.get(attribute(note, "id")):
                    self.text.mark(f"{raised(mark, '.')} ")
                self.text.pieces([Piece(said, (f"note {self._notes}",))])

    def _paragraph(self, paragraph: Any, place: str) -> None:
        label, properties = self._label(paragraph), below(paragraph, "pPr")
        kinds = self._styles.of(properties)
        has_list_style = attribute(below(properties, "pStyle")).startswith("List")
        is_listed = has_list_style or any(below(kind, "numPr") is not None for kind in kinds)
        is_item = is_listed and not any(below(kind, "outlineLvl") is not None for kind in kinds)
        self.text.gap("\n" if is_item else "\n\n")
        self.text.block(*self._kind(paragraph, kinds, is_item))
        if name := label_of(paragraph):
            self.text.mark(f"{name}: ")
        for number, line in enumerate(characters(paragraph).split("\n")):
            self.text.gap("\n")
            if label and not number and line.strip():
                self.text.mark(f"{label} ")
            self.text.pieces([Piece(line, (place,))])
        self.text.gap("\n" if is_item else "\n\n")

    def _kind(self, paragraph: Any, kinds: Sequence[Any], is_item: bool) -> tuple[str, int]:
        """The kind of a paragraph's block, and its level."""
        styles = self._styles.based(attribute(below(paragraph, "pPr", "pStyle")))
        names = [attribute(below(style, "name")) for style in styles]
        kind, level = kind_of_styles(names)
        outline = next((attribute(said) for each in kinds if (said := below(each, "outlineLvl")) is not None), "")
        if outline and kind in ("", "heading"):
            kind, level = ("heading", whole(outline, _BODY) + 1) if whole(outline, _BODY) < _BODY else ("", 0)
        if kind == "item" or (is_item and not kind):
            deep = next((int(found[1]) for found in map(_DEEP.match, names) if found), 1)
            return "item", max(self._numbering.level(paragraph) + 1, deep)
        return kind or "paragraph", level

    def _table(self, table: Any, place: str) -> None:
        """Appends a table; one column, or a row with several paragraphs in a cell, is layout, not a table."""
        rows = [
            _Row(row, cells)
            for row in inside(table, "tr")
            if (cells := [*inside(row, "tc")]) and below(row, "trPr", "del") is None
        ]
        beside = len(rows) == 1 and any(
            sum(bool(characters(each).strip()) for each in _outermost(cell)) > 1 for cell in rows[0].cells
        )
        if beside or max((len(row.cells) for row in rows), default=0) < 2:
            for r, row in enumerate(rows, 1):
                for c, cell in enumerate(row.cells, 1):
                    self.text.gap()
                    self.blocks(cell, f"{place}, row {r}, cell {c}")
                    self.text.gap()
            return
        repeated = takewhile(lambda row: is_on(below(row.row, "trPr", "tblHeader")), rows)
        tables.write(self.text, [*self._rows(rows, place, self._headed_by_style(table))], sum(1 for _ in repeated))

    def _rows(self, rows: Sequence[_Row], place: str, is_headed: bool) -> Iterator[list[Box]]:
        """What each cell says; one that spans several rows is repeated in each."""
        above = dict[int, Box]()
        for r, row in enumerate(rows, 1):
            said = [EMPTY] * _count(below(row.row, "trPr", "gridBefore"), 0)
            for c, cell in enumerate(row.cells, 1):
                merged, at = below(cell, "tcPr", "vMerge"), len(said)
                if merged is None or attribute(merged) == "restart":
                    text = " ".join(self._in_cell(each) for each in _outermost(cell))
                    across = _count(below(cell, "tcPr", "gridSpan"), 1)
                    is_bold = (is_headed and r == 1) or self._is_bold(cell)
                    above[at] = boxed([Piece(text, (f"{place}, row {r}, cell {c}",))], across, is_bold)
                said.append(above.get(at, EMPTY))
                said += [COVERED] * (said[-1].across - 1)
            yield said

    def _headed_by_style(self, table: Any) -> bool:
        """Whether the style of a table makes its first row bold, and its first column not."""
        properties = below(table, "tblPr")
        look = below(properties, "tblLook")
        bits = hexadecimal(attribute(look))
        parts = {
            attribute(part, "type")
            for style in self._styles.based(attribute(below(properties, "tblStyle")))
            for part in style.iterchildren(W + "tblStylePr")
            if is_on(below(part, "rPr", "b"))
        }
        first_row = (attribute(look, "firstRow") or str(bits >> 5 & 1)) == "1" and "firstRow" in parts
        first_column = (attribute(look, "firstColumn") or str(bits >> 7 & 1)) == "1" and "firstCol" in parts
        return first_row and not first_column

    def _is_bold(self, cell: Any) -> bool:
        runs = [run for run in cell.iter(W + "r") if characters(run).strip()]
        return all(self._is_bold_run(run) for run in runs)

    def _is_bold_run(self, run: Any) -> bool:
        properties = below(run, "rPr")
        paragraph = next(run.iterancestors(W + "p"), None)
        names = attribute(below(properties, "rStyle")), attribute(below(paragraph, "pPr", "pStyle"))
        styles = (below(style, "rPr") for name in names for style in self._styles.based(name))
        said = (below(each, "b") for each in (properties, *styles))
        return is_on(next((each for each in said if each is not None), None))

    def _in_cell(self, paragraph: Any) -> str:
        label, said = self._label(paragraph), characters(paragraph)
        return said if label in ("", "-") else f"{label} {said}"

    def _label(self, paragraph: Any) -> str:
        """The number of a paragraph; one that was deleted or is hidden as a whole has none, and does not count."""
        mark = below(paragraph, "pPr", "rPr")
        is_gone = mark is not None and any(each.tag in _GONE and is_on(each) for each in mark)
        return "" if is_gone and not characters(paragraph).strip() else self._numbering.label(paragraph)


def _count(part: Any, usual: int) -> int:
    """How many columns a part says."""
    return min(max(whole(attribute(part), usual), 0), _MOST_SPANNED)


def _outermost(part: Any) -> Iterator[Any]:
    """The paragraphs of a part, but none that are inside of others, as those of text boxes are."""
    return (each for each in part.iter(W + "p") if next(each.iterancestors(W + "p"), None) is None)
