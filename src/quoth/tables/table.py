"""A table over a corpus: asked, kept row by row, and compared with how it was.

Knows: the order of the steps. Does not know: how a question is answered, or what a table looks like as a file.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from quoth.answers.calibration import LEAST_ANSWERS
from quoth.corpus.bm25 import check_not_empty
from quoth.corpus.corpus import Corpus, CorpusOrPath, listed
from quoth.corpus.view import parts
from quoth.errors import InputError, few
from quoth.storage import encode_json
from quoth.tables import compare
from quoth.tables.asking import Asker, rows_of
from quoth.tables.calibration import best_of, fitted, told
from quoth.tables.cells import CONFIRMED, Row
from quoth.tables.changes import Change, changes_of, same
from quoth.tables.columns import Column, Questions, columns_of
from quoth.tables.corrections import DIGITS, SUFFIX, Corrections
from quoth.tables.files import check_output, with_links, write
from quoth.tables.journal import BESIDE, Journal
from quoth.tables.pictures import MARKED, Drawn
from quoth.tables.since import Since, snapshot_at
from quoth.tables.state import State
from quoth.tables.told import Look
from quoth.tables.workers import at_once

if TYPE_CHECKING:
    from quoth.reader.model import Reader

Progress = Callable[[int, int, int, float], None]
"""Told the number of rows that are finished, of all, how many of them were asked now, and in how many seconds."""
Asks = Callable[[Corpus, Sequence[Column], str | None, Sequence[str]], Iterator[Row]]
"""Asks the columns' questions of these rows, by the field that documents are grouped by, somewhere else."""


@dataclass(frozen=True, slots=True)
class Options:
    """How a table is made and written, as `table` documents it; `asks` asks rows elsewhere."""

    by: str | None = None
    output: Path | None = None
    since: Since | None = None
    files: Path | None = None
    corrections: Path | None = None
    calibrate: bool = False
    pictures: bool = True
    marked: bool = False
    workers: int = 1
    asks: Asks | None = None

    @property
    def by_hand(self) -> Path | None:
        """The file of corrections: by default beside the output."""
        if self.corrections is None and self.output is not None:
            return self.output.with_name(self.output.stem + SUFFIX)
        return self.corrections


