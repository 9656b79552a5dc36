"""How many records have which values of each field; the counts of several parts of a corpus can be joined.

Knows which fields and values a condition can go by. Does not know corpora: it is given records.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from quoth.corpus.where import Record, Value, date_of, fields_in, number_of

DISTINCT, FIELDS, LONGEST = 1000, 1000, 200
"""Of a field with more values, and of longer values, none is counted; fields beyond this number are left out."""
LARGEST = 1e300
_READ = {"number": number_of, "date": date_of}


@dataclass(slots=True)
class Facet:
    """The values of a field in some records: how many `documents` have it, and how many have each value (`counts`, None
    if there are more than `DISTINCT`). True and false are marked, because they equal 1 and 0."""

    documents: int = 0
    counts: Counter[tuple[bool, Value]] | None = field(default_factory=Counter)
    _ends: dict[str, tuple[Any, Any] | tuple[()] | None] = field(default_factory=lambda: dict.fromkeys(_READ, ()))
    """The least and the largest value, read as each kind; None if some value is not of that kind."""

    @property
    def ends(self) -> tuple[Value, Value] | tuple[()]:
        """The least and the largest value, if all are numbers (also as text) or all are dates."""
        return next((ends for ends in self._ends.values() if ends), ())

    def most_common(self, most: int) -> list[tuple[Value, int]]:
        """The most frequent values and how many documents have them; of equally frequent ones, what came first."""
        return [(value, count) for (_, value), count in self.counts.most_common(most)] if self.counts else []

    def add(self, value: Any) -> None:
        """Count what one record has: a value, or a list of them, which counts each once."""
        self.documents += 1
        if not isinstance(value, list):
            self._count((isinstance(value, bool), value), 1)
            return
        for key in dict.fromkeys((isinstance(each, bool), each) for each in value if isinstance(each, Value)):
            self._count(key, 1)

    def join(self, other: Facet) -> None:
        """Count what other records have, too."""
        self.documents += other.documents
        for key, count in (other.counts or {}).items():
            self._count(key, count)
        if other.counts is None:
            self.counts = None
        for kind, ends in other._ends.items():
            for each in (None,) if ends is None else ends:
                self._reach(kind, each)

    def _count(self, key: tuple[bool, Value], times: int) -> None:
        counts, value = self.counts, key[1]
        if counts is not None:
            if key in counts:
                counts[key] += times
                return
            if not isinstance(value, str) or len(value) <= LONGEST:
                counts[key] = times
                if len(counts) > DISTINCT:
                    self.counts = None
        for kind, read in _READ.items():
            if self._ends[kind] is not None:
                self._reach(kind, read(value))

    def _reach(self, kind: str, value: Any) -> None:
        ends = self._ends[kind]
        if ends is None or value is None or (kind == "number" and not -LARGEST <= value <= LARGEST):
            self._ends[kind] = None
        elif not ends:
            self._ends[kind] = value, value
        elif not ends[0] <= value <= ends[1]:
            self._ends[kind] = min(ends[0], value), max(ends[1], value)


Facets = Mapping[str, Facet]


def tally(records: Iterable[Record]) -> dict[str, Facet]:
    """The values in these records, by field."""
    facets = defaultdict[str, Facet](Facet)
    for record in records:
        for name, value in fields_in(record):
            if name in facets or len(facets) < FIELDS:
                facets[name].add(value)
    return dict(facets)


def joined(several: Iterable[Facets]) -> dict[str, Facet]:
    """The values in the records of several tallies."""
    facets = dict[str, Facet]()
    for each in several:
        for name, facet in each.items():
            facets.setdefault(name, Facet()).join(facet)
    return facets
