"""What cells save, and what they miss: `python -m benchmarks.cells CORPUS`, over its largest embedded segment.

Codes with cells are made beside those without, by the same code book's size, and searched with the same mask queries at
every number of cells. Nothing is written into the corpus.

Shape suffixes: D dimensions, K neighbours, Q queries.
"""

from __future__ import annotations

import argparse
import tempfile
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.measure import seconds
from quoth import NPM, Corpus
from quoth.index import codes
from quoth.index.build import sample_queries
from quoth.index.tables import KeyTables
from quoth.index.vectors import KeyVectors, nearest_rows
from quoth.memory import WORKING_MEMORY


def main() -> None:
    """A line for the codes without cells, and for every number of cells that is looked into."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cells", description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--model", default="quoth-mini")
    parser.add_argument("--queries", type=int, default=100)
    given = parser.parse_args()
    corpus = Corpus.open(given.corpus)
    encoder = NPM.from_pretrained(given.model, corpus).encoder
    keys = max(KeyTables(corpus, encoder).open()[0], key=lambda each: each.num_keys)
    q_QD = sample_queries(encoder, keys, given.queries)
    exact_QK = nearest_rows(keys.vectors, q_QD, codes.DEPTH)
    print(f"{keys.num_keys:,} vectors, {len(q_QD)} mask queries, recall of the {codes.DEPTH:,} nearest", flush=True)
    with tempfile.TemporaryDirectory(dir=given.corpus.parent) as place:
        for least in (len(keys.vectors) + 1, 0):
            codes.IVF_FROM = least
            measure(keys.vectors, Path(place), q_QD, exact_QK)


def measure(vectors: KeyVectors, folder: Path, q_QD: np.ndarray, exact_QK: list[np.ndarray]) -> None:
    """Make codes and print, by the number of cells, the recall at every factor and the median time of a query."""
    trained, spec = codes._trained(vectors, vectors.dimensions // 4 * 2, WORKING_MEMORY)
    (file,) = codes._write(folder, trained, vectors, len(vectors))
    for probes in [1 << power for power in range(13)] if "IVF" in spec else [0]:
        index = codes._Index.read(file, probes)
        found = codes._propose([index], q_QD, int(codes.FACTORS[-1] * codes.DEPTH))
        place_QK = codes._places(found, exact_QK)
        recalls = [float((place_QK < factor * codes.DEPTH).mean()) for factor in codes.FACTORS]
        times = [seconds(partial(index.nearest, q_D[None], 4 * codes.DEPTH)) for q_D in q_QD]
        said = "  ".join(f"{factor:g}k {recall:.4f}" for factor, recall in zip(codes.FACTORS, recalls, strict=True))
        print(f"{spec}  {probes} cells  {1000 * median(times):.1f} ms  {said}", flush=True)


if __name__ == "__main__":
    main()
