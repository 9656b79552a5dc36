"""The index that REALM's training retrieves from, and how it is made again while training continues (REALM §3.3).

Knows: snapshots of the towers, the process that embeds the corpus with the newest of them, and the swap. Does not know:
losses. Trainer and builder share nothing but files, and each survives the other's death:

    towers/<step>/    a model folder, published whole; the builder takes the newest. `keys` in it names the folder of
    the corpus that its vectors go to, unless that existed before: another's vectors are kept
    index.json        the step whose towers the current index was made with, replaced in one step
    builder.log       what the builder wrote
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from quoth.corpus.corpus import Corpus
from quoth.errors import TrainingError
from quoth.hub import locate
from quoth.index.retriever import Retriever
from quoth.index.tables import KeyTables
from quoth.realm.config import REALMConfig
from quoth.realm.passages import PassageEncoder
from quoth.realm.trained import TrainedREALM
from quoth.records import Passage
from quoth.storage import atomic_write_bytes, atomic_write_json, publish_directory, read_json, remove
from quoth.training.distributed import SINGLE_PROCESS, World

TOWERS, KEYS, INDEX, BUILDER_LOG = "towers", "keys", "index.json", "builder.log"
PRECISION = "fp16"
POLL_SECONDS = 0.5
SECONDS_TO_STOP = 60.0
"""After which a builder that was asked to stop is killed."""
MAX_DEATHS = 3
"""The number of times in a row that the builder may die without having made an index."""


class FixedIndex:
    """A corpus's passages, searched by the stored vectors of one encoder that never change."""

    def __init__(self, corpus: Corpus, encoder: PassageEncoder) -> None:
        self.encoder = encoder
        self._corpus, self._retriever = corpus, Retriever([corpus], encoder)

    def refresh(self, step: int, model: TrainedREALM) -> int:
        """Never makes a new index."""
        return 0

    def nearest(self, q_BD: NDArray[np.float32], k: int, exclude: Sequence[Collection[int]]) -> list[list[Passage]]:
        """The k passages nearest to each query, but for these rows."""
        found = self._retriever.nearest_passages(q_BD, k, exclude)
        return [[self._corpus.passage(row) for _, (_, row) in places] for places in found]


