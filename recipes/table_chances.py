"""The weights by which the cells of a table's column tell the chance of each other (`quoth.tables.compare`).

    python recipes/table_chances.py factbook-2017-03-28.jsonl --rows asked.jsonl

Countries of the Factbook that are no tests are asked `table_questions.toml`: as they are, and with the fields that
answer deleted, a third of them at a time. Every cell is then put into tables where its field is in all rows, in none,
in some; of all countries and of a few. A phrase is right if the field says it, or it the field; one that says what a
deleted field said, in another place, is left out. The weights are those of a logistic regression,
none below 0 but the bias. Prints how many cells stay filled, and rightly, by weights that were fitted on other columns,
and writes `chances.json`. What was asked is in --rows; if that is there already, nothing is asked.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

import quoth.tables.compare
from quoth.answers.calibration import fit
from quoth.answers.evidence import Source, Spans, chance
from quoth.corpus.corpus import Corpus
from quoth.reader.runtime import open_reader
from quoth.records import Predictions
from quoth.tables.asking import Asker, rows_of
from quoth.tables.cells import Cell, Row
from quoth.tables.columns import Column
from quoth.tables.compare import NAMES, Comparison
from quoth_eval.tables.sets import ROW, Gold, TableSet, deleted, factbook, factbook_fields

QUESTIONS = Path(__file__).with_name("table_questions.toml")
WEIGHTS = Path(quoth.tables.compare.__file__).with_name("chances.json")
READER = 0.5
"""How much of the log odds is the reader's own. Not fitted: in the Factbook most phrases of the right field are right,
and the reader's choice among them tells nothing; in agreements it does."""
FOLDS, PARTS, FEW, SHARES = 4, 3, (1, 3, 6), (0.2, 0.5, 0.8)
LEASTS = (0.0, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6)


class Asked(NamedTuple):
    """A cell as it was asked: its row, its column, whether the field was deleted, what the field says, if there is one;
    and its best phrases."""

    row: str
    column: str
    is_deleted: bool
    field: str
    cell: Cell
    phrases: list[Cell]

    @property
    def is_stated(self) -> bool:
        return bool(self.field) and not self.is_deleted


class Told(NamedTuple):
    """A cell in a table: the numbers of its likeliest phrase, none if it has none; and those of all its phrases."""

    asked: Asked
    numbers: list[float]
    every: list[list[float]]


class Keeping(Asker):
    """Keeps the best phrases of each column."""

    kept: dict[str, list[Cell]]

    def phrases(self, read: Sequence[Source], spans: Sequence[Spans], found: Predictions, column: Column) -> list[Cell]:
        self.kept[column.name] = super().phrases(read, spans, found, column)
        return self.kept[column.name]


def ask(given: TableSet, reader: str, dtype: str | None, path: Path) -> None:
    """Asks all cells, and writes them."""
    opened, fields = open_reader(reader, dtype=dtype), factbook_fields(QUESTIONS)
    with path.open("w", encoding="utf-8") as file, tempfile.TemporaryDirectory() as folder:
        for row in given.rows:
            one = replace(given, rows={row: given.rows[row]})
            thirds = [given.columns[n::PARTS] for n in range(PARTS)]
            tables = [(one, given.columns)]
            tables += [(deleted(one, [fields[each.name] for each in third]), third) for third in thirds]
            for table, columns in tables:
                corpus = Corpus.create(Path(tempfile.mkdtemp(dir=folder)) / "c.quoth")
                corpus.add(table.documents())
                asker = Keeping(opened, corpus, columns)
                asker.kept = {}
                cells = asker.row(row, rows_of(corpus, ROW)[row]).cells
                for name, cell in cells.items():
                    field = given.gold[row][name].field if name in given.gold[row] else ""
                    phrases = [each.to_dict() for each in asker.kept[name]]
                    asked = [row, name, table.deleted, field, cell.to_dict(), phrases]
                    file.write(json.dumps(asked) + "\n")
            file.flush()


def told(cells: Sequence[Asked], columns: Sequence[Column]) -> list[Told]:
    """The cells as those of one table."""
    compared, rows = Comparison(columns), dict[str, dict[str, Cell]]()
    for each in cells:
        rows.setdefault(each.row, {})[each.column] = each.cell
    for row, own in rows.items():
        compared.add(Row(row, "", own))
    return [
        Told(
            each,
            compared.numbers(each.column, each.cell) if each.cell.likeliest else [],
            [compared.numbers(each.column, each.cell, phrase) for phrase in each.phrases],
        )
        for each in cells
    ]


