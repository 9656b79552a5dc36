"""Texts without their typography: the one table of foldings, for search terms, quotations and traces.

Knows Unicode. Does not know corpora or languages. Two texts fold to the same string if they differ only in

- compatibility forms (NFKC): ligatures, full-width letters, presentation forms; composed or decomposed accents
- white space, and characters that only control the display (soft hyphens, joiners, direction marks)
- hyphens between letters, the line breaks behind them, U+FFFE, which PDFium copies for both; dashes, typed or printed,
  with spaces or without
- quotation marks and apostrophes, typed or printed, single or double; spaces inside of guillemets
- an ellipsis, of one character or three dots; a first letter in brackets, as "[t]he"
- case, unless it is kept

What carries meaning is kept: raised digits (10⁶ becomes 10^6, never 106), fractions (2½: 2 1/2), minus signs and dashes
before and between digits, accents.

Folding a text from any word on gives the same characters as folding the whole: an index may fold where it compares.

Shape suffixes: N folded characters, R runs, S starts.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain

import numpy as np
from numpy.typing import NDArray

FOLDING_VERSION = 2
"""Incremented when a text folds differently. What is on disk was sorted by one version."""

UNSPACED_BLOCKS = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1100, 0x11FF),  # Hangul jamo
    (0x1780, 0x17FF),  # Khmer
    (0x2E80, 0x2FDF),  # Han radicals
    (0x3005, 0x303C),  # Han iteration marks and numerals
    (0x3040, 0x31FF),  # kana, Bopomofo, Hangul compatibility jamo
    (0x3400, 0x9FFF),  # Han
    (0xA960, 0xA97F),  # Hangul jamo
    (0xAC00, 0xD7FF),  # Hangul
    (0xF900, 0xFAFF),  # Han compatibility
    (0x1AFF0, 0x1B16F),  # kana
    (0x20000, 0x323AF),  # Han
)
"""Scripts written without spaces, and Hangul, where particles stick to the noun."""
INVISIBLE_BLOCKS = (
    (0xAD, 0xAD),  # soft hyphen
    (0x2B9, 0x2BF),  # modifier apostrophes: Hawaiʻi
    (0x34F, 0x34F),
    (0x61C, 0x61C),
    (0x640, 0x640),  # tatweel
    (0x180B, 0x180F),
    (0x200C, 0x200F),  # joiners, direction marks
    (0x202A, 0x202E),
    (0x2060, 0x2069),
    (0xFE00, 0xFE0F),  # variation selectors
    (0xFEFF, 0xFEFF),
    (0xE0100, 0xE01EF),  # ideographic variation selectors
)
HYPHENS, DASHES = "-\u2010\u2011\u2012\u2013\u2212", "\u2014\u2015\u2e3a\u2e3b"
"""Hyphen-minus, hyphen, no-break hyphen, figure dash, en dash, minus; em dash, bar, two- and three-em dash."""
SINGLE_QUOTES = "'`\u00b4\u2018\u2019\u201a\u201b\u2032\u2035\u2039\u203a"
DOUBLE_QUOTES = '"\u00ab\u00bb\u201c\u201d\u201e\u201f\u2033\u2036\u300c\u300d\u300e\u300f\u301d\u301e\u301f\uff02'
SPACES = (
    "\0\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
RAISED_DIGITS = "\u00b2\u00b3\u00b9\u2070\u2071\u2074-\u207b\u207f"
"""With the signs before them, and the i and n of powers."""


def code_points(blocks: Iterable[tuple[int, int]]) -> Iterator[int]:
    """The code points of ranges, in order."""
    return chain.from_iterable(range(first, last + 1) for first, last in blocks)


def character_class(codes: Iterable[int]) -> str:
    """Ascending code points as ranges, for a class of characters in a pattern."""
    ranges: list[list[int]] = []
    for code in codes:
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)


_HYPHEN = re.escape(HYPHENS)
_INVISIBLE = character_class(code_points(INVISIBLE_BLOCKS)) + "\u200b"
_QUOTES = re.escape(SINGLE_QUOTES + DOUBLE_QUOTES)
_KEPT_APART = rf"\s{_QUOTES}{_HYPHEN}{DASHES}\u00ad\ufffe\u2026"
_ONE_TO_ONE = (
    dict.fromkeys(map(ord, SINGLE_QUOTES), "'")
    | dict.fromkeys(map(ord, DOUBLE_QUOTES), '"')
    | dict.fromkeys(map(ord, HYPHENS), "-")
    | dict.fromkeys(map(ord, SPACES), " ")
)
_OPENING = re.escape("([\u2018\u201a\u201c\u201e")
"""Beside white space, a guillemet that opens has one of these, or a word: „eine »große« Tat“, « une grande »."""
_MARK = re.compile(r"'(?:(?<![^\W_].)|(?<!\d.)(?![^\W\d_]))")
"""A single quotation mark, neither an apostrophe nor a sign of feet or minutes."""
_BECOMES = {"joined": "", "broken": "-", "dash": " - ", "space": " ", "inside": "", "dots": "...", "mark": '"'}


@dataclass(frozen=True, slots=True)
class Folded:
    """A folded text, and where its characters stand in the original.

    `runs_R2` has, ascending, the folded and the original position at which each run begins; the last one is empty and
    begins at the end. `kept_R` says which runs have their characters one by one; what any other became stands for the
    whole of it.
    """

    text: str
    runs_R2: NDArray[np.int64]
    kept_R: NDArray[np.bool_]

    def source(self, start: int, end: int) -> tuple[int, int]:
        """The range of the original that became the folded characters from `start` to before `end`, of which there is
        one at least."""
        folded_R, source_R = self.runs_R2.T
        # Of runs that begin at one folded position all but the last are empty: it is the one that has the character.
        first, last = (np.searchsorted(folded_R, (start, end - 1), "right") - 1).tolist()
        begin = source_R[first] + (start - folded_R[first] if self.kept_R[first] else 0)
        finish = source_R[last] + end - folded_R[last] if self.kept_R[last] else source_R[last + 1]
        return int(begin), int(finish)

    def starts(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where words begin: int64 [S] in the folded text, and int64 [S] in the original.

        What became of a run has one place, its beginning: a word that begins further inside (of ½, 1/2) has none.
        """
        at_S = np.flatnonzero(word_starts(self.text))
        run_S = np.searchsorted(self.runs_R2[:, 0], at_S, "right") - 1
        into_S = at_S - self.runs_R2[run_S, 0]
        has_S = self.kept_R[run_S] | (into_S == 0)
        return at_S[has_S], (self.runs_R2[run_S, 1] + into_S)[has_S]


