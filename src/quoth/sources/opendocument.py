"""What OpenDocument files (LibreOffice and others) have in common: paragraphs, lists and tables in their order.

Knows a file's body. Does not know pages, nor what was deleted, comments, tables of contents and a slide's notes, which
are left out.
"""

import zipfile
from collections.abc import Iterable, Iterator
from typing import Any

from quoth.sources.office import described, opened, parsed
from quoth.sources.source import Cell, Piece, Text

_LEFT_OUT = {"tracked-changes", "annotation", "table-of-content", "alphabetical-index", "forms", "sequence-decls"}
_LEFT_OUT |= {"notes", "page-number"}
_SPACES = {"s": " ", "tab": "\t", "line-break": "\n"}
_MOST_REPEATED = 100


def body_of(content: bytes, kind: str) -> tuple[Any, dict[str, Any]]:
    """The body of a text, a spreadsheet or a presentation, and what is known of the document.

    Raises ValueError if it cannot be opened, or is of another kind.
    """
    archive = zipfile.ZipFile(opened(content))
    if b"encryption-data" in archive.read("META-INF/manifest.xml"):
        raise ValueError("it is encrypted; save it anew, without a password")
    body = parsed(archive.read("content.xml")).find(f"{{*}}body/{{*}}{kind}")
    if body is None:
        raise ValueError(f"it has no {kind}; is it an OpenDocument {kind}?")
    return body, described(parsed(archive.read("meta.xml"))) if "meta.xml" in archive.namelist() else {}


class Writer:
    """Appends parts of a body to a text; `place`, the number of a paragraph or a cell of a table is where each is."""

    def __init__(self, text: Text, *place: Any) -> None:
        self._text, self._place = text, place
        self._paragraphs = self._tables = 0

    def blocks(self, parts: Iterable[Any], in_list: bool = False) -> None:
        """Appends paragraphs, lists and tables, and those inside other parts."""
        for part in parts:
            kind = kind_of(part)
            inside = part.iterchildren("{*}*")
            if kind in ("p", "h"):
                self._paragraph(part, in_list)
            elif kind == "list":
                self.blocks(inside, in_list=True)
            elif kind == "list-item":
                self._text.gap("\n")
                self._text.mark("- ")
                self.blocks(inside, in_list=True)
                self._text.unmark()
            elif kind == "table":
                self._tables += 1
                self._text.table([*self._rows(part)], headed=True)
            elif kind not in _LEFT_OUT:
                self.blocks(inside, in_list)

    def _paragraph(self, paragraph: Any, in_list: bool) -> None:
        self._paragraphs += 1
        gap = "\n" if in_list else "\n\n"
        self._text.gap(gap)
        for line in characters(paragraph).split("\n"):
            self._text.gap("\n")
            self._text.pieces([Piece(line, (*self._place, f"paragraph {self._paragraphs}"))])
        self._text.gap(gap)

    def _rows(self, table: Any) -> Iterator[list[Cell]]:
        """The rows of a table, without those of tables in it."""
        rows = (row for row in table.iter("{*}table-row") if next(row.iterancestors("{*}table")) is table)
        for number, row in enumerate(rows, 1):
            cells: list[Cell] = []
            for cell in row.iterchildren(*CELLS):
                said = " ".join(characters(each) for each in cell.iter("{*}p", "{*}h"))
                for _ in range(min(repeated(cell, "columns"), _MOST_REPEATED)):
                    place = f"table {self._tables}, row {number}, cell {len(cells) + 1}"
                    cells.append([Piece(said, (*self._place, place))])
            yield cells


CELLS = ("{*}table-cell", "{*}covered-table-cell")


def kind_of(part: Any) -> str:
    """The name of a part, without its namespace."""
    return str(part.tag).rpartition("}")[2]


def attribute(part: Any, name: str) -> str:
    """An attribute's value, whatever its namespace; "" if there is none."""
    return next((str(value) for key, value in part.items() if key.endswith(f"}}{name}")), "")


def repeated(part: Any, of: str) -> int:
    """How often a cell or a row occurs in succession: `of` are columns or rows."""
    return int(attribute(part, f"number-{of}-repeated") or 1)


def characters(part: Any) -> str:
    """The text of a part, without that of the notes in it."""
    said = [part.text or ""]
    for child in part.iterchildren():
        kind = kind_of(child)
        if kind in _SPACES:
            said.append(_SPACES[kind])
        elif isinstance(child.tag, str) and kind not in _LEFT_OUT and kind != "note":  # else an XML comment
            said.append(characters(child) + ("\n" if kind in ("p", "h") else ""))
        said.append(child.tail or "")
    return "".join(said)
