"""The HTTP application: routes, and the mapping of requests to calls and results to replies.

Knows: FastAPI, the queue, the backend's calls. Does not know: models, where corpora are stored, the web server.

    POST /v1/fill      {"text": "… [MASK] …", "top_k": 5, …}        -> {"predictions": […], "snapshots": {…}}
    POST /v1/ask       {"question": "…", …}
    POST /v1/classify  {"text": "…", "labels": {"a": ["word"], …}}
    POST /v1/search    {"query": "…", "k": 10, "mode": "bm25"}      -> {"passages": […], "snapshots": {…}}
    POST /v1/verify    {"text": "…"}                                -> {"occurs": true, "places": […], …}
    POST /v1/check     {"text": "a draft with “quotations”"}        -> {"quotations": […], "snapshots": {…}}
    GET  /v1/corpus, /v1/fields, /v1/documents?id=…, /healthz, /readyz, /metrics, /v1/openapi.json
    GET  /v1/documents/page?id=…, /v1/documents/file?id=…           with --files
    POST, PUT, DELETE /v1/documents                                 with --writable

`Server-Timing` of a reply says where the time went: `wait`, the steps, `work`, in milliseconds; `batch`: of
how many texts.
"""

# No postponed annotations: FastAPI reads those of functions within functions.

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Protocol

from fastapi import FastAPI, Query
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel
from starlette.responses import Response

from quoth import __version__
from quoth.corpus.corpus import Corpus
from quoth.corpus.exact.checking import Checker
from quoth.corpus.exact.quotes import verify_in, word_ranges
from quoth.corpus.exact.trace import trace
from quoth.corpus.view import notes_of
from quoth.records import PLACES, Document, Hits, Predictions
from quoth_serve import replies
from quoth_serve.batches import BatchQueue, Done, aside
from quoth_serve.fields import add_fields
from quoth_serve.limits import Limits, check_unicode
from quoth_serve.originals import Originals, add_originals, part
from quoth_serve.page import add_page
from quoth_serve.problems import JSON, LOG, PROBLEMS, BusyError, Problem, add_problems, described, problem
from quoth_serve.requests import Documents, Forms, forms
from quoth_serve.security import Access, Counts, SecurityMiddleware
from quoth_sources.source_map import as_json

Handler = Callable[..., Awaitable[Response]]
SECONDS_BETWEEN_LOOKS = 1.0
"""How often a service checks for a new snapshot."""


class View(Protocol):
    """Models over corpora, each at one fixed snapshot: one for blanks and labels, and one for questions."""

    @property
    def corpora(self) -> Sequence[Corpus]: ...
    @property
    def fills(self) -> Any: ...
    @property
    def asks(self) -> Any: ...
    def search(self, query: str, k: int, mode: str) -> Hits: ...


class Backend(Protocol):
    """The corpora of a service, by name, in this process or on a cluster.

    `folders` are where they are, with their names: only these appear in answers. `view` is of one corpus, or of all as
    one (None), at a snapshot, or the latest; it and `writable` raise CorpusNotFoundError, InputError. `snapshots` are
    those of a corpus that can be asked, `describe` tells of the models. `unready` says why it cannot answer now, or "".
    `refresh` moves to the latest snapshots, if there are new ones; requests at work keep their view.
    """

    @property
    def folders(self) -> Mapping[str, str]: ...
    def view(self, corpus: str | None = None, snapshot: int | None = None, where: str | None = None) -> View: ...
    def snapshots(self, corpus: Corpus) -> list[int]: ...
    def describe(self) -> dict[str, Any]: ...
    def unready(self) -> str: ...
    def refresh(self) -> bool: ...
    def writable(self, corpus: str | None) -> Corpus: ...