def fold(text: str, case: bool = True) -> str:
    """A text without its typography and, if `case` is folded, without its case.

    Example:
        >>> fold("The “naïve” co-\\nordinator’s ﬁrst 10⁶ — and last")
        'the "naïve" coordinator\\'s first 10^6 - and last'
    """
    return _one_to_one("".join(piece for piece, _, _ in _pieces(text, case)), case)


def fold_with_places(text: str) -> Folded:
    """A text without typography and case, and where its characters stand."""
    pieces = [*_pieces(text, True), ("", len(text), False)]
    lengths = np.fromiter((len(piece) for piece, _, _ in pieces), np.int64, len(pieces))
    sources = np.fromiter((at for _, at, _ in pieces), np.int64, len(pieces))
    kept_R = np.fromiter((kept for _, _, kept in pieces), np.bool_, len(pieces))
    folded = _one_to_one("".join(piece for piece, _, _ in pieces), True)
    return Folded(folded, np.stack([lengths.cumsum() - lengths, sources], axis=1), kept_R)


def word_starts(text: str) -> NDArray[np.bool_]:
    """bool [N]: where a word begins, a run of letters, digits and marks. In scripts written without spaces, every
    letter is one."""
    kind_N = _kinds(text)
    before_N = np.append(np.uint8(APART), kind_N[:-1])
    apart_N = (before_N == APART) | (before_N == UNSPACED) | (kind_N == UNSPACED)
    starts_N: NDArray[np.bool_] = apart_N & (kind_N >= WORD)
    return starts_N


