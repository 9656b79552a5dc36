"""The cells of a table: a quotation with its value, its chance and its places, or nothing but what came nearest.

Knows: how an answer becomes a cell, and how rows are written as JSON. Does not know: how answers are found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from quoth.corpus.dates import Orders, read
from quoth.records import LEAST_SHOWN, PLACES, Evidence, Prediction, Predictions, Sentence, is_within, quote_of
from quoth.tables.columns import Column
from quoth.tables.values import value_of
from quoth_sources.source_map import as_json

UNREADABLE = "unreadable"
"""The status of every cell of a document that cannot be read."""
CONFIRMED = "confirmed"
"""The status of a cell that a person confirmed or corrected."""
OTHERS = 2
"""Further answers that are kept of a cell."""
_CELLS = "candidate", "likeliest"
_YEAR_OF_TWO_DIGITS = re.compile(r"\d{1,2}([-./])\d{1,2}\1\d{2}")


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table.

    `text` is the quotation as it stands in the document, "" if nothing is sure; `value` what it says, by the column's
    type, None if that is uncertain. `status` and `probability` are those of an answer, `evidence` its best places as
    JSON has them. Of an empty cell, `candidate` is what came nearest; `others` are further answers. `read_as` is the
    question if words were misspelt. `gone` is what a person had confirmed of documents that say it no longer. Until the
    column's cells are compared (`tables.compare`), `likeliest` is the likeliest phrase of the column's type, sure or
    not, and `known` what the reader knows of it.
    """

    text: str = ""
    value: Any = None
    probability: float = 0.0
    status: str = "not_found"
    evidence: tuple[dict[str, Any], ...] = ()
    candidate: Cell | None = None
    read_as: str = ""
    others: tuple[Cell, ...] = ()
    gone: str | None = None
    likeliest: Cell | None = None
    known: tuple[float, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The cell as JSON has it."""
        known: dict[str, Any] = {name: getattr(self, name) for name in ("text", "value", "probability", "status")}
        known["evidence"] = [*self.evidence]
        more: dict[str, Any] = {name: (cell := getattr(self, name)) and cell.to_dict() for name in _CELLS}
        more |= {"read_as": self.read_as, "others": [each.to_dict() for each in self.others]}
        more |= {"known": [*self.known], "gone": self.gone}
        return known | {name: said for name, said in more.items() if said or (name == "gone" and said is not None)}

    @classmethod
    def from_dict(cls, known: Mapping[str, Any]) -> Cell:
        """The cell that `to_dict` wrote."""
        cells: dict[str, Any] = {name: cls.from_dict(known[name]) for name in _CELLS if name in known}
        cells["others"] = tuple(map(cls.from_dict, known.get("others", ())))
        own = {"evidence": tuple(known["evidence"]), "known": tuple(known.get("known", ()))}
        return cls(**{**known, **cells, **own})

    def shown(self) -> Iterator[Cell]:
        """The cell if it is filled, its candidate, and further answers: what a person may choose from."""
        yield from [self] if self.text else []
        yield from [self.candidate] if self.candidate else []
        yield from self.others

    def placed(self, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Cell:
        """The cell with its places changed, those of its candidates too."""
        cells = {name: (cell := getattr(self, name)) and cell.placed(change) for name in _CELLS}
        others, evidence = tuple(each.placed(change) for each in self.others), tuple(map(change, self.evidence))
        return replace(self, evidence=evidence, others=others, **cells)

    def settled(self, column: Column, orders: Orders) -> Cell:
        """The cell with the date that it says where the column's others tell the day from the month."""
        candidate = self.candidate.settled(column, orders) if self.candidate else None
        others = tuple(each.settled(column, orders) for each in self.others)
        value = value_of(self.text, column.kind, orders=orders) if self.text and self.value is None else self.value
        return replace(self, value=value, candidate=candidate, others=others)


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table: the id of its document, or the value of the field that its documents are grouped by; its cells
    by column; why it could not be read, if it could not; and whether its passages were found `by_words` alone."""

    document_id: str
    title: str = ""
    cells: dict[str, Cell] = field(default_factory=dict)
    error: str = ""
    by_words: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The row as JSON has it."""
        more: dict[str, Any] = {name: said for name in ("error", "by_words") if (said := getattr(self, name))}
        cells = {name: cell.to_dict() for name, cell in self.cells.items()}
        return {"document_id": self.document_id, "title": self.title, "cells": cells} | more

    @classmethod
    def from_dict(cls, known: Mapping[str, Any]) -> Row:
        """The row that `to_dict` wrote."""
        return cls(**{**known, "cells": {name: Cell.from_dict(cell) for name, cell in known["cells"].items()}})


def fits(text: str, column: Column) -> bool:
    """Whether a quotation may answer a column's question, by its type; a date may, whose value is uncertain."""
    if column.kind in ("text", "list"):
        return True
    said = " ".join(text.split())
    if column.kind == "date" and len(said) < 30:
        whole = f"{said[:-2]}20{said[-2:]}" if _YEAR_OF_TWO_DIGITS.fullmatch(said) else said
        if read(whole) is not None:
            return True
    return value_of(text, column.kind, column.choices) is not None


def cell_of(found: Predictions, column: Column) -> Cell:
    """The cell of an answer, empty if nothing is sure.

    It is the best phrase that has a value of the column's type, if that is sure; or if a unit of the text is (a
    sentence, an item, a row), that phrase inside it; or the unit itself, if it has such a value.
    """
    phrases = [each for each in found if fits(quote_of(each.evidence[0]), column)]
    units = [each for each in found.sentences[:1] if each.probability >= LEAST_SHOWN]
    whole = [each for each in units if fits(quote_of(each.evidence[0]), column)]
    inside = [
        replace(phrase, probability=unit.probability, status=unit.status)
        for phrase in phrases[:1]
        for unit in units
        if column.kind not in ("text", "list") and is_within(phrase.evidence[0], unit.evidence[0])
    ]
    fitting: list[Prediction | Sentence] = [*phrases, *inside, *whole]
    said: list[Prediction | Sentence] = [*phrases, *units]
    if sure := [each for each in fitting if each.status == "answered"]:
        return replace(said_as(sure[0], column), read_as=found.read_as, others=_others(sure[0], said, column))
    nearest = [replace(said_as(each, column), status="unsure") for each in said[:1]]
    status = "unsure" if nearest and found.status != "not_found" else "not_found"
    others = _others(said[0], said, column) if said else ()
    return Cell(status=status, candidate=nearest[0] if nearest else None, read_as=found.read_as, others=others)


def _others(chosen: Prediction | Sentence, said: Iterable[Prediction | Sentence], column: Column) -> tuple[Cell, ...]:
    """The best answers that say something else, each with one place."""
    cells = {each.text: each for each in map(partial(said_as, column=column), said)}
    cells.pop(quote_of(chosen.evidence[0]), None)
    return tuple(replace(each, status="unsure", evidence=each.evidence[:1]) for each in [*cells.values()][:OTHERS])


def said_as(said: Prediction | Sentence, column: Column) -> Cell:
    """What was found as a cell of a column."""
    text = quote_of(said.evidence[0])
    value = value_of(text, column.kind, column.choices)
    return Cell(text, value, said.probability, said.status, tuple(map(as_place, said.evidence[:PLACES])))


def surest(cells: Iterable[Cell]) -> Cell:
    """Of the cells by several wordings of a question the one to believe."""

    def rank(cell: Cell) -> tuple[bool, float]:
        return bool(cell.text), (cell if cell.text else cell.candidate or cell).probability

    return max(cells, key=rank)


def as_place(place: Evidence) -> dict[str, Any]:
    """A place as JSON has it, but for the number of its passage, which other snapshots give to others."""
    known = as_json(place)
    del known["passage"]
    return known | {"path": [*place.path]}
