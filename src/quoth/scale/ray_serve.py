"""A corpus served from a Ray cluster: one deployment for each shard, and one that answers requests.

Knows how shards are reached, and again after one died. Does not know how an answer comes about.

    POST /fill    {"text": "… [MASK] …", "top_k": 5, "passages": null, …}   -> {"predictions": [...]}
    POST /ask     {"question": "…", …}
    POST /search  {"query": "…", "k": 10}                                   -> {"passages": [...]}
    GET  /health                                                            -> {"shards": 2, …}
"""

# No postponed annotations, and what the served class calls stands above it: `serve.ingress` takes it as it is then.

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict
from ray import serve
from ray.exceptions import RayActorError

from quoth.corpus.corpus import Corpus
from quoth.errors import InputError, UserError
from quoth.models.npm import ASK_TEMPLATE
from quoth.records import Prediction
from quoth.scale.cluster import ModelName, unwrapped
from quoth.scale.place import TEXT, Place
from quoth.scale.shard import Shard
from quoth.scale.sharded import ShardedNPM, assigned

NAME = "quoth"
RETRY_SECONDS = 120.0
SECONDS_BETWEEN_TRIES = 0.2
CALLS_AT_A_TIME = 16


class Options(BaseModel):
    """What a request may say beside its text; as in `NPM.fill`."""

    model_config = ConfigDict(extra="forbid")

    top_k: int = 5
    k: int = 4096
    passages: int | None = 3
    combine: str = "joint"
    temperature: float = 1.0
    length_exponent: float = 0.0
    banned_tokens: list[str] = []
    ban_query: bool = False
    ban_stop_words: bool = False
    max_phrase_tokens: int = 10
    whole_words: bool = True
    hybrid: float = 0.0
    read: int | None = None
    exclude: list[int] = []


class FillRequest(Options):
    text: str | list[str]


class AskRequest(Options):
    question: str | list[str]
    template: str = ASK_TEMPLATE


class SearchRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    query: str
    k: int = 10


class ShardReplica:
    """A shard, as an actor."""

    def __init__(self, place: Place, snapshot: int, model: ModelName, segments: Sequence[str]) -> None:
        place.fetch(*TEXT, *(f"keys/*/{segment}*/*" for segment in segments))
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


api = FastAPI(title="Quoth")


@api.exception_handler(UserError)
def _mistaken(request: Request, error: UserError) -> JSONResponse:
    return JSONResponse({"error": str(error)}, status_code=400)


def _predictions(found: Sequence[Prediction] | Sequence[Sequence[Prediction]]) -> dict[str, Any]:
    return {
        "predictions": [
            each.to_dict() if isinstance(each, Prediction) else [one.to_dict() for one in each] for each in found
        ]
    }


@api.exception_handler(TimeoutError)
def _unanswered(request: Request, error: TimeoutError) -> JSONResponse:
    message = f"a shard gave no answer in {RETRY_SECONDS:.0f} seconds; ask again later"
    return JSONResponse({"error": message}, status_code=503)


@serve.ingress(api)
class Front:
    """Answers requests, asking every shard."""

    def __init__(self, place: Place, snapshot: int, model: ModelName, shards: Sequence[Any]) -> None:
        place.fetch(*TEXT)
        self._corpus, self._shards = Corpus.open(place.path, snapshot), RemoteShards(shards)
        self._npm = ShardedNPM(model.load(), self._corpus, self._shards)

    @api.post("/fill")
    def fill(self, request: FillRequest) -> dict[str, Any]:
        options = request.model_dump(exclude={"text"})
        return _predictions(self._npm.fill(request.text, **options))

    @api.post("/ask")
    def ask(self, request: AskRequest) -> dict[str, Any]:
        options = request.model_dump(exclude={"question"})
        return _predictions(self._npm.ask(request.question, **options))

    @api.post("/search")
    def search(self, request: SearchRequest) -> dict[str, Any]:
        return {"passages": [asdict(each) for each in self._npm.search(request.query, request.k)]}

    @api.get("/health")
    def health(self) -> dict[str, Any]:
        corpus = self._corpus
        return {
            "shards": len(self._shards),
            "documents": corpus.num_documents,
            "passages": corpus.num_passages,
            "snapshot": corpus.snapshot,
        }


def application(place: Place, model: ModelName, shards: int, replicas: int = 1, cpus: float = 1) -> serve.Application:
    """A corpus as it was fetched last, in that many shards, each in so many replicas of so many CPUs.

    Raises InputError where there are fewer segments than shards.
    """
    if replicas < 1:
        raise InputError(f"{replicas} replicas; allowed are 1 or more")
    corpus = Corpus.open(place.path)
    model = replace(model, fingerprint=model.load().fingerprint)
    parts = assigned([each.name for each in corpus.segments], shards)
    shard: Any = serve.deployment(ShardReplica)
    front: Any = serve.deployment(Front)
    bound = [
        shard.options(
            name=f"shard-{number}",
            num_replicas=replicas,
            max_ongoing_requests=CALLS_AT_A_TIME,
            ray_actor_options={"num_cpus": cpus},
        ).bind(place, corpus.snapshot, model, part)
        for number, part in enumerate(parts)
    ]
    front = front.options(max_ongoing_requests=CALLS_AT_A_TIME, ray_actor_options={"num_cpus": 0})
    bound_front: serve.Application = front.bind(place, corpus.snapshot, model, bound)
    return bound_front


def start(application: serve.Application, host: str, port: int) -> None:
    """Serve it at http://host:port; returns when it answers."""
    logging.getLogger("ray.serve").setLevel(logging.WARNING)
    serve.start(http_options={"host": host, "port": port})
    serve.run(application, name=NAME)


def stop() -> None:
    """Take it down; what else the cluster serves stays."""
    serve.delete(NAME)