def tables(cells: Sequence[Asked], columns: Sequence[Column]) -> Iterator[tuple[str, list[Told]]]:
    """Tables of these cells, by name."""
    draw = random.Random(0)
    full, gone = ([each for each in cells if each.is_deleted == deleted] for deleted in (False, True))
    kinds = {"stated": full, "deleted": gone}
    for share in SHARES:
        stated = {(each.row, each.column): draw.random() < share for each in full}
        kinds[f"{share:.0%} stated"] = [each for each in cells if each.is_deleted != stated[each.row, each.column]]
    for name, own in kinds.items():
        yield name, told(own, columns)
        for few in FEW:
            there = sorted({each.row for each in own})
            rows = {*draw.sample(there, min(few, len(there)))}
            yield f"{name}, {few} rows", told([each for each in own if each.row in rows], columns)


def weigh(cells: Sequence[Told]) -> tuple[float, ...]:
    """The weights that fit these cells."""
    pairs = [(each.numbers, says(each.asked, each.asked.cell.likeliest)) for each in cells if each.asked.cell.likeliest]
    pairs = [
        (numbers, right)
        for each in cells
        for numbers, phrase in zip(each.every, each.asked.phrases, strict=True)
        if not (right := says(each.asked, phrase)) or each.asked.is_stated
    ]
    at = NAMES.index("reader")
    others = np.delete(np.array([numbers for numbers, _ in pairs]), at, axis=1)
    weights = [(1 - READER) * each for each in fit(others, np.array([right for _, right in pairs]))]
    return tuple(round(each, 4) for each in (*weights[:at], READER, *weights[at:]))


def says(asked: Asked, cell: Cell) -> bool:
    """Whether a cell says what the field says."""
    return bool(asked.field) and Gold(asked.field).accepts(cell.text)


def counts(cells: Sequence[tuple[Told, tuple[float, ...]]], least: float) -> str:
    """How many of the cells that the reader fills have a chance of this by their weights, and how many of these are
    right."""
    kept = [
        each.asked
        for each, weights in cells
        if each.asked.cell.text and (not each.numbers or chance(weights, each.numbers) >= least)
    ]
    stated, right = (
        [each for each in kept if each.is_stated],
        sum(says(each, each.cell) for each in kept if each.is_stated),
    )
    every = sum(each.asked.is_stated for each, _ in cells)
    filled = f"{len(stated)} of {every} filled, {right} right"
    return f"from {least}: {filled}; {len(kept) - len(stated)} of {len(cells) - every} not stated filled"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("factbook", type=Path)
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--reader", default="quoth-reader")
    parser.add_argument("--dtype")
    parser.add_argument("--countries", type=int, default=12)
    parser.add_argument("--least", type=float, default=0.4, help="the chance below which a cell is emptied")
    given = parser.parse_args()
    own = factbook(given.factbook, "develop", given.countries, QUESTIONS)
    if not given.rows.exists():
        ask(own, given.reader, given.dtype, given.rows)
    lines = map(json.loads, given.rows.read_text("utf-8").splitlines())
    cells = [
        Asked(row, name, gone, field, Cell.from_dict(cell), [*map(Cell.from_dict, phrases)])
        for row, name, gone, field, cell, phrases in lines
    ]
    made = dict(tables(cells, own.columns))
    every = [each for table in made.values() for each in table]
    names = sorted({each.column for each in cells})
    random.Random(1).shuffle(names)
    others = dict[str, tuple[float, ...]]()  # weights that were fitted on other columns
    for fold in (names[n::FOLDS] for n in range(FOLDS)):
        others |= dict.fromkeys(fold, weigh([each for each in every if each.asked.column not in fold]))
    for name, table in made.items():
        for least in LEASTS:
            print(name, counts([(each, others[each.asked.column]) for each in table], least))
    fitted = dict(zip(NAMES, weigh(every), strict=True))
    rows = {each.row for each in cells}
    on = {"cells": len(cells), "countries": len(rows), "columns": len(names), "stated": sum(c.is_stated for c in cells)}
    WEIGHTS.write_text(json.dumps({"weights": fitted, "least": given.least, "fitted_on": on}, indent=1) + "\n", "utf-8")
    print(fitted)


if __name__ == "__main__":
    main()