class Run:
    """A table that is being made: over a corpus, with its journal, maybe beside what it was at a snapshot before.

    A context manager: `fill` it, `save` it, read its `rows` and `changes`. What is known of corrections is kept at the
    end.
    """

    def __init__(self, corpus: Corpus, columns: list[Column], reader: Reader, options: Options | None = None) -> None:
        check_not_empty([corpus])
        if options is not None and options.workers < 1:
            raise InputError(f"workers {options.workers}; it must be at least 1")
        self.columns, self.options, self._reader = columns, options or Options(), reader
        before = None if self.options.since is None else _opened_at(corpus, self.options.since)
        states = [(each, rows_of(each, self.options.by)) for each in (corpus, before) if each is not None]
        output, model = self.options.output, [reader.name, sha256(encode_json(reader.config.to_dict())).hexdigest()]
        identity = {
            "questions": [each.to_dict() for each in columns],
            "corpus": corpus.name,
            "where": corpus.condition,
            "by": self.options.by,
            "model": model,
        }
        self._of = {
            each.name: sha256(encode_json([each.wordings, each.type, model, compare.fitted()])).hexdigest()
            for each in columns
        }
        self._corrections = Corrections(self.options.by_hand)
        every = self._corrections.calibrations
        self.calibrations = {name: each for name, each in every.items() if each.of == self._of.get(name)}
        self.fitted, self.unmarked, self.left_out = list[str](), dict[str, str](), 0
        if self.options.calibrate:
            self._check_enough(Counter(name for own in self._corrections.cells.values() for name in own))
        with ExitStack() as opened:
            if output is None:
                path = Path(opened.enter_context(TemporaryDirectory())) / "table.rows"
            else:
                path = output.with_name(output.name + BESIDE)
            self._journal = opened.enter_context(Journal(path, identity, output))
            self._journal.check_output()
            (_, now), *was = states
            given = self._corrections, self.calibrations
            self.now = State(corpus, columns, self._journal, now, *given)
            old = [State(each, columns, self._journal, rows, *given, self.now) for each, rows in was]
            self._before = old[0] if old else None
            self._open = opened.pop_all()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        with self._open:
            if kind is None:
                self._corrections.save()

    def left(self) -> int:
        """How many rows are to be asked."""
        return sum(len(state.left(keys)) for state, keys in self._asked())

    def fill(self, progress: Progress | None = None) -> None:
        """Asks all that is not finished; of the state before, only documents that changed since. Then fits the chances
        of columns, if that is wanted."""
        for state, keys in self._asked():
            left, began = state.left(keys), time.perf_counter()
            done = len(keys) - len(left)
            if progress is not None:
                progress(done, len(keys), 0, 0.0)
            for asked, row in enumerate(self._answered(state, left), 1):
                state.keep(row)
                if progress is not None:
                    progress(done + asked, len(keys), asked, time.perf_counter() - began)
        if self.options.calibrate:
            self._calibrate()

    def _asked(self) -> Iterator[tuple[State, list[str]]]:
        yield self.now, [*self.now.rows]
        if (before := self._before) is not None:
            yield before, [key for key in self._differing(before) if key in before.rows]

    def _answered(self, state: State, keys: Sequence[str]) -> Iterator[Row]:
        """The rows of these documents, in any order."""
        if self.options.asks is not None:
            return self.options.asks(state.corpus, self.columns, self.options.by, keys)
        asker = Asker(self._reader.reader, state.corpus, self.columns)
        return at_once(lambda key: asker.row(key, state.rows[key]), keys, self.options.workers)

    def rows(self) -> Iterator[Row]:
        """The rows, one in memory at a time."""
        return self.now.finished()

    def changes(self) -> Iterator[Change]:
        """The cells that changed since the state before, if there is one; those of new and deleted documents too."""
        if (before := self._before) is None:
            return
        for key in self._differing(before):
            states = [state if key in state.rows else None for state in (before, self.now)]
            old, new = (Row(key) if state is None else state.row(key) for state in states)
            texts = [(lambda: "") if state is None else state.rows[key].text for state in states]
            if not (old.error or new.error):
                yield from changes_of(self.columns, old, new, (texts[0], texts[1]))

    def save(self) -> None:
        """Writes the output, with pictures on a page, and highlighted copies of PDFs if they are wanted."""
        output, files = self.options.output, self.options.files
        if output is None:
            return
        look = Look(output.stem, digest=lambda row: self.now.digest(row.document_id)[:DIGITS])
        if files is None:
            write(output, self.columns, self.rows, look, self._journal.will_write)
            return
        beside, marked = output.absolute().parent, output.with_name(output.stem + MARKED)
        with Drawn(files) as drawn:
            if self.options.marked:
                copies = dict(drawn.copies(self.rows(), marked, self._journal))
                self.unmarked = {name: why for name, why in copies.items() if why}

            def linked() -> Iterator[Row]:
                for row in self.rows():
                    row = with_links(row, marked, beside, self.unmarked) if self.options.marked else row
                    yield with_links(row, files, beside)

            look = replace(look, pictures=drawn.of_row) if self.options.pictures else look
            write(output, self.columns, linked, look, self._journal.will_write)
            self.left_out = drawn.num_left_out

    def problems(self) -> Iterator[str]:
        """What is wrong with corrections and calibrations of cells that were looked at, a line each: none is lost."""
        for (key, name), said in self.now.problems.items():
            yield f"{key} · {name}: {said}"
        cells = [(key, name) for key, own in self._corrections.cells.items() for name in own]
        if beyond := [each for each in cells if each[0] not in self.now.rows or each[1] not in self._of]:
            named = few([f"{key} · {name}" for key, name in beyond])
            yield f"the table has no such cells, but corrections of them are kept: {named}"
        for name, each in self._corrections.calibrations.items():
            if name in self._of and each.of != self._of[name]:
                yield f"{name}: fitted to another question or model and left out; --calibrate fits it again"

    def _calibrate(self) -> None:
        judged = {each.name: [*self._judged(each)] for each in self.columns}
        self._check_enough({name: len(pairs) for name, pairs in judged.items()})
        for column in self.columns:
            if len(pairs := judged[column.name]) >= LEAST_ANSWERS:
                made = fitted([chance for chance, _ in pairs], [right for _, right in pairs], self._of[column.name])
                self.calibrations[column.name] = made
                self._corrections.calibrate(column.name, made)
                self.fitted.append(f"{column.name}: {told(made, pairs)}")
        for state, _ in self._asked():
            state.renew()

    def _judged(self, column: Column) -> Iterator[tuple[float, bool]]:
        """The chance of the best answer of each cell that a person confirmed, and whether that is what they said."""
        for key in [key for key in self._corrections.cells if key in self.now.rows]:
            found, cell = self.now.decided(key).cells[column.name], self.now.row(key).cells[column.name]
            if cell.status == CONFIRMED and (best := best_of(found, column)) is not None:
                yield best.probability, bool(cell.text) and same(best, cell, column)

    def _check_enough(self, counts: Mapping[str, int]) -> None:
        if max(counts.values(), default=0) < LEAST_ANSWERS:
            known = few([f"{each.name} has {counts.get(each.name, 0)}" for each in self.columns], 20)
            raise InputError(
                f"calibrate: no column has {LEAST_ANSWERS} confirmed cells for which an answer was found; {known}"
            )

    def _differing(self, before: State) -> Iterator[str]:
        """The rows of both states whose documents are not equal, those of now first."""
        for key in dict.fromkeys([*self.now.rows, *before.rows]):
            if not (key in before.rows and key in self.now.rows and before.digest(key) == self.now.digest(key)):
                yield key


