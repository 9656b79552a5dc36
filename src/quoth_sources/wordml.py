"""The elements of a Word document: a part below another, an attribute, a style and those that it is based on."""

import re
from collections.abc import Sequence
from typing import Any

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_HEXADECIMAL = re.compile("[0-9a-fA-F]{1,8}")
_SYMBOL = (
    " !∀#∃%&∋()∗+,−./0123456789:;<=>?≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_‾αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼".ljust(0x80)
    + "€ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…⏐⎯↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊〈®©™∑⎛⎜⎝⎡⎢⎣⎧⎨⎩⎪�〉∫⌠⎮⌡⎞⎟⎠⎤⎥⎦⎫⎬⎭"
)
"""The characters of the font Symbol, from 0x20."""
_WINGDINGS = {0x6F: "☐", 0xA8: "☐", 0x78: "☒", 0xFD: "☒", 0xFE: "☑", 0xFC: "✓", 0xFB: "✗", 0xE0: "→", 0xA7: "▪"}


class Styles:
    """The styles of a document, by their ids."""

    def __init__(self, styles: Any) -> None:
        """`styles` is the part that defines them; None if there is none."""
        found = () if styles is None else styles.iterchildren(W + "style")
        self._styles = {attribute(style, "styleId"): style for style in found}
        self._chains: dict[str, Sequence[Any]] = {}

    def based(self, name: str) -> Sequence[Any]:
        """A style, the one that it is based on, and so on; none if there is no such style."""
        if name not in self._chains:
            chain: dict[str, Any] = {}
            at = name
            while at in self._styles and at not in chain:
                chain[at] = self._styles[at]
                at = attribute(below(chain[at], "basedOn"))
            self._chains[name] = [*chain.values()]
        return self._chains[name]

    def of(self, properties: Any) -> list[Any]:
        """The properties of a paragraph, and those of its style and of the styles that this is based on."""
        named = self.based(attribute(below(properties, "pStyle")))
        return [each for each in (properties, *(below(style, "pPr") for style in named)) if each is not None]


def below(part: Any, *path: str) -> Any:
    """The part below another, by names; None if there is none."""
    return None if part is None else part.find("/".join(W + name for name in path))


def attribute(part: Any, name: str = "val") -> str:
    """An attribute; "" if there is none, or no part."""
    return "" if part is None else part.get(W + name) or ""


def is_on(part: Any) -> bool:
    """Whether a property is there, and not there to say no."""
    return part is not None and attribute(part) not in ("0", "false", "off")


def hexadecimal(said: str) -> int:
    """A number in hexadecimal digits; 0 if it is none."""
    return int(said, 16) if _HEXADECIMAL.fullmatch(said) else 0


def symbol(part: Any) -> str:
    """What a `sym` says: a character by its number in a font; U+FFFD if that is not known. Of fonts of ornaments, those
    that say something."""
    font, code = attribute(part, "font"), hexadecimal(attribute(part, "char"))
    at = code & 0xFF
    if "dings" in font:
        return _WINGDINGS.get(at, "") if font == "Wingdings" else ""
    if font == "Symbol" and 0x20 <= at < 0x20 + len(_SYMBOL):
        return _SYMBOL[at - 0x20]
    return chr(code) if 0x20 <= code < 0xD800 else "\ufffd"
