"""reStructuredText: its text without the markup, block by block, code apart, tables as rows.

Knows what becomes of each node of the parser (`quoth_sources.restructured`). Does not know how reStructuredText is
parsed. What directives would include or make is not there; comments, pictures and tables of contents are left out.
"""

import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes

from quoth_sources.blocks import KINDS
from quoth_sources.numbers import written
from quoth_sources.restructured import parsed
from quoth_sources.source import Cell, Piece, Source, Text
from quoth_sources.superscripts import lowered, raised
from quoth_sources.tables import Grid, boxed, spread

_LINE_END = re.compile(r"\r\n?|\n")
_BLANK = str.maketrans("\v\f\x1c\x1d\x1e\x85\u2028\u2029", " " * 8)
_ENUMERATED = {"arabic": "1", "loweralpha": "a", "upperalpha": "A", "lowerroman": "i", "upperroman": "I"}
_VERSIONS = {
    "versionadded": "New in version ",
    "versionchanged": "Changed in version ",
    "deprecated": "Deprecated since version ",
    "versionremoved": "Removed in version ",
}
"""What Sphinx puts before a version."""
_LEFT_OUT = (nodes.comment, nodes.target, nodes.substitution_definition, nodes.transition, nodes.label)
_ERROR = 3
_MOST_REPLACED = 200
"""Characters in place of a substitution; a longer one keeps its name."""


def read(text: str) -> Source:
    """The text of a reStructuredText file."""
    lines = [line.translate(_BLANK).expandtabs(8).rstrip() for line in _LINE_END.split(text)]
    return _Writer(lines).source()


