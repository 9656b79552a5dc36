"""Markdown: its text without the markup, block by block, code apart, tables as rows.

Knows what becomes of each token of the parser (`quoth_sources.commonmark`), front matter, and the tags of HTML that
hide text or raise it. Does not know how Markdown is parsed.
"""

import re
import tomllib
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any

from markdown_it.token import Token

from quoth_sources.commonmark import html_parser, parser
from quoth_sources.source import Cell, Piece, Source, Text
from quoth_sources.superscripts import lowered, raised

_LINE_END = re.compile(r"\r\n?|\n")
_FIELD = re.compile(r"([\w-]+):(?:[ \t]+(.*))?$")
_OF_FIELDS = re.compile(r"$|[\s#\]}]|-(?:\s|$)|[^\s:][^:]*:(?:\s|$)")
"""A line of YAML: empty, a comment, an item, a field, or what goes on with one."""
_WIKI = re.compile(r"!?\[\[(?:[^\[\]|]*\|)?([^\[\]|]+)\]\]")
_CALLOUT = re.compile(r"\[![\w-]{1,50}(?:\|[^\[\]\n]{0,100})?\][+-]?[ \t]*")
_TASK = re.compile(r"\[([ xX/-])\][ \t]+(?=\S)")
_STATES = {" ": "Open", "x": "Done", "/": "In progress", "-": "Cancelled"}
"""In words, because people ask for them; other letters between the brackets stay."""
_BLOCK_ID = re.compile(r"(?:^|\s)\^[A-Za-z0-9-]+\s*$")
_TAG = re.compile(r"<(/?)([a-z][a-z0-9]*)", re.I)
_HIDDEN = {"del", "s", "strike", "script", "style", "template", "rt", "rp"}
_READINGS = {"rt", "rp"}
"""Their ends may be left out, before another part of the same ruby or its end."""
_BREAKS = re.compile(
    "br|p|div|section|article|header|h[1-6]|blockquote|pre|[uod]l|li|d[td]|fig.*|table|t[dhr]|summary|details|hr"
)


def read(text: str) -> Source:
    """The text of a Markdown file."""
    lines = _LINE_END.split(text)
    end = _front(lines)
    facts = dict(_fields(lines[1:end]))
    if lines[0].strip() == "+++" and "+++" in map(str.rstrip, lines[1:200]):
        fence = [line.rstrip() for line in lines[:200]].index("+++", 1)
        with suppress(ValueError, RecursionError):  # it is text, not TOML
            facts, end = _toml(tomllib.loads("\n".join(lines[1:fence]))), fence
    if isinstance(facts.get("title"), list):
        facts["title"] = " ".join(facts["title"])
    body = "\n".join(lines[end + 1 :] if end else lines)
    return _Writer(end + 1 if end else 0).source(parser().parse(body), facts)


def _front(lines: Sequence[str]) -> int:
    """Where front matter ends; 0 if there is none: a rule above text is no fence."""
    if lines[0].strip() != "---" or not "".join(lines[1:2]).strip():
        return 0
    end = next((number for number, line in enumerate(lines[1:200], 1) if line.strip() in ("---", "...")), 0)
    fields = lines[1:end]
    return end if all(map(_OF_FIELDS.match, fields)) and any(map(_FIELD.match, fields)) else 0


def _fields(lines: Sequence[str]) -> Iterator[tuple[str, str | list[str]]]:
    """The fields of YAML, each by itself, so that one that YAML does not take spoils no other."""
    starts = [number for number, line in enumerate(lines) if _FIELD.match(line)]
    for start, end in pairwise([*starts, len(lines)]):
        field = _WIKI.sub(r"\1", "\n".join(lines[start:end]))
        name, _, said = field.partition("\n")[0].partition(":")
        yield name, _value(field, said.strip())


def _toml(table: dict[str, Any]) -> dict[str, str | list[str]]:
    """The fields of TOML as those of YAML, and those of its tables, unless they have the name of another."""
    fields = dict[str, str | list[str]]()
    for name, value in table.items():
        if isinstance(value, dict):
            fields = _toml(value) | fields
        elif isinstance(value, list):
            fields[name] = [str(each) for each in value if not isinstance(each, (dict, list))] or ""
        else:
            fields[name] = str(value).lower() if isinstance(value, bool) else str(value).strip()
    return fields


def _value(field: str, said: str) -> str | list[str]:
    """The text of a field, or the texts of its list; what its line says if it is another thing, or not YAML."""
    import yaml

    with suppress(yaml.YAMLError, ValueError, OverflowError, RecursionError):
        [value] = yaml.load(field, Loader=yaml.BaseLoader).values()  # which makes neither dates nor numbers
        if isinstance(value, list):
            value = [each for each in value if isinstance(each, str) and each.encode()]
            return value or ""
        if isinstance(value, str) and value.strip().encode():
            return value.strip()
    return said.strip("\"'")


