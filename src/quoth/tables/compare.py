"""A column's cells compared with each other: a phrase that is told as the others are, in their form, is likelier right.

Knows: what is compared, and the chance by it (`chances.json`, fitted by `recipes/table_chances.py`). Does not know: how
phrases were found, or what becomes of their chance.

The chance is the logistic function of `NAMES`, numbers of a phrase, times their weights. Numbers of a column go by the
likeliest phrase of every other row, each with its chance by the reader alone as its weight: how many of the words
before it, of the marks of its form, these have too. They are shares of all weights and one more, so that few rows say
little. No words but those of the documents and of the questions are known here.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from quoth.answers.evidence import chance
from quoth.tables.cells import OTHERS, Cell, Row
from quoth.tables.columns import Column

BEFORE, AFTER, LABEL = 8, 3, 12
"""Words before a phrase, and after it, that are compared; and before it, with those of the question."""
LONGEST_FORM = 8
MOST_MARGIN = 6.0
NAMES = (
    *("bias", "share", "score", "search", "shortness", "fewness", "relevance", "evidence", "unit"),
    *("margin", "first", "typed", "asked", "told", "before", "last", "form", "marks", "same", "after", "column"),
)
"""1; what the reader knows of a phrase (`evidence.features`), and the log odds of the best unit around it; the log of
its share against the best other one, whether it is the best, whether the column has a type, the share of the question's
words that are before it; and of the column: words before it, the last two, its form, the marks of it, its text, words
after it, and how sure the other rows are."""
_WORD = re.compile(r"[^\W_]+")
_MARK = re.compile(r"(?P<number>\d+(?:[.,]\d+)*)|(?P<word>[^\W\d_]+)|[^\w\s]")


class Look(NamedTuple):
    """How a phrase looks in its line: the words before it, the last two, its form and the marks of it, its text, the
    words after it; and the words of its label."""

    before: frozenset[str]
    last: frozenset[str]
    form: frozenset[str]
    marks: frozenset[str]
    text: frozenset[str]
    after: frozenset[str]
    label: frozenset[str]


def look(phrase: Cell) -> Look:
    """How a phrase looks where it stands."""
    place = phrase.evidence[0]
    context, start, end = place["context"], *(place[each] - place["context_start"] for each in ("start", "end"))
    close = context.find("\n", end)
    before = _words(context[context.rfind("\n", 0, start) + 1 : start])
    after = _words(context[end : close if close >= 0 else len(context)])
    marks = [*map(_mark, _MARK.finditer(phrase.text))][:LONGEST_FORM]
    return Look(
        frozenset(before[-BEFORE:]),
        frozenset([" ".join(before[-2:])]),
        frozenset([" ".join(marks)]),
        frozenset(marks),
        frozenset([" ".join(phrase.text.casefold().split())]),
        frozenset(after[:AFTER]),
        frozenset(before[-LABEL:]),
    )


class Profile:
    """How the likeliest phrases of a column look."""

    def __init__(self) -> None:
        self.rows, self.weight = 0, 0.0
        self.counts: Mapping[str, Counter[str]] = {name: Counter() for name in Look._fields[:-1]}

    def add(self, phrases: Sequence[Cell]) -> None:
        """Takes in the phrases of a row."""
        self.rows += 1
        if best := _best(phrases):
            self.weight += best.probability
            own = look(best)
            for name, counts in self.counts.items():
                counts.update(dict.fromkeys(getattr(own, name), best.probability))

    def agreement(self, one: Look, phrases: Sequence[Cell]) -> list[float]:
        """Of each kind of mark of a phrase, the mean share of the other rows that have it; and how sure these are.
        `phrases` are those of its own row."""
        best = _best(phrases)
        own, weight = (look(best), best.probability) if best else (None, 0.0)
        others, shares = self.weight - weight, list[float]()
        for name, counts in self.counts.items():
            marks = getattr(one, name)
            taken = len(marks & getattr(own, name)) * weight if own else 0.0
            shares.append(max(sum(counts[each] for each in marks) - taken, 0.0) / (len(marks) or 1) / (others + 1))
        return [*shares, others / max(self.rows - 1, 1)]


def numbers(
    phrase: Cell, phrases: Sequence[Cell], column: Column, profile: Profile, rare: Mapping[str, float]
) -> list[float]:
    """The numbers of a phrase among those of its cell, as `NAMES` has them. `rare` is how rare each word is among a
    table's questions (`rarity`)."""
    one, share = look(phrase), phrase.known[1]
    rival = max((each.known[1] for each in phrases if each is not phrase), default=-math.inf)
    asked = {each for wording in column.wordings for each in _words(wording)}
    said, whole = (
        sum(rare.get(each, 0.0) for each in words) for words in ([w for w in asked if _is_in(w, one.label)], asked)
    )
    return [
        *phrase.known,
        min(max(share - rival, -MOST_MARGIN), MOST_MARGIN),
        float(phrase is phrases[0]),
        float(column.kind not in ("text", "list")),
        said / whole if whole else 0.0,
        sum(_is_in(each, asked) for each in one.label) / (len(one.label) + 1),
        *profile.agreement(one, phrases),
    ]


