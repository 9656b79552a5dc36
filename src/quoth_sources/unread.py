"""Elements of a web page that are not its text: scripts, navigation, menus, feet, empty forms, what is not shown.

Knows elements, their roles and attributes. Does not know style sheets, or where elements are.
"""

import re
from typing import Any

from quoth_sources import controls

_LEFT_OUT = re.compile(
    "script|style|noscript|template|nav|footer|aside|button|datalist|svg|iframe|object|canvas|audio|video|dialog|"
    "menu|head|del|s|strike|r[tp]|rtc|[!_].*|-comment"
)
_ROLES = {"navigation", "banner", "contentinfo", "search", "complementary", "menu", "menubar", "dialog"}
_NOTES = {"footnote", "endnote", "rearnote", "doc-footnote", "doc-endnote"}
_MARKS = {"backlink", "pagebreak", "doc-backlink", "doc-pagebreak"}
"""Roles of what is not part of a book's text: the way back from a note, and numbers of pages."""
_CONTENTS = {"doc-toc", "doc-index", "directory", "toc", "index", "landmarks", "page-list"}
_FURNITURE = {"doc-pageheader", "doc-pagefooter", "navheader", "navfooter"}
"""Roles, and classes of programs that make manuals."""
_OF_LINKS = re.compile(r"(?:.*[-_])?toc\d*(?:[-_].*)?|(?:table-of-|short)?contents|(?:print)?index")
"""Classes of tables of contents and indexes, but of much else too: at least half of it must be links."""
_POPUPS = {"true", "menu", "listbox", "tree", "grid", "dialog"}
_HEADING = re.compile("h[1-6]")
_HIDDEN = re.compile(r"(?i)\b(display\s*:\s*none|visibility\s*:\s*hidden)\b")
_TEXT = "p, li, td, h1, h2, h3, h4, dd, pre, article"
"""Elements that make a form more than controls and their names."""


def is_left_out(node: Any) -> bool:
    """Whether an element, with all that is in it, is not the page's text."""
    given = node.attributes
    roles = {given.get("role"), *(given.get("epub:type") or "").split()}
    if _LEFT_OUT.fullmatch(node.tag) and not (node.tag == "aside" and roles & _NOTES):
        return not (node.tag == "button" and _HEADING.fullmatch(node.parent.tag))  # which shows what is below
    is_formula = node.child is not None and node.child.tag == "math"  # hidden for a picture of it
    if (
        (_HIDDEN.search(given.get("style") or "") and not is_formula)
        or (node.tag == "form" and _is_bare(node))
        or _is_menu(node)
    ):
        return True
    is_shut = "hidden" in given and given["hidden"] != "until-found"
    hidden = is_shut or given.get("aria-hidden") == "true" or given.get("role") in _ROLES
    is_banner = node.tag == "header" and node.css_first("h1") is None
    return hidden or bool(roles & _MARKS) or (is_banner and not is_inside(node, "article", "main", "section"))


def unread_kind(node: Any) -> str:
    """Whether an element is a table of contents or an index ("contents"), the head or foot of a page ("furniture"), or
    neither ("")."""
    role, kind, names = (node.attributes.get(name) or "" for name in ("role", "epub:type", "class"))
    roles, classes = {*role.split(), *kind.split()}, {*names.lower().split()}
    if roles & _CONTENTS or (any(map(_OF_LINKS.fullmatch, classes)) and is_of_links(node)):
        return "contents"
    return "furniture" if (roles | classes) & _FURNITURE else ""


def is_of_links(node: Any) -> bool:
    """Whether at least half of an element's text is in links."""
    return 2 * _length(*node.css("a")) >= _length(node)


def _length(*nodes: Any) -> int:
    return sum(len("".join(node.text().split())) for node in nodes)


def _is_bare(form: Any) -> bool:
    """Whether a form has nothing but controls, empty or without labels, and their names."""
    filled = [each for each in form.css("input, select, textarea") if controls.value(each)]
    has_label = form.css_first("label") is not None or any("aria-label" in each.attributes for each in filled)
    return form.css_first(_TEXT) is None and not (filled and has_label)


def _is_menu(node: Any) -> bool:
    """Whether an element is what opens from a control beside it, or leads to the page in other languages."""
    if node.tag in ("ul", "ol"):
        links = [item.child for item in node.iter() if item.tag == "li"]
        if len(links) > 1 and all(
            link is not None and link.tag == "a" and "hreflang" in link.attributes for link in links
        ):
            return True
    before = node.prev if not node.tag.startswith("-") and node.tag != "label" else None
    while before is not None and before.tag in ("-text", "-comment", "label") and not has_own(before):
        before = before.prev
    opens = before is not None and (before.tag or "-").isalpha() and before.attributes.get("aria-haspopup") in _POPUPS
    return opens and node.css_first("h1, h2, h3, p") is None


def has_own(node: Any) -> bool:
    """Whether a node is a text that is not only white space."""
    return node.tag == "-text" and bool((node.text_content or "").strip())


def is_inside(node: Any, *tags: str) -> bool:
    """Whether an element or a text is in an element of these kinds."""
    while node is not None and node.tag != "body":
        if node.tag in tags:
            return True
        node = node.parent
    return False
