"""Asks a table, or the plain reader, for the cells of a set, and counts which are right.

Knows: sets, what fills a cell. Does not know: where sets come from, or how cells are found.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from quoth.corpus.corpus import Corpus
from quoth.index.finder import Finder
from quoth.reader.model import Reader
from quoth.records import Document
from quoth.tables.table import table
from quoth_eval.report import Table
from quoth_eval.statistics import wilson
from quoth_eval.tables.sets import ROW, Gold, TableSet

Progress = Callable[[int, int], None]
"""Told the number of rows that are finished, and of all."""


class Filled(NamedTuple):
    """What fills a cell: a quotation and its characters in its document, and its place as JSON has it."""

    text: str
    start: int
    end: int
    place: dict[str, Any]


Cells = dict[tuple[str, str], Filled]
"""The cells that are filled, by row and column."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Cells of a set: those whose answer is stated, how many of them are filled, and rightly; those whose answer is
    not, and how many of them are filled; of these, `elsewhere`: the text says what the deleted field said, in another
    place, so that they are right by the same rule. `cpu_seconds` is the mean of a cell."""

    system: str
    name: str
    rows: int
    stated: int
    filled: int
    right: int
    absent: int
    filled_absent: int
    elsewhere: int
    cpu_seconds: float | None

    def to_dict(self) -> dict[str, Any]:
        """As JSON has them."""
        return asdict(self)


Ask = Callable[[TableSet, Corpus, Reader, Progress], Cells]


def by_table(given: TableSet, corpus: Corpus, reader: Reader, progress: Progress) -> Cells:
    """The cells of `quoth table`, which is kept beside the corpus."""
    output = corpus.path.with_suffix(".jsonl")
    made = table(
        corpus, given.columns, model=reader, by=ROW, output=output, progress=lambda done, rows, *_: progress(done, rows)
    )
    return {
        (row.document_id, name): Filled(cell.text, place["start"], place["end"], place)
        for row in made.rows
        for name, cell in row.cells.items()
        if cell.text
        for place in cell.evidence[:1]
    }


def by_reader(given: TableSet, corpus: Corpus, reader: Reader, progress: Progress) -> Cells:
    """The best phrases that the reader is sure of, asked of the documents of a row alone."""
    found: Cells = {}
    for done, row in enumerate(given.rows, 1):
        alone = reader.where(f"{ROW} = '{row.replace(chr(39), chr(39) * 2)}'")
        answers = alone.ask([each.wordings[0] for each in given.columns], top_k=1)
        for column, [*best] in zip(given.columns, answers, strict=True):
            if best and not best[0].abstained:
                place = best[0].evidence[0]
                found[row, column.name] = Filled(best[0].text, place.start, place.end, {})
        progress(done, len(given.rows))
    return found


SYSTEMS: dict[str, Ask] = {"table": by_table, "reader": by_reader}


def measured(system: str, given: TableSet, reader: Reader, folder: Path, progress: Progress) -> tuple[Counts, Cells]:
    """Asks a system all cells of a set, over a corpus in the folder, which is made if it is not there."""
    corpus, is_new = corpus_of(given, folder, given.documents)
    began = time.process_time()
    cells = SYSTEMS[system](given, corpus, Reader(reader.reader, [corpus], reader.name), progress)
    took = time.process_time() - began
    return counted(system, given, cells, took if is_new or system != "table" else None), cells


def corpus_of(given: TableSet, folder: Path, documents: Callable[[], Iterable[Document]]) -> tuple[Corpus, bool]:
    """The corpus of a set in a folder, and whether it was made now."""
    path = folder / f"{given.name.replace(', ', '-').replace(' ', '-')}-{len(given.rows)}.quoth"
    made = Corpus.open(path) if path.exists() else Corpus.create(path)
    if is_new := not made.num_documents:
        made.add(documents())
    Finder([made]).embed()  # as `quoth index` does
    return made, is_new


def counted(system: str, given: TableSet, cells: Cells, cpu_seconds: float | None) -> Counts:
    """How many cells are filled, and right."""
    stated = {(row, name) for row, name, _ in golds(given) if not given.deleted}
    every = {(row, column.name) for row in given.rows for column in given.columns}
    right = {(row, name) for row, name, gold in golds(given) if accepted(gold, cells.get((row, name)))}
    return Counts(
        system,
        given.name,
        len(given.rows),
        len(stated),
        len(stated & cells.keys()),
        len(stated & right),
        len(every - stated),
        len(cells.keys() - stated),
        len(right - stated),
        None if cpu_seconds is None else round(cpu_seconds / len(every), 3),
    )


def golds(given: TableSet) -> Iterator[tuple[str, str, Gold]]:
    """What answers, by row and column; in a set with deleted fields, what they were."""
    for row in given.rows:
        for name, gold in given.gold[row].items():
            yield row, name, gold


def accepted(gold: Gold, cell: Filled | None) -> bool:
    """Whether a cell is filled, and right."""
    return cell is not None and gold.accepts(cell.text, cell.start, cell.end)


def counts_table(counted: list[Counts]) -> Table:
    """The counts, as tables are printed, shares in percent with their intervals."""
    stated, absent = ["stated", "filled", "right of these"], ["not stated", "filled", "said elsewhere", "wrong"]
    heads = ["set", "system", "rows", *stated, *absent, "CPU s"]
    return heads, [
        [
            each.name,
            each.system,
            f"{each.rows}",
            f"{each.stated}",
            f"{each.filled} ({wilson(each.filled, each.stated)})" if each.stated else "",
            f"{each.right} ({wilson(each.right, each.filled)})" if each.filled else "",
            f"{each.absent}",
            f"{each.filled_absent}" if each.absent else "",
            f"{each.elsewhere}" if each.absent else "",
            f"{wrong} ({wilson(wrong, each.absent)})" if each.absent else "",
            "" if each.cpu_seconds is None else f"{each.cpu_seconds:.2f}",
        ]
        for each in counted
        for wrong in [each.filled_absent - each.elsewhere]
    ]
