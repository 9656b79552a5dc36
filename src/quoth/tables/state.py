"""The rows of a table over one snapshot of a corpus: as they were found, and as corrections make them.

Knows: which rows are finished. Does not know: how they are asked, or what becomes of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache, cached_property

from quoth.corpus.corpus import Corpus
from quoth.corpus.dates import Orders, orders_of
from quoth.errors import CorruptionError
from quoth.index.finder import Finder
from quoth.tables.asking import Documents, unreadable
from quoth.tables.calibration import Calibration, calibrated
from quoth.tables.cells import Cell, Row
from quoth.tables.columns import Column
from quoth.tables.compare import Comparison
from quoth.tables.corrections import Correction, Corrections, corrected, problem
from quoth.tables.journal import Journal

Documented = Mapping[str, Documents]
"""The documents of each row."""


class State:
    """The rows of a table over a corpus. Those of a state before are compared with the rows of `now`, which alone keeps
    what is known of corrections.

    `problems` says what is wrong with those of cells that were looked at.
    """

    def __init__(
        self,
        corpus: Corpus,
        columns: list[Column],
        journal: Journal,
        rows: Documented,
        corrections: Corrections,
        calibrations: Mapping[str, Calibration],
        now: State | None = None,
    ) -> None:
        self.corpus, self.rows, self.problems = corpus, rows, dict[tuple[str, str], str]()
        self._columns, self._journal, self._corrections = columns, journal, corrections
        self._calibrations = calibrations
        self._digests, self._errors = dict[str, str](), dict[str, Row]()
        self._corrected, self._now = dict[tuple[str, str], Cell](), now

    def left(self, keys: Iterable[str]) -> list[str]:
        """Those of these rows that are not finished: not asked, or by words alone though there are vectors now."""
        has_vectors = cache(lambda: Finder([self.corpus]).by_vectors() is not None)

        def is_finished(key: str, digest: str) -> bool:
            return self._journal.has(key, digest) and not (self._journal.is_by_words(key, digest) and has_vectors())

        return [key for key in keys if (digest := self.digest(key)) and not is_finished(key, digest)]

    def keep(self, row: Row) -> None:
        """Keeps a row that was asked."""
        if row.error:
            self._errors[row.document_id] = row
        else:
            self._journal.add(self.digest(row.document_id), row)

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

    def decided(self, key: str) -> Row:
        """A row that is finished, with the cells that are sure by comparison."""
        if (now := self._now) is None:
            return self.comparison.decided(self.found(key))
        later = [now.found(key)] if key in now.rows else []
        with now.comparison.instead(row := self.found(key), later):
            return now.comparison.decided(row)

    def row(self, key: str) -> Row:
        """A row that is finished, with its columns' calibrations and with the corrections of its cells."""
        if (row := self.decided(key)).error:
            return row
        own = self._corrections.cells.get(key, {})
        cells = dict(row.cells)
        for column in self._columns:
            name = column.name
            if name in self._calibrations:
                cells[name] = calibrated(cells[name], column, self._calibrations[name])
            if name in own:
                cells[name] = self._by_hand(key, own[name], column, cells[name])
        return replace(row, cells=cells)

    def _by_hand(self, key: str, correction: Correction, column: Column, cell: Cell) -> Cell:
        place = key, column.name
        if place not in self._corrected:
            documents, digest = self.rows[key], self.digest(key)
            made, known = corrected(cell, correction, column, documents, digest, self.corpus.name)
            self._corrected[place] = made
            if self._now is None:
                self._corrections.found(known)
            if said := problem(made, correction, column):
                self.problems[place] = said
        return self._corrected[place]

    def renew(self) -> None:
        """Forgets cells that were made by other calibrations."""
        self._corrected.clear()

    def finished(self) -> Iterator[Row]:
        """All rows, one in memory at a time, with the dates of which only a column's others tell day and month."""
        columns = [each for each in self._columns if each.kind == "date"]
        orders: dict[str, Orders] = {
            each.name: orders_of(self.row(key).cells[each.name].text for key in self.rows) for each in columns
        }
        for row in map(self.row, self.rows):
            settled = {each.name: row.cells[each.name].settled(each, orders[each.name]) for each in columns}
            yield replace(row, cells=row.cells | settled)
