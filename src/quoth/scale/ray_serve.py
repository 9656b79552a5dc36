"""A corpus served from a Ray cluster: one deployment for each shard, and one that answers requests.

Knows how shards are reached, and again after one died. Does not know how an answer comes about, or what a request may
hold (`http`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from ray import serve
from ray.exceptions import RayActorError

from quoth.corpus.corpus import Corpus
from quoth.errors import InputError
from quoth.records import Hit
from quoth.retrieval.key_store import files_of
from quoth.scale.cluster import ModelName, starting, unwrapped
from quoth.scale.http import Limits, http_api
from quoth.scale.remote import TEXT, RemoteFolder
from quoth.scale.shard import Shard
from quoth.scale.sharded import ShardedNPM, assigned

NAME = "quoth"
RETRY_SECONDS = 120.0
SECONDS_BETWEEN_TRIES = 0.2
CALLS_AT_A_TIME = 16
CALLS_WAITING = 256
"""More requests at once are answered with 503: those that wait are in memory."""


class ShardReplica:
    """A shard, as an actor."""

    def __init__(self, place: RemoteFolder, snapshot: int, model: ModelName, segments: Sequence[str]) -> None:
        place.fetch(*TEXT)
        place.fetch(*files_of(place.path, segments))
        self._shard = Shard(Corpus.open(place.path, snapshot), model.load(), segments)

    def call(self, method: str, *arguments: Any) -> Any:
        return getattr(self._shard, method)(*arguments)


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


def _outcome(response: Any, again: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + RETRY_SECONDS
    while True:
        try:
            return unwrapped(partial(response.result, timeout_s=max(deadline - time.monotonic(), 0.0)))
        except RayActorError:
            time.sleep(SECONDS_BETWEEN_TRIES)
            response = again()


class Front:
    """Answers requests, asking every shard."""

    def __init__(self, place: RemoteFolder, snapshot: int, model: ModelName, shards: Sequence[Any]) -> None:
        place.fetch(*TEXT)
        self._corpus, self._shards = Corpus.open(place.path, snapshot), RemoteShards(shards)
        self._npm = ShardedNPM(model.load(), self._corpus, self._shards)

    def fill(self, text: str | list[str], **options: Any) -> Any:
        return self._npm.fill(text, **options)

    def ask(self, question: str | list[str], **options: Any) -> Any:
        return self._npm.ask(question, **options)

    def search(self, query: str, k: int) -> list[Hit]:
        return self._npm.search(query, k)

    def health(self) -> dict[str, Any]:
        corpus = self._corpus
        return {
            "shards": len(self._shards),
            "documents": corpus.num_documents,
            "passages": corpus.num_passages,
            "snapshot": corpus.snapshot,
        }


def _this_front() -> Any:
    """The Front of the replica that this runs in."""
    return serve.get_replica_context().servable_object


def application(
    place: RemoteFolder, model: ModelName, shards: int, replicas: int = 1, cpus: float = 1, limits: Limits | None = None
) -> serve.Application:
    """A corpus as it was fetched last, in that many shards, each in so many replicas of so many CPUs.

    Raises InputError where there are fewer segments than shards.
    """
    if replicas < 1:
        raise InputError(f"{replicas} replicas; allowed are 1 or more")
    corpus = Corpus.open(place.path)
    model = replace(model, fingerprint=model.load().fingerprint)
    parts = assigned([each.name for each in corpus.segments], shards)
    shard: Any = serve.deployment(ShardReplica)
    front: Any = serve.deployment(serve.ingress(http_api(limits or Limits(), _this_front, RETRY_SECONDS))(Front))
    bound = [
        shard.options(
            name=f"shard-{number}",
            num_replicas=replicas,
            max_ongoing_requests=CALLS_AT_A_TIME,
            ray_actor_options={"num_cpus": cpus},
        ).bind(place, corpus.snapshot, model, part)
        for number, part in enumerate(parts)
    ]
    front = front.options(
        max_ongoing_requests=CALLS_AT_A_TIME, max_queued_requests=CALLS_WAITING, ray_actor_options={"num_cpus": 0}
    )
    bound_front: serve.Application = front.bind(place, corpus.snapshot, model, bound)
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
                stop()
            raise


def stop() -> None:
    """Take it down; what else the cluster serves stays."""
    serve.delete(NAME)
