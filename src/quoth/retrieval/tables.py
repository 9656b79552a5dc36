"""Key tables on disk: one per model and segment, beside the corpus's passages.

Knows: how tokens and vectors lie in `keys/<fingerprint>/<segment>/`, how they are built part by part and resumed.
Does not know: search.

    table.json       format, model, fingerprint, precision, number of tokens
    vectors.npy      [N, D] (quantizer.npy for sq8), and each token's columns (`columns`)

Beside it, where there are many vectors, `<segment>.codes/` proposes which of them to compare (`codes`).

Shape suffixes: N tokens, P passages, D dimensions, Q queries.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from quoth.corpus.corpus import Corpus
from quoth.corpus.segment import Segment
from quoth.encoders.boundaries import MAY_START
from quoth.encoders.token_encoder import EncodedPassage, TokenEncoder
from quoth.encoders.tokenization import MASK
from quoth.errors import CorruptionError, EncoderMismatchError, InputError
from quoth.records import Passage
from quoth.retrieval import carry as carry  # keys follow their passages
from quoth.retrieval import codes
from quoth.retrieval.codes import Codes, check_recall
from quoth.retrieval.columns import TokenColumns, open_columns, save_columns
from quoth.retrieval.index import ExactIndex
from quoth.retrieval.keys import TokenKeys
from quoth.retrieval.vectors import BYTES, Quantizer, TokenVectors, check_precision, save_quantizer, stored
from quoth.storage import (
    WriterLock,
    atomic_write_json,
    check_folder,
    open_array,
    publish_directory,
    read_json,
    remove,
    save_array,
    save_pieces,
    seal_folder,
)

FORMAT = 2
COLUMN_BYTES = 6
SAMPLED_PASSAGES = 32
RECALL = 0.97
MASK_QUERIES = 32
QUERY_REACH = 300
PASSAGES_PER_PART = 1024


@dataclass(frozen=True, slots=True)
class Cost:
    """About how much is to be embedded, how many bytes that makes on disk, and how long it takes."""

    passages: int
    tokens: int
    bytes: int
    seconds: float

    def plus(self, other: Cost) -> Cost:
        return Cost(*(mine + theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True)))


def in_memory(
    corpus: Corpus, passages: Sequence[Passage], encoded: Sequence[EncodedPassage], scale: float
) -> TokenKeys:
    """A table of passages encoded on the fly, in the order given."""
    columns = _columns(passages, encoded)
    return TokenKeys(
        corpus=corpus,
        passage_rows_P=np.array([passage.row for passage in passages], np.int64),
        offsets_P1=columns.offsets_P1,
        ids_N=columns.ids_N,
        start_N=columns.start_N,
        end_N=columns.end_N,
        group_N=columns.group_N,
        flags_N=columns.flags_N,
        vectors=TokenVectors(np.concatenate([each.vectors_TD for each in encoded]), scale),
    )


def _columns(passages: Sequence[Passage], encoded: Sequence[EncodedPassage]) -> TokenColumns:
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


def _vectors(encoded: Sequence[EncodedPassage], dimensions: int) -> NDArray[np.float32]:
    return np.concatenate([np.zeros((0, dimensions), np.float32), *(each.vectors_TD for each in encoded)])


class KeyTables:
    """One model's tables over one corpus."""

    def __init__(self, corpus: Corpus, encoder: TokenEncoder) -> None:
        self._corpus, self._encoder = corpus, encoder
        self._folder = corpus.path / "keys" / encoder.fingerprint[:16]
        self._open: dict[tuple[str, int], TokenKeys] = {}

    def missing(self) -> list[Segment]:
        """The segments without a table of this model."""
        return [each for each in self._corpus.segments if not self._is_built(each)]

    def open(self) -> list[TokenKeys]:
        """Every segment's table. Raises InputError or EncoderMismatchError where one is missing."""
        if missing := self.missing():
            self._explain(len(missing))
        return [self.segment(segment) for segment in self._corpus.segments]

    def _explain(self, missing: int) -> None:
        path, name = self._corpus.path, self._encoder.name
        others = [read_json(each) for each in sorted((path / "keys").glob("*/*/table.json"))]
        present = sorted({f"{each['model']} ({each['fingerprint'][:8]})" for each in others})
        if present and not self._folder.is_dir():
            raise EncoderMismatchError(
                f"{path}: holds keys of {', '.join(present)}, not of {name} ({self._encoder.fingerprint[:8]}); "
                f"`quoth embed {path} --model {name}` adds them"
            )
        raise InputError(
            f"{path}: {missing} of {len(self._corpus.segments)} segments have no vectors of {name}; "
            f"`quoth embed {path} --model {name}` makes them, or search with passages=3"
        )

    def segment(self, segment: Segment) -> TokenKeys:
        """A segment's table, mapped, with the snapshot's deletions. Raises CorruptionError naming a bad file."""
        place = (segment.name, self._corpus.snapshot)
        if place not in self._open:
            self._open[place] = self._map(segment)
        return self._open[place]

    def _codes(self, segment: Segment) -> Path:
        return self._folder / f"{segment.name}.codes"

    def holds(self, passage_row: int) -> bool:
        """Whether that passage's vectors are stored."""
        return self._is_built(self._corpus.segment_of(passage_row))

    def of_passages(self, passage_rows: Sequence[int]) -> list[TokenKeys]:
        """Tables of these passages alone, one for each segment, read from what is stored."""
        by_segment: dict[str, tuple[Segment, list[int]]] = {}
        for row in sorted(passage_rows):
            segment = self._corpus.segment_of(row)
            by_segment.setdefault(segment.name, (segment, []))[1].append(row)
        return [self.segment(segment).take(rows) for segment, rows in by_segment.values()]

    def _is_built(self, segment: Segment) -> bool:
        return (self._folder / segment.name).is_dir()

    def _map(self, segment: Segment) -> TokenKeys:
        folder = self._folder / segment.name
        check_folder(folder)
        if (made := read_json(folder / "table.json").get("format")) != FORMAT:
            raise InputError(
                f"{folder}: embedded by another version of Quoth (format {made}, not {FORMAT}); delete {self._folder} "
                "and embed again"
            )
        rows_P = np.arange(segment.first_row, segment.first_row + segment.num_passages)
        columns = open_columns(folder)
        vectors = TokenVectors.open(folder, self._encoder.scale)
        whole = (len(rows_P) + 1, *[int(columns.offsets_P1[-1])] * 2)
        if (len(columns.offsets_P1), len(columns.ids_N), len(vectors)) != whole:
            raise CorruptionError(f"{folder}: its arrays do not fit the segment; delete it and embed again")
        return TokenKeys(
            corpus=self._corpus,
            passage_rows_P=rows_P,
            offsets_P1=columns.offsets_P1,
            ids_N=columns.ids_N,
            start_N=columns.start_N,
            end_N=columns.end_N,
            group_N=columns.group_N,
            flags_N=columns.flags_N,
            vectors=vectors,
            live_P=self._corpus.live(rows_P),
            codes=Codes(self._codes(segment), len(vectors)) if self._codes(segment).is_dir() else None,
        )

    def verify(self) -> None:
        """Read every byte of this model's tables. Raises CorruptionError naming the damaged file."""
        for segment in self._corpus.segments:
            for folder in (self._folder / segment.name, self._codes(segment)):
                if folder.is_dir():
                    check_folder(folder, contents=True)

    def build(
        self, precision: str, recall: float | None = None, progress: Callable[[int, int], None] | None = None
    ) -> None:
        """Encode every segment that has no table; goes on where a broken run stopped.

        Large segments get codes that find the share `recall` of a blank's neighbours (by default as those here do, or
        0.97); 1 takes the codes away. `progress` is told passages done and passages in all. Raises InputError on an
        unknown precision, or another one than what is stored already, LockedError while another process embeds with
        this model.
        """
        check_precision(precision)
        if recall is not None:
            check_recall(recall)
        self._folder.mkdir(parents=True, exist_ok=True)
        with WriterLock(self._folder / "writer.lock"):
            for left in self._folder.glob("*.carried.part"):
                remove(left)
            self._check_same(precision)
            missing = self.missing()
            total, done = sum(each.num_passages for each in missing), 0
            for segment in missing:
                for finished in _Builder(self._corpus, segment, self._encoder, precision, self._folder).run():
                    done += finished
                    if progress:
                        progress(done, total)
            self._build_codes(recall)

    def _build_codes(self, recall: float | None) -> None:
        targets = {
            each.name: read_json(self._codes(each) / "codes.json")["target"]
            for each in self._corpus.segments
            if self._codes(each).is_dir()
        }
        target = recall or next(iter(targets.values()), RECALL)
        for segment in self._corpus.segments:
            if target < 1 and targets.get(segment.name) != target:
                self._code(segment, target)
            elif target == 1 and segment.name in targets:
                remove(self._codes(segment))
        self._open.clear()

    def _code(self, segment: Segment, target: float) -> None:
        keys = replace(self._map(segment), live_P=None, codes=None)
        if keys.num_tokens < codes.FLAT_FROM:
            return
        q_QD = mask_queries(self._encoder, keys, MASK_QUERIES)
        exact = [each.rows_K for each in ExactIndex(keys).search(q_QD, min(codes.DEPTH, keys.num_tokens))]
        part = self._codes(segment).with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        assert isinstance(keys.vectors, TokenVectors)
        codes.build_codes(part, keys.vectors, q_QD, exact, target)
        seal_folder(part)
        publish_directory(part, self._codes(segment))

    def _check_same(self, precision: str) -> None:
        for facts in sorted(self._folder.glob("*/table.json")):
            if (other := read_json(facts)["precision"]) != precision:
                raise InputError(
                    f"{self._corpus.path}: holds {other} vectors of {self._encoder.name}, not {precision}; "
                    f"embed with precision {other}, or delete {self._folder} first"
                )

    def cost(self, precision: str) -> Cost:
        """About what `build` will take, from encoding a few passages. Raises InputError on an unknown precision."""
        check_precision(precision)
        missing = self.missing()
        total = sum(each.num_passages for each in missing)
        if not total:
            return Cost(0, 0, 0, 0.0)
        rng = np.random.default_rng(0)
        bounds = np.cumsum([0, *(each.num_passages for each in missing)])
        drawn = np.sort(rng.choice(total, min(total, SAMPLED_PASSAGES), replace=False))
        owner = np.searchsorted(bounds, drawn, side="right") - 1
        rows = [missing[s].first_row + int(at - bounds[s]) for s, at in zip(owner.tolist(), drawn, strict=True)]
        passages = [self._corpus.passage(row) for row in rows]
        self._encoder.passages([passages[0].text], [passages[0].title])
        began = perf_counter()
        encoded = self._encoder.passages([p.text for p in passages], [p.title for p in passages])
        seconds = (perf_counter() - began) * total / len(passages)
        tokens = sum(len(each.tokens.ids_T) for each in encoded) * total // len(passages)
        vector = self._encoder.dimensions * BYTES[precision]
        code = self._encoder.dimensions // 8 if tokens >= codes.FLAT_FROM else 0
        return Cost(total, tokens, tokens * (vector + code + COLUMN_BYTES), seconds)


