"""The controls of forms on web pages: their values and their labels.

Knows fields, choices and boxes to tick, and the labels that belong to them. Does not know where they are in a text.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from quoth_sources.source import ON

TAGS = ("input", "select", "textarea")
_FIELDS = {
    "",
    "text",
    "email",
    "tel",
    "url",
    "number",
    "date",
    "datetime-local",
    "month",
    "week",
    "time",
    "color",
    "range",
}
_BOXES = {"checkbox", "radio"}
_BOX_ROLES = {None, "checkbox", "radio", "switch", "menuitemcheckbox", "menuitemradio"}


class Labels:
    """The labels of a page."""

    def __init__(self, page: Any) -> None:
        self._page = page

    @cached_property
    def _by_name(self) -> dict[str, Any]:
        return {label.attributes.get("for") or "": label for label in reversed(self._page.css("label[for]"))}

    def of(self, control: Any) -> Any:
        """The element that is a control's label: one that names it, or is around it; None if there is none."""
        if (name := control.attributes.get("id")) and name in self._by_name:
            return self._by_name[name]
        return around(control, "label")


def around(node: Any, tag: str) -> Any:
    """The next element of this kind around another; None if there is none."""
    while node is not None and node.tag != tag:
        node = node.parent
    return node


def is_box(control: Any) -> bool:
    """Whether a control is a box to tick."""
    given = control.attributes
    return control.tag == "input" and _kind(control) in _BOXES and given.get("role") in _BOX_ROLES


def value(control: Any) -> str:
    """A control's value, on one line; "" if it is empty, or no field. A box that is not ticked is empty."""
    given = control.attributes
    if is_box(control):
        return ON if "checked" in given else ""
    if control.tag == "select":
        chosen = [each for each in control.css("option[selected]") if each.attributes.get("value") != ""]
        said = ", ".join(filter(None, (" ".join(each.text().split()) for each in chosen)))
    elif control.tag == "textarea":
        said = control.text()
    else:
        said = (given.get("value") or "") if _kind(control) in _FIELDS else ""
    return " ".join(said.split())


def _kind(control: Any) -> str:
    return (control.attributes.get("type") or "").strip().lower()


def said(node: Any) -> str:
    """The text of a label, without that of the controls in it."""
    return " ".join("".join(_texts(node)).split())


def _texts(node: Any) -> Iterator[str]:
    for child in node.iter(include_text=True):
        if child.tag == "-text":
            yield child.text_content or ""
        elif child.tag not in (*TAGS, "script", "style"):
            yield from _texts(child)