def words(text: str) -> NDArray[np.int64]:
    """Where words begin and end: int64 [S, 2]."""
    starts_N = word_starts(text)
    bounds = np.append(np.flatnonzero(starts_N | (_kinds(text) == APART)), len(text))
    starts_S = np.flatnonzero(starts_N)
    return np.stack([starts_S, bounds[np.searchsorted(bounds, starts_S, "right")]], axis=1)


def is_word_end(text: str, at: int) -> bool:
    """Whether no word is cut before the character at a position."""
    if not 0 < at < len(text):
        return True
    before, after = _kinds(text[at - 1 : at + 1]).tolist()
    return APART in (before, after) or after == UNSPACED or (before == UNSPACED and after != MARK)


def is_plain(character: str) -> bool:
    """Whether it is a letter or a plain digit that never folds together with what is before it."""
    if character.isascii():
        return character.isalnum()
    return character.isalpha() and not (_mark().match(character) or _invisible().match(character))


APART, MARK, WORD, UNSPACED = range(4)


def _kinds(text: str) -> NDArray[np.uint8]:
    """uint8 [N]: what each character is to a word."""
    codes_N = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    table = _table()
    return table[np.minimum(codes_N, len(table) - 1)]


@cache
def _table() -> NDArray[np.uint8]:
    kinds = np.zeros(0x323B1, np.uint8)  # its last is what no letter has
    for code in range(len(kinds) - 1):
        character = chr(code)
        kinds[code] = WORD if character.isalnum() else MARK if unicodedata.category(character)[0] == "M" else APART
    for code in code_points(UNSPACED_BLOCKS):
        kinds[code] = UNSPACED if kinds[code] == WORD else kinds[code]
    return kinds


def _pieces(text: str, case: bool) -> Iterator[tuple[str, int, bool]]:
    """What becomes of a text: pieces, where each stands, and whether it has its characters one by one."""
    last = 0
    for run in _run().finditer(text):
        start, kind = run.start(), run.lastgroup or ""
        if last < start and kind == "other" and _mark().match(run[0]):
            start -= 1  # it belongs to the character before it
        if last < start:
            yield text[last:start], last, True
        if kind == "other":
            yield from _unicode(text, start, run.end(), case)
        else:
            yield run["first"] if kind == "first" else _BECOMES[kind], start, False
        last = run.end()
    if last < len(text):
        yield text[last:], last, True


def _unicode(text: str, at: int, end: int, case: bool) -> Iterator[tuple[str, int, bool]]:
    """The pieces of a run outside of ASCII."""
    found = text[at:end]
    if unicodedata.is_normalized("NFKC", found) and not _odd().search(found):
        yield found, at, True
        return
    for cluster in _cluster().finditer(found):
        piece = unicodedata.normalize("NFKC", _invisible().sub("", cluster[0])).translate(_SLASH)
        if cluster["raised"]:
            piece = f"^{piece}"
        before, after = text[at - 1 : at], text[at + len(cluster[0]) : at + len(cluster[0]) + 1]
        if before.isdecimal() and piece[:1].isdecimal() and not cluster[0][:1].isdecimal():
            piece = f" {piece}"
        if after.isdecimal() and piece[-1:].isdecimal() and not cluster[0][:1].isdecimal():
            piece = f"{piece} "
        yield piece.casefold() if case else piece, at, False
        at += len(cluster[0])


