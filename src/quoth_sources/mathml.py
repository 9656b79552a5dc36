"""Formulas of web pages (MathML) as a line of text: 10⁶, xᵢ, (a+b)/2, √x.

Knows the elements of presentation. Does not know what a formula means, or how a page lays it out.
"""

import re
import unicodedata
from typing import Any

from quoth_sources.superscripts import lowered, raised
from quoth_sources.unread import has_own

_LEFT_OUT = re.compile("annotation(-xml)?|mphantom|none|mprescripts|-comment|[!_?].*")
_UNSEEN = dict.fromkeys(range(0x2061, 0x2065))
"""Application of a function, and invisible signs of times, comma and plus."""
_DEEPEST = 100


def is_formula(node: Any) -> bool:
    """Whether an element is a formula, with or without a prefix of its names."""
    return _kind(node) == "math"


def said(node: Any, depth: int = 0) -> str:
    """What a formula, or a part of one, says. Raises ValueError if it is nested too deep."""
    if depth > _DEEPEST:
        raise ValueError(f"a formula in it is nested more than {_DEEPEST} deep; convert it to text")
    kind = _kind(node)
    if kind in ("mi", "mn", "mo", "ms", "mtext"):
        text = re.sub(r"\s+", " ", node.text() or "").translate(_UNSEEN)
        return text if kind == "mtext" else text.strip()
    if kind == "-text":
        return " ".join((node.text_content or "").split())
    children = [each for each in node.iter(include_text=True) if _counts(each)]
    if kind in ("semantics", "maction"):
        children = children[:1]
    parts = [said(each, depth + 1) for each in children]
    match kind, parts:
        case "msup" | "mover", [base, up]:
            return base + _script(raised, up, base)
        case "msub" | "munder", [base, low]:
            return base + _script(lowered, low, base)
        case "msubsup" | "munderover", [base, low, up]:
            whole = base + _script(lowered, low, base)
            return whole + _script(raised, up, whole)
        case "mfrac", [above, under]:
            return f"{_one(above)}/{_one(under)}"
        case "msqrt", _:
            return "√" + _one(_row(children, parts))
        case "mroot", [base, index]:
            return _script(raised, index, "") + "√" + _one(base)
        case "mfenced", _:
            given = node.attributes
            return (given.get("open") or "(") + ", ".join(parts) + (given.get("close") or ")")
        case "mspace", _:
            return " "
        case "mtr" | "mlabeledtr", _:
            return ", ".join(parts)
        case "mtable", _:
            return "; ".join(parts)
    return _row(children, parts)


def _kind(node: Any) -> str:
    return str(node.tag or "").rpartition(":")[2]


def _counts(node: Any) -> bool:
    return has_own(node) if node.tag == "-text" else not _LEFT_OUT.fullmatch(_kind(node))


def _script(write: Any, text: str, before: str) -> str:
    return str(write("".join(text.split()), before[-1:]))


def _one(part: str) -> str:
    """A part of a fraction or a root, in brackets if it is more than a number, a word, or one of them with a script."""
    return part if re.fullmatch(r"[\w.,∞]*|\([^()]*\)", part) else f"({part})"


def _row(nodes: list[Any], parts: list[str]) -> str:
    """Parts in a row: signs between two others, names of several letters, and two numbers are kept apart."""
    row, before = "", ""
    for node, part in zip(nodes, parts, strict=True):
        is_between = _kind(node) == "mo" and len(part) == 1 and (unicodedata.category(part) == "Sm" or part == "-")
        is_name = any(len(each) > 1 and each.isalpha() for each in (before, part))
        is_number = before.isdecimal() and part[:1].isdecimal() and not part.isdecimal()
        if is_between and row and before not in ("(", "[", "{", ","):
            row = f"{row.rstrip()} {part} "
        elif part:
            row += " " * ((is_name or is_number) and row[-1:].isalnum() and part[0].isalnum()) + part
        before = part or before
    return " ".join(row.split()) if row.strip() else row
