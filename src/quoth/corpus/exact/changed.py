"""How a quotation differs from its source: the names of verdicts, the words changed, missing and added, and the kinds
of change.

Knows words, digits, capitals, and the words of `negations`. Does not know corpora, or what makes a quotation faithful.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cache
from typing import Literal, NamedTuple

from quoth.corpus.dates import is_month
from quoth.corpus.exact.negations import MODALS, NEGATED, NEGATIONS
from quoth.text.folding import UNSPACED_BLOCKS, character_class, code_points, fold, fold_with_places

Status = Literal["verbatim", "typographic", "elided", "altered", "absent", "unreadable"]
STATUSES: tuple[Status, ...] = ("verbatim", "typographic", "elided", "altered", "absent", "unreadable")
FAITHFUL = STATUSES[:3]
Kind = Literal["changed", "missing", "added", "moved", "replaced", "omitted", "apart", "source"]
"""`missing` from the quotation, or `added` to it; `moved`: in another order. `replaced` by what stands in brackets, or
`omitted` by an ellipsis, as the quotation itself says. `apart`: its parts occur, but not near each other and in order;
`source`: it occurs, but not in the document that is named."""
Loud = Literal["number", "date", "name", "negation", "modal", "sign", "case", "punctuation", "word"]
LOUD = ("number", "date", "name", "negation", "modal", "sign")
"""What a reader must be told of a change first."""


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between a quotation and its source.

    `quote[start:end]` is `quoted`, and `document.text[source_start:source_end]` is `source`. `concerns` says whether a
    number, date, name, negation, modal or sign differs, and whether case, punctuation or a word does.
    """

    kind: Kind
    quoted: str
    start: int
    end: int
    source: str
    document_id: str
    source_start: int
    source_end: int
    concerns: tuple[Loud, ...] = ()

    @property
    def is_loud(self) -> bool:
        """Whether a number, date, name, negation, modal or sign differs."""
        return any(each in LOUD for each in self.concerns)


class Token(NamedTuple):
    """A word, number or mark: folded, its range, its spelling, and whether its first letter may have either case."""

    folded: str
    start: int
    end: int
    cased: str
    is_free: bool

    @property
    def is_word(self) -> bool:
        """Whether it is more than punctuation."""
        return self.folded[0].isalnum()


def tokens(text: str) -> list[Token]:
    """The tokens of a text. The first letter's case is free, and that of one in brackets."""
    folded = fold_with_places(text)
    found = list[Token]()
    for match in _token().finditer(folded.text):
        start, end = folded.source(*match.span())
        is_cased = any(map(str.isalpha, match[0]))  # ½ is three tokens, of one character
        cased = fold(text[start:end], case=False).strip() if is_cased else match[0]
        found.append(Token(match[0], start, end, cased, not found or text[start] == "["))
    return found


@cache
def _token() -> re.Pattern[str]:
    one = character_class(code_points(UNSPACED_BLOCKS))
    return re.compile(rf"\d+(?:[.,:]\d+)*(?![^\W{one}])|[{one}]|[^\W{one}]+(?:'[^\W{one}]+)*|[^\w\s]|_")


class Comparison(NamedTuple):
    """The differences between a quotation and a part of a document, and the share of the quotation's letters that are
    in words they have in common."""

    changes: list[Change]
    common: float


