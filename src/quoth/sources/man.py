"""Manual pages: the text of a roff file with man(7) or mdoc(7) macros, paragraph by paragraph, as a terminal shows it.

Knows the macros, escapes, strings and conditions that pages use. Of a macro that a page defines, it shows
the arguments. Does not run roff: registers and loops are not there. See groff_man(7), groff_char(7) and mdoc(7).
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

from quoth.sources.roff import Strings, args_of, comment_less, said
from quoth.sources.source import Piece, Source, Text

_HEAD = re.compile(r"^[.'][ \t]*(TH|Dd)[ \t]", re.MULTILINE)
_CONDITION = re.compile(r"(?:el\b|(i[fe])\b[ \t]*(\\n(?:\[[^\]]*\]|\(..|.)\S*|[^ ]*))[ \t]*(.*)$", re.DOTALL)
_FONTS = {"B": 1, "I": 1, "R": 1, "SM": 1, "SB": 1, "BR": 0, "RB": 0, "BI": 0, "IB": 0, "IR": 0, "RI": 0}
"""Macros that set their arguments in fonts: with spaces between them, or as one word."""
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
MOST_JOINED, LONGEST = 1000, 200
"""Lines that backslashes may make one; characters of a string, of which others may be made."""
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
        self._next: Callable[[list[str]], None] | None = None
        """What takes the next line of text, if a macro came without arguments."""
        self._else = False
        self._rest: str | None = None
        """What follows a condition that holds, on its line."""

    def source(self) -> Source:
        while self._at < len(self._lines):
            self._at += 1
            line: str | None = self._lines[self._at - 1]
            while line is not None:
                self._rest = None
                self._line(line)
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
        if not self._is_filled and not self._tag:
            self._text.add(text.expandtabs(8).rstrip(), self._at)
            self._text.gap("\n")
            return
        self._text.pieces([Piece(text if self._is_glued else f"{text} ", (self._at,))])
        if self._tag == 1:
            self._tag = 2

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
        elif (known := getattr(self, f"_do_{name}", None)) is not None:
            known([self._clean(each) for each in args_of(rest)])
        elif name in _FONTS:
            self._font(name, [self._clean(each) for each in args_of(rest)])
        elif name in _CALLED:
            self._mdoc([name, *map(self._clean, args_of(rest))])
        elif name in self._own or name.startswith("%"):
            self._words(" ".join(map(self._clean, args_of(rest))))

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
            is_open = is_open or line.endswith("T{")
        self._at += 1
        self._text.table(rows, headed=False)

    def _cells(self, cells: Sequence[str]) -> list[list[Piece]]:
        return [[Piece(self._clean(cell.removesuffix("T{")), (self._at,))] for cell in cells]

    # Of both sets of macros.

    def _do_br(self, _: list[str]) -> None:
        self._text.gap("\n")

    _do_Rs = _do_Re = _do_br

    def _do_sp(self, _: list[str]) -> None:
        self._text.gap()

    def _do_nf(self, _: list[str]) -> None:
        self._is_filled = False
        self._text.gap("\n")

    def _do_fi(self, _: list[str]) -> None:
        self._is_filled = True
        self._text.gap("\n")

    _do_EX = _do_Vb = _do_nf
    _do_EE = _do_Ve = _do_fi
    _do_Sp = _do_INDENT = _do_UNINDENT = _do_sp

    # man(7), and what pod2man and docutils define

    def _do_IX(self, _: list[str]) -> None:
        return

    def _do_TH(self, args: list[str]) -> None:
        for name, value in zip(("section", "date"), args[1:], strict=False):
            self._facts.setdefault(name, value)
        if args:
            self._facts["title"] = f"{args[0]}({args[1]})" if len(args) > 1 else args[0]

    def _do_SH(self, args: list[str]) -> None:
        self._is_filled, self._tag = True, 0
        self._text.gap()
        if not args:
            self._next = self._do_SH
            return
        self._text.pieces([Piece(" ".join(args), (self._at,))])
        self._text.gap()

    _do_SS = _do_SH

    def _do_PP(self, _: list[str]) -> None:
        self._tag = 0
        self._text.gap()

    _do_P = _do_LP = _do_HP = _do_RS = _do_RE = _do_PP

    def _do_TP(self, _: list[str]) -> None:
        self._text.gap()
        self._tag = 1

    def _do_TQ(self, _: list[str]) -> None:
        if self._tag == 2:
            self._text.join(", ")
        self._tag = 1

    def _do_IP(self, args: list[str]) -> None:
        self._do_PP([])
        tag = args[0].strip() if args else ""
        if tag in _MARKS:
            self._text.mark("- ")
        elif tag:
            self._text.pieces([Piece(tag, (self._at,))])
            self._tag = 2

    def _do_UR(self, args: list[str]) -> None:
        self._url = Piece(f"<{args[0]}>" if args else "", (self._at,))

    _do_MT = _do_UR

    def _do_UE(self, args: list[str]) -> None:
        self._text.pieces([self._url, Piece(f"{''.join(args[:1])} ", (self._at,))])

    _do_ME = _do_UE

    def _do_MR(self, args: list[str]) -> None:
        self._words(f"{args[0]}({args[1]}){''.join(args[2:])}" if len(args) > 1 else " ".join(args))

    def _do_OP(self, args: list[str]) -> None:
        self._words(f"[{' '.join(args)}]")

    def _do_SY(self, args: list[str]) -> None:
        self._text.gap("\n")
        self._words(" ".join(args))

    def _font(self, name: str, args: list[str]) -> None:
        if args:
            self._words((" " if _FONTS[name] else "").join(args))
        else:
            self._next = lambda words: self._words(" ".join(words))

    # mdoc(7)

    def _do_Dd(self, args: list[str]) -> None:
        self._facts.setdefault("date", " ".join(args).strip("$ ").removeprefix("Mdocdate: "))

    def _do_Dt(self, args: list[str]) -> None:
        self._do_TH(args[:2])

    _do_Os = _do_IX
    _do_Sh = _do_Ss = _do_SH
    _do_Pp = _do_Lp = _do_PP

    def _do_Nd(self, args: list[str]) -> None:
        self._words(f"– {self._flat(args)}")

    def _do_Nm(self, args: list[str]) -> None:
        self._name = self._name or (args[0] if args else "")
        self._mdoc(["Nm", *args])

    def _do_Bl(self, args: list[str]) -> None:
        self._lists.append(next((each for each in args if each.startswith("-")), ""))

    def _do_El(self, _: list[str]) -> None:
        self._tag = 0
        if self._lists:
            self._lists.pop()
        self._text.gap()

    def _do_It(self, args: list[str]) -> None:
        self._tag = 0
        self._text.gap()
        kind = self._lists[-1] if self._lists else ""
        if kind in ("-bullet", "-dash", "-hyphen"):
            self._text.mark("- ")
        elif args:
            self._mdoc(args)
            if kind != "-column":
                self._tag = 2

    def _do_Bd(self, args: list[str]) -> None:
        self._is_filled = not {"-literal", "-unfilled"} & {*args}
        self._text.gap()

    def _do_Ed(self, _: list[str]) -> None:
        self._is_filled = True
        self._text.gap()

    def _do_D1(self, args: list[str]) -> None:
        self._text.gap("\n")
        self._mdoc(args)
        self._text.gap("\n")

    _do_Dl = _do_D1

    def _do_Ex(self, args: list[str]) -> None:
        self._words(f"The {' '.join(args[1:]) or self._name} utility exits 0 on success, and >0 if an error occurs.")

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

        for token in tokens[:trailing]:
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
                elif token == "Nm" and self._is_bare(tokens, token):
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

    @staticmethod
    def _is_bare(tokens: Sequence[str], token: str) -> bool:
        """Whether a macro has no word of its own."""
        after = tokens[tokens.index(token) + 1 :]
        return not after or after[0] in _CALLED or after[0] in _ENDS