class _Writer:
    """Writes the tokens of a file, whose first line is number `first`, counted from 0."""

    def __init__(self, first: int) -> None:
        self._first = first
        self._text = Text("line")
        self._title = ""
        self._end = -1  # the line after the last block
        self._numbers: list[int | None] = []  # of the lists that are open, the next item's; None: they have none
        self._after = ""  # the block before, or the quotation that has just begun
        self._mark = ""  # of the item
        self._before: list[Piece] = []  # of the next block
        self._rows: list[list[Cell]] = []

    def source(self, tokens: Sequence[Token], facts: dict[str, Any]) -> Source:
        for number, token in enumerate(tokens):
            if write := getattr(self, f"_on_{token.type}", None):
                write(token)
            elif token.type == "inline":
                self._inline(token, tokens[number - 1])
        return self._text.source({**facts, "title": facts.get("title") or self._title})

    def _begin(self, kind: str, level: int, token: Token) -> None:
        """Begins a block: a heading of a level, a paragraph, an item of a level, code, a table, HTML."""
        start, end = token.map or (self._end, self._end)
        self._text.gap("\n" if kind == "item" and start <= self._end else "\n\n")
        if kind in ("heading", "item", "code"):
            self._text.block(kind, len(self._numbers) if kind == "code" else level)
        else:
            self._text.paragraph(len(self._numbers))
        self._end = start if kind == "item" else end
        self._after = self._after if kind == "paragraph" else kind

    def _inline(self, token: Token, before: Token) -> None:
        pieces = self._before + _without_id([*_Pieces(token.content, self._line(token)).of(token.children or ())])
        if before.type in ("th_open", "td_open"):
            self._rows[-1].append(pieces)
            return
        kind, level = ("heading", int(before.tag[1])) if before.type == "heading_open" else ("paragraph", 0)
        self._begin(kind, level, token)
        said = "".join(piece.text for piece in pieces)
        if level == 1:
            self._title = self._title or " ".join(said.split())
        if self._after == "blockquote" and (title := _CALLOUT.match(said)):
            pieces = self._callout(_cut(pieces, title.end()))
        elif self._after == "item" and (state := _TASK.match(said)):
            self._text.mark(f"{self._mark}{_STATES[state[1].lower()]}: ")
            pieces = _cut(pieces, state.end())
        self._text.pieces(pieces)
        if pieces:
            self._text.unmark()  # of an item that is struck out
        self._text.gap("\n\n" if kind == "heading" else "\n")
        self._before, self._after = [], kind

    def _line(self, token: Token) -> int:
        return self._first + (token.map or [0])[0] + 1

    def _callout(self, pieces: list[Piece]) -> list[Piece]:
        """Writes the title of a callout as a paragraph of its own; returns what is below."""
        end = next((number for number, piece in enumerate(pieces) if piece.text == "\n"), len(pieces))
        self._text.pieces(pieces[:end])
        self._text.gap()
        self._text.block("paragraph", len(self._numbers))
        return pieces[end:]

    def _on_blockquote_open(self, token: Token) -> None:
        self._after = "blockquote"

    def _on_bullet_list_open(self, token: Token) -> None:
        self._numbers.append(None)

    def _on_ordered_list_open(self, token: Token) -> None:
        self._numbers.append(int(token.attrs.get("start", 1)))

    def _list_close(self, token: Token) -> None:
        self._numbers.pop()
        self._text.unmark()
        self._text.block("paragraph", len(self._numbers))

    _on_bullet_list_close = _on_ordered_list_close = _list_close

    def _on_list_item_open(self, token: Token) -> None:
        self._begin("item", len(self._numbers), token)
        number = self._numbers[-1]
        self._mark = "- " if number is None else f"{number}{token.markup} "
        self._text.mark(self._mark)
        self._numbers[-1] = None if number is None else number + 1

    def _on_note_open(self, token: Token) -> None:
        self._before = [Piece(f"[{token.info}] ", (self._line(token),))]

    def _on_note_close(self, token: Token) -> None:
        self._text.pieces(self._before)
        self._before = []

    def _on_fence(self, token: Token) -> None:
        self._begin("code", 0, token)
        self._text.code(token.content.removesuffix("\n").split("\n"), self._line(token) + (token.type == "fence"))

    _on_code_block = _on_fence

    def _on_html_block(self, token: Token) -> None:
        self._begin("html", 0, token)
        children = html_parser().inline.parse(token.content, html_parser(), {}, [])
        for piece in _Pieces(token.content, self._line(token)).of(children):
            if piece.text == "\n" and not piece.place:
                self._text.gap("\n")
            else:
                self._text.pieces([piece])
        self._text.gap()

    def _on_table_open(self, token: Token) -> None:
        self._begin("table", 0, token)
        self._rows = []

    def _on_tr_open(self, token: Token) -> None:
        self._rows.append([])

    def _on_table_close(self, token: Token) -> None:
        self._text.table(self._rows, headed=1)