def mask_queries(encoder: TokenEncoder, keys: TokenKeys, count: int) -> NDArray[np.float32]:
    """The start and end queries of blanks drawn from the table's own passages, always the same: [Q, D], Q ≤ 2 count."""
    rng = np.random.default_rng(0)
    texts: list[str] = []
    for row in rng.permutation(np.flatnonzero(keys.flags_N[:] & MAY_START)):
        p = int(np.searchsorted(keys.offsets_P1, row, side="right")) - 1
        passage = keys.corpus.passage(int(keys.passage_rows_P[p]))
        start, end = int(keys.start_N[row]) - passage.start, int(keys.end_N[row]) - passage.start
        text = f"{passage.text[max(start - QUERY_REACH, 0) : start]}{MASK}{passage.text[end : end + QUERY_REACH]}"
        if text.count(encoder.tokenizer.mask_token) + text.count(MASK) == 1 + (encoder.tokenizer.mask_token == MASK):
            texts.append(text)
        if len(texts) == count:
            break
    return np.concatenate([np.stack(pair) for pair in encoder.blanks(texts)])


class _Builder:
    """Builds one segment's table: parts first, each complete or absent, then the whole."""

    def __init__(self, corpus: Corpus, segment: Segment, encoder: TokenEncoder, precision: str, folder: Path) -> None:
        self._corpus, self._segment, self._encoder, self._precision = corpus, segment, encoder, precision
        self._final = folder / segment.name
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
            if not part.is_dir():
                self._encode(first, last, part)
            parts.append(part)
            yield last - first
        self._join(parts)

    def _encode(self, first: int, last: int, part: Path) -> None:
        rows = range(self._segment.first_row + first, self._segment.first_row + last)
        passages = [self._corpus.passage(row) for row in rows]
        encoded = self._encoder.passages([p.text for p in passages], [p.title for p in passages])
        vectors_ND = _vectors(encoded, self._encoder.dimensions)
        fresh = part.with_suffix(".tmp")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir()
        columns = _columns(passages, encoded)
        save_columns(fresh, lambda: [columns])
        save_array(fresh / "vectors.npy", stored(vectors_ND, self._precision, self._quantizer(vectors_ND)))
        publish_directory(fresh, part)

    def _quantizer(self, sample_ND: NDArray[np.float32]) -> Quantizer | None:
        """The segment's quantizer, fitted to its first part."""
        if self._precision != "sq8":
            return None
        if not (self._work / "quantizer.npy").is_file():
            save_quantizer(self._work, Quantizer.fit(sample_ND))
        return Quantizer(*open_array(self._work / "quantizer.npy"))

    def _join(self, parts: list[Path]) -> None:
        whole = self._work / "whole"
        shutil.rmtree(whole, ignore_errors=True)
        whole.mkdir()
        save_columns(whole, lambda: map(open_columns, parts))
        vectors = [open_array(part / "vectors.npy") for part in parts]
        total = sum(map(len, vectors))
        save_pieces(whole / "vectors.npy", total, vectors)
        if self._precision == "sq8":
            shutil.copy(self._work / "quantizer.npy", whole)
        facts = {"format": FORMAT, "model": self._encoder.name, "fingerprint": self._encoder.fingerprint}
        facts |= {"precision": self._precision, "tokens": total}
        atomic_write_json(whole / "table.json", facts)
        seal_folder(whole)
        publish_directory(whole, self._final)
        shutil.rmtree(self._work)
