"""Numbers of items as people write them: 4, d, IV.

Knows the ways in which Word, OpenDocument and web pages number lists. Does not know lists.
"""

_ROMAN = {1000: "m", 900: "cm", 500: "d", 400: "cd", 100: "c", 90: "xc", 50: "l", 40: "xl", 10: "x", 9: "ix"}
_ROMAN |= {5: "v", 4: "iv", 1: "i"}
_MOST = 9_999
"""The largest number that is written with letters: of a Roman thousand more there is no end."""


def written(number: int, way: str) -> str:
    """A number in the way of `1`, `01`, `a`, `A`, `i` or `I`; in digits if letters cannot say it."""
    if way == "01":
        return f"{number:02}"
    if way not in ("a", "A", "i", "I") or not 0 < number <= _MOST:
        return str(number)
    said = _roman(number) if way in "iI" else chr(ord("a") + (number - 1) % 26) * (1 + (number - 1) // 26)
    return said.upper() if way.isupper() else said


def _roman(number: int) -> str:
    said = ""
    for value, letters in _ROMAN.items():
        said += letters * (number // value)
        number %= value
    return said
