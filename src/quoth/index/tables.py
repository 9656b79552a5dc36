"""One model's keys over a corpus: opened for search, and made if they are missing.

Knows: which segments have keys, how they look at a snapshot, in what order they are made. Does not know: their files
(`key_store`), how a table is made (`build`), search.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from quoth.corpus.manifest import segment_of
from quoth.encoders.keys import EncodedPassage, KeyEncoder
from quoth.errors import CorruptionError, EncoderMismatchError, InputError, advising
from quoth.fields import checked, fields_of
from quoth.index import codes
from quoth.index.build import FITTED_PARTS, PASSAGES_PER_PART, Builder, sample_queries
from quoth.index.codes import open_codes
from quoth.index.costs import Cost, Shortfall
from quoth.index.key_store import FORMAT, KeyStore, Source, absent_from, carry, is_sound, stores, table_facts
from quoth.index.key_table import KeyTable, open_columns
from quoth.index.options import EmbedOptions, Storage
from quoth.index.vectors import BITS, KeyVectors, bytes_of, nearest_rows
from quoth.memory import WORKING_MEMORY
from quoth.storage import check_folder, publish_folder, refuse_links_below, remove

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus
    from quoth.corpus.segment import Segment

COLUMN_BYTES = 6
SAMPLED_PASSAGES, SAMPLED_SECONDS, MOST_SAMPLED = 32, 3.0, 256
"""An estimate encodes this many passages at a time, for this many seconds, and at most this many in all."""
LATE_PASSAGES = 256
SAMPLED_QUERIES = 32


@dataclass(frozen=True, slots=True)
class _Held:
    """What is stored of a segment: tables, with no passage in two of them, and the rows of the passages in none."""

    tables: tuple[KeyTable, ...]
    absent_rows: NDArray[np.int64]


_Place = tuple[str, tuple[Path, ...]]
"""A segment's name, and the tables that it is read from."""


