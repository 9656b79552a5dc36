"""A table over a corpus: asked, kept row by row, and compared with how it was.

Knows: the order of the steps. Does not know: how a question is answered, or what a table looks like as a file.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from quoth.corpus.bm25 import check_not_empty
from quoth.corpus.corpus import Corpus, CorpusOrPath, listed
from quoth.corpus.dates import Orders, orders_of
from quoth.corpus.view import parts
from quoth.errors import CorruptionError
from quoth.storage import encode_json
from quoth.tables.asking import Asker, Documents, rows_of, unreadable
from quoth.tables.cells import Row
from quoth.tables.changes import Change, changes_of
from quoth.tables.columns import Column, Questions, columns_of
from quoth.tables.compare import Comparison
from quoth.tables.files import check_output, with_links, write
from quoth.tables.journal import BESIDE, Journal

if TYPE_CHECKING:
    from quoth.reader.model import Reader

Rows = Mapping[str, Documents]
Progress = Callable[[int, int, int, float], None]
"""Told the number of rows that are finished, of all, how many of them were asked now, and in how many seconds."""


class State:
    """The rows of a table over a corpus as one snapshot shows it."""

    def __init__(self, corpus: Corpus, columns: list[Column], reader: Reader, journal: Journal, rows: Rows) -> None:
        self._asker, self._columns, self._journal = Asker(reader.reader, corpus, columns), columns, journal
        self.rows = rows
        self._digests, self._errors = dict[str, str](), dict[str, Row]()

    def fill(self, keys: Sequence[str], progress: Progress | None = None) -> None:
        """Asks what is not finished of these rows, in order."""
        asked, seconds = 0, 0.0
        for done, key in enumerate(keys, 1):
            began = time.perf_counter()
            if self.digest(key) and self._journal.get(key, self.digest(key)) is None:
                row = self._asker.row(key, self.rows[key])
                if row.error:
                    self._errors[key] = row
                else:
                    self._journal.add(self.digest(key), row)
                asked, seconds = asked + 1, seconds + time.perf_counter() - began
            if progress is not None:
                progress(done, len(keys), asked, seconds)

    def digest(self, key: str) -> str:
        """That of a row's documents; "" if they cannot be read."""
        if key not in self._digests:
            try:
                self._digests[key] = self.rows[key].digest()
            except CorruptionError as error:
                self._digests[key], self._errors[key] = "", unreadable(key, self._columns, error)
        return self._digests[key]

    def found(self, key: str) -> Row:
        """A row that is finished, as it was found."""
        if key in self._errors:
            return self._errors[key]
        row = self._journal.get(key, self._digests[key])
        assert row is not None
        return row

    @cached_property
    def comparison(self) -> Comparison:
        """The columns' cells, compared with each other."""
        made = Comparison(self._columns)
        for key in self.rows:
            made.add(self.found(key))
        return made

    def finished(self) -> Iterator[Row]:
        """All rows, one in memory at a time, with the dates of which only a column's others tell day and month."""
        columns = [each for each in self._columns if each.kind == "date"]
        orders: dict[str, Orders] = {
            each.name: orders_of(self._decided(key).cells[each.name].text for key in self.rows) for each in columns
        }
        for row in map(self._decided, self.rows):
            settled = {each.name: row.cells[each.name].settled(each, orders[each.name]) for each in columns}
            yield replace(row, cells=row.cells | settled)

    def _decided(self, key: str) -> Row:
        return self.comparison.decided(self.found(key))