class IndexRefresher:
    """The newest index of a training run in `output` over a corpus.

    Without `asynchronous` a new index is made within `refresh`, and training waits; with it, while the index is two
    refreshes old or more, from which towers learn to forget. `base` names a folder for the base encoder, `dtype` its
    precision when it embeds. Of several processes the first makes the indexes, and all search the same one. Raises
    TrainingError if the builder dies again and again.
    """

    def __init__(
        self,
        output: Path,
        corpus: Corpus,
        every: int,
        asynchronous: bool,
        base: str | None = None,
        dtype: str = "fp32",
        world: World = SINGLE_PROCESS,
    ) -> None:
        self._output, self._corpus, self._every, self._asynchronous = output, corpus, every, asynchronous
        self._base, self._dtype, self._deaths, self._world = base, dtype, 0, world
        self._builder: subprocess.Popen[bytes] | None = None
        self._step = -1
        self._index: FixedIndex | None = None

    def refresh(self, step: int, model: TrainedREALM) -> int:
        """Publish the towers if an index of this step is due; take a newer index if there is one.

        Returns how many steps old the current one is, with `asynchronous` less than two refreshes.
        """
        if self._world.is_main:
            self._make(step, model)
        self._swap(self._world.from_main(index_step(self._output), model.device))
        return step - self._step

    def _make(self, step: int, model: TrainedREALM) -> None:
        if self._index is None:  # a run that resumes: its index may be of a later step, or lack its vectors
            keys = self._keys(index_step(self._output))
            if index_step(self._output) >= step or (keys and not keys.is_dir()):
                (self._output / INDEX).unlink(missing_ok=True)
        newest = max(_snapshots(self._output), default=-1)
        if step % self._every == 0 or not 0 <= newest < step:
            self._publish(step, model)
        if not self._asynchronous:
            if index_step(self._output) < max(_snapshots(self._output)):
                build_newest(self._output, self._corpus, self._base, self._dtype)
        else:
            self._watch()
            while index_step(self._output) < max(0, step - 2 * self._every + 1):
                time.sleep(POLL_SECONDS)
                self._watch()

    @property
    def encoder(self) -> PassageEncoder:
        """The towers of the current index."""
        assert self._index is not None, "refresh comes first"
        return self._index.encoder

    def nearest(self, q_BD: NDArray[np.float32], k: int, exclude: Sequence[Collection[int]]) -> list[list[Passage]]:
        """The k passages nearest to each query in the current index, except these rows."""
        assert self._index is not None, "refresh comes first"
        return self._index.nearest(q_BD, k, exclude)

    def close(self) -> None:
        """Stop the builder."""
        if self._builder is not None:
            self._builder.terminate()
            try:
                self._builder.wait(SECONDS_TO_STOP)
            except subprocess.TimeoutExpired:
                self._builder.kill()
                self._builder.wait()
            self._builder = None

    def _publish(self, step: int, model: TrainedREALM) -> None:
        part, ours = self._output / TOWERS / f"{step}.part", set(map(self._keys, _snapshots(self._output)))
        remove(part)
        model.save(part)
        encoder = PassageEncoder.load(locate(str(part), REALMConfig, self._base), device="cpu")
        keys = KeyTables(self._corpus, encoder).folder
        if keys in ours or not keys.exists():
            atomic_write_bytes(part / KEYS, keys.name.encode())
        replaced = self._keys(step)
        publish_directory(part, _towers(self._output, step))
        self._forget([later for later in _snapshots(self._output) if later > step], replaced)

    def _watch(self) -> None:
        """Start the builder if it is not running."""
        if self._builder is not None and self._builder.poll() is None:
            return
        self._deaths += self._builder is not None
        log = self._output / BUILDER_LOG
        if self._deaths > MAX_DEATHS:
            last = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
            raise TrainingError(f"the index builder died {self._deaths} times: {' '.join(last)}; see {log}")
        me, base = str(os.getpid()), self._base or ""
        command = [sys.executable, "-m", __name__, me, str(self._output), str(self._corpus.path), base, self._dtype]
        with log.open("ab") as stream:
            self._builder = subprocess.Popen(command, stdout=stream, stderr=stream)

    def _swap(self, step: int) -> None:
        """Search in this step's index from now on, and remove what only older ones need."""
        if step == self._step:
            return
        self._index = FixedIndex(self._corpus, _encoder(self._output, step, self._base, self._dtype))
        self._step, self._deaths = step, 0
        if self._world.is_main:
            self._forget([older for older in _snapshots(self._output) if older < step])

    def _forget(self, steps: Collection[int], *more: Path | None) -> None:
        """Remove these towers, the vectors made with them and these other vectors, but none made by other towers."""
        kept = {self._keys(step) for step in _snapshots(self._output) if step not in steps}
        for keys in {*more, *map(self._keys, steps)} - kept:
            if keys and keys.is_dir():
                remove(keys)
        for step in steps:
            remove(_towers(self._output, step))

    def _keys(self, step: int) -> Path | None:
        """The folder of the vectors that this run makes with a step's towers, None if they are not its own."""
        file, keys = _towers(self._output, step) / KEYS, self._corpus.path / "keys"
        found = keys / file.read_text() if file.is_file() else keys
        return found if found.parent == keys and found.name != ".." else None  # a stranger's run removes nothing else


def index_step(output: Path) -> int:
    """The step whose towers the newest index was made with; −1 before there is one."""
    file = output / INDEX
    return int(read_json(file)["step"]) if file.is_file() else -1


def build_newest(output: Path, corpus: Corpus, base: str | None, dtype: str) -> None:
    """Embed the corpus with the newest towers, then make that the index, unless they were taken back."""
    step = max(_snapshots(output))
    tables = KeyTables(corpus, _encoder(output, step, base, dtype))
    if tables.missing():
        tables.build(PRECISION, recall=1.0)
    if _towers(output, step).is_dir():
        atomic_write_json(output / INDEX, {"step": step})


def _encoder(output: Path, step: int, base: str | None, dtype: str) -> PassageEncoder:
    return PassageEncoder.load(locate(str(_towers(output, step)), REALMConfig, base), dtype=dtype)


def _towers(output: Path, step: int) -> Path:
    return output / TOWERS / f"{step:09d}"


def _snapshots(output: Path) -> list[int]:
    return [int(path.name) for path in (output / TOWERS).glob("*") if path.name.isdecimal()]


def follow(parent: int, output: Path, corpus: Corpus, base: str | None, dtype: str) -> None:
    """Keep the index as new as the towers are, as long as the process `parent`, which started this one, lives."""
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    while True:
        if index_step(output) < max(_snapshots(output), default=-1):
            build_newest(output, corpus, base, dtype)
        else:
            time.sleep(POLL_SECONDS)


def _end_with(parent: int) -> None:
    """Ends this process, whatever it is doing, soon after its parent."""
    while os.getppid() == parent:
        time.sleep(POLL_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    follow(int(sys.argv[1]), Path(sys.argv[2]), Corpus.open(sys.argv[3]), sys.argv[4] or None, sys.argv[5])
