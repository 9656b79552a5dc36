"""Where a phrase may start and end, and when two tokens are the same word.

Knows: characters and character ranges. Does not know: tokenizers, so one rule serves WordPiece, byte-level BPE
and SentencePiece alike.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from bisect import bisect_left, bisect_right
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from quoth.text.passages import CELL_NAME
from quoth_sources.guess import lines_of

MAY_START, MAY_END, SPACE_BEFORE, BREAK_BEFORE = 1, 2, 4, 8

BOUNDARIES_VERSION = 2
"""Incremented when keys made by older rules are not what a search with the current ones expects. Where phrases break is
no reason: an older key allows other phrases, all of them in the text."""

LENGTH_MASK = 255
SPELLING_BASE = 0x9B1F6A3C5D48E2F7
SPELLING_VERSION = 1
"""Like BOUNDARIES_VERSION, for keys that contain spellings."""

_STOP_WORDS = (
    "a about above after again against all also am an and any are as at be became because been before "
    "being below between both but by can could d did do does doing down during each either few first for "
    "from further had has have having he her here hers herself him himself his how however i if in into "
    "is it its itself just ll m many may me might more most much must my myself neither no nor not now of "
    "off often on once one only or other our ours ourselves out over own re s same several shall she "
    "should since so some such t than that the their theirs them themselves then there these they this "
    "those through thus to too under until up upon us used ve very was we well were what when where which "
    "while who whom whose why will with within without would yet you your yours yourself yourselves"
)
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""English words that name nothing by themselves, in lower case."""

