"""Forged quotations: a sentence that says something else, or is put together from several.

Knows words, and English ones for negations, modals and units: they decide what is asked, not how it is judged. Does not
know corpora: whether a forgery occurs somewhere is looked up where it is drawn.
"""

import re
from collections.abc import Mapping
from random import Random

from quoth_eval.quotations.source import PART, WORD, Change, Source, put, quotable

NEGATIONS = re.compile(r"\b(?:not|no|never|neither|nor|none|without|cannot)\b|n['’]t\b", re.IGNORECASE)
_DROPPED = re.compile(r" (?:not|never)\b|(?<=\bcan)not\b|(?<=[a-z])n['’]t\b(?<!can['’]t)(?<!won['’]t)")
_AUXILIARY = re.compile(
    r"\b(?:is|are|was|were|has|have|had|can|could|may|might|must|shall|should|will|would|did|does|do)\b(?! not|['’])"
)
_MODALS = {
    "may": "must",
    "must": "may",
    "can": "must",
    "could": "would",
    "might": "will",
    "shall": "may",
    "should": "may",
    "will": "may",
    "would": "could",
}
_MODAL = re.compile(rf"\b(?:{'|'.join(_MODALS)})\b")
_NAME = re.compile(r"(?<=[a-z,;] )[A-Z][^\W\d_]{2,}(?: [A-Z][^\W\d_]+)*")
_DIGIT = re.compile(r"[0-9]")
_CONTENT = re.compile(r"(?<![\w'’-])[^\W\d_A-Z]{4,}(?![\w'’-])")
_OTHER_UNITS = {
    "km": "miles",
    "mi": "km",
    "miles": "km",
    "m": "ft",
    "ft": "m",
    "feet": "metres",
    "metres": "feet",
    "meters": "feet",
    "cm": "mm",
    "mm": "cm",
    "kg": "lb",
    "lb": "kg",
    "hectares": "acres",
    "acres": "hectares",
    "million": "billion",
    "billion": "million",
    "thousand": "million",
    "minutes": "hours",
    "hours": "days",
    "days": "weeks",
    "weeks": "months",
    "months": "years",
    "years": "months",
    "%": "‰",
    "°C": "°F",
    "°F": "°C",
    "mph": "km/h",
    "tons": "pounds",
    "tonnes": "pounds",
    "BC": "AD",
    "BCE": "CE",
    "AD": "BC",
    "am": "pm",
    "pm": "am",
}
_UNIT = re.compile(rf"(?<=\d)([\s\u00a0-]?)({'|'.join(sorted(_OTHER_UNITS, key=len, reverse=True))})(?!\w)")
_CURRENCIES = {"$": "€", "€": "£", "£": "$"}
_RAISED = {"²": "³", "³": "²", "⁶": "⁷", "⁹": "⁶"}
_SIGN = re.compile(r"(?<=[ (])[-−](?=\d)|[$€£](?=\d)|[²³⁶⁹]")
_CLAUSE = re.compile(r", [^,;:()\"“”]{12,}(?=, )")


def digit(source: Source, rng: Random) -> str | None:
    """Another digit in a number."""
    found = _any(_DIGIT, source.text, rng)
    return found and put(source.text, found, rng.choice([each for each in "123456789" if each != found[0]]))


def name(source: Source, rng: Random) -> str | None:
    """Another name of the document in the place of one."""
    found = _any(_NAME, source.text, rng)
    return found and _with_other(source.text, found, _NAME.findall(source.document), rng)


def negation(source: Source, rng: Random) -> str | None:
    """A negation dropped or, if there is none, added."""
    if dropped := _any(_DROPPED, source.text, rng):
        return put(source.text, dropped, "")
    found = _any(_AUXILIARY, source.text, rng)
    return found and put(source.text, found, f"{found[0]} not")


def modal(source: Source, rng: Random) -> str | None:
    """Another modal verb: may for must."""
    found = _any(_MODAL, source.text, rng)
    return found and put(source.text, found, _MODALS[found[0]])


def order(source: Source, rng: Random) -> str | None:
    """Two words that have changed places."""
    words = [*_CONTENT.finditer(source.text)]
    pairs = [(one, other) for at, one in enumerate(words) for other in words[at + 1 :] if one[0] != other[0]]
    if not pairs:
        return None
    one, other = rng.choice(pairs)
    return put(put(source.text, other, one[0]), one, other[0])


def clause(source: Source, rng: Random) -> str | None:
    """A clause between commas dropped, without an ellipsis."""
    found = _any(_CLAUSE, source.text, rng)
    return found and put(source.text, found, "")


def joined(source: Source, rng: Random) -> str | None:
    """The beginning of the sentence and the end of another one of its document."""
    others = [source.document[start:end] for start, end in quotable(source.document)]
    others = [each for each in others if each != source.text]
    return _seam(source.text, rng.choice(others), " ", rng) if others else None


def documents(source: Source, rng: Random) -> str | None:
    """The beginning of the sentence and the end of one of another document, with an ellipsis or without."""
    return _seam(source.text, source.elsewhere, rng.choice((" ", " … ")), rng) if source.elsewhere else None


def word(source: Source, rng: Random) -> str | None:
    """Another word of the document in the place of one."""
    found = _any(_CONTENT, source.text, rng)
    return found and _with_other(source.text, found, _CONTENT.findall(source.document), rng)


def unit(source: Source, rng: Random) -> str | None:
    """Another unit or sign of a number, or a raised digit."""
    changes: list[tuple[re.Match[str], str]] = [
        *((found, found[1] + _OTHER_UNITS[found[2]]) for found in _UNIT.finditer(source.text)),
        *((found, (_CURRENCIES | _RAISED).get(found[0], "")) for found in _SIGN.finditer(source.text)),
    ]
    return put(source.text, *rng.choice(changes)) if changes else None


def added(source: Source, rng: Random) -> str | None:
    """A word of the document added."""
    words, before = _CONTENT.findall(source.document), _any(_CONTENT, source.text, rng)
    return before and put(source.text, before, f"{rng.choice(words)} {before[0]}") if words else None


def parts(source: Source, rng: Random) -> str | None:
    """Two parts in the wrong order, with an ellipsis between them."""
    words = source.words
    at = rng.randint(PART, len(words) - PART)
    return f"{source.text[words[at].start() : -1]} … {source.text[: words[at - 1].end()]}"


def _any(pattern: re.Pattern[str], text: str, rng: Random) -> re.Match[str] | None:
    found = [*pattern.finditer(text)]
    return rng.choice(found) if found else None


def _with_other(text: str, found: re.Match[str], others: list[str], rng: Random) -> str | None:
    """Another in its place, of which neither is a part or an inflection of the other."""
    old = found[0].casefold()
    known = {each: each.casefold() for each in sorted(set(others))}
    differing = [each for each, new in known.items() if not (old in new or new in old or old[:4] == new[:4])]
    return put(text, found, rng.choice(differing)) if differing else None


def _seam(one: str, other: str, between: str, rng: Random) -> str:
    """The first words of one sentence and the last of another, up to half of each left out."""
    first, last = [*WORD.finditer(one)], [*WORD.finditer(other)]
    head = one[: first[rng.randint(PART, (len(first) + PART) // 2) - 1].end()]
    return head + between + other[last[-rng.randint(PART, (len(last) + PART) // 2)].start() :]


FORGED: Mapping[str, Change] = {
    each.__name__: each
    for each in (digit, name, negation, modal, order, clause, joined, documents, word, unit, added, parts)
}
"""By name, what forges quotations."""
