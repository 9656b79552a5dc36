"""How a segment's key table is built: part by part, each complete or absent, then the whole.

Knows: what is encoded, what a partial table holds already, how a broken build goes on. Does not know: search.

Shape suffixes: N tokens, P passages, D dimensions, Q queries.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from quoth.corpus.corpus import Corpus
from quoth.corpus.segment import Segment
from quoth.encoders.boundaries import MAY_START
from quoth.encoders.key_encoder import EncodedPassage, KeyEncoder, Place
from quoth.errors import CorruptionError
from quoth.records import Passage
from quoth.retrieval.carry import FORMAT, absent_passages
from quoth.retrieval.columns import TokenColumns, open_columns, passage_of, save_columns
from quoth.retrieval.keys import TokenKeys
from quoth.retrieval.vectors import BITS, Quantizer, TokenVectors, save_quantizer, stored
from quoth.storage import atomic_write_json, open_array, publish_directory, remove, save_array, save_pieces, seal_folder

PASSAGES_PER_PART = 1024


def columns_of(passages: Sequence[Passage], encoded: Sequence[EncodedPassage]) -> TokenColumns:
    """The columns of passages that were encoded now."""
    tokens = [each.tokens for each in encoded]
    ranges = [each.offsets_T2 + p.start for each, p in zip(tokens, passages, strict=True)]
    offsets_N2 = np.concatenate([np.zeros((0, 2), np.int64), *ranges])
    return TokenColumns(
        ids_N=np.concatenate([np.zeros(0, np.int32), *(each.ids_T for each in tokens)]).astype(np.int32),
        group_N=np.concatenate([np.zeros(0, np.uint64), *(each.group_T for each in tokens)]).astype(np.uint64),
        flags_N=np.concatenate([np.zeros(0, np.uint8), *(each.flags_T for each in tokens)]).astype(np.uint8),
        start_N=offsets_N2[:, 0],
        end_N=offsets_N2[:, 1],
        offsets_P1=np.cumsum([0, *(len(each.ids_T) for each in tokens)], dtype=np.int64),
        origin_P=np.array([passage.start for passage in passages], np.int64),
    )


def vectors_of(encoded: Sequence[EncodedPassage], dimensions: int) -> NDArray[np.float32]:
    return np.concatenate([np.zeros((0, dimensions), np.float32), *(each.vectors_TD for each in encoded)])


def sample_queries(encoder: KeyEncoder, keys: TokenKeys, count: int) -> NDArray[np.float32]:
    """Queries drawn from the table's own passages at `count` places, always the same: [Q, D].

    A place that the encoder makes no query of is left out; where it makes none of many, Q is 0.
    """
    rows = np.random.default_rng(0).permutation(np.flatnonzero(keys.flags_N[:] & MAY_START))[: 50 * count]
    return encoder.queries_at((_place(keys, row) for row in rows.tolist()), count)


def _place(keys: TokenKeys, row: int) -> Place:
    passage = keys.corpus.passage(int(keys.passage_rows_P[passage_of(keys.offsets_P1, row)]))
    return passage.text, int(keys.start_N[row]) - passage.start, int(keys.end_N[row]) - passage.start


def _is_readable(part: Path) -> bool:
    """Whether a part is there, its arrays as long as they say."""
    try:
        return part.is_dir() and len(open_columns(part).ids_N) == len(open_array(part / "vectors.npy", None, (-1, -1)))
    except CorruptionError:
        return False


class Builder:
    """Builds one segment's table: parts first, each complete or absent, then the whole."""

    def __init__(self, corpus: Corpus, segment: Segment, encoder: KeyEncoder, precision: str, folder: Path) -> None:
        self._corpus, self._segment, self._encoder, self._precision = corpus, segment, encoder, precision
        self._final = folder / segment.name
        self._partial = folder / f"{segment.name}.partial"
        self._work = folder / f"{segment.name}.{precision}.part"

    def run(self) -> Iterator[int]:
        """Yields the number of passages done after each part; what was begun in another precision is thrown away."""
        for other in self._final.parent.glob(f"{self._segment.name}.*.part"):
            if other != self._work:
                shutil.rmtree(other)
        self._work.mkdir(exist_ok=True)
        count = self._segment.num_passages
        parts = []
        for first in range(0, max(count, 1), PASSAGES_PER_PART):
            last = min(first + PASSAGES_PER_PART, count)
            part = self._work / f"{first:09d}"
            if not _is_readable(part):
                self._encode(first, last, part)
            parts.append(part)
            yield last - first
        self._join(parts)

    def _encode(self, first: int, last: int, part: Path) -> None:
        """Encode a part's passages, but for those that a partial table holds."""
        numbers = np.arange(first, last)
        known, absent = None, numbers
        if self._partial.is_dir():
            known, absent = self._partial, absent_passages(self._partial, self._segment.num_passages)
        fresh_P = np.isin(numbers, absent)
        passages = [self._corpus.passage(self._segment.first_row + n) for n in numbers[fresh_P].tolist()]
        encoded = self._encoder.encode(passages)
        fresh_ND = vectors_of(encoded, self._encoder.dimensions)
        pieces, vectors = [columns_of(passages, encoded)], [fresh_ND]
        if known is not None:
            pieces, vectors = self._mixed(known, numbers, fresh_P, pieces[0], fresh_ND)
        vectors_ND = np.concatenate(vectors)
        fresh = part.with_suffix(".tmp")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir()
        save_columns(fresh, lambda: pieces)
        save_array(fresh / "vectors.npy", stored(vectors_ND, self._precision, self._quantizer(fresh_ND)))
        publish_directory(fresh, part)

    def _mixed(
        self,
        known: Path,
        numbers: NDArray[np.int64],
        fresh_P: NDArray[np.bool_],
        columns: TokenColumns,
        vectors_ND: NDArray[np.float32],
    ) -> tuple[list[TokenColumns], list[NDArray[np.float32]]]:
        """The passages in order, each from the partial table or from what was encoded now."""
        stored_columns, stored_vectors = open_columns(known), TokenVectors.open(known, 1.0)
        pieces, vectors = [], []
        for number, fresh, at in zip(
            numbers.tolist(), fresh_P.tolist(), (np.cumsum(fresh_P) - 1).tolist(), strict=True
        ):
            source, place = (columns, at) if fresh else (stored_columns, number)
            rows = slice(int(source.offsets_P1[place]), int(source.offsets_P1[place + 1]))
            pieces.append(source.take(np.array([place])))
            vectors.append(vectors_ND[rows] if fresh else stored_vectors.floats(rows))
        return pieces, vectors

    def _quantizer(self, sample_ND: NDArray[np.float32]) -> Quantizer | None:
        """The segment's quantizer: fitted to its first part, or the partial table's, widened where that part exceeds
        it, so that what is stored is not rounded again. Four bits are not widened: the larger of the two decides."""
        if (bits := BITS[self._precision]) > 8:
            return None
        if not (self._work / "quantizer.npy").is_file():
            known = TokenVectors.open(self._partial, 1.0) if self._partial.is_dir() else None
            if known is None or known.quantizer is None or (bits == 4 and len(known) < len(sample_ND)):
                fitted = Quantizer.fit(sample_ND, bits)
            else:
                fitted = known.quantizer.widened(sample_ND)
            save_quantizer(self._work, fitted)
        low_D, step_D = open_array(self._work / "quantizer.npy")
        return Quantizer(low_D, step_D, bits)

    def _join(self, parts: list[Path]) -> None:
        whole = self._work / "whole"
        shutil.rmtree(whole, ignore_errors=True)
        whole.mkdir()
        save_columns(whole, lambda: map(open_columns, parts))
        vectors = [open_array(part / "vectors.npy") for part in parts]
        total = sum(map(len, vectors))
        save_pieces(whole / "vectors.npy", total, vectors)
        if BITS[self._precision] <= 8:
            shutil.copy(self._work / "quantizer.npy", whole)
        facts = {"format": FORMAT, "model": self._encoder.name, "fingerprint": self._encoder.fingerprint}
        facts |= {"precision": self._precision, "tokens": total}
        atomic_write_json(whole / "table.json", facts)
        seal_folder(whole)
        publish_directory(whole, self._final)
        shutil.rmtree(self._work)
        if self._partial.is_dir():
            remove(self._partial)
