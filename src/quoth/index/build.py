"""How a segment's key table is built: part by part, each complete or absent, then the whole.

Knows: what is encoded, what a partial table already holds, how a stopped build resumes, what fits in memory.
Does not know: search.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from quoth.arrays import Floats, Rows, in_blocks, open_array, save_pieces
from quoth.encoders.keys import KeyEncoder, TextSpan
from quoth.errors import CorruptionError
from quoth.index.key_store import FORMAT, TABLE, KeyStore, absent_passages
from quoth.index.key_table import KeyColumns, KeyTable, open_columns, passage_of, save_columns
from quoth.index.vectors import BITS, ROWS_AT_A_TIME, KeyVectors, Quantizer, Spread, save_quantizer, stored
from quoth.records import Passage
from quoth.storage import atomic_write_json, publish_directory, remove, seal_folder
from quoth.text.boundaries import MAY_START

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus
    from quoth.corpus.segment import Segment

PASSAGES_PER_PART = 256
"""A kill loses at most the part that is being encoded."""
FITTED_PARTS = 4
"""The quantizer is fitted to this many parts, which are kept as floats until all of them are there."""
COPIES = 6
"""The most copies of a passage's vectors (4 bytes per component) in memory while they are made and written."""
MOST_TOKENS_AT_A_TIME = 1 << 17
"""More at a time is no faster."""

Batch = list[tuple[int, Passage | None]]
"""Numbers of passages, and those that are to be encoded."""


def sample_queries(encoder: KeyEncoder, keys: KeyTable, count: int) -> Floats:
    """Queries drawn from the table's own passages at `count` places, always the same: [Q, D].

    A place from which the encoder makes no query is left out; if that is so for many, Q is 0.
    """
    return encoder.queries_at((_place(keys, row) for row in _some_starts(keys, 50 * count).tolist()), count)


def _some_starts(keys: KeyTable, count: int) -> Rows:
    """Rows where a phrase may start: every one gets a random number, and the `count` lowest are taken, in order."""
    rng = np.random.default_rng(0)
    rows, numbers = np.zeros(0, np.int64), np.zeros(0)
    for first in range(0, keys.num_keys, ROWS_AT_A_TIME):
        flags = keys.flags_N[first : min(first + ROWS_AT_A_TIME, keys.num_keys)]
        starts = first + np.flatnonzero(flags & MAY_START)
        rows, numbers = np.concatenate([rows, starts]), np.concatenate([numbers, rng.random(len(starts))])
        least = np.argsort(numbers)[:count]
        rows, numbers = rows[least], numbers[least]
    return rows


def _place(keys: KeyTable, row: int) -> TextSpan:
    passage = keys.passage(int(passage_of(keys.offsets_P1, row)))
    return passage.text, int(keys.start_N[row]) - passage.start, int(keys.end_N[row]) - passage.start


def _is_readable(part: Path, passages: int) -> bool:
    """Whether a part of this many passages is there, with arrays of the stated lengths."""
    if not part.is_dir():
        return False
    try:
        columns, vectors_ND = open_columns(part), open_array(part / "vectors.npy", None, (-1, -1))
    except CorruptionError:
        return False
    return len(columns.origin_P) == passages and len(columns.ids_N) == len(vectors_ND)


