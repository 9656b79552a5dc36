"""A corpus served from a Ray cluster: one deployment for each shard, and one of the Fronts, which answer requests.

Knows: how shards are reached, also after one has died. Does not know: how an answer comes about, or HTTP, whose
application it is given.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ray.exceptions import RayActorError, RayError
from ray.serve.exceptions import RayServeException

import ray
from quoth.corpus.corpus import Corpus
from quoth.errors import CorpusNotFoundError, InputError
from quoth.index.key_store import files_of
from quoth.model.loading import load
from quoth.records import Hits
from quoth_ray.cluster import ModelName, starting, unwrapped
from quoth_ray.remote import TEXT, RemoteFolder
from quoth_ray.shard import Shard
from quoth_ray.sharded import ShardedNPM, assigned
from ray import serve

NAME = "quoth"
RETRY_SECONDS = 120.0
SECONDS_BETWEEN_TRIES = 0.2
CALLS_AT_A_TIME = 16
CALLS_PER_REPLICA = 1
"""With more calls at work than this, another replica is started, if there may be one. A Front works on few batches."""
CALLS_WAITING = 256
"""More requests at once are answered with 503: those that wait are in memory."""
HEALTH = {"health_check_period_s": 5, "health_check_timeout_s": 5}
"""A process that does not answer three such checks is replaced."""
READY_SECONDS = 5.0
LOOK_SECONDS = 10.0
"""How often a Front looks for what is new."""
OPEN_SECONDS = 3600.0
"""How long a shard may take to fetch what is new."""
DRAIN_SECONDS = 60.0
SECONDS_TO_REPLY = 1.0
"""How long the last answers may take on their way out."""


@dataclass(frozen=True, slots=True)
class Part:
    """A shard's segments at a snapshot."""

    snapshot: int
    segments: tuple[str, ...]


def parts_of(corpus: Corpus, shards: int) -> list[Part]:
    """Its segments, distributed over this many shards. Raises EmptyCorpusError, InputError if there are fewer."""
    return [Part(corpus.snapshot, tuple(each)) for each in assigned([one.name for one in corpus.segments], shards)]


class ShardReplica:
    """A shard, as an actor. It keeps the part before the last one, about which requests at work ask."""

    def __init__(self, place: RemoteFolder, model: ModelName, part: Part) -> None:
        self._place, self._model = place, model
        self._shards: dict[Part, Shard] = {}
        self._opening = threading.Lock()
        with suppress(CorpusNotFoundError):  # released since the start: calls name another
            self.open(part)

    def open(self, part: Part) -> None:
        """Fetches what is new of a part, so that calls find it. Raises CorpusNotFoundError, CorruptionError."""
        self._opened(part)

    def _opened(self, part: Part) -> Shard:
        with self._opening:
            self._place.fetch(*TEXT)
            self._place.fetch(*files_of(self._place.path, part.segments))
            if part not in self._shards:
                corpus = Corpus.open(self._place.path, part.snapshot)
                kept = [*self._shards.items()][-1:]
                self._shards = dict([*kept, (part, Shard(corpus, self._model.load(), part.segments))])
            return self._shards[part]

    def call(self, part: Part, method: str, *arguments: Any) -> tuple[Any, float]:
        """What a shard's method returns, and the seconds that it took."""
        shard = self._shards.get(part) or self._opened(part)
        begin = time.perf_counter()
        return getattr(shard, method)(*arguments), time.perf_counter() - begin

    def ready(self) -> bool:
        return True


Told = Callable[[int, str, float | None], None]
"""Receives the number of a shard, what it was asked, and the seconds that it took; None if the call was lost."""


