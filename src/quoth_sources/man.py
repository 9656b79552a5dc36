"""Manual pages: the text of a roff file with man(7) or mdoc(7) macros, paragraph by paragraph, as a terminal shows it.

Knows the macros, escapes, strings and conditions that pages use. Of a macro that a page defines, it shows
the arguments. Does not run roff: registers and loops are not there. See groff_man(7), groff_char(7) and mdoc(7).
"""

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from quoth_sources.roff import Strings, args_of, comment_less, said
from quoth_sources.source import Piece, Source, Text

_HEAD = re.compile(r"^[.'][ \t]*(TH|Dd)[ \t]", re.MULTILINE)
_CONDITION = re.compile(r"(?:el\b|(i[fe])\b[ \t]*(\\n(?:\[[^\]]*\]|\(..|.)\S*|[^ ]*))[ \t]*(.*)$", re.DOTALL)
_FONTS = {"B": 1, "I": 1, "R": 1, "SM": 1, "SB": 1, "BR": 0, "RB": 0, "BI": 0, "IB": 0, "IR": 0, "RI": 0}
"""Macros that set their arguments in fonts: with spaces between them, or as one word."""
_BULLETS = ("-bullet", "-dash", "-hyphen")
_MARKS = {"bu", "*", "o", "-", "•", "·", "—", "–", "+"}
_PAIRS = {"Dq": "“”", "Sq": "‘’", "Ql": "‘’", "Qq": '""', "Pq": "()", "Bq": "[]", "Op": "[]", "Brq": "{}", "Aq": "<>"}
_PAIRS |= {"In": "<>", "Eq": "  "}
_OPENS = {"Do": "“", "So": "‘", "Qo": '"', "Po": "(", "Bo": "[", "Oo": "[", "Bro": "{", "Ao": "<"}
_CLOSES = {"Dc": "”", "Sc": "’", "Qc": '"', "Pc": ")", "Bc": "]", "Oc": "]", "Brc": "}", "Ac": ">"}
_PLAIN = {"Ad", "An", "Ar", "Cd", "Cm", "Dv", "Em", "Er", "Ev", "Fa", "Ft", "Ic", "Li", "Lk", "Ms", "Mt", "No", "Nx"}
_PLAIN |= {"Pa", "St", "Sx", "Sy", "Tn", "Ux", "Va", "Vt", "Bx", "Fx", "Ox", "Dx", "At", "Fd", "Nm", "Xr", "Fl", "Fn"}
_PLAIN |= {"Ns", "Pf", "Ap", "Fo", "Fc", "Eo", "Ec", "Xo", "Xc", "Ta", "Es", "En", "Lb", "Nd"}
_CALLED = _PLAIN | {*_PAIRS} | {*_OPENS} | {*_CLOSES}
_NAMES = {"Nx": "NetBSD", "Fx": "FreeBSD", "Ox": "OpenBSD", "Dx": "DragonFly", "Bx": "BSD", "Ux": "UNIX"}
_NAMES |= {"At": "AT&T UNIX"}
MOST_JOINED, MOST_CONDITIONS, LONGEST = 1000, 100, 200
"""Lines that backslashes may make one; conditions on a line; characters of what may be shown again and again: a string,
the name of the page."""
_ENDS, _BEGINS = {".", ",", ":", ";", ")", "]", "?", "!"}, {"(", "["}


def is_man(text: str) -> bool:
    """Whether this is the beginning of a manual page. One that only names another page (`.so`) is none."""
    return _HEAD.search(text) is not None


def read(text: str) -> Source:
    """The text of a manual page."""
    return _Page(text.replace("\r\n", "\n").split("\n")).source()


