"""Sentences: where they end, and phrases that cannot be a part of one.

Knows: characters. Does not know: passages, tokens.
"""

import re
from itertools import pairwise

Ranges = list[tuple[int, int]]

_SENTENCE_END = re.compile(
    r"(?:(?<!\b[A-Z])\.|[!?…])[\"'”’»)\]]*(?=\s+[^\sa-z])"  # not after an initial, nor before a lower-case letter
    r"|[。！？｡।॥][”’」』）]*"
    r"|\n[^\S\n]*(?=\n)"
)
# Two rules: passages are cut where a sentence probably ends, and every corpus has been cut by this one; a phrase must
# not be refused for a full stop inside a name, so the second knows abbreviations too.
_FULL_STOP = re.compile(r"(\w+)\.[\"'”’»)\]]*\s+(?=\S)")
_SHORTENED = (
    "mr mrs ms mx dr prof rev hon pres gov sen rep gen col maj capt cmdr lt sgt adm st ste mt ft pt rd ave blvd "
    "jr sr messrs mme mlle vs no nos vol vols op opp cat fig figs pp ch art sec ed eds trans approx ca cf fl inc ltd "
    "co corp bros dept univ assn jan feb mar apr jun jul aug sept sep oct nov dec ph feat al"
)
_ABBREVIATIONS = frozenset(_SHORTENED.split())
_CLOSES = {")": "(", "]": "[", "}": "{", "”": "“"}


def sentences(text: str) -> Ranges:
    """The character ranges of a text's sentences, in order."""
    return pieces(text, [0, *sentence_ends(text)])


def sentence_ends(text: str) -> list[int]:
    """Where sentences end, paragraphs too, closing quotes and brackets included."""
    return [match.end() for match in _SENTENCE_END.finditer(text)]


def pieces(text: str, cuts: list[int]) -> Ranges:
    """The parts of a text that begin at these places, without white space around them, and none that is empty then."""
    ranges = []
    for start, end in pairwise([*cuts, len(text)]):
        if piece := text[start:end].strip():
            first = start + text[start:end].index(piece)
            ranges.append((first, first + len(piece)))
    return ranges


def is_balanced(text: str) -> bool:
    """Whether every bracket and double quote in a text has its other half."""
    open_marks: list[str] = []
    for char in text:
        if char in _CLOSES.values():
            open_marks.append(char)
        elif char in _CLOSES and (not open_marks or open_marks.pop() != _CLOSES[char]):
            return False
    return not open_marks and text.count('"') % 2 == 0


def crosses_sentence(text: str) -> bool:
    """Whether a sentence ends inside a phrase: a full stop, white space, and anything but a lower-case letter.

    Not after an initial ("J. R. R. Tolkien", "Washington, D.C. The") or an abbreviation ("St. Petersburg"). Question
    and exclamation marks do not count: they are parts of names too ("Yahoo! Inc.").
    """
    for match in _FULL_STOP.finditer(text):
        word = match[1].casefold()
        if len(word) > 1 and word not in _ABBREVIATIONS and not text[match.end()].islower():
            return True
    return False
