"""Compressed codes of a table's vectors (FAISS fast-scan): they propose rows, exact similarities decide.

Knows: FAISS, its files, how many rows must be proposed for a stated recall. Does not know: texts and models.

    codes.json       what was chosen and measured
    rows-000.faiss   the codes of ROWS_PER_FILE rows, or of fewer if memory is short; further files for further rows

Shape suffixes that differ from the project's: C proposed rows.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quoth.arrays import Floats, Rows
from quoth.errors import CorruptionError
from quoth.index.vectors import KeyVectors, Neighbours
from quoth.memory import WORKING_MEMORY
from quoth.storage import Fields, atomic_write_json, check_fields, check_folder, check_opens, read_json

FLAT_FROM = 100_000
"""Below this many, vectors are compared one by one, which is as fast."""
IVF_FROM = 1 << 22
"""From this many on, codes are put into cells, of which a search looks into some: half of the time at 53 million."""
ROWS_PER_FILE = 1 << 24
DEPTH = 4096
"""The k at which recall is measured."""
FACTORS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
MORE_FACTORS = (*FACTORS, 12.0, 16.0, 24.0, 32.0, 64.0)
LEAST_DEPTH = 64
LEAST_SAMPLE = 1 << 12
VECTORS_PER_CELL = 64
COPIES = 4
"""The most copies in memory of FAISS's training sample, and of a file's codes while they grow and are written."""
FORMAT = 1
REMEDY = "`quoth repair` removes damaged codes, `quoth embed` makes them again"


@dataclass(frozen=True, slots=True)
class CodeFacts:
    """What was chosen for a table's codes, and the recall that it gave.

    `spec` is FAISS's name of the index. For k neighbours, `factor` k rows are proposed and `probes` cells looked into
    (0 without cells); this found `recall` of the exact `depth` neighbours of `num_queries` mask queries, when `target`
    was asked for. `deeper` has the factors for the nearest few of them, (how many, factor), most first (None in older
    codes): if other tables hold the rest of the k, only a few of this one's count, and these are harder to find.
    """

    spec: str
    factor: float
    probes: int
    depth: int
    recall: float
    target: float
    num_queries: int
    rows: int
    deeper: Sequence[Sequence[float]] | None = None
    format: int = FORMAT


_TYPES = {"str": (str,), "int": (int,), "float": (int, float)}
FACTS: Fields = {each.name: _TYPES.get(str(each.type), (list, type(None))) for each in fields(CodeFacts)}
"""By the annotations of `CodeFacts`: `deeper` alone is a list or nothing."""


class CodesGoneError(Exception):
    """Another process has taken these codes away, or made others, before they were read."""


def open_codes(folder: Path, num_rows: int) -> Codes | None:
    """The codes in a folder, if there are any. Raises CorruptionError."""
    try:
        return Codes(folder, num_rows) if folder.is_dir() else None
    except CorruptionError:
        # A folder that has vanished since the first look was removed by another process: that is not damage.
        if folder.is_dir():
            raise
        return None


def facts_of(folder: Path) -> CodeFacts | None:
    """The facts of a folder of codes; None if there are none. Raises CorruptionError."""
    return _read_facts(folder / "codes.json") if folder.is_dir() else None


def _read_facts(file: Path) -> CodeFacts:
    content = read_json(file)
    if isinstance(content, dict):
        content = {"deeper": None, "format": FORMAT, **content}  # older codes lack them
    content = check_fields(file, content, FACTS)
    for each in content["deeper"] or ():
        if not (isinstance(each, list) and len(each) == 2 and all(type(number) in (int, float) for number in each)):
            raise CorruptionError(f"{file}: damaged, its field 'deeper' is {each!r}")
    return CodeFacts(**content)


class Codes:
    """The codes of one table. Raises CorruptionError if they are not what was written."""

    def __init__(self, folder: Path, num_rows: int) -> None:
        self._folder = folder
        check_folder(folder)
        self.facts = _read_facts(folder / "codes.json")
        if self.facts.rows != num_rows or self.facts.format != FORMAT:
            raise CorruptionError(f"{folder}: they do not fit the vectors; delete it, `quoth embed` makes them again")
        self._files = sorted(folder.glob("rows-*.faiss"))
        self._lock = threading.Lock()
        self._loaded: list[_Index] = []

    def count(self, k: int, share: float = 1.0) -> int:
        """How many rows must be proposed for this table's share of k neighbours (at least of `depth`)."""
        depth = max(k, self.facts.depth) * (1.0 if self.facts.deeper is None else share)
        factors = [self.facts.factor, *(factor for least, factor in self.facts.deeper or () if depth < 2 * least)]
        return min(ceil(depth * factors[-1]), self.facts.rows)

    def propose(self, q_QD: Floats, count: int) -> list[Neighbours]:
        """The `count` rows that the codes hold nearest to each query, nearest first, with estimates of q·c."""
        return _propose(self._indexes(), q_QD, count)

    def _indexes(self) -> list[_Index]:
        """Read at the first search."""
        with self._lock:
            if not self._loaded:
                try:
                    loaded = [_Index.read(file, self.facts.probes) for file in self._files]
                    # Read again after the files: if the facts have changed, the files may be old ones and new ones.
                    changed = _read_facts(self._folder / "codes.json") != self.facts
                except CorruptionError as error:
                    if self._folder.is_dir():
                        raise
                    raise CodesGoneError from error
                if changed:
                    raise CodesGoneError
                if sum(each.codes.ntotal for each in loaded) != self.facts.rows:
                    raise CorruptionError(f"{self._folder}: its files hold a different number of rows; {REMEDY}")
                self._loaded = loaded
            return self._loaded