class Run:
    """A table that is being made: over a corpus, with its journal, maybe beside what it was at a snapshot before.

    A context manager: `fill` it, then read `rows` and `changes`, and `save` it, with links to the files that the
    documents were read from if their folder is given.
    """

    def __init__(
        self,
        corpus: Corpus,
        columns: list[Column],
        reader: Reader,
        *,
        by: str | None = None,
        output: Path | None = None,
        before: Corpus | None = None,
        files: Path | None = None,
    ) -> None:
        check_not_empty([corpus])
        states = [(each, rows_of(each, by)) for each in (corpus, before) if each is not None]
        self.columns, self._output, self._files, self._open = columns, output, files, ExitStack()
        identity = {
            "questions": [each.to_dict() for each in columns],
            "corpus": corpus.name,
            "where": corpus.condition,
            "by": by,
            "model": [reader.name, sha256(encode_json(reader.config.to_dict())).hexdigest()],
        }
        with ExitStack() as opened:
            if output is None:
                path = Path(opened.enter_context(TemporaryDirectory())) / "table.rows"
            else:
                path = output.with_name(output.name + BESIDE)
            self._journal = opened.enter_context(Journal(path, identity, output))
            self._journal.check_output()
            self.now, *was = (State(each, columns, reader, self._journal, rows) for each, rows in states)
            self._before = was[0] if was else None
            self._open = opened.pop_all()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *exception: object) -> None:
        self._open.close()

    def fill(self, progress: Progress | None = None) -> None:
        """Asks all that is not finished, row by row; of the state before, only documents that changed since."""
        self.now.fill([*self.now.rows], progress)
        if self._before is not None:
            self._before.fill([key for key in self._differing(self._before) if key in self._before.rows], progress)

    def rows(self) -> Iterator[Row]:
        """The rows, one in memory at a time."""
        return self.now.finished()

    def changes(self) -> Iterator[Change]:
        """The cells that changed since the state before, if there is one; those of new and deleted documents too."""
        if (before := self._before) is None:
            return
        for key in self._differing(before):
            states = [state if key in state.rows else None for state in (before, self.now)]
            decided = self.now.comparison.decided
            old, new = (Row(key) if state is None else decided(state.found(key)) for state in states)
            texts = [(lambda: "") if state is None else state.rows[key].text for state in states]
            if not (old.error or new.error):
                yield from changes_of(self.columns, old, new, (texts[0], texts[1]))

    def save(self) -> None:
        """Writes the output."""
        if self._output is not None:
            write(self._output, self.columns, self._linked, self._journal.will_write)

    def _linked(self) -> Iterator[Row]:
        if self._files is None or self._output is None:
            return self.rows()
        return map(partial(with_links, files=self._files, beside=self._output.absolute().parent), self.rows())

    def _differing(self, before: State) -> Iterator[str]:
        """The rows of both states whose documents are not equal, those of now first."""
        for key in dict.fromkeys([*self.now.rows, *before.rows]):
            if not (key in before.rows and key in self.now.rows and before.digest(key) == self.now.digest(key)):
                yield key


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
        write(Path(path), self.columns, lambda: iter(self.rows))


def table(
    corpus: CorpusOrPath,
    questions: Questions,
    *,
    model: str | Path | Reader = "quoth-reader",
    where: str | None = None,
    by: str | None = None,
    since: int | None = None,
    output: str | Path | None = None,
    files: str | Path | None = None,
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
        since (int | None): Compare with the corpus as its snapshot of this number shows it. Default: None.
        output (str | Path | None): A file to write; finished rows are kept beside it, so that a stopped run goes on
            and a later one asks only of documents that changed. Default: None.
        files (str | Path | None): The folder that was indexed, or a copy: places in the output lead to its files.
            Default: None.
        progress (Callable[[int, int, int, float], None] | None): Receives the number of rows that are finished, of
            all, how many of them were asked now, and in how many seconds. Default: None.

    Returns:
        The table: `rows` with their `cells` by column, each a quotation with its value and its places, or empty with
        the `candidate` that came nearest; and `changes`.

    Raises:
        InputError: A question or a condition that cannot be read, an output that belongs to another table.
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
    before = None if since is None else Corpus.open(opened.path, since)
    if before is not None and opened.condition:
        [before] = parts([before], opened.condition)
    if where is not None:
        opened, before = parts([opened], where)[0], None if before is None else parts([before], where)[0]
    reader = model if isinstance(model, Reader) else Reader.from_pretrained(model, corpus=opened)
    folder = None if files is None else Path(files)
    with Run(opened, columns, reader, by=by, output=path, before=before, files=folder) as run:
        run.fill(progress)
        run.save()
        return Table(columns, [*run.rows()], [*run.changes()])
