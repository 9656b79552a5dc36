"""The weights by which the cells of a table's column tell the chance of each other (`quoth.tables.compare`).

    python recipes/table_chances.py factbook-2017-03-28.jsonl contract_nli.dev.json --rows asked.jsonl

Countries of the Factbook that are no tests are asked `table_questions.toml`, the agreements for development their own
questions: as they are, and with what answers deleted, so that "not stated" is learned. What was asked is in --rows; if
that is there already, nothing is asked. The cells are then put into tables where a column is stated in all rows, in
none, in some; of all rows and of a few. A phrase is right if the field says it, or it the field, or if it is in the
range that answers; one that says what a deleted field said, in another place, is left out. The weights are those of a
logistic regression, none below 0 but the bias. Prints how many cells are filled, and rightly, by weights that were
fitted on other columns, and writes `chances.json`.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

import quoth.tables.compare
from quoth.answers.calibration import fit
from quoth.answers.evidence import chance
from quoth.corpus.corpus import Corpus
from quoth.index.finder import Finder
from quoth.reader.runtime import open_reader
from quoth.reader.spans import SpanReader
from quoth.tables.asking import Asker, rows_of
from quoth.tables.cells import Cell, Row
from quoth.tables.columns import Column
from quoth.tables.compare import NAMES, Comparison
from quoth.text.passages import sentences
from quoth_eval.tables.sets import ROW, Gold, TableSet, contracts, deleted, factbook, factbook_fields

QUESTIONS = Path(__file__).with_name("table_questions.toml")
WEIGHTS = Path(quoth.tables.compare.__file__).with_name("chances.json")
FOLDS, PARTS, FEW, SHARES = 4, 3, (1, 3, 6), (0.2, 0.5, 0.8)
TIMES = 4
"""How often each cell of an agreement counts: there are few."""
LEASTS = (0.4, 0.5, 0.55, 0.6, 0.65, 0.7)


class Asked(NamedTuple):
    """A cell as it was asked: its set, its row, its column, whether what answers was deleted, whether it was there; the
    cell; and whether its text and its best phrase are right."""

    set: str
    row: str
    column: str
    is_deleted: bool
    has_answer: bool
    cell: Cell
    text_is_right: bool
    best_is_right: bool

    @property
    def is_stated(self) -> bool:
        return self.has_answer and not self.is_deleted


Told = tuple[Asked, list[float]]
"""A cell in a table, and the numbers of its best phrase; none if it has none."""


def without(given: TableSet, names: Iterable[str]) -> TableSet:
    """The set with what answers these columns gone from its texts."""
    if given.name == "factbook":
        fields = factbook_fields(QUESTIONS)
        return deleted(given, [fields[name] for name in names])
    rows = {}
    for row, (document,) in given.rows.items():
        places = [place for name in names for place in given.gold[row].get(name, Gold()).places]
        text = document.text
        for start, end in reversed(sentences(text)):
            if any(start < last and first < end for first, last in places):
                text = text[:start] + text[end:]
        rows[row] = [replace(document, text=text)]
    return replace(given, rows=rows, deleted=True)


def asked(given: TableSet, reader: SpanReader) -> Iterator[Asked]:
    """Asks all cells of a set."""
    names = [each.name for each in given.columns]
    groups = [names[n::PARTS] for n in range(PARTS)] if given.name == "factbook" else [[name] for name in names]
    for row in given.rows:
        one = replace(given, rows={row: given.rows[row]})
        parts = [[name for name in group if name in given.gold[row]] for group in groups]
        for table, own in [(one, names), *((without(one, part), part) for part in parts if part)]:
            columns = [each for each in given.columns if each.name in own]
            with tempfile.TemporaryDirectory() as folder:
                corpus = Corpus.create(Path(folder) / "c.quoth")
                corpus.add(table.documents())
                Finder([corpus]).embed()
                cells = Asker(reader, corpus, columns).row(row, rows_of(corpus, ROW)[row]).cells
            for name, cell in cells.items():
                gold = given.gold[row].get(name, Gold())
                right = (is_right(gold, each, table.deleted) for each in (cell, cell.likeliest))
                yield Asked(given.name, row, name, table.deleted, name in given.gold[row], cell, *right)


def is_right(gold: Gold, cell: Cell | None, is_deleted: bool) -> bool:
    """Whether a cell says what answers. Where that was deleted, places are others."""
    if cell is None or not cell.text or (is_deleted and gold.places):
        return False
    return gold.accepts(cell.text, cell.evidence[0]["start"], cell.evidence[0]["end"])


def told(cells: Sequence[Asked], columns: Sequence[Column]) -> list[Told]:
    """The cells as those of one table."""
    compared, rows = Comparison(columns), dict[str, dict[str, Cell]]()
    for each in cells:
        rows.setdefault(each.row, {})[each.column] = each.cell
    for row, own in rows.items():
        compared.add(Row(row, "", own))
    return [(each, compared.numbers(each.column, each.cell.likeliest) if each.cell.likeliest else []) for each in cells]


def tables(cells: Sequence[Asked], columns: Sequence[Column]) -> Iterator[tuple[str, list[Told]]]:
    """Tables of the cells of a set, by name."""
    draw, name = random.Random(0), cells[0].set
    kinds = {kind: [each for each in cells if each.is_deleted == gone] for kind, gone in (("", 0), (" deleted", 1))}
    for share in SHARES:
        stated = {(each.row, each.column): draw.random() < share for each in kinds[""]}
        kinds[f" {share:.0%} stated"] = [each for each in cells if each.is_deleted != stated[each.row, each.column]]
    there = sorted({each.row for each in cells})
    for kind, own in kinds.items():
        yield name + kind, told(own, columns)
        for few in FEW:
            rows = {*draw.sample(there, min(few, len(there)))}
            yield f"{name}{kind}, {few} rows", told([each for each in own if each.row in rows], columns)


def weigh(cells: Sequence[Told]) -> tuple[float, ...]:
    """The weights that fit these cells."""
    used = [each for each in cells if each[1] and (each[0].is_stated or not each[0].best_is_right)]
    used += [each for each in used if each[0].set == "contracts"] * (TIMES - 1)
    weights = fit(np.array([numbers for _, numbers in used]), np.array([each.best_is_right for each, _ in used]))
    return tuple(round(each, 4) for each in weights)


def counts(cells: Sequence[tuple[Told, tuple[float, ...]]], least: float) -> str:
    """How many cells are filled from this chance on, and how many of these are right; as `Comparison` decides."""
    filled = list[tuple[bool, bool]]()
    for (each, numbers), weights in cells:
        best = each.cell.likeliest
        if best is not None and chance(weights, numbers) >= least:
            filled.append((each.is_stated, each.best_is_right))
        elif each.cell.text and (best is None or best.text != each.cell.text):
            filled.append((each.is_stated, each.text_is_right))
    stated, right = sum(stated for stated, _ in filled), sum(stated and right for stated, right in filled)
    every = sum(each.is_stated for (each, _), _ in cells)
    now = [each for (each, _), _ in cells if each.cell.text]
    alone = f"{sum(each.is_stated for each in now)}, {sum(not each.is_stated for each in now)}"
    return (
        f"from {least}: {stated} of {every} filled, {right} right; {len(filled) - stated} of {len(cells) - every} not "
        f"stated filled (by the reader alone {alone})"
    )


def fitted_on(cells: Sequence[Asked]) -> dict[str, int]:
    """How much there is of a set."""
    rows, columns = ({each[at] for each in cells} for at in (1, 2))
    stated = sum(each.is_stated for each in cells)
    return {"rows": len(rows), "columns": len(columns), "cells": len(cells), "stated": stated}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("factbook", type=Path)
    parser.add_argument("contracts", type=Path)
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--reader", default="quoth-reader")
    parser.add_argument("--dtype", help="bf16 takes half of the time where the processor multiplies it")
    parser.add_argument("--countries", type=int, default=8)
    parser.add_argument("--least", type=float, default=0.6, help="the chance from which a cell is filled")
    given = parser.parse_args()
    sets = [factbook(given.factbook, "develop", given.countries, QUESTIONS), contracts(given.contracts, "develop")]
    if not given.rows.exists():
        reader = open_reader(given.reader, dtype=given.dtype)
        part = given.rows.with_suffix(".part")
        with part.open("w", encoding="utf-8") as file:
            for each in (cell for one in sets for cell in asked(one, reader)):
                file.write(json.dumps([*each[:5], each.cell.to_dict(), *each[6:]]) + "\n")
        part.replace(given.rows)
    lines = map(json.loads, given.rows.read_text("utf-8").splitlines())
    cells = [Asked._make([*line[:5], Cell.from_dict(line[5]), *line[6:]]) for line in lines]
    by_set = {one.name: [each for each in cells if each.set == one.name] for one in sets}
    made = {name: table for one in sets for name, table in tables(by_set[one.name], one.columns)}
    every = [each for table in made.values() for each in table]
    names = sorted({each.column for each in cells})
    random.Random(1).shuffle(names)
    others = dict[str, tuple[float, ...]]()  # weights that were fitted on other columns
    for fold in (names[n::FOLDS] for n in range(FOLDS)):
        others |= dict.fromkeys(fold, weigh([each for each in every if each[0].column not in fold]))
    for name, table in made.items():
        for least in LEASTS:
            print(name, counts([(each, others[each[0].column]) for each in table], least))
    fitted = dict(zip(NAMES, weigh(every), strict=True))
    on = {name: fitted_on(own) for name, own in by_set.items()}
    WEIGHTS.write_text(json.dumps({"weights": fitted, "least": given.least, "fitted_on": on}, indent=1) + "\n", "utf-8")
    print(fitted)


if __name__ == "__main__":
    main()
