"""Raised and lowered characters as plain text, kept apart from what is before them: 10⁶ is never 106.

Knows which characters Unicode has raised and lowered, ordinals and trademarks. Does not know formats, and not whether a
raised number is a power or the mark of a note: it writes both as the page shows them.
"""

import re

_RAISED = dict(
    zip(
        "0123456789+−=()abcdefghijklmnoprstuvwxyzABDEGHIJKLMNOPRTUVWβγδθφχ",
        "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻᴬᴮᴰᴱᴳᴴᴵᴶᴷᴸᴹᴺᴼᴾᴿᵀᵁⱽᵂᵝᵞᵟᶿᵠᵡ",
        strict=True,
    )
)
_LOWERED = dict(zip("0123456789+−=()aehijklmnoprstuvxβγρφχ", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓᵦᵧᵨᵩᵪ", strict=True))
_MARKS = {"TM": "™", "tm": "™", "SM": "℠"}
_MINUS = re.compile("^[-–]|(?<=[^0-9])-(?=[0-9])")
_BETWEEN = frozenset(",;–-*†‡§¶")
"""Of several notes: ¹,² and ³–⁵."""
_NUMBER = re.compile(r"[-−+]?\d+(?:[.,]\d+)?")
_LONGEST = 3
"""Letters of an abbreviation or of a variable; more are a word."""


def raised(text: str, before: str) -> str:
    """The text of a superscript run, as it is written after `before` (the last character before it, or none).

    In Unicode's superscripts if there is one for each of its characters: 10⁶, m², 10⁻³, xⁿ⁺¹, 2ᵉ, Mˡˡᵉ, and the marks
    of notes 1998³, Brandt¹,². Otherwise behind a `^`: x^(n/2). Letters behind a digit stay as they are: 1st, 12th; so
    do [5], *, and a word at the beginning of a line. Several words, or a long one, follow a space.
    """
    bare = text.strip()
    if bare in _MARKS:
        return text.replace(bare, _MARKS[bare])
    if len(bare) > 1 and bare.isalpha() and (before.isdigit() or not before or before.isspace()):
        return text
    return _written(text, bare, before, _RAISED, "^")


def lowered(text: str, before: str) -> str:
    """The same of a subscript run: H₂O, xᵢ, 101₂; otherwise behind a `_`: V_DD, x_(i,j)."""
    return _written(text, text.strip(), before, _LOWERED, "_")


def _written(text: str, bare: str, before: str, table: dict[str, str], mark: str) -> str:
    if not any(map(str.isalnum, bare)) or bare[0] == "[":
        return text
    is_word = bare.isalpha() and len(bare) > _LONGEST
    signed = _MINUS.sub("−", bare)
    compact = "".join(signed.split())
    if not is_word and all(char in table or char in _BETWEEN for char in compact) and _is_one(compact, signed):
        return text.replace(bare, "".join(table.get(char, char) for char in compact))
    if not before or before.isspace():
        return text
    if is_word or any(map(str.isspace, bare)):
        return text if text[0].isspace() else f" {text}"
    return mark + (bare if bare.isalnum() or _NUMBER.fullmatch(bare) or bare[0] + bare[-1] == "()" else f"({bare})")


def _is_one(compact: str, spaced: str) -> bool:
    """Whether white space, if there is any, separates numbers and signs, not words."""
    return compact == spaced or not re.search(r"[^\W\d]{2}", compact)