def _one_to_one(text: str, case: bool) -> str:
    """The changes that keep the number of characters."""
    # Translating takes 40 ns a character, unless all are of ASCII; looking for the few that change, 4.
    text = text.translate(_ONE_TO_ONE) if text.isascii() else _CHANGED.sub(_changed, text)
    text = _MARK.sub('"', text)
    return text.casefold() if case else text


_CHANGED = re.compile(f"[{re.escape(''.join(chr(at) for at, other in _ONE_TO_ONE.items() if chr(at) != other))}]")


def _changed(character: re.Match[str]) -> str:
    return _ONE_TO_ONE[ord(character[0])]


_SLASH = {0x2044: "/", 0x2215: "/"}


@cache
def _run() -> re.Pattern[str]:
    """What does not keep its characters one by one, and whatever is not ASCII."""
    letter = rf"[^\W\d_{_odd_digits()}]"
    behind, line_end = rf"(?<=(?:{letter}|[{_marks()}]).)", r"[^\S\n]*\n\s*"
    spaced = rf"[{DASHES}]\s*|--+\s*|[{_HYPHEN}]\s+"
    return re.compile(
        rf"(?=[\s\-\[`'.\x80-\U0010ffff])(?:"  # most characters need no other look
        rf"[{_HYPHEN}\u00ad\ufffe](?:(?P<joined>{behind}(?:{line_end})?(?={letter}))"
        rf"|(?P<broken>(?<=\w.)(?:{line_end}|(?<=\ufffe))(?=\w)))"
        rf"|(?P<dash>\s+(?:{spaced})|[{DASHES}]\s*|--+\s*)"
        rf"|(?P<inside>\s+(?=[\u00bb\u203a](?![\w\u2026\u203a{_OPENING}]))|(?<=[\u00ab\u2039])(?<![^\s{_OPENING}'\u2019].)\s+|[\u00ad\ufffe])"
        r"|(?P<space>\s{2,})"
        r"|(?P<dots>\u2026|\.(?:\s?\.){2,})"
        r"|(?P<mark>``|'')"
        rf"|(?<!\w)\[(?P<first>{letter})\](?={letter})"
        rf"|(?P<other>[^\x00-\x7f{_KEPT_APART}]+))"
    )


@cache
def _odd_digits() -> str:
    """Numbers that are no plain digits, for a class of characters in a pattern."""
    return character_class(code for code in range(0x80, 0x1FBFA) if unicodedata.category(chr(code)) == "No")


@cache
def _mark() -> re.Pattern[str]:
    return re.compile(f"[{_marks()}]")


@cache
def _marks() -> str:
    """What may become one with the character before it, for a class of characters in a pattern."""
    second = set[int]()
    for code in range(0xC0, 0x11940):
        parts = unicodedata.decomposition(chr(code)).split()
        if len(parts) == 2 and parts[0][0] != "<":
            second.add(int(parts[1], 16))
    jamo = chain(range(0x1161, 0x1176), range(0x11A8, 0x11C3))
    combining = (code for code in range(0x300, 0x1E94B) if unicodedata.combining(chr(code)))
    return character_class(sorted({*second, *jamo, *combining} - set(range(0x80))))


@cache
def _cluster() -> re.Pattern[str]:
    """Characters that become something together."""
    apart = rf"(?P<raised>[{RAISED_DIGITS}]+)|(?P<lowered>[\u2080-\u2089]+)"
    return re.compile(rf"{apart}|.[{_marks()}{_INVISIBLE}]*", re.DOTALL)


@cache
def _invisible() -> re.Pattern[str]:
    return re.compile(f"[{_INVISIBLE}]+")


@cache
def _odd() -> re.Pattern[str]:
    """Normal characters that fold to nothing or to several."""
    several = (code for code in range(0x80, 0x1E944) if len(chr(code).casefold()) > 1)
    return re.compile(f"[{character_class(several)}{_INVISIBLE}\u2044\u2215]")
