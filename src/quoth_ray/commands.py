"""The commands at URLs and on clusters, which find this module by its entry point.

Knows: what to copy and send, and which models workers load. Does not know: options, nor how jobs run.
"""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from quoth.cli.models import system
from quoth.cli.options import Setup
from quoth.cli.output import counting, note, plural, results, url_of
from quoth.corpus.corpus import Corpus
from quoth.corpus.manifest import read_manifest, segment_name
from quoth.errors import InputError
from quoth.index.costs import Shortfall
from quoth.index.key_store import MARKERS
from quoth.model.base import CorpusModel
from quoth_ray.remote import KEYS, TEXT, RemoteFolder


def read_at(url: str) -> Path:
    """The folder of a copy of the corpus at a URL. Raises InputError, and CorpusNotFoundError if nothing is there."""
    remote = RemoteFolder(url)
    with counting("copying", "files") as progress:
        remote.update(*TEXT, KEYS, progress=progress)
    return remote.path


@contextmanager
def changing(url: str) -> Iterator[Corpus]:
    """A copy of the corpus at a URL, to change in the block, sent at the end. If that is interrupted, nothing changes
    at the URL.

    Raises InputError, CorpusNotFoundError if nothing is there, LockedError.
    """
    (remote := RemoteFolder(url)).check()
    with remote.writing():
        with counting("copying", "files") as progress:
            remote.update(*TEXT, progress=progress)
        remote.clear(segment_name(read_manifest(remote.path).next_document))
        yield Corpus.open(remote.path)
        remote.send(*TEXT)


def indexing(output: str, block: int | None) -> tuple[Path, Callable[..., int]]:
    """The new corpus's folder, for a URL a copy, and the function with which the cluster adds documents."""
    from quoth_ray.build import BLOCK_CHARACTERS, index
    from quoth_ray.cluster import connect

    connect()
    place = RemoteFolder(output)
    if place.is_remote:
        with place.writing():  # who else writes there may have his copy on this machine
            if place.exists():
                raise InputError(f"{output} already exists; choose another name")
            shutil.rmtree(place.path, ignore_errors=True)
    characters = block * 1_000_000 if block else BLOCK_CHARACTERS
    return place.named, partial(index, block_characters=characters, place=place)


def corpus_at(directory: str) -> Corpus:
    """The corpus of a folder or a URL, to be embedded."""
    (place := RemoteFolder(directory)).check()
    with place.writing():
        place.update(*TEXT, *MARKERS)  # who else writes there is told before the model is loaded
    return Corpus.open(place.named)


def embed(
    corpus: Corpus, directory: str, model: str, loaded: CorpusModel, setup: Setup, **options: Any
) -> list[Shortfall]:
    """Embed the `corpus_at` this directory on the cluster; `loaded` is the model here, which workers also need."""
    from quoth_ray.build import embed as embed_on_ray

    named = replace(_named(model, setup), fingerprint=loaded.fingerprint)
    return embed_on_ray(corpus, named, place=RemoteFolder(directory), **options)


def asking(directory: str, model: str, setup: Setup) -> Any:
    """What asks the rows of a table on the cluster; the model is loaded by every worker."""
    from quoth_ray.cluster import connect
    from quoth_ray.tables import asking as asking_on_ray

    connect()
    return asking_on_ray(RemoteFolder(directory), _named(model, setup))


def serve(
    directory: str,
    address: tuple[str, int],
    fills: str,
    asks: str,
    setup: Setup,
    shards: int | None,
    parts: dict[str, Any],
    build: Callable[..., Any],
) -> None:
    """Serve on a cluster until this process receives a stop signal; `build` creates the HTTP application."""
    from quoth_ray.cluster import connect, machines

    given = connect()
    from quoth_ray.serve import application, start, stop

    place = RemoteFolder(directory)
    place.update(*TEXT)
    replicas, cpus = parts["replicas"], parts["cpus"]
    segments = len(Corpus.open(place.path).segments)
    shards = min(machines(), max(segments, 1)) if shards is None else shards
    if shards * replicas * cpus > given:
        raise InputError(
            f"{shards} shards of {replicas} replicas of {cpus:g} CPUs are more than the cluster's {given} CPUs; "
            "take fewer, or --cpus 0.5"
        )
    asked = system(asks)
    reader = _named(asks, setup) if asked.answers and not asked.keys else None
    served = application(place, _named(fills, setup), shards, build, reader=reader, **parts)
    note(f"starting {plural(shards, 'shard')}")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    start(served, *address)
    try:
        results().print(url_of(*address), soft_wrap=True)
        with suppress(KeyboardInterrupt):
            signal.pause()
    finally:
        stop()
    note("stopped")


def _named(model: str, setup: Setup) -> Any:
    """The model as a cluster's workers load it, with absolute paths."""
    from quoth_ray.cluster import ModelName

    name = str(Path(model).absolute()) if Path(model).is_dir() else model
    base = None if setup.base is None else str(setup.base.absolute())
    return ModelName(name, base, setup.device, setup.dtype)
