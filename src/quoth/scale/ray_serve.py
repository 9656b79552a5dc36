"""A corpus served from a Ray cluster: one deployment for each shard, and one that answers requests.

Knows: how shards are reached, also after one has died. Does not know: how an answer comes about, or HTTP, whose
application it is given.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, cast

from ray import serve
from ray.exceptions import RayActorError, RayError

from quoth.corpus.corpus import Corpus
from quoth.errors import CorpusNotFoundError, InputError
from quoth.index.key_store import files_of
from quoth.model.loading import load
from quoth.npm.model import NPM
from quoth.records import Hit, Prediction
from quoth.scale.cluster import ModelName, starting, unwrapped
from quoth.scale.remote import TEXT, RemoteFolder
from quoth.scale.shard import Shard
from quoth.scale.sharded import ShardedNPM, assigned

NAME = "quoth"
RETRY_SECONDS = 120.0
SECONDS_BETWEEN_TRIES = 0.2
CALLS_AT_A_TIME = 16
CALLS_WAITING = 256
"""More requests at once are answered with 503: those that wait are in memory."""
HEALTH = {"health_check_period_s": 5, "health_check_timeout_s": 5}
"""A process that does not answer three such checks is replaced."""
READY_SECONDS = 5.0
DRAIN_SECONDS = 60.0


class ShardReplica:
    """A shard, as an actor."""

    def __init__(self, place: RemoteFolder, snapshot: int, model: ModelName, segments: Sequence[str]) -> None:
        place.fetch(*TEXT)
        place.fetch(*files_of(place.path, segments))
        self._shard = Shard(Corpus.open(place.path, snapshot), model.load(), segments)

    def call(self, method: str, *arguments: Any) -> Any:
        return getattr(self._shard, method)(*arguments)

    def ready(self) -> bool:
        return True


class RemoteShards:
    """Shards behind handles. A call that was lost with its replica is made again, until another one is there."""

    def __init__(self, handles: Sequence[Any]) -> None:
        self._handles = list(handles)

    def __len__(self) -> int:
        return len(self._handles)

    def ask(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        calls = [
            partial(handle.call.remote, method, *each) for handle, each in zip(self._handles, arguments, strict=True)
        ]
        begun = [call() for call in calls]
        return [_outcome(response, call) for response, call in zip(begun, calls, strict=True)]

    def silent(self) -> list[int]:
        """The numbers of the shards that do not answer within READY_SECONDS."""
        until = time.monotonic() + READY_SECONDS
        asked, found = [handle.ready.remote() for handle in self._handles], list[int]()
        for number, response in enumerate(asked):
            try:
                response.result(timeout_s=max(until - time.monotonic(), 0.0))
            except (RayError, TimeoutError):
                found.append(number)
        return found


def _outcome(response: Any, again: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + RETRY_SECONDS
    while True:
        try:
            return unwrapped(partial(response.result, timeout_s=max(deadline - time.monotonic(), 0.0)))
        except RayActorError:
            time.sleep(SECONDS_BETWEEN_TRIES)
            response = again()


Build = Callable[["Front"], Any]
"""Makes the application that answers from a Front."""


class Front:
    """Answers requests by asking every shard; a reader, if one is named, answers questions. The corpus is served as it
    was at the start."""

    def __init__(
        self,
        place: RemoteFolder,
        snapshot: int,
        model: ModelName,
        shards: Sequence[Any],
        build: Build,
        reader: ModelName | None = None,
    ) -> None:
        place.fetch(*TEXT)
        corpus, self._shards, self._build = Corpus.open(place.path, snapshot), RemoteShards(shards), build
        self.corpora = [corpus]
        self._npm = ShardedNPM(model.load(), corpus, self._shards)
        self._reader = None
        if reader is not None:
            self._reader = load(reader.name, corpus, device=reader.device, dtype=reader.dtype, base=reader.base)

    def __serve_build_asgi_app__(self) -> Any:
        self._application = self._build(self)
        return self._application

    async def drain(self) -> None:
        """Accept no more requests; returns when those that were accepted are answered."""
        await self._application.state.service.drain()

    @property
    def folders(self) -> dict[str, str]:
        return {str(each.path): each.name for each in self.corpora}

    def asks(self) -> Callable[..., Any]:
        kind: Any = NPM if self._reader is None else type(self._reader)
        return cast("Callable[..., Any]", kind.ask)

    def view(self, corpus: str | None = None, snapshot: int | None = None, where: str | None = None) -> Front:
        """Itself. Raises CorpusNotFoundError for another corpus or snapshot, InputError for a part of it."""
        if where is not None:
            raise InputError("where is given, but a cluster searches every document; leave it out")
        [own] = self.corpora
        if corpus not in (None, own.name) or snapshot not in (None, own.snapshot):
            raise CorpusNotFoundError(f"the cluster serves snapshot {own.snapshot} of {own.name!r} only; ask that one")
        return self

    def fill(self, text: list[str], **options: Any) -> Sequence[Sequence[Prediction]]:
        return self._npm.fill(text, **options)

    def ask(self, question: list[str], **options: Any) -> Sequence[Sequence[Prediction]]:
        return (self._npm if self._reader is None else self._reader).ask(question, **options)

    def classify(self, text: str, labels: Mapping[str, Sequence[str]], **options: Any) -> Sequence[Prediction]:
        return self._npm.classify(text, labels, **options)

    def search(self, query: str, k: int, mode: str) -> Sequence[Hit]:
        if mode not in ("auto", "bm25"):
            raise InputError(f"mode is {mode!r}; the cluster searches by words alone: use 'bm25'")
        return self._npm.search(query, k, "bm25")

    def snapshots(self, corpus: Corpus) -> list[int]:
        return [corpus.snapshot]

    def describe(self) -> dict[str, Any]:
        asks = self._npm if self._reader is None else self._reader
        models = {"fill": self._npm.name, "ask": asks.name, "search": [], "shards": len(self._shards)}
        return {"models": models, "modes": ["bm25"], "where": False}

    def unready(self) -> str:
        """Which shards do not answer, if any."""
        silent = self._shards.silent()
        return f"no answer from shards {', '.join(map(str, silent))}" if silent else ""

    def refresh(self) -> bool:
        """Nothing: a cluster serves the snapshot of its start."""
        return False

    def writable(self, corpus: str | None) -> Corpus:
        """Raises InputError: shards are read-only."""
        raise InputError(
            "a corpus on a cluster is served as it was at the start; change it with quoth add or delete, then restart"
        )


def application(
    place: RemoteFolder,
    model: ModelName,
    shards: int,
    build: Build,
    replicas: int = 1,
    cpus: float = 1,
    reader: ModelName | None = None,
) -> serve.Application:
    """A corpus as it was fetched last, in `shards` shards of `replicas` replicas with these CPUs each; `build` makes
    the HTTP application in the process of the Front.

    Raises InputError if there are fewer segments than shards.
    """
    if replicas < 1:
        raise InputError(f"{replicas} replicas; there must be 1 or more")
    corpus = Corpus.open(place.path)
    model = replace(model, fingerprint=model.load().fingerprint)
    parts = assigned([each.name for each in corpus.segments], shards)
    shard: Any = serve.deployment(ShardReplica)
    front: Any = serve.deployment(serve.ingress()(Front))
    bound = [
        shard.options(
            name=f"shard-{number}",
            num_replicas=replicas,
            max_ongoing_requests=CALLS_AT_A_TIME,
            ray_actor_options={"num_cpus": cpus},
            **HEALTH,
        ).bind(place, corpus.snapshot, model, part)
        for number, part in enumerate(parts)
    ]
    front = front.options(
        max_ongoing_requests=CALLS_WAITING,
        max_queued_requests=CALLS_WAITING,
        ray_actor_options={"num_cpus": 0},
        **HEALTH,
    )
    bound_front: serve.Application = front.bind(place, corpus.snapshot, model, bound, build, reader)
    return bound_front


def start(application: serve.Application, host: str, port: int) -> None:
    """Serve it at http://host:port; returns when it answers. Raises ClusterError."""
    logging.getLogger("ray.serve").setLevel(logging.WARNING)
    with starting(f"the service at http://{host}:{port}"):
        serve.start(http_options={"host": host, "port": port})
        try:
            serve.run(application, name=NAME)
        except BaseException:
            with suppress(Exception):
                serve.delete(NAME)
            raise


def stop() -> None:
    """Stop it once what was accepted is answered; whatever else the cluster serves stays."""
    with suppress(Exception):  # a front that has died has nothing to answer
        serve.get_app_handle(NAME).drain.remote().result(timeout_s=DRAIN_SECONDS)
    serve.delete(NAME)