@dataclass
class Service:
    """The parts of a running application."""

    backend: Backend
    limits: Limits
    access: Access
    examples: Sequence[str] = ()
    originals: Originals | None = None
    counts: Counts = field(default_factory=Counts)
    queue: BatchQueue = field(init=False)
    reads: BatchQueue = field(init=False)
    views: BatchQueue = field(init=False)
    making: dict[Any, asyncio.Future[View]] = field(default_factory=dict)
    draining: bool = False
    writing: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        # Reads have a queue of their own: they do not wait behind questions, which take seconds.
        self.queue, self.reads = BatchQueue(self.limits, self.counts.batch), BatchQueue(self.limits)
        self.views = BatchQueue(self.limits)

    @property
    def queues(self) -> tuple[BatchQueue, ...]:
        """The queues that the gauges count."""
        return self.queue, self.reads, self.views

    async def view(self, corpus: str | None = None, snapshot: int | None = None, where: str | None = None) -> View:
        """A view of the backend. Of some documents, which takes time, it is made in a queue, once for all who ask for
        it meanwhile. Raises as `BatchQueue.ask`, and what the backend raises."""
        opened, key = partial(self.backend.view, corpus, snapshot, where), (corpus, snapshot, where)
        if where is None:
            return await aside(opened)
        if key not in self.making:
            self.making[key] = asyncio.ensure_future(self.views.reply(opened))
            self.making[key].add_done_callback(lambda _: self.making.pop(key))
        return await asyncio.shield(self.making[key])

    async def drain(self) -> None:
        """Accepts nothing more; returns when everything that was accepted is done."""
        self.draining = True
        await aside(self.views.close)  # first: whoever waits for a view asks by it
        closing = [self.queue.close, self.reads.close, *([self.originals.close] if self.originals else [])]
        await asyncio.gather(self._last_write(), *map(aside, closing), return_exceptions=True)

    async def _last_write(self) -> None:
        async with asyncio.timeout(self.limits.timeout), self.writing:
            pass

    def count(self) -> None:
        """Bring the gauges up to date."""
        self.counts.waiting.set(sum(each.waiting for each in self.queues))
        self.counts.at_work.set(sum(each.at_work for each in self.queues))
        for each in self.backend.view().corpora:
            self.counts.snapshot.labels(each.name).set(each.snapshot)
            self.counts.documents.labels(each.name).set(each.num_documents)

    async def watch(self) -> None:
        """Looks for new snapshots until cancelled."""
        while True:
            await asyncio.sleep(SECONDS_BETWEEN_LOOKS)
            try:
                await aside(self.backend.refresh)
            except Exception:
                LOG.exception("refresh")


def create_app(
    backend: Backend,
    limits: Limits | None = None,
    access: Access | None = None,
    log_text: bool = False,
    examples: Sequence[str] = (),
    files: Path | None = None,
) -> FastAPI:
    """The application of a service. One process serves it: the queue and its batches are in memory.

    Args:
        backend (Backend): Answers requests, such as a `Library`.
        limits (Limits | None): Bounds on requests and on concurrent work. Default: `Limits()`.
        access (Access | None): Token, writing, host names. Default: `Access()`.
        log_text (bool): Write bodies of requests to the log. Default: False.
        examples (Sequence[str]): Questions, or sentences with a blank, offered on the page. Default: ().
        files (Path | None): The folder of the documents' source files, if pages and files may be shown.

    Returns:
        A FastAPI application, for any ASGI server.

    Example:
        >>> app = create_app(Library(Models(npm, reader), [corpus.path]))
        >>> "/v1/fill" in app.openapi()["paths"]
        True
    """
    limits, access = limits or Limits(), access or Access()
    service = Service(backend, limits, access, examples, Originals(files, limits) if files else None)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        watching = asyncio.create_task(service.watch())
        try:
            yield
        finally:
            watching.cancel()
            await service.drain()

    api = FastAPI(
        title="Quoth",
        version=__version__,
        summary="Answers that are quotations, with their places.",
        openapi_url="/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        responses=PROBLEMS,
    )
    api.state.service = service
    api.openapi = partial(described, api)  # type: ignore[method-assign]
    _add_questions(api, service, forms(limits, backend.view().asks.ask))
    _add_documents(api, service)
    if service.originals:
        add_originals(api, service.originals, service.view)
    add_fields(api, service.view, service.reads)
    _add_state(api, service)
    add_page(api)
    add_problems(api, backend.folders)
    api.add_middleware(SecurityMiddleware, access=access, limits=limits, counts=service.counts, log_text=log_text)
    return api