def rarity(columns: Iterable[Column]) -> dict[str, float]:
    """How rare each word of questions is among them: the log of the columns for each that has it."""
    sets = [{each for wording in column.wordings for each in _words(wording)} for column in columns]
    having = Counter(word for words in sets for word in words)
    return {word: math.log((len(sets) + 1) / count) for word, count in having.items()}


@cache
def fitted() -> tuple[tuple[float, ...], float]:
    """The weights of the numbers, in the order of `NAMES`, and the chance from which a cell is filled."""
    told = json.loads(files("quoth.tables").joinpath("chances.json").read_text("utf-8"))
    return tuple(told["weights"][name] for name in NAMES), told["least"]


class Comparison:
    """The columns of a table, each with what its cells are like: take in all rows, then decide each."""

    def __init__(self, columns: Iterable[Column]) -> None:
        self._columns = {each.name: each for each in columns}
        self._profiles = {name: Profile() for name in self._columns}
        self._rare = rarity(self._columns.values())

    def add(self, row: Row) -> None:
        """Takes in a row."""
        for name, cell in row.cells.items():
            self._profiles[name].add(cell.rivals)

    def decided(self, row: Row) -> Row:
        """The row with the cells that are sure by comparison, without what they were chosen from."""
        return replace(row, cells={name: self._decided(name, cell) for name, cell in row.cells.items()})

    def _decided(self, name: str, cell: Cell) -> Cell:
        if not cell.rivals:
            return cell
        column, (weights, least) = self._columns[name], fitted()
        phrases = [
            replace(phrase, probability=chance(weights, numbers), known=())
            for phrase, numbers in zip(cell.rivals, self.numbers(name, cell), strict=True)
        ]
        best, *others = sorted(phrases, key=lambda each: -each.probability)
        others = others[:OTHERS]
        if best.probability >= (least if column.threshold is None else column.threshold):
            return replace(best, status="answered", read_as=cell.read_as, others=tuple(others))
        return Cell(status="unsure", candidate=best, read_as=cell.read_as, others=tuple(others))

    def numbers(self, name: str, cell: Cell) -> list[list[float]]:
        """The numbers of each phrase that may fill a cell of this column."""
        column, profile = self._columns[name], self._profiles[name]
        return [numbers(each, cell.rivals, column, profile, self._rare) for each in cell.rivals]


def _best(phrases: Sequence[Cell]) -> Cell | None:
    return max(phrases, key=lambda each: each.probability, default=None)


def _words(text: str) -> list[str]:
    return [each.casefold() for each in _WORD.findall(text)]


def _is_in(word: str, words: Iterable[str]) -> bool:
    """Whether a word, or one of the same beginning, is among these."""
    return any(word == each or (min(len(word), len(each)) > 4 and word[:5] == each[:5]) for each in words)


def _mark(found: re.Match[str]) -> str:
    """A mark of a form: of a number its kind, of a word whether it is capitalised, else itself."""
    if found["number"]:
        return re.sub(r"\d+", "0", found["number"])
    return ("A" if found["word"][0].isupper() else found["word"]) if found["word"] else found[0]
