"""The parser of reStructuredText: docutils, which here runs no directive and no role.

Knows how directives and roles are written, those of Sphinx too, and that what is inside is text. Reads no other file,
no URL, and prints nothing. Does not know what becomes of the nodes. The `line` of a `Text` is the number of its first
line, its line ends are those of the file.
"""

import csv
import re
from bisect import bisect_left
from collections.abc import Iterator
from functools import cache
from typing import Any

from docutils import nodes
from docutils.frontend import get_default_settings
from docutils.parsers.rst import Parser, states
from docutils.statemachine import StringList
from docutils.utils import Reporter
from docutils.utils import escape2null as escaped

from quoth_sources.commonmark import plain_formula

_MOST_NESTED = 20
"""Levels of lists, quotations and directives; what is deeper is text as it is."""
_MOST_INLINE = 2000
"""Characters in which the end of a mark is looked for; what is longer is parsed part by part."""
_MOST_COLUMNS = 300
"""Of a grid, which is parsed in a time of their number squared."""
_NEAR = 2000
_DIRECTIVE = re.compile(rf"\.\.[ ]+({states.Inliner.simplename})[ ]?::(?:[ ]+|$)")
_OPTION = re.compile(r":[\w -]{1,60}:(?:\s|$)")
_TARGET = re.compile(r"(?s)\s*(\S.{0,1000}?)\s+<.{1,1000}>$")
_BORDER = re.compile(r"[=-]+(?: +[=-]+)*$")
_CODE = re.compile(
    "code|code-block|code-cell|sourcecode|parsed-literal|literal|doctest|testcode|testoutput|console|prompt|ipython"
)
_LEFT_OUT = re.compile(
    "image|include|raw|contents|meta|index|unicode|date|(default-)?role|bibliography|auto.*|literalinclude|sectnum|"
    "target-notes|highlight|(py:)?currentmodule|tabularcolumns|title|(section|code|module)author"
)
_WITHOUT_ARGUMENT = re.compile("figure|only|container|(rst-)?class|toctree|grid.*")
"""Their argument is the name of a file, of a class, or the like."""


def parsed(lines: list[str]) -> nodes.document:
    """The nodes of a file's lines."""
    document = _Document(_settings(), Reporter("", 5, 5, stream=False), source="")
    machine = states.RSTStateMachine(_classes(), "Body")
    machine.run(StringList(lines, ""), document, inliner=_Inliner())
    return document


class _Document(nodes.document):
    """Keeps no names of targets: equal ones would take time quadratic in their number."""

    def set_id(self, *args: Any, **options: Any) -> str:
        return ""

    note_explicit_target = note_implicit_target = note_refname = note_refid = set_id


def literal(lines: list[str], number: int) -> nodes.literal_block:
    """Lines as they are, the first of which has this number."""
    block = nodes.literal_block("", "\n".join(lines))
    block.line = number
    return block


@cache
def _settings() -> Any:
    settings = get_default_settings(Parser)
    settings.file_insertion_enabled = settings.raw_enabled = False
    return settings


@cache
def _classes() -> tuple[Any, ...]:
    return tuple(type(each.__name__, (_State, each), {}) for each in states.state_classes)


class _State(states.RSTState):
    """Where every state differs from docutils'."""

    nested_sm_cache: list[Any] = []  # noqa: RUF012

    def __init__(self, state_machine: Any, debug: bool = False) -> None:
        super().__init__(state_machine, debug)
        self.nested_sm_kwargs = {"state_classes": _classes(), "initial_state": "Body"}

    def nested_parse(self, block: Any, input_offset: int, node: Any = None, *args: Any, **options: Any) -> int:
        depth = getattr(self.memo, "depth", 0)
        if depth >= _MOST_NESTED and node is not None:
            node += literal([*block], input_offset + 1)
            return input_offset + len(block)
        self.memo.depth = depth + 1
        try:
            return int(super().nested_parse(block, input_offset, node, *args, **options))
        finally:
            self.memo.depth = depth

    def explicit_construct(self, match: Any) -> Any:
        if found := _DIRECTIVE.match(match.string):
            return self.directive(found)
        return super().explicit_construct(match)

    def isolate_grid_table(self) -> Any:
        block, messages, is_end = super().isolate_grid_table()
        if block and block[0].count("+") > _MOST_COLUMNS:
            return [], self.malformed_table(block), is_end
        return block, messages, is_end

    def isolate_simple_table(self) -> Any:
        """Marks an empty cell at the beginning of a part, whose row would be left out."""
        block, *rest = super().isolate_simple_table()
        width = len(block[0].split(" ")[0]) if block else 0
        for at in range(1, len(block or ())):
            is_first = _BORDER.match(block[at - 1]) and not block[at][:width].strip()
            if is_first and block[at].strip():
                block[at] = "\\" + block[at][1:]
        return block, *rest

    def build_table_row(self, rowdata: Any, tableline: int) -> Any:
        return super().build_table_row(rowdata, tableline - 1)  # which counts from 1, but lines of cells from 0

    def option_list_item(self, match: Any) -> Any:
        number = self.state_machine.abs_line_number()
        item, is_end = super().option_list_item(match)
        item.line = number
        return item, is_end

    def directive(self, match: Any, **presets: Any) -> tuple[list[Any], bool]:
        """Its text, as a list of nodes, and whether a blank line follows."""
        number = self.state_machine.abs_line_number()
        block, _, offset, is_end = self.state_machine.get_first_known_indented(match.end(), strip_top=False)
        name = match[1].lower()
        if presets:  # in the definition of a substitution
            return (self.inline_text(" ".join(block), number)[0] if name == "replace" else []), is_end
        if _LEFT_OUT.fullmatch(name):
            return [], is_end
        said, options, start = _parts([*block])
        content, first = [*block[start:]], offset + start + 1
        node = nodes.container(names=[name])
        node.line = number
        if _CODE.fullmatch(name):
            return [literal(content, first)], is_end
        if name == "math":
            parts = ((said, number), (content, first))
            return [literal([plain_formula(line, "", line) for line in part], at) for part, at in parts if part], is_end
        if said and not _WITHOUT_ARGUMENT.fullmatch(name):
            node += nodes.paragraph("", "", *self.inline_text("\n".join(said), number)[0])
        if name == "toctree":
            titles = [(found[1], first + at) for at, line in enumerate(content) if (found := _TARGET.match(line))]
            if caption := options.get("caption"):
                titles.insert(0, (caption, number + next(at for at, line in enumerate(block) if ":caption:" in line)))
            node += [nodes.paragraph("", "", *self.inline_text(title, at)[0]) for title, at in titles]
        elif name == "csv-table":
            node += self._table(options.get("header", ""), number, content, first)
        elif content:
            self.nested_parse(block[start:], offset + start, node)
        if name == "list-table":
            node["headed"] = options.get("header-rows", "0")
        return [node], is_end

    def _table(self, header: str, number: int, lines: list[str], first: int) -> nodes.table:
        """A table of comma-separated values, and its header, which is in line `number`."""
        table = nodes.table()
        for kind, rows, start in ((nodes.thead, [header] if header else [], number), (nodes.tbody, lines, first)):
            part = kind()
            for row, at in _values(rows):
                part += nodes.row("", *(nodes.entry("", *self.inline_text(cell, start + at)[0]) for cell in row))
            table += part
        return table


