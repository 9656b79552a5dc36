"""The index that REALM's training retrieves from, and how it is made again while training goes on (REALM §3.3).

Knows: snapshots of the towers, the process that embeds the corpus with the newest of them, and the swap. Does not know:
losses. Trainer and builder share nothing but files, and each survives the other's death:

    towers/<step>/    a model folder, published whole; the builder takes the newest, and writes into `keys` which folder
                      of the corpus its vectors go to
    index.json        the step whose towers the current index was made with, replaced in one step
    builder.log       what the builder wrote
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from quoth.corpus.corpus import Corpus
from quoth.encoders.passage_encoder import PassageEncoder
from quoth.encoders.pretrained import locate_realm
from quoth.errors import TrainingError
from quoth.records import Passage
from quoth.retrieval.retriever import Retriever
from quoth.retrieval.tables import KeyTables
from quoth.storage import atomic_write_bytes, atomic_write_json, publish_directory, read_json, remove
from quoth.training.realm_model import TrainedREALM

TOWERS, KEYS, INDEX, BUILDER_LOG = "towers", "keys", "index.json", "builder.log"
PRECISION = "fp16"
POLL_SECONDS = 0.5
MAX_DEATHS = 3
"""So often in a row the builder may die before it has made an index."""


class IndexRefresher:
    """The newest index of a training run in `output` over a corpus that is the run's own.

    Without `asynchronous` a new index is made within `refresh`, and training waits. `base` names a folder for the base
    encoder. Raises TrainingError where the builder dies again and again.
    """

    def __init__(self, output: Path, corpus: Corpus, every: int, asynchronous: bool, base: str | None = None) -> None:
        self._output, self._corpus, self._every, self._asynchronous = output, corpus, every, asynchronous
        self._base, self._deaths = base, 0
        self._builder: subprocess.Popen[bytes] | None = None
        self._step = -1
        self._retriever: Retriever | None = None

    def refresh(self, step: int, model: TrainedREALM) -> int:
        """Publish the towers where an index of this step is due, take a newer index where there is one.

        Returns how many steps old the current one is. The first is waited for, as is each without `asynchronous`.
        """
        if self._retriever is None and index_step(self._output) > step:
            (self._output / INDEX).unlink()  # of a run that was broken off, and goes on from before it
        newest = max(_snapshots(self._output), default=-1)
        if (step % self._every == 0 and newest != step) or newest < 0 or newest > step:
            self._publish(step, model)
        if not self._asynchronous:
            if index_step(self._output) < max(_snapshots(self._output)):
                build_newest(self._output, self._corpus, self._base)
        else:
            self._watch()
            while index_step(self._output) < 0:
                time.sleep(POLL_SECONDS)
                self._watch()
        self._swap()
        return step - self._step

    def nearest(self, q_BD: NDArray[np.float32], k: int, exclude: Sequence[Collection[int]]) -> list[list[Passage]]:
        """The k passages nearest to each query in the current index, but for these rows."""
        assert self._retriever is not None, "refresh comes first"
        found = self._retriever.nearest_passages(q_BD, k, exclude)
        return [[self._corpus.passage(row) for _, (_, row) in each] for each in found]

    def close(self) -> None:
        """Stop the builder."""
        if self._builder is not None:
            self._builder.terminate()
            self._builder.wait()
            self._builder = None

    def _publish(self, step: int, model: TrainedREALM) -> None:
        part = self._output / TOWERS / f"{step}.part"
        if part.exists():
            remove(part)
        model.save(part)
        publish_directory(part, _towers(self._output, step))
        self._forget(later for later in _snapshots(self._output) if later > step)

    def _watch(self) -> None:
        """Start the builder where it does not run."""
        if self._builder is not None and self._builder.poll() is None:
            return
        self._deaths += self._builder is not None
        log = self._output / BUILDER_LOG
        if self._deaths > MAX_DEATHS:
            last = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
            raise TrainingError(f"the index builder died {self._deaths} times: {' '.join(last)}; see {log}")
        command = [sys.executable, "-m", __name__, str(self._output), str(self._corpus.path), self._base or ""]
        with log.open("ab") as stream:
            self._builder = subprocess.Popen(command, stdout=stream, stderr=stream)

    def _swap(self) -> None:
        """Search in the newest index from now on, and remove what only older ones need."""
        step = index_step(self._output)
        if step == self._step:
            return
        encoder = _encoder(self._output, step, self._base)
        self._retriever = Retriever([self._corpus], encoder)
        self._step, self._deaths = step, 0
        self._forget(older for older in _snapshots(self._output) if older < step)

    def _forget(self, steps: Iterable[int]) -> None:
        """Remove these towers and the vectors made with them, but not the current ones."""
        current = _keys(self._output, self._step)
        for step in steps:
            if (keys := _keys(self._output, step)) and keys != current and (self._corpus.path / "keys" / keys).is_dir():
                remove(self._corpus.path / "keys" / keys)
            remove(_towers(self._output, step))


def index_step(output: Path) -> int:
    """The step whose towers the newest index was made with; −1 before there is one."""
    file = output / INDEX
    return int(read_json(file)["step"]) if file.is_file() else -1


def build_newest(output: Path, corpus: Corpus, base: str | None) -> None:
    """Embed the corpus with the newest towers, then make that the index, unless they were taken back."""
    step = max(_snapshots(output))
    encoder, towers = _encoder(output, step, base), _towers(output, step)
    tables = KeyTables(corpus, encoder)
    atomic_write_bytes(towers / KEYS, tables.folder.name.encode())
    tables.build(PRECISION, recall=1.0)
    if towers.is_dir():
        atomic_write_json(output / INDEX, {"step": step})


def _encoder(output: Path, step: int, base: str | None) -> PassageEncoder:
    return PassageEncoder.load(locate_realm(str(_towers(output, step)), base))


def _towers(output: Path, step: int) -> Path:
    return output / TOWERS / f"{step:09d}"


def _keys(output: Path, step: int) -> str:
    file = _towers(output, step) / KEYS
    return file.read_text() if file.is_file() else ""


def _snapshots(output: Path) -> list[int]:
    return [int(path.name) for path in (output / TOWERS).glob("*") if path.name.isdecimal()]


def follow(output: Path, corpus: Corpus, base: str | None) -> None:
    """Keep the index as new as the towers are, as long as the process that started this one lives."""
    parent = os.getppid()
    while os.getppid() == parent:
        if index_step(output) < max(_snapshots(output), default=-1):
            build_newest(output, corpus, base)
        else:
            time.sleep(POLL_SECONDS)


if __name__ == "__main__":
    follow(Path(sys.argv[1]), Corpus.open(sys.argv[2]), sys.argv[3] or None)