@dataclass(frozen=True, slots=True)
class _Index:
    """A file's codes: of the vectors less their mean, rotated. Queries are rotated only, so that what FAISS finds
    estimates q·c less q·mean, whatever else has been coded elsewhere."""

    rotation_RD: Floats
    mean_D: Floats
    codes: Any
    file: Path

    @classmethod
    def read(cls, file: Path, probes: int) -> _Index:
        import faiss

        try:
            index: Any = faiss.read_index(str(file))
        except RuntimeError as error:
            check_opens(file)
            raise CorruptionError(f"{file}: damaged, no longer an index; {REMEDY}") from error
        if probes:
            faiss.extract_index_ivf(index).nprobe = probes
        rotation: Any = faiss.downcast_VectorTransform(index.chain.at(0))
        rotation_RD = faiss.vector_to_array(rotation.A).reshape(rotation.d_out, rotation.d_in)
        return cls(rotation_RD, faiss.vector_to_array(rotation.mean), index, file)

    def nearest(self, q_QD: Floats, count: int) -> tuple[Floats, Rows]:
        """Estimates of q·c and rows, nearest first: [Q, C]; −1 if there are no more rows."""
        import faiss

        q_QR = np.ascontiguousarray(q_QD @ self.rotation_RD.T, np.float32)
        near_QC, row_QC = faiss.downcast_index(self.codes.index).search(q_QR, min(count, self.codes.ntotal))
        if row_QC.max(initial=-1) >= self.codes.ntotal:
            raise CorruptionError(f"{self.file}: damaged, it proposes rows that do not exist; {REMEDY}")
        # The codes hold R(c - mean), so the search gives q·(c - mean). q·mean makes files and tables comparable.
        return near_QC + (q_QD @ self.mean_D)[:, None], row_QC


def _propose(indexes: Iterable[_Index], q_QD: Floats, count: int) -> list[Neighbours]:
    near_QC, row_QC = np.zeros((len(q_QD), 0), np.float32), np.zeros((len(q_QD), 0), np.int64)
    first = 0
    for index in indexes:
        near_QN, row_QN = index.nearest(q_QD, count)
        near_QC = np.concatenate([near_QC, np.where(row_QN < 0, -np.inf, near_QN)], axis=1)
        row_QC = np.concatenate([row_QC, row_QN + first], axis=1)
        # Cut to `count` after every file: memory does not grow with the number of files.
        if first:
            order_QC = np.argsort(-near_QC, axis=1, kind="stable")[:, :count]
            near_QC, row_QC = np.take_along_axis(near_QC, order_QC, 1), np.take_along_axis(row_QC, order_QC, 1)
        first += index.codes.ntotal
    return [
        Neighbours(row_C[there_C], near_C[there_C])
        for row_C, near_C, there_C in zip(row_QC, near_QC, near_QC > -np.inf, strict=True)
    ]


