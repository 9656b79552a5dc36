"""Indexing and embedding on a Ray cluster: one finished segment per task, restarted elsewhere if a worker dies.

Knows: how work is divided and collected. Does not know: how a segment or its keys are made. The models are installed on
every machine; the corpus is in a `RemoteFolder`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

from quoth.corpus.corpus import Corpus
from quoth.corpus.manifest import read_manifest, segment_name, segment_of
from quoth.corpus.writer import split_documents, write_segment
from quoth.errors import CorruptionError
from quoth.index.costs import Shortfall
from quoth.index.key_store import MARKERS, SETTINGS_FILES, codes_of, files_of, made_files
from quoth.index.tables import KeyTables
from quoth.memory import DEFAULT_LIMIT, left_of
from quoth.records import Document
from quoth.storage import remove
from quoth_ray.cluster import ModelName, connect, unwrapped
from quoth_ray.remote import TEXT, RemoteFolder

BLOCK_CHARACTERS = 64_000_000
"""A task's text: about 80,000 passages."""
RETRIES = 10
SECONDS_BETWEEN_LOOKS = 0.5
SECONDS_TO_STOP = 30


def index(
    corpus: Corpus,
    documents: Iterable[Document],
    progress: Callable[[int], None] | None = None,
    block_characters: int = BLOCK_CHARACTERS,
    place: RemoteFolder | None = None,
) -> int:
    """`corpus.add`, with documents split, written and analysed by the cluster; one commit.

    Documents are read in this process; at most one block per CPU of the cluster, and one more, is in flight.
    """
    in_flight = connect() + 1
    place, blocks = place or RemoteFolder(str(corpus.path)), _blocks(documents, block_characters)
    run = f"segments/{uuid4().hex}"
    with place.writing():
        place.clear(segment_name(read_manifest(corpus.path).next_document))
        try:
            added = corpus.add_written(_written(place, run, blocks, corpus.splitter, in_flight, progress))
            place.send(*TEXT)
        finally:
            place.remove(f"{run}*")
            for left in place.path.glob(f"{run}*"):
                remove(left)  # of workers that died
    return added


def _written(
    place: RemoteFolder,
    run: str,
    blocks: Iterator[list[Document]],
    splitter: str,
    in_flight: int,
    progress: Callable[[int], None] | None,
) -> Generator[Path]:
    """The folders of finished segments, in the order of the documents."""
    import ray

    write = ray.remote(max_retries=RETRIES)(_write)
    taken = 0
    waiting: deque[tuple[str, Any, int]] = deque()
    with _cancelling(lambda: [finished for _, finished, _ in waiting]):
        for number in count():
            if block := next(blocks, None):
                name = f"{run}-{number:06d}.tmp"
                waiting.append((name, write.remote(place, name, block, splitter), len(block)))
            if not waiting:
                break
            if block is None or len(waiting) == in_flight:
                name, finished, documents_in_it = waiting.popleft()
                unwrapped(ray.get, finished)
                place.fetch(f"{name}/*")
                taken += documents_in_it
                if progress is not None:
                    progress(taken)
                yield place.path / name


@contextmanager
def _cancelling(running: Callable[[], list[Any]]) -> Iterator[None]:
    """If the block ends in an error or is interrupted, first stops the tasks that are still running."""
    import ray

    try:
        yield
    finally:
        if left := running():
            for each in left:
                ray.cancel(each, force=True)
            ray.wait(left, num_returns=len(left), timeout=SECONDS_TO_STOP)


def _write(place: RemoteFolder, name: str, block: list[Document], splitter: str) -> None:
    folder = place.path / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    write_segment(folder, split_documents(block, splitter))
    if place.is_remote:
        place.send(f"{name}/*")
        remove(folder)


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
    storage: str = "sq8",
    recall: float | None = None,
    progress: Callable[[int, int], None] | None = None,
    cpus: float = 1,
    gpus: float = 0,
    place: RemoteFolder | None = None,
    memory: int = DEFAULT_LIMIT,
) -> list[Shortfall]:
    """`KeyTables.build` by the cluster: one task per segment makes its table and codes, with these CPUs and GPUs, in a
    process of at most about `memory` bytes, including its model.

    Resumes a stopped run. Raises the errors of `build`.
    """
    import ray

    connect()
    place = place or RemoteFolder(str(corpus.path))
    tables = KeyTables(corpus, model.load())
    task = ray.remote(num_cpus=cpus, num_gpus=gpus, max_retries=RETRIES)(_embed)
    running: list[Any] = []
    with place.writing(), tables.building(storage, recall) as target, _cancelling(lambda: running):
        place.send(SETTINGS_FILES)
        total = tables.left(storage)
        unsent = {segment_of(each) for each in place.unsent(tables.complete())}
        for name in sorted({*tables.unfinished(target), *unsent}):
            running.append(task.remote(place, model, name, storage, target, memory))
        while running:
            done, running = ray.wait(running, timeout=SECONDS_BETWEEN_LOOKS)
            for each in done:
                unwrapped(ray.get, each)
            if done:
                place.fetch(*MARKERS)
            if progress is not None:
                with suppress(OSError, CorruptionError):  # it is counted while it is being written
                    progress(total - tables.left(storage), total)
        return tables.shortfalls()


def _embed(place: RemoteFolder, model: ModelName, segment: str, storage: str, target: float, memory: int) -> None:
    place.fetch(*TEXT)
    place.fetch(*files_of(place.path, [segment]))
    place.remove(codes_of(segment))  # before there are others here, which nobody else on this machine may replace
    tables = KeyTables(Corpus.open(place.path), model.load(), only=[segment])
    tables.build_segments(storage, target, memory=left_of(memory))
    place.send(*made_files(segment))