def compared(quoted: str, at: int, source: str, source_at: int, document_id: str) -> Comparison:
    """The differences between parts of a quotation and of a document, which begin at these characters of them."""
    mine, its = tokens(quoted), tokens(source)

    def change(in_mine: tuple[int, int], in_its: tuple[int, int]) -> Change:
        (start, end), (first, last) = _range(mine, *in_mine), _range(its, *in_its)
        words, other = mine[slice(*in_mine)], its[slice(*in_its)]
        before = (mine[in_mine[0] - 1 : in_mine[0]] or its[in_its[0] - 1 : in_its[0]])[-1:]
        concerns = tuple(_concerns(words, other, [*before, *mine[in_mine[1] : in_mine[1] + 1]]))
        kind: Kind = "changed" if words and other else "added" if words else "missing"
        place = (source[first:last], document_id, first + source_at, last + source_at)
        return Change(kind, quoted[start:end], start + at, end + at, *place, concerns)

    matcher = SequenceMatcher(None, [each.folded for each in mine], [each.folded for each in its], autojunk=False)
    letters, same, changes = sum(len(each.folded) for each in mine if each.is_word), 0, list[Change]()
    for code, a, b, c, d in matcher.get_opcodes():
        if code != "equal":
            changes.append(change((a, b), (c, d)))
            continue
        for i, j in zip(range(a, b), range(c, d), strict=True):
            one, other = mine[i], its[j]
            same += len(one.folded) * one.is_word
            if one.cased != other.cased and not (one.is_free and one.cased[1:] == other.cased[1:]):
                changes.append(replace(change((i, i + 1), (j, j + 1)), concerns=("case",)))
    return Comparison([*_moved(changes)], same / max(letters, 1))


def _range(tokens: list[Token], first: int, last: int) -> tuple[int, int]:
    """The characters of some tokens; the empty range behind the token before them if there are none."""
    if first < last:
        return tokens[first].start, tokens[last - 1].end
    at = tokens[first - 1].end if first else tokens[0].start if tokens else 0
    return at, at


def _concerns(mine: list[Token], its: list[Token], beside: list[Token]) -> Iterator[Loud]:
    """What of the words that differ must be told."""
    counts = [Counter(each.folded for each in part) for part in (mine, its)]
    differ = {*(counts[0] - counts[1]), *(counts[1] - counts[0])} or {*counts[0]}
    tokens_ = [each for each in (*mine, *its) if each.folded in differ]
    numbers = [each for each in tokens_ if _has_digit(each)]
    near_number = any(map(_has_digit, (*beside, *mine, *its)))
    if numbers:
        yield "number"
    is_dated = any(is_month(each.folded) for each in (*tokens_, *(beside if numbers else ())))
    if any(_is_year(each.folded) for each in numbers) or (near_number and is_dated):
        yield "date"
    if any(each.cased[:1].isupper() for each in tokens_):
        yield "name"
    if any(each.folded in NEGATIONS or NEGATED.search(each.folded) for each in tokens_):
        yield "negation"
    if any(each.folded in MODALS for each in tokens_):
        yield "modal"
    if any(is_sign(each.folded) or (each.folded in "-+.^/" and near_number) for each in tokens_):
        yield "sign"
    elif not any(each.is_word for each in tokens_):
        yield "punctuation"
    if any(each.is_word for each in tokens_):
        yield "word"


def _has_digit(token: Token) -> bool:
    return any(map(str.isnumeric, token.folded))


def _is_year(number: str) -> bool:
    return len(number) == 4 and number.isdecimal() and 1000 <= int(number) < 2100


def is_sign(text: str) -> bool:
    """Whether it changes what a number means: a currency, a percentage, a degree, a sign of arithmetic."""
    return text in "%‰°" or any(unicodedata.category(each) in ("Sc", "Sm") for each in text)


def _moved(changes: Iterable[Change]) -> Iterator[Change]:
    """The changes; what is missing at one place and added at another has moved."""
    known = [*changes]
    added = Counter(each.quoted.casefold() for each in known if each.kind == "added")
    missing = Counter(each.source.casefold() for each in known if each.kind == "missing")
    for each in known:
        words = (each.quoted or each.source).casefold()
        is_moved = each.kind in ("added", "missing") and added[words] and missing[words]
        same = each.kind == "changed" and sorted(each.quoted.casefold().split()) == sorted(
            each.source.casefold().split()
        )
        yield replace(each, kind="moved") if is_moved or (same and "case" not in each.concerns) else each
