"""Parts of a line that files mark as raised or lowered: "super", "sub", or "" for the line itself.

Knows how parts become one text. Does not know formats, or how a superscript is written, which `superscripts` does.
"""

import re
from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter

from quoth_sources.superscripts import lowered, raised

_WORD = re.compile(r"[^\W\d_]+")
_SYMBOL = 2
"""The most letters of a chemical element."""
LEVELS = {"super": raised, "sub": lowered}
OF_OFFICE = {"superscript": "super", "subscript": "sub"}
"""The levels as Word and Excel name them."""


def joined(parts: Iterable[tuple[str, str]]) -> str:
    """The text of parts, each with its level; neighbours of one level are one run."""
    runs, before, number = [], "", ""
    for level, group in groupby((part for part in parts if part[0]), itemgetter(1)):
        run = "".join(text for text, _ in group)
        if not level and is_verse(number, before, run):
            runs.append(" ")
        before, number = (runs[-1][-1:] if runs else ""), run if level == "super" else ""
        runs.append(LEVELS[level](run, before) if level else run)
    return "".join(runs)


def is_verse(number: str, before: str, after: str, is_named: bool = False) -> bool:
    """Whether a raised number is that of a verse or a line, right before its words: not the mass of an atom, as in ¹⁴C,
    unless it begins a line, or its element has a name or a class."""
    word = _WORD.match(after)
    begins = number.strip().isdigit() and not before.strip()
    return begins and word is not None and (len(word[0]) > _SYMBOL or is_named or before != " ")