def _add_questions(api: FastAPI, service: Service, made: Forms) -> None:
    """The routes that query the corpora."""

    def asked(path: str, form: type[BaseModel], reply: type[BaseModel]) -> Callable[[Handler], Handler]:
        def add(handler: Handler) -> Handler:
            handler.__annotations__["request"] = form
            return api.post(path, response_model=reply)(handler)

        return add

    @asked("/v1/fill", made.fill, replies.Predictions)
    async def fill(request: BaseModel) -> Response:
        """Fill the blank of a text, or of several, with the best-fitting phrases of the corpus."""
        return await _predicted(service, request, "text")

    @asked("/v1/ask", made.ask, replies.Answers)
    async def ask(request: BaseModel) -> Response:
        """Answer a question, or several, with phrases of the corpus, and with sentences that may answer."""
        return await _predicted(service, request, "question")

    @asked("/v1/classify", made.classify, replies.Predictions)
    async def classify(request: BaseModel) -> Response:
        """Rank labels by how well their words fit after a text."""
        view, options = await _resolved(service, request)
        done = await service.queue.alone(lambda: [one.to_dict() for one in view.fills.classify(**options)])
        return await _reply(service, view, done, predictions=done.answers[0])

    @asked("/v1/search", made.search, replies.Hits)
    async def search(request: BaseModel) -> Response:
        """Find the passages that match best, and by which of their keys."""
        view, options = await _resolved(service, request)
        query, words = options["query"], options["words"]

        def find() -> dict[str, Any]:
            found = view.search(query, options["k"], options["mode"])
            hits, read_as = [hit.to_dict() for hit in found], found.read_as
            marked = [hit | {"words": word_ranges(read_as or query, hit["text"])} for hit in hits] if words else hits
            return {"passages": marked, "read_as": read_as}

        done = await service.queue.alone(find)
        return await _reply(service, view, done, **done.answers[0])

    @asked("/v1/verify", made.verify, replies.Verified)
    async def verify(request: BaseModel) -> Response:
        """Check whether and where a text occurs in the corpus; if not, return the nearest text."""
        view, options = await _resolved(service, request)
        done = await service.queue.alone(lambda: verify_in(view.corpora, **options).to_dict())
        return await _reply(service, view, done, **done.answers[0])

    @asked("/v1/check", made.check, replies.Checked)
    async def check(request: BaseModel) -> Response:
        """Say of every quotation in a draft whether it is faithful to the corpus, and what was changed; and which runs
        of words occur word for word."""
        view, options = await _resolved(service, request)
        text, check = options["text"], Checker(view.corpora, PLACES)
        done = await service.queue.alone(lambda: (check(text), trace(view.corpora, text).spans))
        quotations, spans = ([each.to_dict() for each in found] for found in done.answers[0])
        return await _reply(service, view, done, quotations=quotations, spans=spans)


def _add_documents(api: FastAPI, service: Service) -> None:
    """The routes that read documents, and write them if that is allowed."""

    @api.get("/v1/documents", response_model=replies.DocumentReply)
    async def read(place: Annotated[replies.DocumentPlace, Query()]) -> Response:
        """The text of a document, or a part of it."""
        check_unicode("id", place.id)
        view = await service.view(place.corpus, place.snapshot)
        return await service.reads.reply(lambda: _rendered(service, part(view.corpora, place, service.limits)))

    if not service.access.writable:
        return
    written: dict[int | str, dict[str, Any]] = {
        409: {"model": Problem, "description": "There is a document with that id"},
        423: {"model": Problem, "description": "Another process is writing; see Retry-After"},
    }

    def end(written: asyncio.Future[dict[str, Any]]) -> None:
        service.writing.release()
        if not written.cancelled():
            written.exception()  # whoever has hung up asks for none

    async def write(corpus: str | None, method: str, given: Any) -> dict[str, Any]:
        if service.draining:
            raise BusyError(1, "the service stops")
        await service.writing.acquire()
        # What was begun is written even if its client hangs up, and the next write waits for it.
        writing = asyncio.ensure_future(aside(_write, service, corpus, method, given))
        writing.add_done_callback(end)
        return await asyncio.shield(writing)

    @api.post("/v1/documents", response_model=replies.Written, status_code=201, responses=written)
    async def add(request: Documents) -> Response:
        """Add documents in one commit; the reply names their snapshot, which is served from now on."""
        service.limits.check(request.model_dump())
        return JSON(await write(request.corpus, "add", request.documents), 201)

    @api.put("/v1/documents", response_model=replies.Written, responses=written)
    async def replace(request: Documents) -> Response:
        """Replace the documents with the same ids, or add new ones, in one commit."""
        service.limits.check(request.model_dump())
        return JSON(await write(request.corpus, "replace", request.documents))

    @api.delete("/v1/documents", response_model=replies.Written, responses=written)
    async def delete(
        id: Annotated[list[str], Query(min_length=1, max_length=1000)], corpus: str | None = None
    ) -> Response:
        """Delete documents in one commit."""
        for each in id:
            check_unicode("id", each)
        return JSON(await write(corpus, "delete", id))


