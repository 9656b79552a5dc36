"""reStructuredText: its text without the markup, line by line, code apart, tables as rows.

Knows titles, lists, literal blocks, directives, tables and inline markup as people write them. Does not run directives:
what they would include or make is not there; comments, pictures and tables of contents are left out.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from quoth.sources.source import Part, Piece, Source, Text

_LINE = re.compile(r"([!-/:-@\[-`{-~])\1{2,}\s*$")
_ITEM = re.compile(r"([-*+•]|(?:\d{1,9}|#|[a-zA-Z])[.)]|\((?:\d{1,9}|[a-zA-Z])\))[ \t]+")
_DIRECTIVE = re.compile(r"\.\.[ \t]+(?:\|[^|]+\|[ \t]+)?([\w:.+-]+)::[ \t]*(.*)$")
_NOTE = re.compile(r"\.\.[ \t]+\[[^\]]+\][ \t]+")
_FIELD = re.compile(r":([\w -]{1,60}):(?:[ \t]+|$)(.*)$")
_SIMPLE, _GRID = re.compile(r"=+(?:[ \t]+=+)+[ \t]*$"), re.compile(r"\+(?:[-=]+\+)+[ \t]*$")
_CODE = {"code", "code-block", "sourcecode", "parsed-literal", "literal", "highlight", "doctest", "console", "prompt"}
_LEFT_OUT = re.compile(
    "image|figure|toctree|include|raw|contents|meta|only|index|replace|unicode|date|(default-)?role|math|bibliography|"
    "auto.*|literalinclude|csv-table|sectnum|target-notes|container"
)
_INLINE = re.compile(
    r"``(?P<code>[^\n]{1,500}?)``(?!`)"
    r"|(?::[\w:.+-]{1,60}:)?`(?P<linked>[^`<>]{1,500}?)(?:[ \t\n]*<[^`<>]{1,1000}>)?`(?::[\w:.+-]{1,60}:)?_{0,2}"
    r"|(?<!\w)\*\*(?P<strong>[^\s*](?:[^*]{0,1000}[^\s*])?)\*\*(?!\w)|(?<![\w*])\*(?P<stress>[^\s*](?:[^*]{0,1000}[^\s*])?)\*(?![\w*])"
    r"|\\(?P<escaped>[^\s\w])|(?P<gone>\\\s|\[(?:#?[\w-]*|\*)\]_(?!\w))|(?<![\w`])(?P<name>\w(?:[\w.-]{0,200}\w)?)__?(?!\w)"
)


def read(text: str) -> Source:
    """The text of a reStructuredText file."""
    return _Writer([line.expandtabs(8).rstrip() for line in text.splitlines()]).source()


class _Writer:
    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._text = Text("line")
        self._facts: dict[str, Any] = {}
        self._paragraph: list[tuple[str, int]] = []

    def source(self) -> Source:
        self._blocks(0, len(self._lines), 0)
        return self._text.source(self._facts)

    def _blocks(self, at: int, end: int, depth: int) -> None:
        while at < end:
            at = self._block(self._lines[at], at, end, depth)
        self._flush()

    def _block(self, raw: str, at: int, end: int, depth: int) -> int:
        """Takes what begins at this line; returns the line after it."""
        line = raw.strip()
        if not line:
            self._flush()
        elif _GRID.match(line) and not self._paragraph:
            return self._table(at, end, [number for number, mark in enumerate(raw) if mark == "+"], grid=True)
        elif _SIMPLE.match(line) and not self._paragraph:
            return self._table(at, end, [found.start() for found in re.finditer("=+", raw)], grid=False)
        elif _LINE.match(line):
            if self._paragraph:
                self._facts.setdefault("title", "".join(said for said, _ in inline(self._paragraph[-1][0].strip())))
            self._flush()
        elif line.startswith(".. ") or line == "..":
            return self._marked(raw, line, at, end, depth)
        elif (field := _FIELD.match(line)) and not self._paragraph:
            if field[1].lower() in ("author", "date"):
                self._facts.setdefault(field[1].lower(), field[2])
            self._paragraph = [(f"{field[1]}: {field[2]}", at)]
            self._flush("\n")
        elif item := _ITEM.match(line):
            self._flush("\n")
            self._text.mark("- " if item[1] in "-*+•#." else f"{item[1]} ")
            self._paragraph = [(line[item.end() :], at)]
        else:
            self._paragraph.append((line, at))
            if line.endswith("::") and not any(self._lines[at + 1 : min(at + 2, end)]):
                self._paragraph[-1] = (line[:-2] if line[:-2].endswith(" ") or line == "::" else line[:-1], at)
                return self._code(at + 1, self._after(at, end, raw))
        return at + 1

    def _after(self, at: int, end: int, raw: str) -> int:
        """The line after a block: the first below that is not empty and no deeper than the one that began it."""
        depth = len(raw) - len(raw.lstrip())
        deeper = (n for n in range(at + 1, end) if (line := self._lines[n]) and len(line) - len(line.lstrip()) <= depth)
        return next(deeper, end)

    def _marked(self, raw: str, line: str, at: int, end: int, depth: int) -> int:
        """A directive, a note, or a comment."""
        self._flush()
        after = self._after(at, end, raw)
        if note := _NOTE.match(line):
            self._paragraph = [(line[note.end() :], at)]
            return at + 1
        directive = _DIRECTIVE.match(line)
        if directive is None or _LEFT_OUT.fullmatch(directive[1]) or depth > 50:
            return after
        at += 1
        while at < after and _FIELD.match(self._lines[at].strip()):
            at += 1
        if directive[1] in _CODE:
            return self._code(at, after)
        if directive[2]:
            self._paragraph = [(directive[2], at - 1)]
            self._flush()
        self._blocks(at, after, depth + 1)
        return after

    def _code(self, at: int, end: int) -> int:
        self._flush()
        lines = self._lines[at:end]
        indent = min((len(line) - len(line.lstrip()) for line in lines if line), default=0)
        self._text.code([line[indent:] for line in lines], at + 1)
        return end

    def _table(self, at: int, end: int, starts: list[int], grid: bool) -> int:
        """A table whose columns begin at these characters; a row of a grid takes all lines between two of its lines."""
        border = _GRID if grid else _LINE_OR_SIMPLE
        last = next((n for n in range(at, end) if not self._lines[n]), end)
        heads, rows = False, list[list[list[Piece]]]()
        is_new = True
        for number in range(at, last):
            line = self._lines[number]
            if border.match(line.strip()):
                heads |= bool(rows) and "=" in line and len(rows) == 1 and number < last - 1
                is_new = True
                continue
            limits = [*zip(starts, [*starts[1:], max(len(line), starts[-1])], strict=True)][: len(starts) - grid]
            cells = [line[low:high].strip("| ") for low, high in limits]
            if is_new or (not grid and cells[0]):
                rows.append([[] for _ in cells])
            for cell, said in zip(rows[-1], cells, strict=True):
                cell += [Piece(part, (number + 1,)) for part, _ in inline(said)] + [Piece(" ", ())] if said else []
            is_new = False
        self._text.table(rows, heads)
        return last

    def _flush(self, gap: str = "\n\n") -> None:
        """Ends the paragraph."""
        self._text.prose(self._paragraph, inline)
        self._paragraph = []
        self._text.gap(gap)


_LINE_OR_SIMPLE = re.compile(rf"{_SIMPLE.pattern}|{_LINE.pattern}|-+(?:[ \t]+-+)*[ \t]*$")


def inline(text: str) -> Iterator[Part]:
    """The parts of a text that stay without its markup, and where they begin."""
    end = 0
    for found in _INLINE.finditer(text):
        if found.start() > end:
            yield text[end : found.start()], end
        end, kind = found.end(), found.lastgroup or "gone"
        if kind != "gone":
            yield found[kind], found.start(kind)
    if end < len(text):
        yield text[end:], end
