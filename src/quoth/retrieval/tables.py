"""Key tables on disk: one per model and segment, beside the corpus's passages.

Knows: where tokens and vectors lie, `keys/<fingerprint>/<segment>/`, and which are missing; `build` makes them.
Does not know: search.

    table.json       format, model, fingerprint, precision, number of tokens
    vectors.npy      [N, D] (quantizer.npy for sq8 and sq4), and each token's columns (`columns`)

`<segment>.partial/` is a table that lacks the passages of absent.npy (`carry`). Beside a whole one, where there are
many vectors, `<segment>.codes/` proposes which of them to compare (`codes`).

Shape suffixes: N tokens, P passages, D dimensions, Q queries.
"""

from __future__ import annotations

import shutil
import threading
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from time import perf_counter

import numpy as np

from quoth.corpus.corpus import Corpus
from quoth.corpus.manifest import remedy_of
from quoth.corpus.segment import Segment
from quoth.encoders.key_encoder import EncodedPassage, KeyEncoder
from quoth.errors import CorruptionError, EncoderMismatchError, InputError, advising
from quoth.memory import WORKING_MEMORY
from quoth.records import Passage
from quoth.retrieval import codes
from quoth.retrieval.build import PASSAGES_PER_PART, Builder, columns_of, sample_queries
from quoth.retrieval.carry import FORMAT, absent_passages, is_sound, stored_table, table_facts
from quoth.retrieval.codes import check_recall, open_codes
from quoth.retrieval.columns import open_columns
from quoth.retrieval.index import nearest_rows
from quoth.retrieval.keys import TokenKeys
from quoth.retrieval.vectors import BITS, TokenVectors, bytes_of, check_precision
from quoth.storage import (
    Fields,
    WriterLock,
    atomic_write_json,
    check_fields,
    check_folder,
    publish_directory,
    read_json,
    refuse_links_below,
    remove,
    seal_folder,
)

COLUMN_BYTES = 6
SAMPLED_PASSAGES = 32
LATE_PASSAGES = 256
SETTINGS = "settings"
_SETTINGS: Fields = {"recall": (int, float)}
RECALL = 0.97
SAMPLED_QUERIES = 32


@dataclass(frozen=True, slots=True)
class Cost:
    """About how many passages are to be encoded, and how long that takes; the tokens of their segments, their bytes on
    disk in the end, and at most on the way there."""

    passages: int
    tokens: int
    bytes: int
    peak_bytes: int
    seconds: float

    def plus(self, other: Cost) -> Cost:
        return Cost(*(mine + theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True)))


@dataclass(frozen=True, slots=True)
class Shortfall:
    """A segment whose codes find the share `recall` of a blank's nearest tokens, though `target` was asked for."""

    corpus: Path
    segment: str
    recall: float
    target: float


def in_memory(
    corpus: Corpus, passages: Sequence[Passage], encoded: Sequence[EncodedPassage], scale: float
) -> TokenKeys:
    """A table of passages encoded on the fly, in the order given."""
    vectors = TokenVectors(np.concatenate([each.vectors_TD for each in encoded]), scale)
    rows_P = np.array([passage.row for passage in passages], np.int64)
    return TokenKeys.of(corpus, rows_P, columns_of(passages, encoded), vectors)