class Builder:
    """Builds one segment's table: parts first, each complete or absent, then the whole.

    In addition to the model, at most about `memory` bytes are held, however many passages there are: as many passages
    as fit are encoded at a time, their vectors go to the disk, and from there into the whole. A passage is never split.
    """

    def __init__(
        self,
        corpus: Corpus,
        segment: Segment,
        encoder: KeyEncoder,
        precision: str,
        store: KeyStore,
        memory: int,
    ) -> None:
        self._corpus, self._segment, self._encoder, self._precision = corpus, segment, encoder, precision
        self._tokens_at_a_time = min(memory // (COPIES * 4 * encoder.dimensions), MOST_TOKENS_AT_A_TIME)
        self._final, self._partial = store.whole(segment.name), store.partial(segment.name)
        self._work = store.part(segment.name, precision)
        self._is_quantized = BITS[precision] <= 8

    def run(self) -> Iterator[int]:
        """Yields the number of passages done after each part; what was begun in another precision is discarded."""
        # Each part is published by one rename, so after a kill a part is whole or absent: what is readable is kept, the
        # others are encoded again.
        for other in self._final.parent.glob(f"{self._segment.name}.*.part"):
            if other != self._work:
                shutil.rmtree(other)
        self._work.mkdir(exist_ok=True)
        count = self._segment.num_passages
        parts: list[Path] = []
        for first in range(0, max(count, 1), PASSAGES_PER_PART):
            last = min(first + PASSAGES_PER_PART, count)
            part = self._work / f"{first:09d}"
            if not _is_readable(part, last - first):
                self._encode(first, last, part)
            parts.append(part)
            if len(parts) == FITTED_PARTS or last == count:
                self._quantize(parts[:FITTED_PARTS])
            yield last - first
        self._join(parts)

    def _encode(self, first: int, last: int, part: Path) -> None:
        """Encode a part's passages, except those that a partial table holds; floats until there is a quantizer."""
        fresh = part.with_suffix(".tmp")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir()
        columns: list[KeyColumns] = []
        quantizer = self._quantizer()
        precision = "fp32" if self._is_quantized and quantizer is None else self._precision
        blocks = (block_ND for vectors_ND in self._vectors(first, last, columns) for block_ND in in_blocks(vectors_ND))
        save_pieces(fresh / "vectors.npy", (stored(each, precision, quantizer) for each in blocks))
        save_columns(fresh, lambda: columns)
        publish_directory(fresh, part)

    def _vectors(self, first: int, last: int, columns: list[KeyColumns]) -> Iterator[Floats]:
        """The vectors of passages in order, some passages at a time; their columns are appended."""
        known = self._known()
        for batch in self._batches(first, last, known):
            pieces, vectors_ND = self._made(batch, known)
            columns += pieces
            yield vectors_ND

    def _batches(self, first: int, last: int, known: _Known | None) -> Iterator[Batch]:
        """Groups of passage numbers, as many as fit into memory, at least one, with those that must be encoded. No
        tokenizer makes more tokens of a text than it has bytes."""
        batch: Batch = []
        tokens = 0
        for number in range(first, last):
            if known is None or number in known.absent:
                passage = self._corpus.passage(self._segment.first_row + number)
                size = len(f"{passage.title}{passage.text}".encode())
            else:
                passage, size = None, known.tokens(number)
            if batch and tokens + size > self._tokens_at_a_time:
                yield batch
                batch, tokens = [], 0
            batch.append((number, passage))
            tokens += size
        yield batch

    def _made(self, batch: Batch, known: _Known | None) -> tuple[list[KeyColumns], Floats]:
        """Some passages' columns and vectors, each from the partial table or encoded now."""
        passages = [passage for _, passage in batch if passage]
        encoded = self._encoder.encode(passages) if passages else []
        columns = KeyColumns.of(passages, [each.tokens for each in encoded])
        none_ND = np.zeros((0, self._encoder.dimensions), np.float32)
        vectors_ND = np.concatenate([none_ND, *(each.vectors_TD for each in encoded)])
        return ([columns], vectors_ND) if known is None else known.mixed(batch, columns, vectors_ND)

    def _known(self) -> _Known | None:
        return _Known(self._partial) if self._partial.is_dir() else None

    def _quantize(self, parts: list[Path]) -> None:
        """Fit the segment's quantizer to its first parts, unless it is there, and store as codes what is still
        floats."""
        if not self._is_quantized:
            return
        if self._quantizer() is None:
            self._fit(parts)
        quantizer = self._quantizer()
        for part in parts:
            vectors_ND, fresh = open_array(part / "vectors.npy", None, (-1, -1)), part / "codes.npy"
            if vectors_ND.dtype.kind == "f":
                save_pieces(fresh, (stored(each, self._precision, quantizer) for each in in_blocks(vectors_ND)))
                fresh.replace(part / "vectors.npy")

    def _fit(self, parts: list[Path]) -> None:
        """Store the segment's quantizer: fitted to what was encoded of its first parts, or the partial table's, widened
        if they exceed it, so that what is stored is not rounded again. Four bits are not widened: the larger of the two
        decides."""
        bits, known, spread = BITS[self._precision], self._known(), Spread(self._encoder.dimensions)
        for number, part in enumerate(parts):
            for vectors_ND in _encoded(part, number * PASSAGES_PER_PART, known):
                spread.add(vectors_ND)
        if known is None or known.quantizer is None or (bits == 4 and known.num_keys < spread.count):
            fitted = Quantizer.fitting(spread, bits)
        else:
            fitted = known.quantizer.widened(spread)
        save_quantizer(self._work, fitted)

    def _quantizer(self) -> Quantizer | None:
        file = self._work / "quantizer.npy"
        if not self._is_quantized or not file.is_file():
            return None
        low_D, step_D = open_array(file)
        return Quantizer(low_D, step_D, BITS[self._precision])

    def _join(self, parts: list[Path]) -> None:
        whole = self._work / "whole"
        shutil.rmtree(whole, ignore_errors=True)
        whole.mkdir()
        save_columns(whole, lambda: map(open_columns, parts))
        save_pieces(whole / "vectors.npy", (open_array(part / "vectors.npy") for part in parts))
        if self._is_quantized:
            shutil.copy(self._work / "quantizer.npy", whole)
        facts = {"format": FORMAT, "model": self._encoder.name, "fingerprint": self._encoder.fingerprint}
        facts |= {"precision": self._precision, "tokens": len(open_array(whole / "vectors.npy"))}
        atomic_write_json(whole / TABLE, facts)
        seal_folder(whole)
        publish_directory(whole, self._final)
        shutil.rmtree(self._work)
        if self._partial.is_dir():
            remove(self._partial)


class _Known:
    """A partial table: the part that need not be made again."""

    def __init__(self, folder: Path) -> None:
        self.absent = frozenset(absent_passages(folder).tolist())
        self._columns, self._vectors = open_columns(folder), KeyVectors.open(folder, 1.0)
        self.num_keys, self.quantizer = len(self._vectors), self._vectors.quantizer

    def _rows(self, number: int) -> slice:
        return slice(int(self._columns.offsets_P1[number]), int(self._columns.offsets_P1[number + 1]))

    def tokens(self, number: int) -> int:
        """How many vectors are stored of a passage."""
        rows = self._rows(number)
        return int(rows.stop - rows.start)

    def mixed(self, batch: Batch, columns: KeyColumns, vectors_ND: Floats) -> tuple[list[KeyColumns], Floats]:
        """The passages in order, each as it is stored, or from those that were encoded now."""
        pieces, vectors, at = [], [vectors_ND[:0]], 0
        for number, passage in batch:
            if passage is None:
                pieces.append(self._columns.take(np.array([number])))
                vectors.append(self._vectors.floats(self._rows(number)))
                continue
            pieces.append(columns.take(np.array([at])))
            vectors.append(vectors_ND[columns.offsets_P1[at] : columns.offsets_P1[at + 1]])
            at += 1
        return pieces, np.concatenate(vectors)


def _encoded(part: Path, first: int, known: _Known | None) -> Iterator[Floats]:
    """A part's vectors, still floats, without those of the partial table; its passages are numbered from `first`."""
    floats_ND = open_array(part / "vectors.npy", np.float32, (-1, -1))
    if known is None:
        yield from in_blocks(floats_ND)
        return
    offsets = open_columns(part).offsets_P1.tolist()
    for number, (begin, end) in enumerate(pairwise(offsets), first):
        if number in known.absent:
            yield floats_ND[begin:end]
