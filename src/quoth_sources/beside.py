"""Short elements of a web page beside a word: superscripts, marks of notes, numbers of lines and verses.

Knows what is right before and behind an element. Does not know style sheets, or how a superscript is written.
"""

import re
from collections.abc import Sequence
from typing import Any

from quoth_sources.unread import has_own, is_inside

_MARK = re.compile(r"[0-9]{1,4}|[a-z]|[*†‡§¶]{1,3}")
"""Of a note."""
_NOTES = re.compile(r"(?i)(?:.*[\W_])?(?:mso)?(?:foot|end)note.*|note-?ref")
"""Classes of a note's mark."""
_COUNT = re.compile(r"[(\[]?\d{1,5}([.:]\d{1,5})?[a-z]?[.)\]]?")
"""The number of a line or a verse."""
_ENDS = ',.;:!?…—–)”’»"'
_CLOSING = {*'.,;:!?…)”’»"'}
_INLINE = {"span", "a", "b", "i", "em", "strong", "small", "font", "u", "mark"}
_LAST_WORD, _FIRST_WORD = re.compile(r"[^\W\d_]+\Z"), re.compile(r"[^\W\d_]+")
_SYMBOL = 2
"""The most letters of a chemical element, a unit or an ending, as in 1st."""


def is_script(node: Any, before: str) -> bool:
    """Whether an element that is moved up or down is a superscript or a subscript: attached to the text before, or a
    number attached to that behind; not a letter inside of a word."""
    said, after = node.text().strip(), behind(node)[:1]
    if before[-1:].strip():
        return not (said.isalpha() and before[-1].isalpha() and after.isalpha())
    return said.isdigit() and after.isalnum()


def is_mark(node: Any, names: Sequence[str], before: str) -> bool:
    """Whether an element right behind a word is the mark of a note: a link to a place, or of a class for such marks."""
    is_link = node.tag == "a" and "#" in (node.attributes.get("href") or "")
    if not (is_link or any(map(_NOTES.fullmatch, names))) or not _MARK.fullmatch(said := node.text().strip()):
        return False
    if behind(node)[:1].isalnum() or not (before[-1:].isalnum() or (before[-1:] in _CLOSING and not said.isalpha())):
        return False
    ahead = _ahead(node)  # of several links, 1,2, the second is no mark of the first
    return ahead is None or not before.isascii() or (ahead.tag != "a" and any(map(str.isalnum, ahead.text() or "")))


def _ahead(node: Any) -> Any:
    """The element or the text right before an element; None if there is none."""
    ahead = node.prev
    while ahead is not None and ahead.tag == "-comment":
        ahead = ahead.prev
    return ahead


def behind(node: Any) -> str:
    """The text right behind an element."""
    after = node.next
    while after is not None and after.tag == "-comment":
        after = after.next
    return (
        ""
        if after is None or after.tag == "br"
        else (after.text_content or "" if after.tag == "-text" else after.text())
    )


def _only_text(node: Any) -> str:
    """The text of an element that has nothing else, or of the only element in it."""
    child = node.child
    if child is not None and child.next is None and child.tag in ("span", "a", "b", "i"):
        child = child.child
    is_all = child is not None and child.next is None and child.tag == "-text"
    return (child.text_content or "").strip() if is_all else ""


def apart(node: Any, shown: str, before: str) -> tuple[bool, bool]:
    """Whether the number of a line or a verse is to be kept apart from the text before, and from that behind."""
    said = _only_text(node)
    if node.tag not in _INLINE or not (node.attributes or shown) or not _COUNT.fullmatch(said):
        return False, False
    if shown:
        return True, True
    after = node.next
    while after is not None and after.tag == "-text" and not has_own(after):
        after = after.next
    is_last = after is None or after.tag == "br"
    follows = "" if is_last else behind(node)[:1]
    is_code = is_inside(node, "pre", "code", "kbd", "samp", "var")
    is_at_word = before[-1:].isalpha() and node.tag in ("span", "a")
    ends_line = is_last and not is_code and (is_at_word or (before[-1:] in _ENDS and before[:-1].isalpha()))
    begins_line = not before.strip() and follows.isalpha() and not ("a" <= follows <= "z")
    ahead, behind_it = _between(node) if said.isdigit() and not is_code else (False, False)
    return ends_line or ahead, behind_it or (begins_line and not is_inside(node, "pre"))


def _between(node: Any) -> tuple[bool, bool]:
    """Whether a number is attached to a word before it, and to one behind it: not to a symbol, as in H2O, nor to what
    a number is written with, as in 1st, 5kg and COVID-19."""
    beside = _ahead(node)
    text = "" if beside is None or beside.tag == "br" else beside.text() or ""
    ahead, after = _LAST_WORD.search(text), _FIRST_WORD.match(behind(node))
    is_word = ahead is not None and (len(ahead[0]) > _SYMBOL or ahead[0].islower())
    is_next = after is not None and (len(after[0]) > _SYMBOL or (ahead is not None and after[0].islower()))
    return is_word or (is_next and ahead is not None), is_next or (is_word and after is not None)
