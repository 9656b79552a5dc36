"""Style sheets, as far as they change what a text says: which elements are raised, lowered, or set apart from the text.

Knows selectors that end in a class, and declarations of those. Does not know inheritance, media or how a page looks.
"""

import re

_LAST = re.compile(r"([\w-]*)\.([\w-]+)")
_LEVEL = re.compile(r"(?i)\b(?:vertical-align|font-variant(?:-position)?)\s*:[^;]*?\b(super|sub)\b")
_APART = re.compile(r"(?i)\b(?:float\s*:\s*(?:left|right)|position\s*:\s*(?:absolute|fixed))\b")
_RELATIVE = re.compile(r"(?i)\bposition\s*:\s*relative\b")
_KEYWORD = re.compile(r"(?i)\bvertical-align\s*:\s*(?:text-)?(top|bottom)\b")
_SHIFT = re.compile(
    r"(?i)(?<![\w-])(vertical-align|mso-text-raise|top|bottom)\s*:\s*([+-]?(?:\d+\.?\d*|\.\d+))(px|pt|r?em|ex|%)"
)
_UNITS = {"px": 1 / 16, "pt": 1 / 12, "em": 1.0, "rem": 1.0, "ex": 0.5, "%": 0.01}
_LEAST = 0.1
"""Of the height of a letter; less only puts a line straight."""

Classes = dict[tuple[str, str], str]
"""By the name of an element ("" for any) and a class, how it is shown: "super", "sub", "up", "down" or "apart"."""


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
    """How an element with these declarations is shown: "super" or "sub"; "apart" from the text; moved "up" or "down",
    which may only be how the page is laid out; "" if it is like the text around it."""
    if level := _LEVEL.search(declarations):
        return level[1].lower()
    if _APART.search(declarations):
        return "apart"
    is_relative = bool(_RELATIVE.search(declarations))
    for name, number, unit in _SHIFT.findall(declarations):
        up = float(number) * _UNITS[unit.lower()] * (-1 if name.lower() == "top" else 1)
        if abs(up) >= _LEAST and (is_relative or name.lower() not in ("top", "bottom")):
            return "up" if up > 0 else "down"
    keyword = _KEYWORD.search(declarations)
    return {"top": "up", "bottom": "down"}[keyword[1].lower()] if keyword else ""