class _Writer:
    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._text = Text("line")
        self._facts: dict[str, Any] = {}
        self._line = 1
        self._last = ""
        self._replaced: dict[str, Any] = {}
        self._sections = 0  # that are open

    def source(self) -> Source:
        document = parsed(self._lines)
        texts = document.substitution_defs.items()
        self._replaced = {name: node for name, node in texts if len(node.astext()) <= _MOST_REPLACED}
        self._children(document, 0)
        return self._text.source(self._facts)

    def _begin(self, kind: str, level: int, node: Any) -> None:
        """Begins a block: a heading of a level, a paragraph, an item of a level, code, a table, a note."""
        first = next((leaf.line for leaf in node.findall(nodes.Text) if leaf.line), node.line)
        self._line = first or self._line
        above = self._lines[self._line - 2] if 1 < self._line <= len(self._lines) else ""
        self._text.gap("\n" if kind in ("item", "paragraph") and above else "\n\n")
        if kind == "paragraph":
            self._text.paragraph(level)
        else:
            self._text.block(kind if kind in KINDS else "paragraph", level)
        self._last = ""

    def _children(self, node: Any, level: int, end: int | None = None) -> None:
        for child in node.children[:end]:
            self._block(child, level)

    def _block(self, node: Any, level: int) -> None:
        if isinstance(node, _LEFT_OUT):
            return
        write = getattr(self, f"_on_{type(node).__name__}", None)
        if write:
            write(node, level)
        elif isinstance(node, nodes.TextElement) and not isinstance(node, nodes.literal_block):
            self._on_paragraph(node, level)
        else:
            self._children(node, level)

    def _on_section(self, node: Any, level: int) -> None:
        self._sections += 1
        self._children(node, level)
        self._sections -= 1

    def _on_title(self, node: Any, level: int) -> None:
        self._begin("heading", max(self._sections, 1), node)
        pieces = [*self._pieces(node)]
        self._facts.setdefault("title", " ".join("".join(piece.text for piece in pieces).split()))
        self._text.pieces(pieces)
        self._text.gap()

    def _on_paragraph(self, node: Any, level: int) -> None:
        self._begin("paragraph", level, node)
        self._text.pieces(self._pieces(node))
        self._text.gap("\n")

    def _on_literal_block(self, node: Any, level: int) -> None:
        self._begin("code", level, node)
        lines = node.astext().split("\n")
        indent = min((len(line) - len(line.lstrip()) for line in lines if line), default=0)
        self._text.code([line[indent:] for line in lines], node.line or self._line)

    _on_doctest_block = _on_literal_block

    def _on_system_message(self, node: Any, level: int) -> None:
        """The lines that the parser does not understand."""
        if node["level"] < _ERROR:
            return
        for block in node.findall(nodes.literal_block):
            lines = block.astext().split("\n")
            near = range(max(node.get("line", 1) - len(lines) - 3, 0), min(node.get("line", 1) + 2, len(self._lines)))
            first = next((at for at in near if self._lines[at].strip() == lines[0].strip()), node.get("line", 1) - 1)
            self._text.block("paragraph", level)
            self._text.code(lines, first + 1)

    def _list(self, node: Any, level: int) -> None:
        number = node.get("start", 1)
        for item in node.children:
            if not isinstance(item, nodes.list_item):
                self._block(item, level)
                continue
            self._begin("item", level + 1, item)
            way = _ENUMERATED.get(node.get("enumtype", ""))
            mark = f"{node['prefix']}{written(number, way)}{node['suffix']} " if way else "- "
            self._text.mark(mark)
            number += 1
            self._children(item, level + 1)
            self._text.unmark()
            self._text.gap("\n")
        self._text.block("paragraph", level)

    _on_bullet_list = _on_enumerated_list = _list

    def _on_definition_list_item(self, node: Any, level: int) -> None:
        self._begin("term", level + 1, node)
        self._line = node.line
        for child in node.children:
            if isinstance(child, nodes.definition):
                self._text.block("item", level + 1)
                self._children(child, level + 1)
                continue
            if isinstance(child, nodes.classifier):
                self._text.join(" : ")
            self._text.pieces(self._pieces(child))
            self._text.gap("\n")

    def _on_field(self, node: Any, level: int) -> None:
        name, body = node.children
        self._begin("item", level + 1, node)
        if name.astext().lower() in ("author", "date"):
            self._facts.setdefault(name.astext().lower(), " ".join(body.astext().split()))
        self._text.pieces([*self._pieces(name), Piece(":", ())])
        if body.children and isinstance(body.children[0], nodes.paragraph):
            self._text.join(" ")
        self._children(body, level + 1)
        self._text.unmark()
        self._text.gap("\n")

    def _on_option_list_item(self, node: Any, level: int) -> None:
        options, description = node.children
        self._begin("term", level + 1, node)
        self._text.add(", ".join(option.astext() for option in options.children), node.line)
        self._text.join(" ")
        self._text.block("item", level + 1)
        self._children(description, level + 1)
        self._text.unmark()
        self._text.gap("\n")

    def _on_line_block(self, node: Any, level: int) -> None:
        if not isinstance(node.parent, nodes.line_block):
            self._begin("paragraph", level, node)
        for child in node.children:
            if isinstance(child, nodes.line_block):
                self._on_line_block(child, level)
            else:
                self._text.pieces(self._pieces(child))
                self._text.gap("\n")

    def _on_footnote(self, node: Any, level: int) -> None:
        self._begin("note", level, node)
        label = next((child.astext() for child in node.children if isinstance(child, nodes.label)), "")
        self._text.add(f"[{label or ''.join(node['names']) or '#'}]", node.line or self._line)
        self._text.join(" ")
        self._children(node, level)
        self._text.unmark()
        self._text.gap("\n")

    _on_citation = _on_footnote

    def _on_container(self, node: Any, level: int) -> None:
        name = node["names"][0]
        rows = [*_rows_of_list(node)] if name == "list-table" else []
        if name in _VERSIONS:
            self._begin("paragraph", level, node)
            self._text.mark(_VERSIONS[name])
        self._text.only = "contents" if name == "toctree" else ""
        self._children(node, level, -1 if rows else None)
        self._text.only = ""
        if rows:
            self._begin("table", level, node)
            headed = node["headed"]
            self._text.table(
                [[self._cell(cell) for cell in row] for row in rows], int(headed) if headed in "0123" else 0
            )

    def _on_table(self, node: Any, level: int) -> None:
        self._begin("table", level, node)
        grid, rows = Grid(), list[list[Cell]]()
        for row in node.findall(nodes.row):
            grid.begin()
            for entry in row.children:
                across, down = (1 + entry.get(name, 0) for name in ("morecols", "morerows"))
                grid.add(boxed(self._cell(entry), across), across, down)
            rows.append([box.pieces for box in spread(grid.end())])
        heads = sum(len(head.children) for head in node.findall(nodes.thead))
        self._text.table(rows, heads)

    def _cell(self, node: Any) -> list[Piece]:
        """All that a cell says, as pieces."""
        pieces = []
        for child in node.children:
            if isinstance(child, (nodes.Text, nodes.Inline)):
                return [*self._pieces(node)]
            if not isinstance(child, (*_LEFT_OUT, nodes.system_message)):
                pieces += [*self._cell(child), Piece(" ", ())]
        return pieces

    def _pieces(self, node: Any) -> Iterator[Piece]:
        for child in node.children:
            names = [*map(str.lower, child.get("classes", ()))] if isinstance(child, nodes.inline) else []
            if isinstance(child, nodes.Text):
                yield from self._said(child)
            elif isinstance(child, (nodes.footnote_reference, nodes.citation_reference)):
                label = child.astext() or child.get("refname") or "#"
                yield Piece(f"[{label}]", (self._line,))
            elif isinstance(child, nodes.substitution_reference):
                yield from self._replacement(child)
            elif names and names[0] in _SCRIPTS:
                yield Piece(_SCRIPTS[names[0]](child.astext(), self._last), (self._line,))
            else:
                yield from self._pieces(child)

    def _replacement(self, node: Any) -> Iterator[Piece]:
        """What a substitution stands for, if the file says it in a few words."""
        if node.astext() not in self._replaced:
            yield Piece(f"|{node.astext()}|", (self._line,))
            return
        for leaf in self._replaced[node.astext()].findall(nodes.Text):
            yield from self._said(leaf)

    def _said(self, leaf: nodes.Text) -> Iterator[Piece]:
        """The lines of a text; one whose end is escaped goes on in the next."""
        self._line = leaf.line or self._line
        is_new = False
        for number, line in enumerate(str(leaf).split("\n")):
            self._line += number > 0
            if is_new:
                yield Piece("\n", ())
            is_new = not line.endswith("\0")
            if said := nodes.unescape(line):
                self._last = said[-1]
                yield Piece(said, (self._line,))


_SCRIPTS = {"sup": raised, "superscript": raised, "sub": lowered, "subscript": lowered}


def _rows_of_list(node: Any) -> Iterator[list[Any]]:
    """The cells of a table that is written as a list of lists; none if it is not."""
    lists = node.children[-1].children if isinstance(node.children[-1], nodes.bullet_list) else []
    for item in lists:
        for inner in item.children:
            if isinstance(inner, nodes.bullet_list):
                yield inner.children