class KeyTables:
    """One model's tables over one corpus; over those of its segments alone that `only` names, if it does."""

    def __init__(self, corpus: Corpus, encoder: KeyEncoder, only: Collection[str] | None = None) -> None:
        self._corpus, self._encoder, self._only = corpus, encoder, only
        self._folder = corpus.path / "keys" / encoder.fingerprint[:16]
        self._mapped: dict[str, TokenKeys] = {}
        self._shown: dict[str, TokenKeys] = {}
        self._shown_of = -1
        self._lock = threading.Lock()

    @property
    def folder(self) -> Path:
        """Where the tables lie, or will."""
        return self._folder

    @property
    def _segments(self) -> list[Segment]:
        return [each for each in self._corpus.segments if self._only is None or each.name in self._only]

    def missing(self) -> list[Segment]:
        """The segments without a sound table of this model."""
        return [each for each in self._segments if not self._is_built(each)]

    def open(self) -> tuple[list[TokenKeys], list[int]]:
        """Every segment's table, and the live passages that none of them holds, which are few.

        Raises InputError or EncoderMismatchError where more have no vectors.
        """
        while True:
            places = self._places()
            try:
                with advising(remedy_of(self._corpus.path)):
                    return self._open_at(places)
            except CorruptionError:
                if places == self._places():
                    raise  # else a table was completed meanwhile

    def _places(self) -> dict[str, Path | None]:
        return {each.name: stored_table(self._folder, each.name) for each in self._segments}

    def _open_at(self, places: dict[str, Path | None]) -> tuple[list[TokenKeys], list[int]]:
        segments = self._segments
        absent = [each.first_row + absent_passages(places[each.name], each.num_passages) for each in segments]
        rows = np.concatenate([np.zeros(0, np.int64), *absent])
        late: list[int] = rows[self._corpus.live(rows)].tolist()
        embedded = any(stored_table(self._folder, each.name) for each in self._corpus.segments)
        if len(late) > (LATE_PASSAGES if embedded else 0):
            self._explain(sum(1 for each in absent if len(each)))
        return [self._at(each, place) for each in segments if (place := places[each.name])], late

    def _explain(self, missing: int) -> None:
        path, name, kind = self._corpus.path, self._encoder.name, self._encoder.keys
        command = f"`quoth embed {path} --keys {kind} --model {name}`"
        others = [table_facts(each.parent) for each in sorted((path / "keys").glob("*/*/table.json"))]
        present = sorted({f"{each['model']} ({each['fingerprint'][:8]})" for each in others})
        if present and not self._folder.is_dir():
            raise EncoderMismatchError(
                f"{path}: holds keys of {', '.join(present)}, not of {name} ({self._encoder.fingerprint[:8]}); "
                f"{command} adds them"
            )
        other = "; an NPM needs none to search BM25's passages (passages=3)" if kind == "tokens" else ""
        raise InputError(
            f"{path}: {missing} of {len(self._corpus.segments)} segments have no vectors of {name}; "
            f"{command} makes them{other}"
        )

    def _at(self, segment: Segment, folder: Path) -> TokenKeys:
        """A segment's table, mapped, with the snapshot's deletions. Raises CorruptionError naming a bad file."""
        with self._lock:
            if self._shown_of != self._corpus.snapshot:
                here = {path.name for path in self._places().values() if path}
                self._mapped = {name: keys for name, keys in self._mapped.items() if name in here}
                self._shown, self._shown_of = {}, self._corpus.snapshot
            shown = self._shown.get(folder.name)
            if shown is None:
                keys = self._mapped.get(folder.name) or self._map(segment, folder)
                self._mapped[folder.name] = keys
                self._shown[folder.name] = shown = replace(keys, live_P=self._corpus.live(keys.passage_rows_P))
            return shown

    def _forget(self) -> None:
        self._mapped, self._shown = {}, {}

    def _codes(self, segment: Segment) -> Path:
        return self._folder / f"{segment.name}.codes"

    def stored(self, passage_rows: Sequence[int]) -> tuple[list[TokenKeys], set[int]]:
        """Tables of those of these passages whose vectors are stored, one for each segment; and which those are."""
        by_segment: dict[str, tuple[Segment, list[int]]] = {}
        for row in sorted(passage_rows):
            segment = self._corpus.segment_of(row)
            by_segment.setdefault(segment.name, (segment, []))[1].append(row)
        tables: list[TokenKeys] = []
        found: set[int] = set()
        for segment, rows in by_segment.values():
            held, keys = self._held(segment, rows)
            if keys is not None and held:
                tables.append(keys.take(held))
                found.update(held)
        return tables, found

    def _held(self, segment: Segment, rows: list[int]) -> tuple[list[int], TokenKeys | None]:
        """Which of a segment's rows its table holds, and the table."""
        while True:
            place = stored_table(self._folder, segment.name)
            if place is None:
                return [], None
            try:
                with advising(remedy_of(self._corpus.path)):
                    absent = set((segment.first_row + absent_passages(place, segment.num_passages)).tolist())
                    return [row for row in rows if row not in absent], self._at(segment, place)
            except CorruptionError:
                if place == stored_table(self._folder, segment.name):
                    raise

    def _is_built(self, segment: Segment) -> bool:
        return is_sound(self._folder / segment.name)

    def _map(self, segment: Segment, folder: Path) -> TokenKeys:
        check_folder(folder)
        if (made := table_facts(folder)["format"]) != FORMAT:
            raise InputError(
                f"{folder}: embedded by another version of Quoth (format {made}, not {FORMAT}); delete {self._folder} "
                "and embed again"
            )
        rows_P = np.arange(segment.first_row, segment.first_row + segment.num_passages)
        columns = open_columns(folder)
        vectors = TokenVectors.open(folder, self._encoder.scale)
        whole = (len(rows_P) + 1, *[int(columns.offsets_P1[-1])] * 2)
        if (len(columns.offsets_P1), len(columns.ids_N), len(vectors)) != whole:
            raise CorruptionError(
                f"{folder}: its arrays do not fit the segment; delete it, `quoth embed` makes it again"
            )
        return TokenKeys.of(self._corpus, rows_P, columns, vectors, open_codes(self._codes(segment), len(vectors)))

    def build(
        self,
        precision: str,
        recall: float | None = None,
        progress: Callable[[int, int], None] | None = None,
        memory: int = WORKING_MEMORY,
    ) -> list[Shortfall]:
        """Encode every segment that has no table, or a damaged one; goes on where a broken run stopped.

        Large segments get codes that find the share `recall` of a blank's neighbours (by default as those here do, or
        0.97); 1 takes the codes away. `progress` is told passages done and passages in all. About `memory` bytes are
        taken at most beside the loaded model. Returns the segments whose codes cannot find that many. Raises InputError
        on an unknown precision, or another one than what is stored already, LockedError while another process embeds
        with this model.
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
        missing = self.missing()
        total, done = sum(each.num_passages for each in missing), 0
        for segment in missing:
            builder = Builder(self._corpus, segment, self._encoder, precision, self._folder, memory)
            for finished in builder.run():
                done += finished
                if progress:
                    progress(done, total)
        for segment in self._segments:
            self._code(segment, target, memory)
        self._forget()

    def unfinished(self, target: float) -> list[str]:
        """The segments that lack a table, or codes that reach this recall."""
        return [each.name for each in self._segments if not self._is_built(each) or self._lacks_codes(each, target)]

    def left(self, precision: str) -> int:
        """How many passages are still to be encoded."""
        return sum(self._unfinished(each, precision) for each in self.missing())

    @contextmanager
    def building(self, precision: str, recall: float | None) -> Iterator[float]:
        """Nobody else embeds meanwhile, and what broken runs left is gone; gives the recall to reach.

        Raises as `build` does.
        """
        check_precision(precision)
        if recall is not None:
            check_recall(recall)
        refuse_links_below(self._corpus.path)
        self._folder.mkdir(parents=True, exist_ok=True)
        with WriterLock(self._folder / "writer.lock"):
            self._corpus.catch_up()
            self._sweep()
            self._check_same(precision)
            yield self._target(recall)

    def shortfalls(self) -> list[Shortfall]:
        """The segments whose codes find fewer than they should."""
        found = {each.name: codes.facts_of(self._codes(each)) for each in self._segments}
        return [
            Shortfall(self._corpus.path, name, facts.recall, facts.target)
            for name, facts in found.items()
            if facts and facts.recall < facts.target
        ]

    def _sweep(self) -> None:
        """Remove what a killed process has left, of tables that are whole and of merges, and what is damaged."""
        for folder in [each for each in self._folder.glob("*") if each.is_dir() and each.suffix != ".part"]:
            facts = {".codes": "codes.json"}.get(folder.suffix, "table.json")
            if not is_sound(folder, "settings.json" if folder.name == SETTINGS else facts):
                remove(folder)
        for left in [*self._folder.glob("*.part"), *self._folder.glob("*.partial")]:
            if left.name.endswith(".carried.part") or (self._folder / left.name.partition(".")[0]).is_dir():
                remove(left)

    def _target(self, recall: float | None) -> float:
        """The recall asked for, now or the last time."""
        settings = self._folder / SETTINGS
        if recall is None:
            file = settings / "settings.json"
            return float(check_fields(file, read_json(file), _SETTINGS)["recall"]) if settings.is_dir() else RECALL
        part = self._folder / f"{SETTINGS}.part"
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        atomic_write_json(part / "settings.json", {"recall": recall})
        seal_folder(part)
        publish_directory(part, settings)
        return recall

    def _lacks_codes(self, segment: Segment, target: float) -> bool:
        folder = self._codes(segment)
        if folder.is_dir() and not is_sound(folder, "codes.json"):
            return True
        if facts := codes.facts_of(folder):
            return facts.target != target or facts.deeper is None
        return target < 1 and bool(table_facts(self._folder / segment.name)["tokens"] >= codes.FLAT_FROM)

    def _code(self, segment: Segment, target: float, memory: int) -> None:
        """Give a segment's table codes that reach this recall, unless it has them; 1 takes them away."""
        if not self._lacks_codes(segment, target):
            return
        if target == 1:
            return remove(self._codes(segment))
        keys = replace(self._map(segment, self._folder / segment.name), live_P=None, codes=None)
        q_QD = sample_queries(self._encoder, keys, SAMPLED_QUERIES)
        if not len(q_QD):
            return
        assert isinstance(keys.vectors, TokenVectors)
        exact = nearest_rows(keys.vectors, q_QD, min(codes.DEPTH, keys.num_tokens))
        part = self._codes(segment).with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        codes.build_codes(part, keys.vectors, q_QD, exact, target, memory)
        seal_folder(part)
        publish_directory(part, self._codes(segment))

    def _check_same(self, precision: str) -> None:
        for facts in sorted(self._folder.glob("*/table.json")):
            if (other := table_facts(facts.parent)["precision"]) != precision:
                raise InputError(
                    f"{self._corpus.path}: holds {other} vectors of {self._encoder.name}, not {precision}; "
                    f"embed with precision {other}, or delete {self._folder} first"
                )

    def cost(self, precision: str) -> Cost:
        """About what `build` will take, from encoding a few passages. Raises InputError on an unknown precision."""
        check_precision(precision)
        missing = self.missing()
        sizes = [each.num_passages for each in missing]
        if not (whole := sum(sizes)):
            return Cost(0, 0, 0, 0, 0.0)
        wanted = self.left(precision)
        numbers = np.sort(np.random.default_rng(0).choice(whole, min(whole, SAMPLED_PASSAGES), replace=False))
        begins = np.cumsum([0, *sizes])
        which = np.searchsorted(begins, numbers, side="right") - 1
        places = zip(numbers.tolist(), which.tolist(), strict=True)
        passages = [self._corpus.passage(missing[at].first_row + number - int(begins[at])) for number, at in places]
        self._encoder.encode(passages[:1])
        began = perf_counter()
        encoded = self._encoder.encode(passages)
        seconds = (perf_counter() - began) * wanted / len(passages)
        tokens = sum(len(each.tokens.ids_T) for each in encoded) * whole // len(passages)
        code = self._encoder.dimensions // 8 if tokens >= codes.FLAT_FROM else 0
        stored = tokens * (bytes_of(precision, self._encoder.dimensions) + code + COLUMN_BYTES)
        part = min(max(sizes), PASSAGES_PER_PART)
        floats = 4 * self._encoder.dimensions * tokens * part // whole if BITS[precision] <= 8 else 0
        return Cost(wanted, tokens, stored, stored + max(stored * max(sizes) // whole, floats), seconds)

    def _unfinished(self, segment: Segment, precision: str) -> int:
        """How many of a segment's passages are still to be encoded."""
        partial, count = self._folder / f"{segment.name}.partial", segment.num_passages
        absent = absent_passages(partial, count) if is_sound(partial) else range(count)
        parts = (self._folder / f"{segment.name}.{precision}.part").glob("[0-9]*")
        firsts = [int(part.name) for part in parts if part.name.isdecimal()]
        done = (bisect_left(absent, first + PASSAGES_PER_PART) - bisect_left(absent, first) for first in firsts)
        return len(absent) - sum(done)