def build_codes(
    folder: Path,
    vectors: KeyVectors,
    q_QD: Floats,
    exact_QK: Sequence[Rows],
    recall: float,
    memory: int = WORKING_MEMORY,
) -> None:
    """Write the codes of all vectors into a folder, tuned until the queries' exact neighbours, nearest first, are
    found; finer ones if that requires it.

    A sample of the vectors, and one file's codes (D / 8 bytes each, or twice that), are in memory, about `memory` bytes
    at most. The recall reached is in the facts.
    """
    # D / 8 bytes per vector first, twice that only if recall falls short: token vectors of quoth-mini need 48 bytes,
    # random vectors of the same size 97 (docs/benchmarks.md).
    half = max(vectors.dimensions // 4 * 2, 2)
    for kept in (half, 2 * half):
        trained, spec = _trained(vectors, kept, memory)
        files = list(_write(folder, trained, vectors, memory // (COPIES * (kept // 4 + 8))))
        facts = CodeFacts(spec, FACTORS[-1], 0, len(exact_QK[0]), 0.0, recall, len(q_QD), len(vectors))
        facts = _tuned(facts, files, q_QD, exact_QK)
        if facts.recall >= recall:
            break
    atomic_write_json(folder / "codes.json", asdict(facts))


def _trained(vectors: KeyVectors, kept: int, memory: int) -> tuple[Any, str]:
    """An empty index fitted to a sample that fits into memory: a rotation to `kept` dimensions, four bits for every two
    of them."""
    import faiss

    most = max(memory // (COPIES * 4 * vectors.dimensions), LEAST_SAMPLE)
    cells = 0
    if len(vectors) >= IVF_FROM:
        cells = 1 << int(np.log2(min(np.sqrt(len(vectors)), most / VECTORS_PER_CELL)))
    # PCAR keeps the directions of greatest variance, then rotates them at random: each pair of dimensions gets four
    # bits, so each should have an equal part of the variance.
    spec = f"PCAR{kept},{f'IVF{cells},' if cells else ''}PQ{kept // 2}x4fs"
    wanted = min(len(vectors), max(1 << 16, VECTORS_PER_CELL * cells), most)
    index = faiss.index_factory(vectors.dimensions, spec, faiss.METRIC_INNER_PRODUCT)
    index.train(_sample(vectors, wanted))
    return index, spec


def _sample(vectors: KeyVectors, count: int) -> Floats:
    """This many of the vectors, in order, always the same ones."""
    # A fixed seed: the same vectors always give the same codes.
    rows = np.sort(np.random.default_rng(0).choice(len(vectors), count, replace=False))
    sample_ND = np.empty((count, vectors.dimensions), np.float32)
    for first, block in vectors.blocks(0, len(vectors)):
        begin, end = np.searchsorted(rows, [first, first + len(block)])
        sample_ND[begin:end] = block.floats(rows[begin:end] - first)
    return sample_ND


def _write(folder: Path, trained: Any, vectors: KeyVectors, most: int) -> Iterator[Path]:
    import faiss

    rows = max(1, min(ROWS_PER_FILE, most))
    for left in folder.glob("rows-*.faiss"):
        left.unlink()
    for number, first in enumerate(range(0, len(vectors), rows)):
        # Clones share one rotation and one code book, so nothing is fitted twice.
        index = faiss.clone_index(trained)
        for _, block in vectors.blocks(first, min(first + rows, len(vectors))):
            index.add(block.floats(slice(None)))
        file = folder / f"rows-{number:03d}.faiss"
        try:
            faiss.write_index(index, str(file))
        except RuntimeError as error:
            raise OSError(f"{file} cannot be written: {error}") from error
        yield file


def _tuned(facts: CodeFacts, files: Sequence[Path], q_QD: Floats, exact_QK: Sequence[Rows]) -> CodeFacts:
    """The fewest cells, then the fewest proposals, that find as many of the exact neighbours as asked for."""
    cells = [1 << power for power in range(3, 15)] if "IVF" in facts.spec else [0]
    # Neighbours depend on the text, so the least work for a recall is measured per segment, not assumed.
    best = facts
    for probes in cells:
        # A generator: one file's codes are in memory at a time.
        indexes = (_Index.read(file, probes) for file in files)
        place_QK = _places(_propose(indexes, q_QD, int(FACTORS[-1] * facts.depth)), exact_QK)
        for factor in FACTORS:
            recall = float((place_QK < int(factor * facts.depth)).mean())
            if recall > best.recall:
                best = replace(
                    facts, factor=factor, probes=probes, recall=recall, deeper=_deeper(place_QK, facts.target)
                )
            if recall >= facts.target:
                return best
    return best


def _places(proposed: Sequence[Neighbours], exact_QK: Sequence[Rows]) -> NDArray[np.int64]:
    """The rank of each query's exact neighbours, nearest first, among its proposals; a very large one if absent."""
    places = []
    for near, exact_K in zip(proposed, exact_QK, strict=True):
        order = np.argsort(near.rows_K)
        at_K = np.minimum(np.searchsorted(near.rows_K[order], exact_K), len(order) - 1)
        found_K = near.rows_K[order[at_K]] == exact_K
        places.append(np.where(found_K, order[at_K], np.iinfo(np.int64).max))
    return np.stack(places)


def _deeper(place_QK: NDArray[np.int64], target: float) -> list[tuple[float, float]]:
    """For half, a quarter, … of the neighbours, the smallest factor that finds the share asked for."""
    found = []
    depth = place_QK.shape[1] // 2
    while depth >= LEAST_DEPTH:
        near_QK = place_QK[:, :depth]
        enough = (factor for factor in MORE_FACTORS if (near_QK < factor * depth).mean() >= target)
        found.append((float(depth), next(enough, FACTORS[-1] * place_QK.shape[1] / depth)))
        depth //= 2
    return found
