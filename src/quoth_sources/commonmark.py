"""The parser of Markdown: CommonMark and GitHub's tables by markdown-it-py, with rules for what other programs add.

Knows wiki links, hidden comments, highlights, notes, superscripts, subscripts and formulas, as Obsidian and Pandoc
write them. Does not know what becomes of its tokens. A token's `meta["at"]` says where it is in the characters that
were parsed.
"""

import re
from functools import cache
from typing import Any, Literal

from markdown_it import MarkdownIt
from markdown_it.common.utils import normalizeReference
from markdown_it.parser_inline import ParserInline
from markdown_it.ruler import RuleOptionsType
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.rules_inline.state_inline import Delimiter
from markdown_it.token import Token

from quoth_sources.superscripts import lowered, raised

_MOST_NESTED = 60
"""Levels of quotations, lists and items; what is deeper is text."""
_MOST_BRACKETS = 20
_WIKI = re.compile(r"!?\[\[(?=[^\s\[\]])([^\[\]|\n]{0,500}\|)?([^\[\]|\n]{1,500})(?<!\s)\]\](?![(\[])")
_SIZE = re.compile(r"\d+(?:x\d+)?")
"""Of a picture, where a link has its text."""
_ADDRESS = re.compile(r"\((?:[^()\\\n]|\\.|\([^()\n]{0,500}\)){1,2000}+\)")
_TEMPLATE = re.compile(r"\[([^\[\]^][^\[\]]{0,200})\]:[ \t]*\{[%{].{1,1000}[%}]\}[ \t]*$")
_NOTE = re.compile(r"\[\^([^\[\]\s]{1,200})\]")
_DEFINITION = re.compile(rf" {{0,3}}{_NOTE.pattern}:[ \t]*")
_SUPERSCRIPT = re.compile(r"(?<=[\w)\]])\^([^\s^]{1,40})\^(?!\w)")
_SUBSCRIPT = re.compile(r"(?<=\w)~([\w+−-]{1,20})~(?!~)")
_FORMULA = re.compile(r"(?<![\w$\\])(\$\$?)(?=[^\s$])([^$\n]{1,500}?)(?<![\s\\])\1(?![\w$])")
_VARIABLE = re.compile(r"%%[~\w]")
_BEFORE_VARIABLE = re.compile(r"[\s(\[{<\"'/\\=,;:|&+-]")
_SCRIPT = re.compile(r"([\w)}\]]?)([\^_])(?:\{([^{}]{1,100})\}|([\w°]))")
_COMMANDS = re.compile(r"\\(times|cdot|pm|circ|mu|,|%|text|mathrm)(?![a-zA-Z])(?:\{([^{}]{0,100})\})?")
_SYMBOLS = {"times": "×", "cdot": "·", "pm": "±", "circ": "°", "mu": "µ", ",": " ", "%": "%"}


class _State(StateInline):
    def push(self, ttype: str, tag: str, nesting: Literal[-1, 0, 1]) -> Token:
        token = super().push(ttype, tag, nesting)
        token.meta["at"] = self.pos
        return token

    def pushPending(self) -> Token:
        token = super().pushPending()
        token.meta["at"] = self.pos  # its end, which is in the same line
        return token


class _Inline(ParserInline):
    """Limits nesting more than blocks do: each bracket that never closes costs a step per level."""

    def __init__(self) -> None:
        super().__init__()
        self._options = _Parser("js-default", {"html": True, "maxNesting": _MOST_BRACKETS})
        self._options.inline = self

    def parse(self, src: str, md: MarkdownIt, env: Any, tokens: list[Token]) -> list[Token]:
        state = _State(src, self._options, env, tokens)
        self.tokenize(state)
        for rule in self.ruler2.getRules(""):
            rule(state)
        return state.tokens


class _Parser(MarkdownIt):
    """Takes any address for one, and does not change it."""

    def validateLink(self, url: str) -> bool:
        return True

    def normalizeLink(self, url: str) -> str:
        return url

    def normalizeLinkText(self, url: str) -> str:
        return url


