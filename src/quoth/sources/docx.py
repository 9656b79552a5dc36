"""Word documents: paragraphs, headings, lists, tables and notes, each with the number of its paragraph.

Knows the body in its order: `paragraph 3` is the third of the body that is not in a table, `table 1, row 2, cell 3` a
cell. Does not know pages, which Word makes when it shows a document, nor heads and feet of pages.
"""

import posixpath
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from quoth.sources.headings import is_headed
from quoth.sources.numbering import Numbering
from quoth.sources.office import described, opened, parsed
from quoth.sources.source import Piece, Source, Text
from quoth.sources.wordml import Styles, W, attribute, below, is_on

_KINDS = ("styles", "numbering", "footnotes", "endnotes")
_STRICT = b"http://purl.oclc.org/ooxml/wordprocessingml/main"
"""The name of the same elements in documents that are saved as "strict"."""
_MOST_SPANNED = 100
_NOTHING = Piece("", ())


def read(content: bytes) -> Source:
    """The text of a Word document. Raises ValueError if it cannot be opened."""
    archive = zipfile.ZipFile(opened(content))
    main = _related(archive, "").get("officeDocument", "")
    body = below(_part(archive, main), "body")
    if body is None:
        raise ValueError("it has no text; is it a Word document?")
    parts = {kind: _part(archive, name) for kind, name in _related(archive, main).items() if kind in _KINDS}
    styles = Styles(parts.get("styles"))
    writer = _Writer(Text("element"), styles, Numbering(parts.get("numbering"), styles))
    writer.blocks(body)
    for kind in ("footnotes", "endnotes"):
        writer.notes(parts.get(kind))
    core = _part(archive, _related(archive, "").get("core-properties", ""))
    return writer.text.source({} if core is None else _facts(core))


def _related(archive: zipfile.ZipFile, name: str) -> dict[str, str]:
    """The names of the files that a file in the archive, or the whole of it (""), refers to, by their kinds."""
    folder, file = posixpath.split(name)
    found = _part(archive, posixpath.join(folder, "_rels", f"{file}.rels"))
    return {
        each.get("Type", "").rpartition("/")[2]: posixpath.normpath(
            posixpath.join("/", folder, each.get("Target", ""))
        )[1:]
        for each in (() if found is None else found.iterchildren("{*}Relationship"))
    }


def _part(archive: zipfile.ZipFile, name: str) -> Any:
    """A file in XML; None if there is none of this name."""
    with suppress(KeyError):
        return parsed(archive.read(name).replace(_STRICT, W[1:-1].encode()))
    return None


def _facts(core: Any) -> dict[str, Any]:
    dates = (core.findtext(f"{{*}}{name}") for name in ("modified", "created"))
    return {**described(core), "date": next(filter(None, dates), "")[:10]}


class _Row(NamedTuple):
    row: Any
    cells: Sequence[Any]


