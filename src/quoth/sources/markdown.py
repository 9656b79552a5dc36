"""Markdown: its text without the markup, line by line, code apart, tables as rows.

Knows CommonMark's blocks and inline markup as people write them, tables, front matter; HTML in it loses its tags. Does
not know every corner of the specification: what is unsure stays as it is.
"""

import html
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any

from quoth.sources.source import Cell, Part, Piece, Source, Text

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]+|$)(.*?)(?:[ \t]+#+)?[ \t]*$")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_RULE = re.compile(r" {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$")
_ITEM = re.compile(r"(\s*)([-*+]|\d{1,9}[.)])(?:[ \t]+|$)(?:\[[ xX]\][ \t]+)?")
_QUOTE = re.compile(r" {0,3}(?:> ?)+")
_CALLOUT = re.compile(r"\s*\[![\w-]{1,50}\][+-]?")
_DEFINITION = re.compile(r" {0,3}\[(?!\^)[^\[\]]{1,200}\]:\s*\S.*$")
_NOTE = re.compile(r" {0,3}\[\^[^\[\]\s]{1,200}\]:\s*")
_BARS = re.compile(r"\s*\|?(?:\s*:?-+:?\s*\|)*\s*:?-+:?\s*\|?\s*$")
_CELL_END = re.compile(r"(?<!\\)\|")
_FIELD = re.compile(r"([\w-]+):(?:[ \t]+(.*))?$")
_INSIDE = r"((?:[^\[\]\\`]|\\.|`[^`]{0,500}`|!?\[[^\[\]]{0,500}\](?:\([^()]{0,2000}\))?){0,2000}+)"
_INLINE = re.compile(
    r"(?s)(?P<ticks>`+)(?P<code>(?:(?!\n\n).){1,2000}?)(?<!`)(?P=ticks)(?!`)"
    r"|\\(?P<escaped>[!-/:-@\[-`{-~])"
    r"|!?\[\[(?=[^\s\[\]])(?:[^\[\]|]{0,500}\|)?(?P<wiki>[^\[\]|]{1,500})(?<!\s)\]\](?![(\[])"
    rf"|!?\[(?!\^)(?P<linked>{_INSIDE[1:-1]})\](?:\((?:[^()\\]|\\.|\([^()]{{0,500}}\)){{0,2000}}+\)|\[[^\[\]]{{0,200}}\])"
    r"|(?P<note>\[\^[^\[\]\s]{1,200}\])"
    r"|<(?P<address>(?:https?|ftp|mailto):[^<>\s]{1,2000})>"
    r"|(?i:<(?P<struck>del|s|strike)>.{0,2000}?</(?P=struck)>)"
    r"|(?P<comment><!--)|(?P<tag></?[A-Za-z][^<>]{0,1000}>)"
    r"|(?P<entity>&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]\w{1,30});)"
    r"|(?P<marks>\*+|_+|~~|(?<!=)==(?!=))"
)


def read(text: str) -> Source:
    """The text of a Markdown file."""
    lines, end = text.splitlines(), 0
    if lines and lines[0].strip() == "---":  # front matter: fields up to the next such line
        end = next((number for number, line in enumerate(lines[1:200], 1) if line.strip() in ("---", "...")), 0)
    facts = dict(_fields(lines[1:end]))
    if isinstance(facts.get("title"), list):
        facts["title"] = " ".join(facts["title"])
    return _Writer(lines, end + 1 if end else 0).source(facts)


def _fields(lines: Sequence[str]) -> Iterator[tuple[str, str | list[str]]]:
    """The fields of YAML, each by itself, so that one that YAML does not take spoils no other."""
    starts = [number for number, line in enumerate(lines) if _FIELD.match(line)]
    for start, end in pairwise([*starts, len(lines)]):
        name, _, said = lines[start].partition(":")
        yield name, _value("\n".join(lines[start:end]), said.strip())


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
    def __init__(self, lines: Sequence[str], first: int) -> None:
        self._lines, self._at = lines, first
        self._text = Text("line")
        self._paragraph: list[tuple[str, int]] = []
        self._heading = ""

    def source(self, facts: dict[str, Any]) -> Source:
        while self._at < len(self._lines):
            self._at = self._block(self._lines[self._at], self._at)
        self._flush()
        return self._text.source({**facts, "title": facts.get("title") or self._heading})

    def _block(self, line: str, at: int) -> int:
        """Takes what begins at this line; returns the line after it."""
        quote = _QUOTE.match(line)
        line = line[quote.end() :] if quote else line
        if quote and (callout := _CALLOUT.match(line)):
            self._flush()
            self._text.prose([(line[callout.end() :], at)], inline)
            self._text.gap()
            return at + 1
        following = "".join(self._lines[at + 1 : at + 2])
        if not line.strip():
            self._flush()
        elif fence := _FENCE.match(line):
            return self._code(at, lambda other: other.strip().startswith(fence[1]) and not other.strip(" `~"))
        elif line.startswith(("    ", "\t")) and not (quote or self._paragraph or self._is_in_list(at)):
            return self._code(at - 1, lambda other: bool(other.strip()) and not other.startswith(("    ", "\t")), 0)
        elif heading := _HEADING.match(line):
            self._title([(heading[1], at)])
        elif self._paragraph and _UNDERLINE.match(line):
            self._title(self._paragraph)
        elif _RULE.match(line) or _DEFINITION.match(line):
            self._flush()
        elif "|" in line and "-" in following and _BARS.match(following):
            return self._table(at)
        elif item := _ITEM.match(line):
            self._flush("\n")
            self._text.mark("- " if item[2] in "-*+" else f"{item[2]} ")
            self._paragraph = [(line[item.end() :], at)]
        else:
            note = _NOTE.match(line)
            self._paragraph.append((line[note.end() :] if note else line, at))
        return at + 1

    def _is_in_list(self, at: int) -> bool:
        before = (line for line in reversed(self._lines[max(at - 50, 0) : at]) if line.strip())
        for line in before:
            if _ITEM.match(line) or not line.startswith((" ", "\t")):
                return _ITEM.match(line) is not None
        return False

    def _flush(self, gap: str = "\n\n") -> None:
        """Ends the paragraph."""
        self._text.prose(self._paragraph, inline)
        if any(line.strip() for line, _ in self._paragraph):
            self._text.unmark()  # of an item that is struck out
        self._paragraph = []
        self._text.gap(gap)

    def _title(self, lines: list[tuple[str, int]]) -> None:
        if lines is not self._paragraph:
            self._flush()
        self._text.gap()
        self._text.prose(lines, inline)
        parts = inline(" ".join(line for line, _ in lines).strip())
        self._heading = self._heading or "".join(said for said, _ in parts)
        self._paragraph = []
        self._text.gap()

    def _code(self, at: int, ends: Any, after: int = 1) -> int:
        self._flush()
        end = next((n for n in range(at + 1, len(self._lines)) if ends(self._lines[n])), len(self._lines))
        self._text.code(self._lines[at + 1 : end], at + 2)
        return end + after

    def _table(self, at: int) -> int:
        self._flush()
        end = next((n for n in range(at + 2, len(self._lines)) if "|" not in self._lines[n]), len(self._lines))
        self._text.table([self._cells(n) for n in (at, *range(at + 2, end))], headed=True)
        return end

    def _cells(self, number: int) -> list[Cell]:
        line = self._lines[number].strip()
        cells = _CELL_END.split(line.removeprefix("|").removesuffix("|"))
        return [[Piece(said, (number + 1,)) for said, _ in inline(cell)] for cell in cells]


def inline(text: str) -> list[Part]:
    """The parts of a text that stay without its markup, and without what is struck out."""
    parts: list[Part] = []
    opened: list[int] = []  # the places in `parts` of marks that may be the first of a pair
    for said, at, is_mark in _tokens(text, 0):
        if is_mark:
            before, after = text[at - 1 : at], text[at + len(said) : at + len(said) + 1]
            word = said[0] in "_="
            closes = bool(before.strip()) and not (word and after.isalnum())
            opens = bool(after.strip()) and not (word and before.isalnum())
            pairs = (n for n in reversed(range(len(opened))) if closes and parts[opened[n]][0] == said)
            same = next(pairs, None)
            if same is not None:
                parts[opened[same]] = ("", at)
                if said == "~~":
                    del parts[opened[same] :]
                del opened[same:]
                continue
            if opens and len(opened) < 100:
                opened.append(len(parts))
        parts.append((said, at))
    return [part for part in parts if part[0]]


def _tokens(text: str, shift: int) -> Iterator[tuple[str, int, bool]]:
    end, last_comment = 0, text.rfind("-->")
    while found := _INLINE.search(text, end):
        if found.start() > end:
            yield text[end : found.start()], shift + end, False
        end, kind = found.end(), found.lastgroup
        if kind == "comment" and found.start() < last_comment:
            end = text.index("-->", end) + 3 if end <= last_comment else end
        elif kind == "comment":
            yield found[0], shift + found.start(), False
        elif found["linked"] is not None or kind == "wiki":
            link = "linked" if found["wiki"] is None else "wiki"
            yield from _tokens(found[link], shift + found.start(link))
        elif found["code"] is not None:
            yield found["code"], shift + found.start("code"), False
        elif kind in ("escaped", "address"):
            yield found[kind], shift + found.start(kind), False
        elif kind == "entity":
            yield html.unescape(found[0]), shift + found.start(), False
        elif kind == "marks":
            yield found[0], shift + found.start(), True
    if end < len(text):
        yield text[end:], shift + end, False
