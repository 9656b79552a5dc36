"""OpenDocument texts (LibreOffice and others): paragraphs, headings, lists, tables and notes, each with the number of
its paragraph, as `docx` counts them.

Knows the body in its order. Does not know pages, nor what was deleted, comments and tables of contents, which are left
out.
"""

import zipfile
from collections.abc import Iterator
from typing import Any

from quoth.sources.office import described, opened, parsed
from quoth.sources.source import Cell, Piece, Source, Text

_LEFT_OUT = {"tracked-changes", "annotation", "table-of-content", "alphabetical-index", "forms", "sequence-decls"}
_SPACES = {"s": " ", "tab": "\t", "line-break": "\n"}
_MOST_REPEATED = 100


def read(content: bytes) -> Source:
    """The text of an OpenDocument text. Raises ValueError if it cannot be opened, or is another kind of document."""
    archive = zipfile.ZipFile(opened(content))
    if b"encryption-data" in archive.read("META-INF/manifest.xml"):
        raise ValueError("it is encrypted; save it anew, without a password")
    body = parsed(archive.read("content.xml")).find("{*}body/{*}text")
    if body is None:
        raise ValueError("it has no text; is it an OpenDocument text?")
    writer = _Writer()
    writer.blocks(body)
    for number, note in enumerate(body.iter("{*}note-body"), 1):
        writer.text.gap()
        writer.text.pieces([Piece(_characters(note), (f"note {number}",))])
    return writer.text.source(described(parsed(archive.read("meta.xml"))) if "meta.xml" in archive.namelist() else {})


class _Writer:
    def __init__(self) -> None:
        self.text = Text("element")
        self._paragraphs = self._tables = 0

    def blocks(self, parent: Any, in_list: bool = False) -> None:
        """Appends the paragraphs, lists and tables of a part."""
        for child in parent.iterchildren("{*}*"):
            kind = _kind(child)
            if kind in ("p", "h"):
                self._paragraph(child, in_list)
            elif kind == "list":
                self.blocks(child, in_list=True)
            elif kind == "list-item":
                self.text.gap("\n")
                self.text.mark("- ")
                self.blocks(child, in_list=True)
                self.text.unmark()
            elif kind == "table":
                self._tables += 1
                self.text.table([*_rows(child, f"table {self._tables}")], headed=True)
            elif kind not in _LEFT_OUT:
                self.blocks(child, in_list)

    def _paragraph(self, paragraph: Any, in_list: bool) -> None:
        self._paragraphs += 1
        gap = "\n" if in_list else "\n\n"
        self.text.gap(gap)
        for line in _characters(paragraph).split("\n"):
            self.text.gap("\n")
            self.text.pieces([Piece(line, (f"paragraph {self._paragraphs}",))])
        self.text.gap(gap)


def _kind(part: Any) -> str:
    return str(part.tag).rpartition("}")[2]


def _characters(part: Any) -> str:
    """The text of a part, without that of the notes in it."""
    said = [part.text or ""]
    for child in part.iterchildren():
        kind = _kind(child)
        if kind in _SPACES:
            said.append(_SPACES[kind])
        elif isinstance(child.tag, str) and kind not in _LEFT_OUT and kind != "note":  # else an XML comment
            said.append(_characters(child) + ("\n" if kind in ("p", "h") else ""))
        said.append(child.tail or "")
    return "".join(said)


def _rows(table: Any, place: str) -> Iterator[list[Cell]]:
    """The rows of a table, without those of tables in it."""
    number = 0
    for row in table.iter("{*}table-row"):
        if next(row.iterancestors("{*}table")) is not table:
            continue
        number += 1
        cells: list[Cell] = []
        for cell in row.iterchildren("{*}table-cell", "{*}covered-table-cell"):
            said = " ".join(_characters(each) for each in cell.iter("{*}p", "{*}h"))
            again = next((value for key, value in cell.items() if key.endswith("}number-columns-repeated")), "1")
            for _ in range(min(int(again), _MOST_REPEATED)):
                cells.append([Piece(said, (f"{place}, row {number}, cell {len(cells) + 1}",))])
        yield cells