def _values(lines: list[str]) -> Iterator[tuple[list[str], int]]:
    """Rows of comma-separated values, and where each begins."""
    reader = csv.reader(lines, skipinitialspace=True)
    at = 0
    try:
        for row in reader:
            yield row, at
            at = reader.line_num
    except csv.Error:
        yield lines[at:], at


def _parts(lines: list[str]) -> tuple[list[str], dict[str, str], int]:
    """The lines of a directive's argument, its options, and where its content begins."""
    at = 0
    while at < len(lines) and lines[at].strip() and not (at and _OPTION.match(lines[at].strip())):
        at += 1
    said = [line.strip() for line in lines[:at]]
    at += not at
    options = {}
    while at < len(lines) and _OPTION.match(lines[at].strip()):
        name, _, value = lines[at].strip()[1:].partition(":")
        options[name.lower()] = value.strip()
        at += 1
        while at < len(lines) and lines[at].startswith(" ") and lines[at].strip():  # of a long value
            at += 1
    while at < len(lines) and not lines[at].strip():
        at += 1
    return said, options, at


class _Inliner(states.Inliner):
    """Marks inside of text."""

    def parse(self, text: str, lineno: int, memo: Any, parent: Any) -> tuple[list[Any], list[Any]]:
        found = []
        for part in _parts_of(text):
            some, _ = super().parse(part, lineno, memo, parent)
            _number(some, part, lineno)
            found += some
            lineno += part.count("\n")
        return found, []

    def interpreted(self, rawsource: str, text: str, role: str, lineno: int) -> tuple[list[Any], list[Any]]:
        kind = (role or "").rpartition(":")[2].lower()
        if kind == "math":
            text = plain_formula(text, "", text.replace("\0", ""))
        elif target := _TARGET.match(text):
            text = target[1]
        elif text.startswith("~"):  # of Sphinx: only the last part of a name is shown
            text = text.rpartition(".")[2].lstrip("~")
        return [nodes.inline(rawsource, text.removeprefix("!"), classes=[kind])], []


# Its patterns are made of the texts in the class itself, not of those that it inherits.
for _name, _value in vars(states.Inliner).items():
    if isinstance(_value, str) and _name not in vars(_Inliner):
        setattr(_Inliner, _name, _value)


def _parts_of(text: str) -> list[str]:
    """A text, cut at the ends of lines or between words if it is long."""
    parts, start = [], 0
    while len(text) - start > _MOST_INLINE:
        cuts = (text.rfind(space, start, start + _MOST_INLINE) + 1 for space in "\n ")
        end = next((cut for cut in cuts if cut > start), start + _MOST_INLINE)
        parts.append(text[start:end])
        start = end
    return [*parts, text[start:]]


def _number(found: list[Any], source: str, number: int) -> None:
    """Gives each `Text` the number of its first line. What is between two of them is markup, and may have line ends."""
    raw = escaped(source)
    ends = [end.start() for end in re.finditer("\n", raw)]
    at = 0
    for leaf in (leaf for node in found for leaf in node.findall(nodes.Text)):
        said = escaped(str(leaf)) if isinstance(leaf.parent, nodes.literal) else str(leaf)
        first = said.partition("\n")[0]
        at = max(raw.find(first, at, at + len(first) + _NEAR), at)
        leaf.line = number + bisect_left(ends, at)
        at += len(said)
