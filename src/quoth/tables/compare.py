"""A column's cells compared with each other: one that is not told as those of other rows are may be wrong.

Knows: what is compared, and the chance by it (`chances.json`, fitted by `recipes/table_chances.py`). Does not know: how
phrases were found, or what becomes of their chance.

The chance is the logistic function of the numbers of a phrase (`NAMES`) times their weights. What others are like goes
by the likeliest phrase of every other row, with its chance by the reader alone as its weight. No words but those of the
documents and of the questions are known here.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from quoth.answers.evidence import chance, log_odds
from quoth.tables.cells import Cell, Row
from quoth.tables.columns import Column

NAMES = ("bias", "reader", "evidence", "unit", "asked", "line", "last", "column")
"""1; the log odds of a phrase by the reader alone; the log of the evidence in it; the log odds of the best unit around
it; the share of the words before it that are the question's; the log of the words of its line; how much of the other
rows, by weight, has the same two words before it; how sure the other rows are."""
LABEL, LAST = 12, 2
"""Words before a phrase that are compared with the question's, and with those before others."""
_WORD = re.compile(r"[^\W_]+")


class Around(NamedTuple):
    """The words before a phrase in its line, and how many are around it there."""

    before: list[str]
    words: int

    @property
    def last(self) -> str:
        return " ".join(self.before[-LAST:])


def around(phrase: Cell) -> Around:
    """What is around a phrase where it stands."""
    place = phrase.evidence[0]
    context, start, end = place["context"], *(place[each] - place["context_start"] for each in ("start", "end"))
    close = context.find("\n", end)
    before = _words(context[context.rfind("\n", 0, start) + 1 : start])
    return Around(before, len(before) + len(_words(context[end : close if close >= 0 else len(context)])))


class Profile:
    """The words before the likeliest phrases of a column."""

    def __init__(self) -> None:
        self._rows, self._weight = 0, 0.0
        self._weights = dict[str, float]()

    def add(self, phrase: Cell | None) -> None:
        """Takes in the phrase of a row, if it has one."""
        self._rows += 1
        if phrase is not None:
            self._weight += phrase.probability
            last = around(phrase).last
            self._weights[last] = self._weights.get(last, 0.0) + phrase.probability

    def agreement(self, phrase: Cell, own: Cell) -> tuple[float, float]:
        """Of a phrase of the row whose likeliest one is `own`, the share of the other rows' weights, and of one more,
        that have the words before it: few rows say little. And the mean of these weights."""
        last = around(phrase).last
        same = self._weights.get(last, 0.0) - (own.probability if around(own).last == last else 0.0)
        others = self._weight - own.probability
        return max(same, 0.0) / (others + 1), max(others, 0.0) / max(self._rows - 1, 1)


def numbers(phrase: Cell, own: Cell, column: Column, profile: Profile) -> list[float]:
    """The numbers of a phrase of the row whose likeliest one is `own`, as `NAMES` has them."""
    one, asked = around(phrase), {each for wording in column.wordings for each in _words(wording)}
    label = {*one.before[-LABEL:]}
    told = sum(any(_alike(word, each) for each in asked) for word in label) / (len(label) + 1)
    known = (log_odds(phrase.probability), *phrase.known)
    return [1.0, *known, told, math.log1p(one.words), *profile.agreement(phrase, own)]


@cache
def fitted() -> tuple[tuple[float, ...], float]:
    """The weights of the numbers, in the order of `NAMES`, and the chance below which a cell is emptied."""
    told = json.loads(files("quoth.tables").joinpath("chances.json").read_text("utf-8"))
    return tuple(told["weights"][name] for name in NAMES), told["least"]


class Comparison:
    """The columns of a table, each with what its cells are like: takes in all rows, then decides each."""

    def __init__(self, columns: Iterable[Column]) -> None:
        self._columns = {each.name: (each, Profile()) for each in columns}

    def add(self, row: Row) -> None:
        """Takes in a row."""
        for name, cell in row.cells.items():
            self._columns[name][1].add(cell.likeliest)

    def decided(self, row: Row) -> Row:
        """The row without the cells that the others of their columns speak against. A column with a threshold of its
        own keeps them."""
        return replace(row, cells={name: self._decided(name, cell) for name, cell in row.cells.items()})

    def _decided(self, name: str, cell: Cell) -> Cell:
        weights, least = fitted()
        found, is_given = replace(cell, likeliest=None), self._columns[name][0].threshold is not None
        if not cell.text or cell.likeliest is None or is_given or chance(weights, self.numbers(name, cell)) >= least:
            return found
        candidate = replace(found, status="unsure", read_as="", others=())
        return Cell(status="unsure", candidate=candidate, read_as=cell.read_as, others=cell.others)

    def numbers(self, name: str, cell: Cell, phrase: Cell | None = None) -> list[float]:
        """The numbers of a phrase of a cell of this column, which has a likeliest one; by default of that."""
        assert cell.likeliest is not None
        return numbers(phrase or cell.likeliest, cell.likeliest, *self._columns[name])


def _words(text: str) -> list[str]:
    return [each.casefold() for each in _WORD.findall(text)]


def _alike(one: str, other: str) -> bool:
    """Whether two words are one, or begin alike."""
    return one == other or (min(len(one), len(other)) > 4 and one[:5] == other[:5])