class KeyTables:
    """One model's tables over one corpus, or over only those of its segments that `only` names."""

    def __init__(self, corpus: Corpus, encoder: KeyEncoder, only: Collection[str] | None = None) -> None:
        self._corpus, self._encoder, self._only = corpus, encoder, only
        self._store = KeyStore(corpus.path, encoder.fingerprint[:16])
        self._mapped: dict[_Place, _Held] = {}
        self._shown: dict[_Place, _Held] = {}
        self._shown_of = -1
        self._lock = threading.Lock()

    @property
    def folder(self) -> Path:
        """Where the tables are, or will be."""
        return self._store.folder

    @property
    def _segments(self) -> list[Segment]:
        return [each for each in self._corpus.segments if self._only is None or each.name in self._only]

    def precision(self) -> Storage:
        """The precision of the vectors that are stored; "sq8" if there are none."""
        found: Storage = next((facts["precision"] for facts in self._store.facts()), "sq8")
        return found

    def missing(self) -> list[Segment]:
        """The segments with passages that no sound table of this model has."""
        with advising(self._corpus.path):
            return [each for each in self._segments if not self._store.is_stored(each)]

    def open(self) -> tuple[list[KeyTable], list[int]]:
        """Every segment's tables, and the few live passages that none of them holds.

        Raises InputError or EncoderMismatchError if more have no vectors.
        """
        held = self._held(self._segments)
        rows = np.concatenate([np.zeros(0, np.int64), *(each.absent_rows for each in held)])
        late: list[int] = rows[self._corpus.live(rows)].tolist()
        embedded = any(self._store.tables(each.name) for each in self._corpus.segments)
        if len(late) > (LATE_PASSAGES if embedded else 0):
            self._explain(sum(1 for each in held if len(each.absent_rows)))
        return [keys for each in held for keys in each.tables], late

    def _held(self, segments: Sequence[Segment]) -> list[_Held]:
        """What is stored of some segments; read again if tables are written meanwhile. Raises CorruptionError."""
        with advising(self._corpus.path):
            while True:
                tables = [self._store.tables(each.name) for each in segments]
                try:
                    return [self._at(*each) for each in zip(segments, tables, strict=True)]
                except CorruptionError:
                    if tables == [self._store.tables(each.name) for each in segments]:
                        raise

    def _explain(self, missing: int) -> None:
        path, name, kind = self._corpus.path, self._encoder.name, self._encoder.keys
        command = f"`quoth embed {path} --keys {kind} --model {name}`"
        others = [facts for store in stores(path) for facts in store.facts()]
        present = sorted({f"{each['model']} ({each['fingerprint'][:8]})" for each in others})
        if present and not self.folder.is_dir():
            raise EncoderMismatchError(
                f"{path}: has keys of {', '.join(present)}, not of {name} ({self._encoder.fingerprint[:8]}); "
                f"{command} adds them"
            )
        other = "; an NPM needs none to search BM25's passages (passages=3)" if kind == "tokens" else ""
        raise InputError(
            f"{path}: {missing} of {len(self._corpus.segments)} segments have no vectors of {name}; "
            f"{command} makes them{other}"
        )

    def _at(self, segment: Segment, tables: tuple[Path, ...]) -> _Held:
        """A segment's keys in these tables, mapped, with the snapshot's deletions. Raises CorruptionError."""
        with self._lock:
            if self._shown_of != self._corpus.snapshot:
                here = {(each.name, self._store.tables(each.name)) for each in self._corpus.segments}
                self._mapped = {place: held for place, held in self._mapped.items() if place in here}
                self._shown, self._shown_of = {}, self._corpus.snapshot
            place = (segment.name, tables)
            shown = self._shown.get(place)
            if shown is None:
                held = self._mapped[place] = self._mapped.get(place) or self._map(segment, tables)
                self._shown[place] = shown = replace(held, tables=tuple(map(self._show, held.tables)))
            return shown

    def _show(self, keys: KeyTable) -> KeyTable:
        live_P = self._corpus.live(keys.passage_rows_P)
        return replace(keys, live_P=live_P if keys.live_P is None else live_P & keys.live_P)

    def stored(self, passage_rows: Sequence[int]) -> tuple[list[KeyTable], set[int]]:
        """Tables of those of these passages whose vectors are stored, by segment; and which those are."""
        tables: list[KeyTable] = []
        found: set[int] = set()
        if not self.folder.is_dir():
            return tables, found
        for segment in self._corpus.segments:
            if rows := [row for row in passage_rows if segment.first_row <= row < segment.last_row]:
                [held] = self._held([segment])
                for keys in held.tables:
                    if len(mine_P := keys.places(rows)):
                        tables.append(keys.take(mine_P))
                        found.update(keys.passage_rows_P[mine_P].tolist())
        return tables, found

    def _map(self, segment: Segment, tables: Sequence[Path]) -> _Held:
        sources = self._store.sources(segment, tables)
        absent = absent_from(sources, segment.num_passages)
        return _Held(tuple(self._map_one(segment, each) for each in sources), segment.first_row + absent)

    def _map_one(self, segment: Segment, source: Source) -> KeyTable:
        """A table as a segment reads it: passages that are not the segment's are hidden."""
        folder = source.table
        check_folder(folder)
        if (made := table_facts(folder)["format"]) != FORMAT:
            raise InputError(
                f"{folder}: embedded by another version of Quoth (format {made}, not {FORMAT}); delete {self.folder} "
                "and embed again"
            )
        columns = open_columns(folder)
        vectors = KeyVectors.open(folder, self._encoder.scale)
        count = len(columns.offsets_P1) - 1
        own = segment_of(folder) == segment.name
        fits = count == segment.num_passages if own else count > source.there_M.max(initial=-1)
        if not fits or not len(columns.ids_N) == len(vectors) == int(columns.offsets_P1[-1]):
            raise CorruptionError(
                f"{folder}: its arrays do not fit the segment; delete it, `quoth embed` makes it again"
            )
        rows_P, here_P = np.full(count, -1), np.zeros(count, np.bool_)
        rows_P[source.there_M], here_P[source.there_M] = segment.first_row + source.here_M, True
        # rows must ascend, and only the first of equal rows is looked up: a hidden passage takes its predecessor's
        rows_P = np.maximum.accumulate(rows_P)
        found = open_codes(self._store.codes(segment_of(folder)), len(vectors))
        return KeyTable.over(
            columns, corpus=self._corpus, passage_rows_P=rows_P, vectors=vectors, live_P=here_P, codes=found
        )

    def build(
        self,
        precision: str,
        recall: float | None = None,
        progress: Callable[[int, int], None] | None = None,
        memory: int = WORKING_MEMORY,
    ) -> list[Shortfall]:
        """Encode every segment that has no table, or a damaged one; resumes a stopped run.

        Large segments get codes that find the share `recall` of a blank's neighbours (by default the share requested
        last, or 0.97); 1 removes the codes. `progress` receives passages done and passages in all. At most about
        `memory` bytes are used in addition to the loaded model. Returns the segments whose codes cannot find that many.
        Raises InputError on an unknown precision, or on one that differs from what is stored, LockedError while another
        process embeds with this model.
        """
        with self.building(precision, recall) as target:
            self.build_segments(precision, target, progress, memory)
            return self.shortfalls()

    def build_segments(
        self,
        precision: str,
        target: float,
        progress: Callable[[int, int], None] | None = None,
        memory: int = WORKING_MEMORY,
    ) -> None:
        """The tables that are missing, then the codes that are; within `building`, here or in another process."""
        for segment in self._segments:
            carry(self._store, segment)
        missing = self.missing()
        total, done = sum(each.num_passages for each in missing), 0
        if progress and total:
            progress(0, total)
        for segment in missing:
            builder = Builder(self._corpus, segment, self._encoder, precision, self._store, memory)
            for finished in builder.run():
                done += finished
                if progress:
                    progress(done, total)
        for segment in self._segments:
            self._code(segment, target, memory)
        self._mapped, self._shown = {}, {}

    def unfinished(self, target: float) -> list[str]:
        """The segments that lack a table of their own, or codes that reach this recall."""
        whole = {each.name: is_sound(self._store.whole(each.name)) for each in self._segments}
        return [each.name for each in self._segments if not whole[each.name] or self._lacks_codes(each, target)]

    def complete(self) -> Iterator[Path]:
        """The folders here of these segments' own tables and codes, as far as they are sound."""
        made = (of(each.name) for each in self._segments for of in (self._store.whole, self._store.codes))
        return filter(is_sound, made)

    def left(self, precision: str) -> int:
        """The number of passages still to be encoded."""
        left = 0
        for segment in self.missing():
            absent = self._store.absent(segment)
            parts = self._store.part(segment.name, precision).glob("[0-9]*")
            firsts = [int(part.name) for part in parts if part.name.isdecimal()]
            done = (bisect_left(absent, first + PASSAGES_PER_PART) - bisect_left(absent, first) for first in firsts)
            left += len(absent) - sum(done)
        return left

    @contextmanager
    def building(self, precision: str, recall: float | None) -> Iterator[float]:
        """Nobody else embeds meanwhile, and what stopped runs left is removed; yields the recall to reach.

        Raises as `build` does.
        """
        checked("storage", precision, Storage)
        checked("recall", recall, fields_of(EmbedOptions)["recall"].kind)
        refuse_links_below(self._corpus.path)
        with advising(self._corpus.path), self._store.lock():
            self._corpus.catch_up()
            self._store.sweep()
            for facts in self._store.facts():
                if (other := facts["precision"]) != precision:
                    raise InputError(
                        f"{self._corpus.path}: has {other} vectors of {self._encoder.name}, not {precision}; "
                        f"embed with storage {other}, or delete {self.folder} first"
                    )
            if recall is not None:
                self._store.set_recall(recall)
            yield self._store.recall()
            self._store.remove_orphans()

    def shortfalls(self) -> list[Shortfall]:
        """The segments whose codes find fewer than they should."""
        found = {each.name: codes.facts_of(self._store.codes(each.name)) for each in self._segments}
        return [
            Shortfall(self._corpus.path, name, facts.recall, facts.target)
            for name, facts in found.items()
            if facts and facts.recall < facts.target
        ]

    def _lacks_codes(self, segment: Segment, target: float) -> bool:
        folder = self._store.codes(segment.name)
        if folder.is_dir() and not is_sound(folder):
            return True
        if facts := codes.facts_of(folder):
            return facts.target != target or facts.deeper is None
        return target < 1 and bool(table_facts(self._store.whole(segment.name))["tokens"] >= codes.FLAT_FROM)

    def _code(self, segment: Segment, target: float, memory: int) -> None:
        """Give a segment's table codes that reach this recall, unless it has them; 1 removes them."""
        if not self._lacks_codes(segment, target):
            return
        final = self._store.codes(segment.name)
        if target == 1:
            return remove(final)
        (keys,) = self._map(segment, [self._store.whole(segment.name)]).tables
        keys = replace(keys, live_P=None, codes=None)
        q_QD = sample_queries(self._encoder, keys, SAMPLED_QUERIES)
        if not len(q_QD):
            return
        vectors = keys.vectors
        exact = nearest_rows(vectors, q_QD, min(codes.DEPTH, keys.num_keys))
        publish_folder(final, lambda part: codes.build_codes(part, vectors, q_QD, exact, target, memory))

    def cost(self, precision: str) -> Cost:
        """Estimates what `build` will take, by encoding a few passages. Raises InputError on an unknown precision."""
        checked("storage", precision, Storage)
        missing = self.missing()
        sizes = [each.num_passages for each in missing]
        if not (whole := sum(sizes)):
            return Cost(0, 0, 0, 0, 0.0)
        wanted = self.left(precision)
        numbers = np.random.default_rng(0).choice(whole, min(whole, MOST_SAMPLED), replace=False)
        begins = np.cumsum([0, *sizes])
        which = np.searchsorted(begins, numbers, side="right") - 1
        places = zip(numbers.tolist(), which.tolist(), strict=True)
        passages = [self._corpus.passage(missing[at].first_row + number - int(begins[at])) for number, at in places]
        self._encoder.encode(passages[:1])
        encoded: list[EncodedPassage] = []
        began = perf_counter()
        while not encoded or (len(encoded) < len(passages) and perf_counter() - began < SAMPLED_SECONDS):
            encoded += self._encoder.encode(passages[len(encoded) : len(encoded) + SAMPLED_PASSAGES])
        seconds = (perf_counter() - began) * wanted / len(encoded)
        tokens = sum(len(each.tokens.ids_T) for each in encoded) * whole // len(encoded)
        code = self._encoder.dimensions // 8 if tokens >= codes.FLAT_FROM else 0
        stored = tokens * (bytes_of(precision, self._encoder.dimensions) + code + COLUMN_BYTES)
        part = min(max(sizes), FITTED_PARTS * PASSAGES_PER_PART)
        floats = 4 * self._encoder.dimensions * tokens * part // whole if BITS[precision] <= 8 else 0
        return Cost(wanted, tokens, stored, stored + max(stored * max(sizes) // whole, floats), seconds)
