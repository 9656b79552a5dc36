"""How much memory embedding holds as a corpus grows, by an encoder of random vectors as long as the shipped model's.

    python scripts/embed_memory.py PAGES.jsonl PASSAGES… [--memory BYTES] [--precision sq8] [--dimensions 384]

Prints, for each number of passages, the process's peak (resident memory, files' pages that it maps included) beside
what it held before.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import count, islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from quoth.corpus.corpus import Corpus
from quoth.corpus.documents import read_documents
from quoth.encoders.keys import EncodedPassage, TextSpan
from quoth.index import tables
from quoth.memory import WORKING_MEMORY, held
from quoth.records import Document, Passage
from quoth.text.boundaries import MAY_END, MAY_START
from quoth.text.tokenizer import TokenizedPassage

NUMBERS = np.random.default_rng(0).standard_normal(20_000_000, np.float32)
WORD = re.compile(r"\w+|[^\w\s]")


class RandomEncoder:
    """A vector for every word and mark of a passage: some of NUMBERS, by its text."""

    keys, name, scale = "tokens", "random", 1.0
    fingerprint = "random".ljust(16, "0")

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions

    def encode(self, passages: Sequence[Passage]) -> list[EncodedPassage]:
        return [self._encoded(each.text) for each in passages]

    def _encoded(self, text: str) -> EncodedPassage:
        found = list(WORD.finditer(text))
        group_T = np.array([zlib.crc32(each.group().encode()) for each in found], np.uint64)
        offsets_T2 = np.array([each.span() for each in found], np.int64).reshape(-1, 2)
        flags_T = np.full(len(found), MAY_START | MAY_END, np.uint8)
        size = len(found) * self.dimensions
        first = zlib.crc32(text.encode()) % (len(NUMBERS) - size)
        vectors_TD = NUMBERS[first : first + size].reshape(-1, self.dimensions).copy()
        return EncodedPassage(
            TokenizedPassage((group_T % 30_000).astype(np.int32), offsets_T2, flags_T, group_T, ()), vectors_TD
        )

    def words(self, query: str) -> NDArray[np.float32]:
        return self._encoded(query).vectors_TD

    def queries_at(self, places: Iterable[TextSpan], count: int) -> NDArray[np.float32]:
        return np.concatenate([self._encoded(text).vectors_TD[:2] for text, _, _ in islice(places, count)])


def documents(pages: Path) -> Iterator[Document]:
    """The pages, again and again with other ids where they are few."""
    for lap in count():
        for page in read_documents(pages):
            yield Document(f"{lap}-{page.id}", page.title, page.text)


def enough(pages: Path, passages: int) -> Iterator[Document]:
    """As many as make about so many passages of 120 words, in one segment."""
    words = 0
    for document in documents(pages):
        yield document
        words += len(document.text.split())
        if words >= 110 * passages:
            return


def measure(pages: Path, passages: int, memory: int, precision: str, dimensions: int) -> None:
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        corpus = Corpus.create(Path(folder) / "c.quoth")
        corpus.add(enough(pages, passages))
        keys = tables.KeyTables(corpus, RandomEncoder(dimensions))
        keys.cost(precision)
        before = held()
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        keys.build(precision, recall=0.5, memory=memory)
        status = Path("/proc/self/status").read_text()
        peak = 1024 * int(re.search(r"VmHWM:\s+(\d+)", status)[1])  # type: ignore[index]
        vectors = keys.open()[0][0].num_keys
        size = sum(each.stat().st_size for each in corpus.path.glob("keys/**/vectors.npy"))
        print(
            f"{corpus.num_passages:,} passages, {vectors:,} vectors, {size / 1e6:.0f} MB: held {before / 1e6:.0f} MB "
            f"before, peak {peak / 1e6:.0f} MB, {(peak - before) / 1e6:.0f} MB more",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", type=Path)
    parser.add_argument("passages", type=int, nargs="+")
    parser.add_argument("--memory", type=int, default=WORKING_MEMORY)
    parser.add_argument("--precision", default="sq8")
    parser.add_argument("--dimensions", type=int, default=384)
    given = parser.parse_args()
    if len(given.passages) > 1:
        for passages in given.passages:  # each in its own process
            options = ("memory", "precision", "dimensions")
            rest = [part for name in options for part in (f"--{name}", str(getattr(given, name)))]
            subprocess.run([sys.executable, __file__, str(given.pages), str(passages), *rest], check=True)
    else:
        measure(given.pages, given.passages[0], given.memory, given.precision, given.dimensions)


if __name__ == "__main__":
    main()
