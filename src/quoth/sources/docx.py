"""Word documents: paragraphs, headings, lists, tables and notes, each with the number of its paragraph.

Knows the body in its order: `paragraph 3` is the third of the body that is not in a table, `table 1, row 2, cell 3` a
cell. Does not know pages, which Word makes when it shows a document, nor heads and feet of pages.
"""

from collections.abc import Iterator
from typing import Any

from quoth.sources.office import facts, opened, parsed
from quoth.sources.source import Cell, Piece, Source, Text

_SPACE = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_W = f"{{{_SPACE}}}"


def read(content: bytes) -> Source:
    """The text of a Word document. Raises ValueError if it cannot be opened."""
    from docx import Document

    document = Document(opened(content))
    writer = _Writer(Text("element"))
    writer.blocks(document.element.body)
    for part in document.part.package.iter_parts():
        if part.partname.rpartition("/")[2] in ("footnotes.xml", "endnotes.xml"):
            writer.notes(part.blob)
    return writer.text.source(facts(document.core_properties))


class _Writer:
    def __init__(self, text: Text) -> None:
        self.text = text
        self._paragraphs = self._tables = 0

    def blocks(self, parent: Any) -> None:
        """Appends the paragraphs and tables of a part, also those of content controls in it."""
        for child in parent.iterchildren():
            kind = str(child.tag).removeprefix(_W)
            if kind == "p":
                self._paragraphs += 1
                self._paragraph(child, f"paragraph {self._paragraphs}")
            elif kind == "tbl":
                self._tables += 1
                self.text.table([*_rows(child, f"table {self._tables}")], headed=True)
            elif kind in ("sdt", "sdtContent", "ins", "customXml", "smartTag"):
                self.blocks(child)

    def notes(self, content: bytes) -> None:
        """Appends the notes of a part; those without a text only draw lines."""
        for note in parsed(content).iterchildren():
            if said := _characters(note).strip():
                self.text.gap()
                self.text.pieces([Piece(said, (f"note {note.get(_W + 'id')}",))])

    def _paragraph(self, paragraph: Any, place: str) -> None:
        style = paragraph.find(f"{_W}pPr/{_W}pStyle")
        is_list = style is not None and str(style.get(_W + "val")).startswith("List")
        is_item = is_list or paragraph.find(f"{_W}pPr/{_W}numPr") is not None
        self.text.gap("\n" if is_item else "\n\n")
        for number, line in enumerate(_characters(paragraph).split("\n")):
            self.text.gap("\n")
            if is_item and not number and line.strip():
                self.text.mark("- ")
            self.text.pieces([Piece(line, (place,))])
        self.text.gap("\n" if is_item else "\n\n")


def _characters(part: Any) -> str:
    """The text of a part, without what was deleted or is in a text box, whose text is there twice."""
    if str(part.tag).endswith(("}del", "}moveFrom", "}instrText", "}Fallback", "}pPr", "}rPr")):
        return ""
    match str(part.tag).removeprefix(_W):
        case "t" | "delText":
            return part.text or ""
        case "tab":
            return "\t"
        case "br" | "cr":
            return "\n"
        case "noBreakHyphen":
            return "-"
    return "".join(map(_characters, part.iterchildren()))


def _rows(table: Any, place: str) -> Iterator[list[Cell]]:
    """The rows of a table; a cell that spans several rows is repeated in each."""
    above: dict[int, Cell] = {}
    for r, row in enumerate(table.iter(f"{_W}tr"), 1):
        cells: list[Cell] = []
        for c, cell in enumerate(row.findall(f"{_W}tc"), 1):
            merged = cell.find(f"{_W}tcPr/{_W}vMerge")
            goes_on = merged is not None and merged.get(_W + "val") != "restart"
            said = " ".join(_characters(each) for each in cell.iter(f"{_W}p"))
            cells.append(above.get(len(cells), ()) if goes_on else [Piece(said, (f"{place}, row {r}, cell {c}",))])
            above[len(cells) - 1] = cells[-1]
            span = cell.find(f"{_W}tcPr/{_W}gridSpan")
            cells += [()] * (min(int(span.get(_W + "val")), 100) - 1 if span is not None else 0)
        yield cells