class _Page:
    def __init__(self, lines: Sequence[str]) -> None:
        self._lines, self._at = lines, 0
        self._text = Text("line")
        self._facts: dict[str, Any] = {}
        self._strings: Strings = {}
        self._own = set[str]()
        """The macros that the page defines: their arguments are shown."""
        self._name, self._url = "", Piece("", ())
        self._is_filled, self._is_glued = True, False
        self._tag = 0
        """Of a list's item: 1 if the next text is its tag, 2 if its body follows on the same line, 0 else."""
        self._lists = list[str]()
        self._indents = self._depth = 0
        """Parts that are indented; how many lists and such parts the next text stands in."""
        self._is_numbered = False
        """Whether the item's tag is only its number."""
        self._next: Callable[[list[str]], None] | None = None
        """What takes the next line of text, if a macro came without arguments."""
        self._else = False
        self._rest: str | None = None
        """What follows a condition that holds, on its line."""

    def source(self) -> Source:
        while self._at < len(self._lines):
            self._at += 1
            line = self._lines[self._at - 1]
            for _ in range(MOST_CONDITIONS):
                self._rest = None
                self._line(line)
                if self._rest is None:
                    break
                line = self._rest
        return self._text.source(self._facts)

    def _line(self, line: str) -> None:
        parts = [line]
        while parts[-1].endswith("\\") and not parts[-1].endswith("\\\\") and self._at < len(self._lines):
            parts[-1] = parts[-1][:-1]
            parts.append(self._lines[self._at])
            self._at += 1
            if len(parts) > MOST_JOINED:
                break
        line = "".join(parts)
        self._is_glued = line.endswith("\\c")
        if line[:1] in (".", "'"):
            self._request(line[1:].lstrip())
        elif not line.strip():
            self._text.gap("\n\n")
            self._paragraph()
        elif (take := self._next) is not None:
            self._next = None
            take([self._clean(comment_less(line))])
        else:
            self._words(self._clean(comment_less(line)))

    def _clean(self, text: str) -> str:
        return said(text, self._strings)

    def _words(self, text: str) -> None:
        """Adds words of this line: a line of their own if the page is not filled, else a part of the paragraph."""
        if self._tag == 2 and text.strip():
            self._tag = 0
            self._text.join(": ")
            if not self._is_numbered:
                self._text.block("item", self._depth)
        if not self._is_filled and not self._tag:
            self._text.add(text.expandtabs(8).rstrip(), self._at)
            self._text.gap("\n")
            return
        self._text.pieces([Piece(text if self._is_glued else f"{text} ", (self._at,))])
        if self._tag == 1:
            self._tag = 2

    def _paragraph(self) -> None:
        """Begins a paragraph, unless lines are as they are, or the tag of an item is to come."""
        if self._is_filled and not self._tag:
            self._text.paragraph(self._depth)

    def _begin(self, kind: str, level: int, tag: int = 0) -> None:
        """Begins an item, a term or a row of this level."""
        self._text.gap()
        self._text.block(kind, 0 if kind == "row" else level)
        self._depth, self._tag, self._is_numbered = level, tag, False

    def _request(self, line: str) -> None:
        if condition := _CONDITION.match(line):
            self._condition(*condition.groups())
            return
        line = comment_less(line)
        name, _, rest = line.replace("\t", " ", 1).partition(" ")
        if name == "ds" and rest:
            key, _, value = rest.strip().partition(" ")
            self._strings[key] = self._clean(value.lstrip().removeprefix('"'))[:LONGEST]
        elif name in ("de", "de1", "am", "ig"):
            self._own |= {*rest.split()[:1]}
            end = ["", "", *rest.split()][-1] if name == "ig" or len(rest.split()) > 1 else ""
            self._skip(lambda each: re.sub(r"^[.'][ \t]*", ".", each).rstrip() == f".{end or '.'}")
        elif name == "als":
            self._own |= {*rest.split()[:1]}
        elif name == "TS":
            self._table()
        else:
            self._macro(name, [self._clean(each) for each in args_of(rest)])

    def _condition(self, name: str | None, test: str | None, rest: str) -> None:
        """`.if`, `.ie`, and `.el`, which has no name and test: what a terminal (n) with groff's registers meets."""
        holds = self._else if test is None else test in ("n", "!t") or test.startswith(("\\n(.g", "\\n[.g]"))
        if name == "ie":
            self._else = not holds
        rest = rest.strip()
        if holds:
            if (first := rest.removeprefix("\\{").strip()) not in ("", "\\"):
                self._rest = first
        elif "\\{" in rest:
            depth = rest.count("\\{") - rest.count("\\}")
            while depth > 0 and self._at < len(self._lines):
                depth += self._lines[self._at].count("\\{") - self._lines[self._at].count("\\}")
                self._at += 1

    def _skip(self, is_end: Callable[[str], bool]) -> None:
        while self._at < len(self._lines) and not is_end(self._lines[self._at]):
            self._at += 1
        self._at += 1

    def _table(self) -> None:
        """tbl(1): rows, a line each; a cell between T{ and T} takes several lines."""
        separator, rows = "\t", list[list[list[Piece]]]()
        while self._at < len(self._lines):
            line = self._lines[self._at].rstrip()
            self._at += 1
            if found := re.search(r"\btab ?\((.)\)", line):
                separator = found[1]
            if line.endswith("."):
                break
        is_open = False
        while self._at < len(self._lines) and not self._lines[self._at].startswith(".TE"):
            line, self._at = self._lines[self._at], self._at + 1
            if is_open and line.startswith("T}"):
                is_open, line = False, line[2:]
                rows[-1] += self._cells(line.split(separator)[1:])
            elif is_open:
                plain = " ".join(args_of(line[1:])[1:]) if line.startswith(".") else line
                rows[-1][-1].append(Piece(f"{self._clean(comment_less(plain))} ", (self._at,)))
            elif line.startswith(".T&"):
                self._skip(lambda each: each.rstrip().endswith("."))
            elif not line.startswith(".") and line.strip("_=- \t"):
                rows.append(self._cells(line.split(separator)))
            is_open = bool(rows) and (is_open or line.endswith("T{"))
        self._at += 1
        self._text.table(rows, headed=False)
        self._text.block("paragraph", self._depth)

    def _cells(self, cells: Sequence[str]) -> list[list[Piece]]:
        return [[Piece(self._clean(cell.removesuffix("T{")), (self._at,))] for cell in cells]

    def _macro(self, name: str, args: list[str]) -> None:
        """The macros of both sets, and of man(7), with what pod2man and docutils define."""
        match name:
            case "br" | "Rs" | "Re":
                self._text.gap("\n")
            case "sp" | "Sp" | "INDENT" | "UNINDENT":
                self._text.gap()
                self._paragraph()
            case "nf" | "EX" | "Vb" | "fi" | "EE" | "Ve":
                self._is_filled = name in ("fi", "EE", "Ve")
                self._text.gap("\n")
                self._text.block("paragraph" if self._is_filled else "code", self._depth)
            case "IX" | "Os":
                pass
            case "TH" | "Dt":
                section_and_date = args[1:] if name == "TH" else args[1:2]
                for fact, value in zip(("section", "date"), section_and_date, strict=False):
                    self._facts.setdefault(fact, value)
                if args:
                    self._facts["title"] = f"{args[0]}({args[1]})" if len(args) > 1 else args[0]
            case "SH" | "SS" | "Sh" | "Ss":
                self._heading(args, 1 if name.upper() == "SH" else 2)
            case "PP" | "P" | "LP" | "HP" | "RS" | "RE" | "Pp" | "Lp":
                self._tag = 0
                self._indents = max(self._indents + (name == "RS") - (name == "RE"), 0)
                self._depth = self._indents + len(self._lists)
                self._text.gap()
                self._paragraph()
            case "TP":
                self._begin("term", self._indents + 1, tag=1)
            case "TQ":
                if self._tag == 2:
                    self._text.join(", ")
                self._tag = 1
            case "IP":
                tag = args[0].strip() if args else ""
                is_item = tag in _MARKS or tag.strip("()[].").isdigit()
                self._begin("item" if is_item else "term" if tag else "paragraph", self._indents + 1)
                if tag in _MARKS:
                    self._text.mark("- ")
                elif tag:
                    self._text.pieces([Piece(tag, (self._at,))])
                    self._tag, self._is_numbered = 2, is_item
            case "UR" | "MT":
                self._url = Piece(f"<{args[0]}>" if args else "", (self._at,))
            case "UE" | "ME":
                self._text.pieces([self._url, Piece(f"{''.join(args[:1])} ", (self._at,))])
                self._url = Piece("", ())
            case "MR":
                self._words(f"{args[0]}({args[1]}){''.join(args[2:])}" if len(args) > 1 else " ".join(args))
            case "OP":
                self._words(f"[{' '.join(args)}]")
            case "SY":
                self._text.gap("\n")
                self._words(" ".join(args))
            case _:
                self._mdoc_macro(name, args)

    def _heading(self, args: list[str], level: int) -> None:
        self._is_filled, self._tag, self._indents, self._depth = True, 0, 0, 0
        self._text.gap()
        if not args:
            self._next = partial(self._heading, level=level)
            return
        self._text.block("heading", level)
        self._text.pieces([Piece(" ".join(args), (self._at,))])
        self._text.gap()
        self._text.block("paragraph")

    def _mdoc_macro(self, name: str, args: list[str]) -> None:
        """The macros of mdoc(7), those that set words, and those that the page defines."""
        match name:
            case "Dd":
                self._facts.setdefault("date", " ".join(args).strip("$ ").removeprefix("Mdocdate: "))
            case "Nd":
                self._words(f"– {self._flat(args)}")
            case "Nm":
                self._name = self._name or (args[0] if args else "")[:LONGEST]
                self._mdoc(["Nm", *args])
            case "Bl":
                self._lists.append(next((each for each in args if each.startswith("-")), ""))
            case "El":
                self._tag = 0
                self._lists = self._lists[:-1]
                self._text.gap()
                self._depth = self._indents + len(self._lists)
                self._text.block("paragraph", self._depth)
            case "It":
                kind = self._lists[-1] if self._lists else ""
                shown = "row" if kind == "-column" else "term" if args and kind not in _BULLETS else "item"
                self._begin(shown, self._indents + len(self._lists))
                if kind in _BULLETS:
                    self._text.mark("- ")
                elif args:
                    self._mdoc(args)
                    self._tag = 0 if kind == "-column" else 2
            case "Bd" | "Ed":
                self._is_filled = name == "Ed" or not {"-literal", "-unfilled"} & {*args}
                self._text.gap()
                self._text.block("paragraph" if self._is_filled else "code", self._depth)
            case "D1" | "Dl":
                self._text.gap("\n")
                self._text.block("code", self._depth)
                self._mdoc(args)
                self._text.gap("\n")
                self._text.block("paragraph", self._depth)
            case "Ex":
                utility = " ".join(args[1:]) or self._name
                self._words(f"The {utility} utility exits 0 on success, and >0 if an error occurs.")
            case _ if name in _FONTS and args:
                self._words((" " if _FONTS[name] else "").join(args))
            case _ if name in _FONTS:
                self._next = lambda words: self._words(" ".join(words))
            case _ if name in _CALLED:
                self._mdoc([name, *args])
            case _ if name in self._own or name.startswith("%"):
                self._words(" ".join(args))

    def _mdoc(self, tokens: Sequence[str]) -> None:
        self._is_glued |= tokens[-1:] == ["Ns"]
        self._words(self._flat(tokens))

    def _flat(self, tokens: Sequence[str]) -> str:
        """A line of macros and words, as it is shown."""
        out, ends = list[str](), list[str]()
        glue, macro = True, ""
        trailing = len(tokens)
        while trailing and tokens[trailing - 1] in _ENDS:
            trailing -= 1

        def put(word: str, close: bool = False) -> None:
            nonlocal glue
            out.append(word if glue or close else f" {word}")
            glue = word in _BEGINS

        for number, token in enumerate(tokens[:trailing], 1):
            if token in _PAIRS:
                put(_PAIRS[token][0])
                ends.append(_PAIRS[token][1])
                glue, macro = True, token
            elif token in _OPENS:
                put(_OPENS[token])
                glue, macro = True, token
            elif token in _CLOSES:
                put(_CLOSES[token], close=True)
            elif token in ("Ns", "Ap"):
                out += ["'"] * (token == "Ap")
                glue = True
            elif token in _CALLED:
                macro = token
                if token in _NAMES:
                    put(_NAMES[token])
                elif token == "Nm":
                    after = tokens[number : number + 1]
                    if not after or after[0] in _CALLED or after[0] in _ENDS:  # it has no name of its own
                        put(self._name)
            elif token in _ENDS:
                put(token, close=True)
            else:
                put(f"-{token}" if macro == "Fl" and token not in _BEGINS else token)
                if macro == "Xr" or macro == "Pf":
                    glue, macro = macro == "Pf", "(" if macro == "Xr" else ""
                elif macro == "(":
                    out[-1], macro = f"({token})", ""
        return "".join([*out, *reversed(ends), *tokens[trailing:]])