def _without_id(pieces: list[Piece]) -> list[Piece]:
    """Without the name that Obsidian gives to a block, at its end: `^name`."""
    if pieces and (found := _BLOCK_ID.search(pieces[-1].text)):
        return [*pieces[:-1], Piece(pieces[-1].text[: found.start()], pieces[-1].place)]
    return pieces


def _cut(pieces: Sequence[Piece], count: int) -> list[Piece]:
    """Without the first characters."""
    left = []
    for text, place in pieces:
        left.append(Piece(text[count:], place))
        count = max(count - len(text), 0)
    return left


class _Pieces:
    """The pieces of text in a block's characters, the first of which are in this line."""

    def __init__(self, content: str, line: int) -> None:
        self._content, self._line = content, line
        self._ends = [found.start() for found in re.finditer("\n", content)]
        self._hidden = ""  # the element whose text is left out, if it is in one
        self._struck = 0
        self._script = ""  # the element whose text is raised or lowered, and the text
        self._inside: list[str] = []
        self._last = ""

    def of(self, tokens: Sequence[Token], shift: int = 0) -> Iterator[Piece]:
        """The pieces of tokens, whose places count from `shift`."""
        closed = Counter(_tag_of(token)[1] for token in tokens if _tag_of(token)[0])
        for token in tokens:
            at = shift + token.meta.get("at", 0)
            if token.type in ("s_open", "s_close"):
                self._struck += token.nesting
            elif token.type == "html_inline":
                yield from self._tag(*_tag_of(token), closed, at)
            elif token.type == "image":
                yield from self.of(token.children or (), at + 2)
            elif token.type in ("softbreak", "hardbreak"):
                yield from self._said("\n", None)
            elif token.type in ("sup", "sub"):
                yield from self._said((raised if token.type == "sup" else lowered)(token.content, self._last), at)
            elif token.type == "code_inline":
                yield from self._code(token.content, at + len(token.markup))
            else:
                yield from self._said(token.content, at)

    def _said(self, text: str, at: int | None) -> Iterator[Piece]:
        if not text or self._hidden or self._struck:
            return
        if self._script:
            self._inside.append(text)
            return
        self._last = text[-1]
        yield Piece(text, () if at is None else (self._line + bisect_left(self._ends, at),))

    def _code(self, text: str, at: int) -> Iterator[Piece]:
        """Code, in which the ends of lines have become spaces, and a space at either end may be gone."""
        at += self._content[at : at + len(text)].replace("\n", " ") != text
        first, last = (bisect_left(self._ends, end) for end in (at, at + len(text)))
        cuts = [end - at for end in self._ends[first:last]]
        for start, end in pairwise([-1, *cuts, len(text)]):
            yield from self._said("\n" if start >= 0 else "", None)
            yield from self._said(text[start + 1 : end], at + start + 1)

    def _tag(self, closes: bool, name: str, closed: Counter[str], at: int) -> Iterator[Piece]:
        closed[name] -= closes
        if self._hidden:
            is_next = self._hidden in _READINGS and (name in _READINGS or name == ("ruby" if closes else "rb"))
            if is_next or (closes and name == self._hidden):
                self._hidden = "" if closes or name not in _READINGS else name
        elif name in _READINGS or (name in _HIDDEN and closed[name]):
            self._hidden = "" if closes else name
        elif self._script and closes and name == self._script:
            text, self._script = "".join(self._inside), ""
            self._inside.clear()
            yield from self._said((raised if name == "sup" else lowered)(text, self._last), at)
        elif name in ("sup", "sub") and not (closes or self._script):
            if closed[name]:
                self._script = name
            else:
                yield from self._said("^" if name == "sup" else "_", at)
        elif _BREAKS.fullmatch(name):
            yield from self._said("\n", None)


def _tag_of(token: Token) -> tuple[bool, str]:
    """Whether a tag ends an element, and the element's name; "" of a comment and of what is not a tag."""
    found = _TAG.match(token.content) if token.type == "html_inline" else None
    return (bool(found[1]), found[2].lower()) if found else (False, "")