def _opened_at(corpus: Corpus, since: Since) -> Corpus:
    """The corpus, or the same part of it, as it was."""
    before = Corpus.open(corpus.path, snapshot_at(corpus, since))
    return parts([Corpus.open(corpus.path), before], corpus.condition)[1] if corpus.condition else before


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its columns, its rows, and the cells that changed since the snapshot that it is compared with."""

    columns: list[Column]
    rows: list[Row]
    changes: list[Change]

    def __repr__(self) -> str:
        filled = sum(bool(cell.text) for row in self.rows for cell in row.cells.values())
        return (
            f"Table(rows={len(self.rows)}, columns={len(self.columns)}, filled={filled}, changes={len(self.changes)})"
        )

    def save(self, path: str | Path) -> None:
        """Write it as .csv, .xlsx, .html, .jsonl or .parquet.

        Args:
            path (str | Path): The file; one that exists is replaced.

        Raises:
            InputError: Another suffix, or what writes it is not installed.
        """
        check_output(Path(path))
        write(Path(path), self.columns, lambda: iter(self.rows), Look(Path(path).stem))


def table(
    corpus: CorpusOrPath,
    questions: Questions,
    *,
    model: str | Path | Reader = "quoth-reader",
    where: str | None = None,
    by: str | None = None,
    since: Since | None = None,
    output: str | Path | None = None,
    files: str | Path | None = None,
    corrections: str | Path | None = None,
    calibrate: bool = False,
    pictures: bool = True,
    marked: bool = False,
    workers: int = 1,
    progress: Progress | None = None,
) -> Table:
    """Ask the same questions of every document: a row for each, a column per question.

    Args:
        corpus (Corpus | str | Path): The documents.
        questions (str | Path | Sequence[str | Column | Mapping]): A questions file (one question a line, .csv or
            .toml), or the questions themselves; a column is a `quoth.Column` or a mapping of its fields.
        model (str | Path | Reader): The reader that answers. Default: "quoth-reader".
        where (str | None): Only documents that meet this condition (`Corpus.where`). Default: None.
        by (str | None): A field of the metadata: a row is all documents with the same value of it. Default: None.
        since (int | str | date | None): Compare with the corpus as its snapshot of this number shows it, or the last
            one made at or before a date, in ISO 8601. Default: None.
        output (str | Path | None): A file to write; finished rows are kept beside it, so that a stopped run goes on
            and a later one asks only of documents that changed. Default: None.
        files (str | Path | None): The folder that was indexed, or a copy: places in the output lead to its files.
            Default: None.
        corrections (str | Path | None): Cells that a person confirmed or corrected, kept in this file. Default: None,
            the output's name with `.corrections.json` in place of its suffix.
        calibrate (bool): Fit the chances of columns to their confirmed cells, 30 at least. Default: False.
        pictures (bool): On a page (.html) show places in PDFs of `files` as pictures. Default: True.
        marked (bool): Write copies of the PDFs of `files` with every cell's place highlighted, in a folder beside the
            output, to which places lead. Default: False.
        workers (int): Rows that are asked at once. Default: 1.
        progress (Callable[[int, int, int, float], None] | None): Receives the number of rows that are finished, of
            all, how many of them were asked now, and in how many seconds. Default: None.

    Returns:
        The table: `rows` with their `cells` by column, each a quotation with its value and its places, or empty with
        the `candidate` that came nearest; and `changes`.

    Raises:
        InputError: A question or a condition that cannot be read, an output that belongs to another table, corrections
            that cannot be read or are too few.
        CorpusNotFoundError: No corpus there, or no such snapshot.
        EmptyCorpusError: No document to ask.

    Example:
        >>> first = quoth.Column("first night", "When was Carmen first performed?", "date")
        >>> made = quoth.table(corpus.where("id = 'carmen'"), [first])
        >>> made.rows[0].cells["first night"].value
        '1875'
    """
    from quoth.reader.model import Reader

    columns, [opened] = columns_of(questions), listed(corpus)
    path = None if output is None else Path(output)
    if path is not None:
        check_output(path)
    if where is not None:
        [opened] = parts([opened], where)
    reader = model if isinstance(model, Reader) else Reader.from_pretrained(model, corpus=opened)
    options = Options(
        by,
        path,
        since,
        None if files is None else Path(files),
        None if corrections is None else Path(corrections),
        calibrate,
        pictures,
        marked,
        workers,
    )
    with Run(opened, columns, reader, options) as run:
        run.fill(progress)
        run.save()
        return Table(columns, [*run.rows()], [*run.changes()])