_JOINERS = "\u00ad\u200c\u200d\u2060"
"""Soft hyphen, zero width non-joiner and joiner, word joiner: invisible, inside words and emoji."""
_NUMBER = re.compile(
    r"(?<![\d.])(?:\d{4}-\d{1,2}-\d{1,2}"  # a date
    r"|\d{1,3}(?:[,.'’\u00a0\u2009\u202f]\d{3})+(?:[.,]\d+)?"  # a number in groups of three digits
    r"|\d+(?:[.,:/]\d+)+"  # a decimal, a time, a version, another date
    r"|\d+\^[-−]?\d+"  # a power
    r")(?!\d)"
)
_LINE_END = re.compile("\r\n|[\n\r\v\f\x85\u2028\u2029]")
_SHARES = "%‰"
"""Unicode calls these punctuation, but they are part of the number before them."""
_SPACE = re.compile(r"\s+")
_LINE = re.compile("[^\n]+")
_NAME_OF_CELL = re.compile(rf"(?:^|[|] ){CELL_NAME}", re.MULTILINE)
_UNCUT = re.compile(
    r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+|(?:https?://|www\.)\S*[^\s.,;:!?)\]}>\"'”’]|\b\w+_\w+|"
    r"\b[A-Za-z_][\w.]{0,60}\(\)|"
    r"\d[ \u00a0\u2009\u202f][%‰]|(?<![^\s(\[|=:,;/\"'“‘`])(?:[-−+][£$€¥]?\d|--?[a-z][\w-]*|-[A-Z](?![\w-])|"
    r"\.[A-Za-z_][\w.-]*\w|[~.]{0,2}/[\w-]+(?:[./][\w-]+)*)"
)
_UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")


@lru_cache(maxsize=65536)
def _extends(char: str) -> bool:
    """Whether a character belongs to the one before it: a combining mark, a joiner, an emoji's skin tone."""
    return unicodedata.category(char)[0] == "M" or char in _JOINERS or "\U0001f3fb" <= char <= "\U0001f3ff"


@lru_cache(maxsize=65536)
def _joins(char: str) -> bool:
    """Whether a character is part of a word that continues next to it."""
    if _extends(char):
        return True
    return char.isalnum() and not unicodedata.name(char, "").startswith(_UNSPACED)


@lru_cache(maxsize=65536)
def _is_punctuation(surface: str) -> bool:
    """Whether `surface` consists of punctuation and invisible characters only."""
    return all(category[0] == "P" or category in ("Cc", "Cf") for category in map(unicodedata.category, surface))


def trim(text: str, start: int, end: int) -> tuple[int, int]:
    """Exclude white space at the edges, and include what belongs to the last character, such as combining marks."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    while start < end < len(text) and _extends(text[end]):
        end += 1
    return start, end


def _cuts(text: str, at: int) -> bool:
    """Whether a boundary at this position would cut a word, or a character that is made of several code points."""
    if not 0 < at < len(text):
        return False
    before, after = text[at - 1], text[at]
    if _extends(after):
        return not before.isspace()
    return before == "\u200d" or (_joins(before) and _joins(after))


@lru_cache(maxsize=4096)
def is_raised(char: str) -> bool:
    """Whether a character is another one raised: ³, ᵃ."""
    return unicodedata.decomposition(char).startswith("<super>")


def begins_note(text: str, at: int) -> bool:
    """Whether what is raised at this position is the mark of a note: it follows four digits or letters, as in 1998³,
    or a decade (1990s³), and so is neither a power (10⁶, cm³) nor the end of a short form (Mˡˡᵉ)."""
    word = text[max(at - 4, 0) : at]
    if len(word) < 4 or at >= len(text) or not is_raised(text[at]) or any(map(is_raised, word)):
        return False
    decade = text[max(at - 5, 0) : at]
    return word.isdecimal() or word.isalpha() or (decade[:4].isdecimal() and decade.endswith("0s"))


def breaks(text: str) -> list[int]:
    """Where the white space begins that no phrase may cross, in order: between two cells, a cell and its name, or two
    lines, unless prose is wrapped there."""
    shown = _LINE_END.sub(lambda end: " \n"[-len(end[0]) :], text)
    spaces = [space for space in _SPACE.finditer(shown) if "\n" in space[0] or "\t" in space[0]]
    lines = lines_of(shown) if spaces else []
    starts = [line.start for line in lines]

    def wrapped(space: re.Match[str]) -> bool:
        line = bisect_right(starts, space.start()) - 1
        return "\n" in space[0] and line >= 0 and space.end() <= lines[line].end

    rows = [[*_NAME_OF_CELL.finditer(shown, *row.span())] for row in _LINE.finditer(shown)] if " | " in shown else []
    names = [name.end() for row in rows if len(row) > 1 for name in row]
    return sorted([*names, *(space.start() for space in spaces if not wrapped(space))])


def uncut(text: str) -> list[tuple[int, int]]:
    """Addresses of mail and of the web, names with an underscore, calls (`sum()`), options, hidden files, absolute
    paths, a number's last digit with its per cent sign, and its sign with its first digit, as character ranges, in
    order: an answer has all of one, or nothing."""
    return [match.span() for match in _UNCUT.finditer(text)]


def words(text: str) -> list[tuple[int, int]]:
    """The words of a text as character ranges, in order; any other character that is not white space is a range too."""
    ranges: list[tuple[int, int]] = []
    start = 0
    for at in range(1, len(text) + 1):
        if at == len(text) or text[at - 1].isspace() or text[at].isspace() or not _cuts(text, at):
            if not text[start].isspace():
                ranges.append((start, at))
            start = at
    return ranges


def boundary_flags(text: str, offsets_T2: NDArray[np.int64]) -> NDArray[np.uint8]:
    """MAY_START, MAY_END, SPACE_BEFORE and BREAK_BEFORE of each token: [T].

    A phrase never cuts a word, a number, a date, a time or a version (but may leave out the mark of a note), never
    starts or ends with a token that is only punctuation (except a number's percent sign), and never starts or ends
    inside a character that several tokens share.
    It does not cross a break (`breaks`). A token without characters (white space only) has no flags.
    `offsets_T2` are ranges of `text`, in order.
    """
    flags = np.zeros(len(offsets_T2), np.uint8)
    ranges = [(int(start), int(end)) for start, end in offsets_T2]
    filled = [i for i, (start, end) in enumerate(ranges) if start < end]
    # Positions inside numbers, dates, times and versions.
    inside = {at for number in _NUMBER.finditer(text) for at in range(number.start() + 1, number.end())}
    broken = breaks(text)
    for place, i in enumerate(filled):
        start, end = ranges[i]
        previous = ranges[filled[place - 1]][1] if place else 0
        following = ranges[filled[place + 1]][0] if place + 1 < len(filled) else len(text)
        if place and any(map(str.isspace, text[previous:start])):
            flags[i] |= SPACE_BEFORE
        crosses = bisect_left(broken, previous) < bisect_left(broken, start)
        if place and (text[previous - 1] == "|" or crosses):
            flags[i] |= BREAK_BEFORE
        if text[start:end] == "|":
            flags[i] |= BREAK_BEFORE
            continue
        share = text[start:end] in _SHARES and start == previous and text[start - 1 : start].isdigit()
        if _is_punctuation(text[start:end]) and not share:
            continue
        if start >= previous and not share and start not in inside and not _cuts(text, start):
            flags[i] |= MAY_START
        if end <= following and end not in inside and (not _cuts(text, end) or begins_note(text, end)):
            flags[i] |= MAY_END
    return flags


@lru_cache(maxsize=1 << 18)
def spelling(piece: str) -> int:
    """A 64-bit name for a piece of text, such that the names of pieces determine the name of the text they make up,
    however it is cut.

    The upper bits are Σ_i t(c_i) B^i over the characters, with a random number t per character and B = `SPELLING_BASE`;
    the lower bits (`LENGTH_MASK`) are the length. So the sum for two pieces in a row is the sum for the first plus
    B^length times the sum for the second.
    """
    value, power = 0, 1
    for char in piece:
        value += int.from_bytes(_digest(char), "little") * power
        power = power * SPELLING_BASE % (1 << 64)
    return (value * (LENGTH_MASK + 1) + len(piece) % (LENGTH_MASK + 1)) % (1 << 64)


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()


@lru_cache(maxsize=1 << 18)
def surface_group(surface: str) -> int:
    """A 64-bit name for a piece of text that ignores case: equal for equal case-folded text."""
    return int.from_bytes(_digest(surface.casefold()), "little")