class _Writer:
    def __init__(self, text: Text, styles: Styles, numbering: Numbering) -> None:
        self.text, self._styles, self._numbering = text, styles, numbering
        self._paragraphs = self._tables = 0

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
            elif kind in ("sdt", "sdtContent", "ins", "customXml", "smartTag"):
                self.blocks(child, cell)

    def notes(self, part: Any) -> None:
        """Appends the notes of a part, if there is one; those without a text only draw lines."""
        for note in () if part is None else part.iterchildren():
            if said := _characters(note).strip():
                self.text.gap()
                self.text.pieces([Piece(said, (f"note {attribute(note, 'id')}",))])

    def _paragraph(self, paragraph: Any, place: str) -> None:
        label, properties = self._numbering.label(paragraph), below(paragraph, "pPr")
        kinds = self._styles.of(properties)
        is_listed = attribute(below(properties, "pStyle")).startswith("List") or any(map(_is_listed, kinds))
        is_item = is_listed and not any(below(kind, "outlineLvl") is not None for kind in kinds)
        self.text.gap("\n" if is_item else "\n\n")
        for number, line in enumerate(_characters(paragraph).split("\n")):
            self.text.gap("\n")
            if label and not number and line.strip():
                self.text.mark(f"{label} ")
            self.text.pieces([Piece(line, (place,))])
        self.text.gap("\n" if is_item else "\n\n")

    def _table(self, table: Any, place: str) -> None:
        """Appends a table; what stands in one column, or around tables, is only put there."""
        rows = [_Row(row, cells) for row in _inside(table, "tr") if (cells := [*_inside(row, "tc")])]
        nested = any(below(cell, "tbl") is not None for row in rows for cell in row.cells)
        if nested or max((len(row.cells) for row in rows), default=0) < 2:
            for r, row in enumerate(rows, 1):
                for c, cell in enumerate(row.cells, 1):
                    self.text.gap()
                    self.blocks(cell, f"{place}, row {r}, cell {c}")
                    self.text.gap()
            return
        pieces = [*self._rows(rows, place)]
        titles, name = next(number for number, row in enumerate(rows) if len(row.cells) > 1), ""
        for title in pieces[:titles]:
            self.text.gap()
            self.text.pieces(title)
            name = " ".join(title[0].text.split())
        rows, pieces = rows[titles:], pieces[titles:]
        headed = is_headed([[piece.text.strip() for piece in row] for row in pieces], _bold(rows))
        # What spans all columns is in none, and so below no heading.
        width = max(map(len, pieces))
        spanning = [[_NOTHING] * width if len(row.cells) == 1 else [] for row in rows]
        self.text.table([[[each] for each in (*a, *b)] for a, b in zip(spanning, pieces, strict=True)], headed, name)

    def _rows(self, rows: Sequence[_Row], place: str) -> Iterator[list[Piece]]:
        """What each cell says; one that spans several rows is repeated in each."""
        above = dict[int, Piece]()
        for r, row in enumerate(rows, 1):
            said = [_NOTHING] * _count(below(row.row, "trPr", "gridBefore"), 0)
            for c, cell in enumerate(row.cells, 1):
                merged, at = below(cell, "tcPr", "vMerge"), len(said)
                if merged is None or attribute(merged) == "restart":
                    text = " ".join(self._in_cell(each) for each in cell.iter(W + "p"))
                    above[at] = Piece(text, (f"{place}, row {r}, cell {c}",))
                said.append(above.get(at, _NOTHING))
                said += [_NOTHING] * (_count(below(cell, "tcPr", "gridSpan"), 1) - 1)
            yield said

    def _in_cell(self, paragraph: Any) -> str:
        label, said = self._numbering.label(paragraph), _characters(paragraph)
        return said if label in ("", "-") else f"{label} {said}"


def _count(part: Any, usual: int) -> int:
    """How many columns a part says."""
    return min(int(attribute(part) or usual), _MOST_SPANNED)


def _is_listed(properties: Any) -> bool:
    return below(properties, "numPr") is not None


def _bold(rows: Sequence[_Row]) -> list[list[bool]]:
    """Which cells of a table are bold; or all of its first row, if Word repeats it on each page."""
    is_repeated = is_on(below(rows[0].row, "trPr", "tblHeader"))
    return [[not r if is_repeated else _is_bold(cell) for cell in row.cells] for r, row in enumerate(rows)]


def _is_bold(cell: Any) -> bool:
    return all(is_on(below(run, "rPr", "b")) for run in cell.iter(W + "r") if _characters(run).strip())


def _inside(part: Any, kind: str) -> Iterator[Any]:
    """The rows of a table, or the cells of a row, also those of content controls, but none of tables inside."""
    return (each for each in part.iter(W + kind) if next(each.iterancestors(part.tag)) is part)


def _characters(part: Any) -> str:
    """The text of a part, without what was deleted or is in a text box, whose text is there twice."""
    if str(part.tag).endswith(("}del", "}moveFrom", "}instrText", "}Fallback", "}pPr", "}rPr")):
        return ""
    match str(part.tag).removeprefix(W):
        case "t" | "delText":
            return part.text or ""
        case "tab":
            return "\t"
        case "br" | "cr":
            return "\n"
        case "noBreakHyphen":
            return "-"
    return "".join(map(_characters, part.iterchildren()))