def _add_state(api: FastAPI, service: Service) -> None:
    """The routes that report the service's state."""

    @api.get("/v1/corpus", response_model=replies.About)
    async def corpus() -> Response:
        """The corpora, their snapshots, the models and the limits."""
        return await service.reads.reply(lambda: JSON(_about(service)))

    @api.head("/healthz", include_in_schema=False)
    @api.get("/healthz", response_model=replies.Status)
    async def health() -> Response:
        """Whether the process is alive."""
        return JSON({"status": "ok"})

    @api.head("/readyz", include_in_schema=False)
    @api.get("/readyz", response_model=replies.Status)
    async def ready() -> Response:
        """Whether to send requests here: not while the service stops, its queue is full, or a shard does not answer.
        Damaged segments are named: it answers without them."""
        if service.draining:
            return problem(503, "the service stops", headers={"Retry-After": "5"})
        if max(each.waiting for each in service.queues) >= service.limits.queue:
            return problem(503, "too many requests are waiting", headers={"Retry-After": "1"})
        if reason := await aside(service.backend.unready):
            return problem(503, reason, headers={"Retry-After": "5"})
        damaged = [segment.entry.name for each in service.backend.view().corpora for segment in each.damaged]
        return JSON({"status": "ready"} | ({"damaged": damaged} if damaged else {}))

    @api.get("/metrics", response_class=Response)
    async def metrics() -> Response:
        """Counts and times for Prometheus."""
        service.count()
        return Response(generate_latest(service.counts.registry), media_type=CONTENT_TYPE_LATEST)


async def _resolved(service: Service, request: BaseModel) -> tuple[View, dict[str, Any]]:
    """The view that a request names, and the other fields. Raises BoundError for texts that are too long."""
    content = request.model_dump()
    service.limits.check(content)
    view = await service.view(*(content.pop(name) for name in ("corpus", "snapshot", "where")))
    return view, content


async def _predicted(service: Service, request: BaseModel, name: str) -> Response:
    """The reply to one text or to several; requests with equal options may be one batch."""
    view, options = await _resolved(service, request)
    given, asks = options.pop(name), name == "question"
    texts = [given] if isinstance(given, str) else given

    def predict(texts: list[str]) -> list[Any]:
        found = view.asks.ask(texts, **options) if asks else view.fills.fill(texts, **options)
        return [_content(answers, asks) for answers in found]

    key = name, id(view), json.dumps(options, sort_keys=True)
    done = await service.queue.ask(key, texts, predict)
    by_name = {name: [each[name] for each in done.answers] for name in _content(Predictions(), asks)}
    content = done.answers[0] if isinstance(given, str) else by_name
    return await _reply(service, view, done, **content)


def _content(found: Predictions, asks: bool) -> dict[str, Any]:
    """What the reply to one text has."""
    content: dict[str, Any] = {"predictions": [one.to_dict() for one in found]}
    if asks:
        content |= {name: [one.to_dict() for one in getattr(found, name)] for name in ("sentences", "shown")}
        content |= {"read_as": found.read_as, "status": found.status}
        content["look_in"] = None if found.look_in is None else as_json(found.look_in)
    return content


async def _reply(service: Service, view: View, done: Done, **content: Any) -> Response:
    timing = {"wait": done.waited, **done.steps, "work": done.worked}
    spent = [f"{name};dur={1000 * seconds:.2f}" for name, seconds in timing.items()]
    headers = {"Server-Timing": ", ".join([*spent, f'batch;desc="{done.batch}"'])}
    content |= {"snapshots": {each.name: each.snapshot for each in view.corpora}, "notes": notes_of(view.corpora)}
    return await aside(_rendered, service, content, headers)


def _rendered(service: Service, content: dict[str, Any], headers: dict[str, str] | None = None) -> Response:
    """A reply as JSON, which is made outside of the event loop. Raises BoundError if it is too long."""
    service.limits.check_reply(content)
    return JSON(content, headers=headers)


def _about(service: Service) -> dict[str, Any]:
    """The state of a service, as `replies.About` has it."""
    backend = service.backend
    corpora = [
        {
            "name": each.name,
            "documents": each.num_documents,
            "passages": each.num_passages,
            "snapshot": each.snapshot,
            "snapshots": backend.snapshots(each),
            "damaged": [segment.entry.name for segment in each.damaged],
        }
        for each in backend.view().corpora
    ]
    state = {"version": __version__, "writable": service.access.writable, "limits": asdict(service.limits)}
    state |= {"files": service.originals is not None, "where": True}
    return {"corpora": corpora, **state, **backend.describe(), "examples": [*service.examples]}


def _write(service: Service, name: str | None, method: str, given: Any) -> dict[str, Any]:
    """Writes in one commit, and serves it. Raises UserError."""
    corpus = service.backend.writable(name)
    if method == "delete":
        counts = {"deleted": corpus.delete(given)}
    else:
        counts = {"written": getattr(corpus, method)(Document(**each.model_dump()) for each in given)}
    service.backend.refresh()
    return {"corpus": corpus.name, "snapshot": corpus.snapshot, **counts}
