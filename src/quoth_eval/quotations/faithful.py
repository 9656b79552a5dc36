"""Faithful quotations: what typesetting, conversion and a careful editor do to a sentence, and nothing else.

Knows typography. Does not know corpora, or how a quotation is checked: a variant is faithful because of how it is made.
"""

import re
import unicodedata
from collections.abc import Mapping
from random import Random

from quoth_eval.quotations.forged import NEGATIONS
from quoth_eval.quotations.source import PART, Change, Source

ELLIPSES = (" … ", " ... ", " . . . ", " […] ", " [...] ")
SPACES = ("  ", "\n", "\u00a0", "\u2009", " \u00a0", "\u202f")
_LONG = re.compile(r"(?<![^\W\d_])(?<![\w.-])[^\W\d_]{8,}(?![\w-])")
_DOUBLE = re.compile(r"(?<![\d\w])([“\"])([^“”\"]+)([”\"])(?!\d)")
_APOSTROPHE = re.compile(r"(?<=[^\W\d_])['’](?=[^\W\d_])")
_DASH = re.compile(r"(?<=[^\W\d_])(?: ?— ?| [–-]{1,2} )(?=[^\W\d_])")
_RANGE = re.compile(r"(?<=\d)[-–](?=\d)")
_HYPHEN = re.compile(r"(?<=[^\W\d_])-(?=[^\W\d_])")
_LIGATURES = {"ffi": "ﬃ", "ffl": "ﬄ", "ff": "ﬀ", "fi": "ﬁ", "fl": "ﬂ"}
_LIGATURE = re.compile("|".join(_LIGATURES))


def unchanged(source: Source, rng: Random) -> str | None:
    """As it is."""
    return source.text


def marks(source: Source, rng: Random) -> str | None:
    """Curly quotation marks and apostrophes for straight ones, and straight ones for curly ones."""
    pairs = {'"': "“{}”", "“": '"{}"'}
    text = _DOUBLE.sub(lambda found: pairs[found[1]].format(found[2]), source.text)
    return _APOSTROPHE.sub(lambda found: "’" if found[0] == "'" else "'", text)


def nested(source: Source, rng: Random) -> str | None:
    """Double quotation marks single, as inside of others."""
    return _DOUBLE.sub(rng.choice((r"‘\2’", r"'\2'")), source.text)


def dashes(source: Source, rng: Random) -> str | None:
    """Dashes with spaces, without, and typed; en dashes between numbers; other hyphens."""
    text = _DASH.sub(lambda found: rng.choice(("—", " – ", " — ", "--", " -- ")), source.text)
    text = _RANGE.sub(lambda found: "–" if found[0] == "-" else "-", text)
    return _HYPHEN.sub(lambda found: rng.choice("\u2010\u2011"), text)


def soft_hyphens(source: Source, rng: Random) -> str | None:
    """A soft hyphen in every long word."""
    return _LONG.sub(lambda word: _cut(word[0], "\u00ad", rng), source.text)


def line_end(source: Source, rng: Random) -> str | None:
    """A long word hyphenated at the end of a line."""
    words = [*_LONG.finditer(source.text)]
    if not words:
        return None
    word = rng.choice(words)
    return source.text[: word.start()] + _cut(word[0], "-\n", rng) + source.text[word.end() :]


def _cut(word: str, mark: str, rng: Random) -> str:
    at = rng.randint(3, len(word) - 3)
    return word[:at] + mark + word[at:]


def ligatures(source: Source, rng: Random) -> str | None:
    """Ligatures for ff, fi, fl, ffi, ffl."""
    return _LIGATURE.sub(lambda found: _LIGATURES[found[0]], source.text)


def decomposed(source: Source, rng: Random) -> str | None:
    """Accents as characters of their own."""
    return unicodedata.normalize("NFD", source.text)


def spaces(source: Source, rng: Random) -> str | None:
    """Line breaks, no-break and thin spaces, and two for one."""
    return re.sub(" ", lambda _: rng.choice(SPACES) if rng.random() < 0.5 else " ", source.text)


def first_case(source: Source, rng: Random) -> str | None:
    """A small first letter, if the document has the word so."""
    word = source.words[0][0]
    small = word[0].lower() + word[1:]
    is_known = re.search(rf"(?<![\w.-]){re.escape(small)}(?![\w-])", source.document)
    return small + source.text[len(word) :] if is_known and source.text.startswith(word) else None


def bracketed(source: Source, rng: Random) -> str | None:
    """[s]mall in brackets."""
    text = first_case(source, rng)
    return text and f"[{text[0]}]{text[1:]}"


def end(source: Source, rng: Random) -> str | None:
    """A comma for the full stop, or nothing."""
    return source.text[:-1] + rng.choice(("", ","))


def elided(source: Source, rng: Random) -> str | None:
    """A middle part of three words or more left out, with an ellipsis in its place; no negation."""
    words = source.words
    first = rng.randint(PART, max(PART, len(words) - PART - 3))
    last = rng.randint(first + 3, max(first + 3, len(words) - PART))
    if last > len(words) - PART or NEGATIONS.search(source.text, words[first].start(), words[last].start()):
        return None
    return source.text[: words[first - 1].end()] + rng.choice(ELLIPSES) + source.text[words[last].start() :]


FAITHFUL: Mapping[str, Change] = {
    each.__name__: each
    for each in (
        unchanged,
        marks,
        nested,
        dashes,
        soft_hyphens,
        line_end,
        ligatures,
        decomposed,
        spaces,
        first_case,
        bracketed,
        end,
        elided,
    )
}
"""By name, what makes faithful quotations. A change that leaves a sentence as it is does not apply to it."""
