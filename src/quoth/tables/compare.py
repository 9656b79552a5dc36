"""A column's cells compared with each other: the best phrase of each row becomes likelier, or less likely, by how those
of other rows are told.

Knows: what is compared, the chance by it, and when that fills a cell (`chances.json`, fitted by
`recipes/table_chances.py`). Does not know: how phrases were found.

The chance is the logistic function of the numbers of a phrase (`NAMES`) times their weights. No words but those of the
documents and of the questions are known here.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from importlib.resources import files

from quoth.answers.evidence import chance
from quoth.tables.cells import OTHERS, Cell, Row
from quoth.tables.columns import Column
from quoth.text.terms import analyse

NAMES = ("bias", "margin", "unit", "alone", "line", "asked", "label", "apart")
"""1; what is known of a phrase (`likeliest`) and of its line alone (`alone`); the share of the words of its label, and
of one more, that are the question's; how many of the other rows' phrases, by their chances, have this label; minus how
many more of them share one among themselves."""
LABEL = 12
"""Words before a phrase in its line that are looked at. So many are no label, but running text, or lines that a PDF
joined: nothing is compared. Tried were this bound and none."""


def label_of(phrase: Cell) -> tuple[str, ...]:
    """The label of a phrase, as terms of a search."""
    place = phrase.evidence[0]
    before = place["context"][: place["start"] - place["context_start"]]
    return tuple(analyse(before[before.rfind("\n") + 1 :])[-LABEL:])


def has_label(phrase: Cell) -> bool:
    """Whether a phrase has a label: there are words before it in its line, and not as many as in running text."""
    return 0 < len(label_of(phrase)) < LABEL


class Profile:
    """The labels of a column's phrases, each with the chances of its phrases by the reader."""

    def __init__(self) -> None:
        self._rows, self._pairs, self._weights = 0, 0.0, defaultdict[tuple[str, ...], float](float)

    def add(self, phrase: Cell | None, count: int = 1) -> None:
        """Takes in the phrase of a row, if it has one; with `count` −1 takes it out again."""
        self._rows += count
        if phrase is not None and 0 < len(label := label_of(phrase)) < LABEL:
            before = self._weights[label]
            self._weights[label] += count * phrase.probability
            self._pairs += self._weights[label] ** 2 - before**2 - count * phrase.probability**2

    def agreement(self, label: tuple[str, ...], own: float) -> tuple[float, float]:
        """Of a phrase that was taken in, by its label and its chance: the chances of the other rows' phrases with this
        label, per row and one more; and how much less that is than the root of the products of chances of all pairs of
        other rows with one label: 0 if all other rows have this label, or each its own."""
        if len(label) == LABEL:
            return 0.0, 0.0
        weight = self._weights.get(label, 0.0)
        same = max(weight - own, 0.0) if label else 0.0
        pairs = self._pairs - weight**2 + same**2 + (own**2 if label else 0.0)
        return same / self._rows, min(same - math.sqrt(max(pairs, 0.0)), 0.0) / self._rows


def numbers(phrase: Cell, column: Column, profile: Profile) -> list[float]:
    """The numbers of a phrase that the profile has taken in, as `NAMES` has them."""
    label, asked = label_of(phrase), {term for wording in column.wordings for term in analyse(wording)}
    share = len({*label} & asked) / (len({*label}) + 1)
    return [1.0, *phrase.known, share, *profile.agreement(label, phrase.probability)]


@cache
def fitted() -> tuple[tuple[float, ...], float]:
    """The weights of the numbers, in the order of `NAMES`, and the chance from which a cell is filled."""
    told = json.loads(files("quoth.tables").joinpath("chances.json").read_text("utf-8"))
    return tuple(told["weights"][name] for name in NAMES), told["least"]


class Comparison:
    """The columns of a table, each with what its cells are like: takes in all rows, then decides each."""

    def __init__(self, columns: Iterable[Column]) -> None:
        self._columns = {each.name: (each, Profile()) for each in columns}

    def add(self, row: Row, count: int = 1) -> None:
        """Takes in a row; with `count` −1 takes it out again."""
        for name, cell in row.cells.items():
            self._columns[name][1].add(cell.likeliest, count)

    @contextmanager
    def instead(self, row: Row, others: Sequence[Row]) -> Iterator[None]:
        """With a row in the place of others."""
        every = [*((each, -1) for each in others), (row, 1)]
        for each, count in every:
            self.add(each, count)
        try:
            yield
        finally:
            for each, count in every:
                self.add(each, -count)

    def decided(self, row: Row) -> Row:
        """The row with each cell filled by its best phrase, or not, by the chance of that in its column. Columns with a
        threshold of their own stay as they were found."""
        return replace(row, cells={name: self._decided(name, cell) for name, cell in row.cells.items()})

    def _decided(self, name: str, cell: Cell) -> Cell:
        (weights, least), best, found = fitted(), cell.likeliest, replace(cell, likeliest=None)
        is_name = bool(cell.read_as and not cell.text)  # a misspelt word may be one: nothing is sure
        if best is None or is_name or self._columns[name][0].threshold is not None:
            return found
        best = replace(best, probability=chance(weights, self.numbers(name, best)), known=())
        said = {each.text: replace(each, others=()) for each in found.shown() if each.text != best.text}
        others = tuple(replace(each, status="unsure", read_as="") for each in said.values())[:OTHERS]
        if best.probability >= least:
            return replace(best, status="answered", read_as=cell.read_as, others=others)
        if cell.text and cell.text != best.text:  # a unit that the reader is sure of
            return found
        status = "unsure" if cell.text else cell.status
        return Cell(status=status, candidate=best, read_as=cell.read_as, others=others)

    def numbers(self, name: str, phrase: Cell) -> list[float]:
        """The numbers of the best phrase of a row, in this column."""
        return numbers(phrase, *self._columns[name])