@cache
def parser() -> MarkdownIt:
    """Of a file."""
    made = _Parser("js-default", {"html": True})
    made.inline = _Inline()
    block, inline = made.block.ruler, made.inline.ruler
    ends: RuleOptionsType = {"alt": ["paragraph", "reference", "blockquote", "list"]}
    block.before("table", "deep", _deep)
    block.before("table", "comment", _comment_block, ends)
    block.after("reference", "template", _template)
    block.before("reference", "note", _note_definition, ends)
    for name, rule in (("wiki", _wiki), ("note", _note)):
        inline.before("link", name, rule)
    inline.after("image", "address", _address)
    for name, rule in (("comment", _comment), ("highlight", _highlight), ("formula", _formula), ("script", _script)):
        inline.before("strikethrough", name, rule)
    made.inline.ruler2.before("emphasis", "highlight", _highlighted)
    return made


@cache
def html_parser() -> MarkdownIt:
    """Of a block of HTML, in which nothing else is markup."""
    made = _Parser("zero", {"html": True})
    made.inline = _Inline()
    made.inline.ruler.enableOnly(["text", "newline", "html_inline", "entity"])
    return made


def _deep(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Makes one paragraph of lines nested so deep that the parser would leave them out."""
    if silent or state.level < _MOST_NESTED:
        return False
    state.push("paragraph_open", "p", 1).map = [start, end]
    token = state.push("inline", "", 0)
    token.content = state.getLines(start, end, state.blkIndent, False).strip()
    token.map, token.children = [start, end], []
    state.push("paragraph_close", "p", -1)
    state.line = end
    return True


def _line(state: StateBlock, number: int) -> str:
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]]


def _comment_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Passes over `%%`, lines, `%%`."""
    first = _line(state, start)
    if not first.startswith("%%") or "%%" in first[2:]:
        return False
    last = next((number for number in range(start + 1, end) if "%%" in _line(state, number)), None)
    if last is None or _line(state, last).rstrip().partition("%%")[1:] != ("%%", ""):
        return False
    if not silent:
        state.line = last + 1
    return True


def _note_definition(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """A note, `[^1]: text`, and what is indented below it."""
    found = _DEFINITION.match(state.src, state.bMarks[start], state.eMarks[start])
    if not found or state.is_code_block(start):
        return False
    if silent:
        return True
    state.env.setdefault("notes", set()).add(found[1])
    token = state.push("note_open", "", 1)
    token.map, token.info = [start, start + 1], found[1]
    before = state.bMarks[start], state.tShift[start], state.sCount[start], state.parentType
    state.bMarks[start], state.tShift[start] = found.end(), 0
    state.blkIndent += 4
    state.sCount[start], state.parentType = state.blkIndent, "footnote"
    if found.end() < state.eMarks[start] or not state.isEmpty(start + 1):
        state.md.block.tokenize(state, start, end)
    else:
        state.line = start + 1
    state.blkIndent -= 4
    state.bMarks[start], state.tShift[start], state.sCount[start], state.parentType = before
    state.push("note_close", "", -1)
    return True


def _template(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """`[label]: {% page "/a" %}`, an address that a template will write."""
    found = _TEMPLATE.match(_line(state, start))
    if not found or state.is_code_block(start) or silent:
        return False
    state.env.setdefault("references", {}).setdefault(normalizeReference(found[1]), {"href": "", "title": ""})
    state.line = start + 1
    return True


def _found(pattern: re.Pattern[str], state: StateInline) -> re.Match[str] | None:
    return pattern.match(state.src, state.pos, state.posMax)


def _push(state: StateInline, kind: str, content: str, silent: bool, end: int) -> bool:
    if not silent:
        state.push(kind, "", 0).content = content
    state.pos = end
    return True


def _wiki(state: StateInline, silent: bool) -> bool:
    """`[[page]]`, `[[page|text]]`, `![[page]]`."""
    if not (state.src.startswith(("[[", "![["), state.pos) and (found := _found(_WIKI, state))):
        return False
    if found[1] and _SIZE.fullmatch(found[2]):
        return _push(state, "text_special", found[1][:-1], silent, found.end())
    if not silent:
        _tokenize(state, *found.span(2))
    state.pos = found.end()
    return True


def _address(state: StateInline, silent: bool) -> bool:
    """`[text](address)` with spaces in the address, as templates have them."""
    start = state.pos + state.src.startswith("![", state.pos)
    if state.src[start] != "[" or state.html_terminator_last("](") < start:
        return False
    end = state.md.helpers.parseLinkLabel(state, start, True)
    if end < 0 or not (found := _ADDRESS.match(state.src, end + 1, state.posMax)):
        return False
    if not silent:
        _tokenize(state, start + 1, end)
    state.pos = found.end()
    return True


def _tokenize(state: StateInline, start: int, end: int) -> None:
    """Makes tokens of the characters that are left of a link."""
    most = state.posMax
    state.push("link", "", 0)
    state.pos, state.posMax = start, end
    state.md.inline.tokenize(state)
    state.posMax = most


def _note(state: StateInline, silent: bool) -> bool:
    """The mark of a note that is defined."""
    if not (state.src.startswith("[^", state.pos) and (found := _found(_NOTE, state))):
        return False
    return found[1] in state.env.get("notes", ()) and _push(state, "text_special", f"[{found[1]}]", silent, found.end())


def _comment(state: StateInline, silent: bool) -> bool:
    """`%%hidden%%`; not percentages (`50%% of 20%%`) nor the variables of scripts (`for %%i in a do b %%i`)."""
    source, start = state.src, state.pos
    if not source.startswith("%%", start) or source[start - 1 : start].isdecimal():
        return False
    if (end := source.find("%%", start + 2, state.posMax)) < 0:
        return False
    if _VARIABLE.match(source, start):
        if _BEFORE_VARIABLE.match(source, end - 1) and _VARIABLE.match(source, end):
            if not silent:
                state.env["variables in"] = source
            return False
        # `%%NAME%%` is a comment, except behind variables.
        if state.env.get("variables in") == source and len(source[start:end].split()) == 1:
            return False
    return _push(state, "comment", "", silent, end + 2)


def _script(state: StateInline, silent: bool) -> bool:
    """Pandoc's `10^6^` and `H~2~O`."""
    for mark, kind, pattern in (("^", "sup", _SUPERSCRIPT), ("~", "sub", _SUBSCRIPT)):
        if state.src[state.pos] == mark and (found := _found(pattern, state)):
            return _push(state, kind, found[1], silent, found.end())
    return False


def _formula(state: StateInline, silent: bool) -> bool:
    """`$10^6$`, in which nothing is Markdown."""
    if state.src[state.pos] != "$" or not (found := _found(_FORMULA, state)):
        return False
    return _push(state, "text_special", plain_formula(found[0], found[1], found[2]), silent, found.end())


def plain_formula(whole: str, dollars: str, inside: str) -> str:
    """A formula with its powers raised; its dollars go if no TeX is left in it."""
    if not re.search(r"[\^_\\]", inside):
        return whole
    said = _COMMANDS.sub(lambda found: _SYMBOLS.get(found[1], "") + (found[2] or ""), inside)
    said = _SCRIPT.sub(_in_script, said)
    return f"{dollars}{said}{dollars}" if re.search(r"[\\{}]", said) else said


def _in_script(found: re.Match[str]) -> str:
    return found[1] + (raised if found[2] == "^" else lowered)(found[3] or found[4], found[1])


def _highlight(state: StateInline, silent: bool) -> bool:
    """Each `==` by itself; `_highlighted` takes away those that are pairs."""
    if silent or state.src[state.pos] != "=":
        return False
    scanned = state.scanDelims(state.pos, False)
    state.push("text", "", 0).content = "=" * scanned.length
    if scanned.length == 2:
        state.delimiters.append(Delimiter(ord("="), 0, len(state.tokens) - 1, -1, scanned.can_open, scanned.can_close))
    state.pos += scanned.length
    return True


def _highlighted(state: StateInline) -> None:
    for delimiters in (state.delimiters, *((meta or {}).get("delimiters", ()) for meta in state.tokens_meta)):
        for one in delimiters:
            if one.marker == ord("=") and one.end != -1:
                state.tokens[one.token].content = state.tokens[delimiters[one.end].token].content = ""
