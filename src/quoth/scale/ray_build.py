"""Indexing and embedding on a Ray cluster: one finished segment a task, begun anew elsewhere where a worker dies.

Knows how work is cut and taken in. Does not know how a segment or its keys are made. The corpus lies in a folder that
every machine sees under the same path; the models are installed on each.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

from quoth.corpus.corpus import Corpus
from quoth.corpus.writing import split_documents, write_segment
from quoth.records import Document
from quoth.retrieval.tables import KeyTables, Shortfall
from quoth.scale.cluster import ModelName, connect, unwrapped
from quoth.storage import remove

BLOCK_CHARACTERS = 64_000_000
"""A task's text: some 80,000 passages."""
RETRIES = 10
SECONDS_BETWEEN_LOOKS = 0.5
SECONDS_TO_STOP = 30


def index(
    corpus: Corpus,
    documents: Iterable[Document],
    progress: Callable[[int], None] | None = None,
    block_characters: int = BLOCK_CHARACTERS,
) -> int:
    """`corpus.add`, with documents split, written and analysed by the cluster; one commit.

    Documents are read here, and at most one block for each of the cluster's CPUs, and one more, is on its way.
    """
    return corpus.add_written(_written(corpus, documents, progress, block_characters, connect() + 1))


def _written(
    corpus: Corpus,
    documents: Iterable[Document],
    progress: Callable[[int], None] | None,
    block_characters: int,
    in_flight: int,
) -> Iterator[Path]:
    """The folders of finished segments, in the order of the documents."""
    import ray

    write = ray.remote(max_retries=RETRIES)(_write)
    segments, run, taken = corpus.path.absolute() / "segments", uuid4().hex, 0
    waiting: deque[tuple[Path, Any, int]] = deque()
    blocks = _blocks(documents, block_characters)
    with _cancelling(lambda: [finished for _, finished, _ in waiting]):
        for number in count():
            if block := next(blocks, None):
                folder = segments / f"{run}-{number:06d}.tmp"
                waiting.append((folder, write.remote(folder, block, corpus.splitter), len(block)))
            if not waiting:
                break
            if block is None or len(waiting) == in_flight:
                folder, finished, documents_in_it = waiting.popleft()
                unwrapped(ray.get, finished)
                taken += documents_in_it
                if progress is not None:
                    progress(taken)
                yield folder
    for left in segments.glob(f"{run}-*"):
        remove(left)  # of workers that died


@contextmanager
def _cancelling(running: Callable[[], list[Any]]) -> Iterator[None]:
    """Tasks that still run when this ends in an error, or is interrupted, are stopped first."""
    import ray

    try:
        yield
    finally:
        if left := running():
            for each in left:
                ray.cancel(each, force=True)
            ray.wait(left, num_returns=len(left), timeout=SECONDS_TO_STOP)


def _write(folder: Path, block: list[Document], splitter: str) -> None:
    write_segment(folder, split_documents(block, splitter))


def _blocks(documents: Iterable[Document], characters: int) -> Iterator[list[Document]]:
    block: list[Document] = []
    size = 0
    for document in documents:
        block.append(document)
        size += len(document.text)
        if size >= characters:
            yield block
            block, size = [], 0
    if block:
        yield block


def embed(
    corpus: Corpus,
    model: ModelName,
    precision: str = "sq8",
    recall: float | None = None,
    progress: Callable[[int, int], None] | None = None,
    cpus: float = 1,
    gpus: float = 0,
) -> list[Shortfall]:
    """`KeyTables.build` by the cluster: each segment's table and codes are one task of so many CPUs and GPUs.

    Goes on where a broken run stopped. Raises what `build` does.
    """
    import ray

    connect()
    tables = KeyTables(corpus, model.load())
    task = ray.remote(num_cpus=cpus, num_gpus=gpus, max_retries=RETRIES)(_embed)
    running: list[Any] = []
    with tables.building(precision, recall) as target, _cancelling(lambda: running):
        total = tables.left(precision)
        path = corpus.path.absolute()
        running = [task.remote(path, model, name, precision, target) for name in tables.unfinished(target)]
        while running:
            done, running = ray.wait(running, timeout=SECONDS_BETWEEN_LOOKS)
            for each in done:
                unwrapped(ray.get, each)
            if progress is not None:
                progress(total - tables.left(precision), total)
        return tables.shortfalls()


def _embed(path: Path, model: ModelName, segment: str, precision: str, target: float) -> None:
    tables = KeyTables(Corpus.open(path), model.load(), only=[segment])
    tables.build_segments(precision, target)
