"""Style sheets, as far as they change what a text says: which elements are raised, lowered, or set apart from the text.

Knows selectors that end in a class, and declarations of those. Does not know inheritance, media or how a page looks.
"""

import re

_LAST = re.compile(r"([\w-]*)\.([\w-]+)")
_LEVEL = re.compile(r"(?i)\bvertical-align\s*:\s*(super|sub)\b")
_APART = re.compile(r"(?i)\b(?:float\s*:\s*(?:left|right)|position\s*:\s*(?:absolute|fixed))\b")

Classes = dict[tuple[str, str], str]
"""By the name of an element ("" for any) and a class, how it is shown: "super", "sub" or "apart"."""


def classes_of(sheet: str) -> Classes:
    """The classes of a style sheet, with the effects that it gives them."""
    found: Classes = {}
    first, *others = sheet.split("/*")
    for rule in " ".join([first, *(other.partition("*/")[2] for other in others)]).split("}"):
        selectors, _, declarations = rule.rpartition("{")
        if shown := shown_as(declarations):
            for selector in selectors.rpartition("{")[2].split(","):
                if last := _LAST.fullmatch((selector.split() or [""])[-1]):
                    found[last[1], last[2]] = shown
    return found


def shown_as(declarations: str) -> str:
    """How an element with these declarations is shown; "" if it is like the text around it."""
    if level := _LEVEL.search(declarations):
        return level[1].lower()
    return "apart" if _APART.search(declarations) else ""