class RemoteShards:
    """Shards behind handles. A call that was lost with its replica is made again, until another one is there."""

    def __init__(self, handles: Sequence[Any], parts: Sequence[Part], told: Told) -> None:
        self._handles, self._parts, self._told = list(handles), list(parts), told

    def __len__(self) -> int:
        return len(self._handles)

    def ask(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        calls = [
            partial(handle.call.remote, part, method, *each)
            for handle, part, each in zip(self._handles, self._parts, arguments, strict=True)
        ]
        begun, found = [call() for call in calls], []
        for number, (response, call) in enumerate(zip(begun, calls, strict=True)):
            answer, seconds = _outcome(response, call, RETRY_SECONDS, partial(self._told, number, method, None))
            self._told(number, method, seconds)
            found.append(answer)
        return found

    def open(self) -> None:
        """Every shard fetches what is new of its part."""
        calls = [partial(handle.open.remote, part) for handle, part in zip(self._handles, self._parts, strict=True)]
        begun = [call() for call in calls]
        for response, call in zip(begun, calls, strict=True):
            _outcome(response, call, OPEN_SECONDS)

    def have_vectors(self) -> bool:
        """Whether every shard can search all its tokens."""
        return all(self.ask("has_vectors", [()] * len(self)))

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


def _outcome(response: Any, again: Callable[[], Any], within: float, lost: Callable[[], None] = lambda: None) -> Any:
    deadline = time.monotonic() + within
    while True:
        try:
            return unwrapped(partial(response.result, timeout_s=max(deadline - time.monotonic(), 0.0)))
        except RayActorError:
            lost()
            time.sleep(SECONDS_BETWEEN_TRIES)
            response = again()


Build = Callable[["Front"], Any]
"""Makes the application that answers from a Front."""


@dataclass(frozen=True, slots=True)
class FrontView:
    """The models over the shards' parts of one snapshot."""

    corpora: Sequence[Corpus]
    shards: RemoteShards
    fills: ShardedNPM
    asks: Any

    def search(self, query: str, k: int, mode: str) -> Hits:
        if mode not in ("auto", "bm25"):
            raise InputError(f"mode is {mode!r}; the cluster searches by words alone: use 'bm25'")
        return self.fills.search(query, k, "bm25")


class Front:
    """Answers requests by asking every shard; a reader, if one is named, answers questions. Looks for new snapshots and
    vectors every LOOK_SECONDS, and serves them once every shard has them: no snapshot without vectors after one with
    them, as that would refuse questions that were answered."""

    def __init__(
        self,
        place: RemoteFolder,
        model: ModelName,
        shards: Sequence[Any],
        build: Build,
        reader: ModelName | None = None,
    ) -> None:
        self._place, self._handles, self._build, self._model = place, shards, build, model
        self._application: Any = None
        self._looked, self._seen = time.monotonic(), frozenset[str]()  # shards may have fetched before the last change
        place.update(*TEXT)
        corpus = Corpus.open(place.path)
        self._reader = None
        if reader is not None:
            self._reader = load(reader.name, corpus, device=reader.device, dtype=reader.dtype, base=reader.base)
        self._view = self._over(corpus)

    def _over(self, corpus: Corpus) -> FrontView:
        shards = RemoteShards(self._handles, parts_of(corpus, len(self._handles)), self._told)
        npm = ShardedNPM(self._model.load(), corpus, shards)
        return FrontView([corpus], shards, npm, npm if self._reader is None else self._reader.over([corpus]))

    def _told(self, shard: int, method: str, seconds: float | None) -> None:
        if self._application is not None:
            if seconds is None:
                self._lost.labels(shard).inc()
            else:
                self._seconds.labels(shard, method).observe(seconds)

    def __serve_build_asgi_app__(self) -> Any:
        from prometheus_client import Counter, Histogram

        application = self._build(self)
        registry = application.state.service.counts.registry
        self._lost = Counter(
            "quoth_shard_lost",
            "Calls that were lost with a shard's process, and made again.",
            ["shard"],
            registry=registry,
        )
        self._seconds = Histogram(
            "quoth_shard_seconds", "Seconds that a shard worked on a call.", ["shard", "call"], registry=registry
        )
        self._application = application
        return application

    async def drain(self) -> None:
        """Accept no more requests; returns when those that were accepted are answered."""
        await self._application.state.service.drain()

    @property
    def folders(self) -> dict[str, str]:
        return {str(each.path): each.name for each in self._view.corpora}

    def view(self, corpus: str | None = None, snapshot: int | None = None, where: str | None = None) -> FrontView:
        """What is served now. Raises CorpusNotFoundError for another corpus or snapshot, InputError for a part."""
        if where is not None:
            raise InputError("where is given, but a cluster searches every document; leave it out")
        view = self._view
        [own] = view.corpora
        if corpus not in (None, own.name) or snapshot not in (None, own.snapshot):
            raise CorpusNotFoundError(f"the cluster serves snapshot {own.snapshot} of {own.name!r} only; ask that one")
        return view

    def snapshots(self, corpus: Corpus) -> list[int]:
        return [corpus.snapshot]

    def describe(self) -> dict[str, Any]:
        view = self._view
        models = {"fill": view.fills.name, "ask": view.asks.name, "search": [], "shards": len(view.shards)}
        return {"models": models, "modes": ["bm25"], "where": False}

    def unready(self) -> str:
        """Which shards do not answer, if any."""
        silent = self._view.shards.silent()
        return f"no answer from shards {', '.join(map(str, silent))}" if silent else ""

    def refresh(self) -> bool:
        """Moves to what is there now, if it is new, once every shard is ready for it. Raises CorpusNotFoundError if it
        is another corpus, InputError if it has fewer segments than shards or lacks vectors, CorruptionError."""
        if time.monotonic() - self._looked < LOOK_SECONDS:
            return False
        self._looked = time.monotonic()
        if (state := self._place.state()) == self._seen:
            return False
        self._place.update(*TEXT)
        corpus, [before] = Corpus.open(self._place.path), self._view.corpora
        if not before.is_followed_by(corpus):
            raise CorpusNotFoundError(f"{self._place.address}: another corpus has taken its place; restart the service")
        view = self._over(corpus)
        view.shards.open()
        self._seen = state
        if self._view.shards.have_vectors() and not view.shards.have_vectors():
            raise InputError(
                f"snapshot {corpus.snapshot} lacks vectors that {before.snapshot} has, which is served until "
                "`quoth embed` has made them"
            )
        self._view = view
        return True

    def writable(self, corpus: str | None) -> Corpus:
        """Raises InputError: shards are read-only."""
        raise InputError(
            "a cluster does not write; change the corpus with quoth add, replace or delete: what is new is served then"
        )


def application(
    place: RemoteFolder,
    model: ModelName,
    shards: int,
    build: Build,
    replicas: int = 1,
    cpus: float = 1,
    reader: ModelName | None = None,
    most: int | None = None,
    fronts: int = 1,
) -> serve.Application:
    """A corpus as it was fetched last, in `shards` shards of `replicas` replicas with these CPUs each, and of up to
    `most` under load; `build` makes the HTTP application in the process of each of the Fronts.

    Raises InputError if there are fewer segments than shards.
    """
    for number, what in ((replicas, "replicas"), (fronts, "fronts")):
        if number < 1:
            raise InputError(f"{number} {what}; there must be 1 or more")
    if most is not None and most < replicas:
        raise InputError(f"at most {most} replicas are fewer than {replicas}; allow more, or start with fewer")
    corpus = Corpus.open(place.path)
    model = replace(model, fingerprint=model.load().fingerprint)
    parts = parts_of(corpus, shards)
    shard: Any = serve.deployment(ShardReplica)
    front: Any = serve.deployment(serve.ingress()(Front))
    bound = [
        shard.options(
            name=f"shard-{number}",
            **scaling(replicas, most),
            max_ongoing_requests=CALLS_AT_A_TIME,
            ray_actor_options={"num_cpus": cpus},
            **HEALTH,
        ).bind(place, model, part)
        for number, part in enumerate(parts)
    ]
    front = front.options(
        num_replicas=fronts,
        max_ongoing_requests=CALLS_WAITING,
        max_queued_requests=CALLS_WAITING,
        ray_actor_options={"num_cpus": 0},
        **HEALTH,
    )
    bound_front: serve.Application = front.bind(place, model, bound, build, reader)
    return bound_front


def scaling(replicas: int, most: int | None) -> dict[str, Any]:
    """Ray Serve's options for this number of replicas, or for up to `most` of them, by the calls at work."""
    if most is None:
        return {"num_replicas": replicas}
    target = {"target_ongoing_requests": CALLS_PER_REPLICA}
    return {"autoscaling_config": {"min_replicas": replicas, "max_replicas": most, **target}}


def start(application: serve.Application, host: str, port: int) -> None:
    """Serve it on this host and port; returns when it answers. Raises ClusterError."""
    logging.getLogger("ray.serve").setLevel(logging.WARNING)
    with starting(f"the service on {host}, port {port}"):
        serve.start(http_options={"host": host, "port": port})
        try:
            serve.run(application, name=NAME)
        except BaseException:
            with suppress(Exception):
                serve.delete(NAME)
            raise


def drain() -> None:
    """No Front accepts more requests; returns when those that were accepted are answered. A Front that has died has
    nothing to answer."""
    with suppress(RayServeException, RayError, TimeoutError):
        serve.get_app_handle(NAME).broadcast("drain").results(timeout_s=DRAIN_SECONDS, return_exceptions=True)


def stop() -> None:
    """Stop it once what was accepted is answered; whatever else the cluster at RAY_ADDRESS serves stays."""
    drain()
    if os.environ.get("RAY_ADDRESS"):
        serve.delete(NAME)
    else:
        time.sleep(SECONDS_TO_REPLY)
        ray.shutdown()  # with its proxy, which would answer 404 as long as it takes to delete the service
