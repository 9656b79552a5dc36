"""The weights by which the cells of a table's column tell the chance of each other (`quoth.tables.compare`).

    python recipes/table_chances.py factbook-2017-03-28.jsonl --rows asked.jsonl

Countries of the Factbook that are no tests are asked `table_questions.toml`: as they are, and with the fields that
answer deleted, a third of them at a time. Every cell is then put into tables where its field is in all rows, in none,
in some; of all countries and of a few. A phrase is right if the field says it, or it the field; one that says what a
deleted field said, in another place, is left out. The weights are those of a logistic regression, none below 0 but the
bias. Prints how many cells are filled rightly by weights that were fitted on other columns, and writes `chances.json`.
What was asked is in --rows; if that is there already, nothing is asked.
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
from quoth.answers.evidence import chance
from quoth.corpus.corpus import Corpus
from quoth.reader.runtime import open_reader
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
LEASTS = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


class Asked(NamedTuple):
    """A cell as it was asked: its row, its column, whether the field was deleted, what the field says, if there is one;
    and its phrases."""

    row: str
    column: str
    is_deleted: bool
    field: str
    cell: Cell

    @property
    def is_stated(self) -> bool:
        return bool(self.field) and not self.is_deleted


class Told(NamedTuple):
    """A cell in a table: the numbers of its phrases, and which of these say what the field says."""

    asked: Asked
    numbers: list[list[float]]
    says: list[bool]


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
                cells = Asker(opened, corpus, columns).row(row, rows_of(corpus, ROW)[row]).cells
                for name, cell in cells.items():
                    field = given.gold[row][name].field if name in given.gold[row] else ""
                    asked = [row, name, table.deleted, field, cell.to_dict()]
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
            compared.numbers(each.column, each.cell),
            [bool(each.field) and Gold(each.field).accepts(phrase.text) for phrase in each.cell.rivals],
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
    pairs = [
        (numbers, says)
        for each in cells
        for numbers, says in zip(each.numbers, each.says, strict=True)
        if each.asked.is_stated or not says
    ]
    at = NAMES.index("reader")
    others = np.delete(np.array([numbers for numbers, _ in pairs]), at, axis=1)
    weights = [(1 - READER) * each for each in fit(others, np.array([says for _, says in pairs]))]
    return tuple(round(each, 4) for each in (*weights[:at], READER, *weights[at:]))


def counts(cells: Sequence[tuple[Told, tuple[float, ...]]], least: float) -> str:
    """How many of the cells are filled from a chance on, each with its weights, and how many of these rightly."""
    stated = filled = right = absent = wrong = 0
    for each, weights in cells:
        shares = [chance(weights, numbers) for numbers in each.numbers]
        best = max(range(len(shares)), key=shares.__getitem__, default=-1)
        is_filled = best >= 0 and shares[best] >= least
        if each.asked.is_stated:
            stated, filled, right = stated + 1, filled + is_filled, right + (is_filled and each.says[best])
        else:
            absent, wrong = absent + 1, wrong + is_filled
    return f"from {least}: {filled} of {stated} filled, {right} right; {wrong} of {absent} not stated filled"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("factbook", type=Path)
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--reader", default="quoth-reader")
    parser.add_argument("--dtype")
    parser.add_argument("--countries", type=int, default=12)
    parser.add_argument("--least", type=float, default=0.6, help="the chance from which a cell is filled")
    given = parser.parse_args()
    own = factbook(given.factbook, "develop", given.countries, QUESTIONS)
    if not given.rows.exists():
        ask(own, given.reader, given.dtype, given.rows)
    lines = map(json.loads, given.rows.read_text("utf-8").splitlines())
    cells = [Asked(*known, Cell.from_dict(cell)) for *known, cell in lines]
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
