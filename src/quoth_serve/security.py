"""The layer around the application: who may ask, how large a body may be, headers, the log, metrics.

Knows: ASGI, bytes, tokens. Does not know: what routes do, models.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Collection, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from quoth.errors import InputError
from quoth_serve.batches import Done
from quoth_serve.limits import Limits
from quoth_serve.problems import LOG, problem

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

LEAST_TOKEN = 8
OPEN = ("/", "/healthz", "/readyz")
"""Paths that need no token, like the page's files: they reveal nothing of the corpus."""
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
_PORT = re.compile(r":\d*$")
NO_STORE = {"cache-control": "no-store"}
LEFT = 499
"""In the log and the metrics, as proxies have it: the client hung up before it had its answer."""


@dataclass(frozen=True, slots=True)
class Access:
    """Who may ask: those with the `token` (None: everyone), who name one of the `hosts` (empty: any).

    Without a check of hosts, a page of another site could reach a service of this machine under a name of its own (DNS
    rebinding). Raises InputError for a token that is easily guessed, for writing without one, and for a host with more
    than its name.
    """

    token: str | None = field(default=None, repr=False)
    writable: bool = False
    hosts: Collection[str] = LOOPBACK

    def __post_init__(self) -> None:
        object.__setattr__(self, "hosts", frozenset(map(str.lower, self.hosts)))
        for each in sorted(self.hosts):
            if "/" in each or each.count(":") == 1:  # no request would name it so
                raise InputError(f"host {each!r}: give its name alone, without https://, port and path")
        if self.token is not None and (len(self.token) < LEAST_TOKEN or not self.token.isascii()):
            raise InputError(
                f"the token has {len(self.token)} characters; it must have {LEAST_TOKEN} or more, all ASCII"
            )
        if self.writable and self.token is None:
            raise InputError("--writable requires a token; set QUOTH_TOKEN, or name a file with --token-file")

    def refused(self, path: str, headers: Sequence[tuple[bytes, bytes]]) -> tuple[int, str] | None:
        """The status and the reason if a request may not be answered; tokens are compared in constant time."""
        host = b"".join(value for name, value in headers if name == b"host").decode("latin-1").lower()
        name = _PORT.sub("", host)
        if self.hosts and name.removesuffix(".") not in self.hosts:
            return 421, f"this service is not {name or 'named'!r}; start it with --allow-host to answer under that name"
        if self.token is None or path in OPEN or path.startswith("/page/"):
            return None
        sent = [value for name, value in headers if name == b"authorization"]
        if len(sent) > 1:  # a proxy may have read another one
            return 400, "the request has two Authorization headers; send one"
        scheme, _, given = b"".join(sent).partition(b" ")
        if scheme.lower() == b"bearer" and hmac.compare_digest(given.strip(), self.token.encode()):
            return None
        return 401, "send the token of this service: Authorization: Bearer TOKEN"


class Counts:
    """The metrics for Prometheus."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        named: dict[str, Any] = {"registry": self.registry}
        self.requests = Counter("quoth_requests", "Requests.", ["route", "method", "status"], **named)
        self.seconds = Histogram("quoth_request_seconds", "Seconds until the answer.", ["route"], **named)
        self.batches = Histogram("quoth_batch_texts", "Texts per batch.", buckets=(1, 2, 4, 8, 16, 32), **named)
        self.waited = Histogram("quoth_wait_seconds", "Seconds that a batch's first request waited.", **named)
        self.steps = Counter("quoth_step_seconds", "Seconds spent in each of the five steps.", ["step"], **named)
        self.waiting = Gauge("quoth_waiting", "Requests that wait.", **named)
        self.at_work = Gauge("quoth_at_work", "Batches at work.", **named)
        self.snapshot = Gauge("quoth_snapshot", "The snapshot that is served.", ["corpus"], **named)
        self.documents = Gauge("quoth_documents", "Documents of that snapshot.", ["corpus"], **named)

    def batch(self, done: Done) -> None:
        """A batch was answered."""
        self.batches.observe(done.batch)
        self.waited.observe(done.waited)
        for name, seconds in done.steps.items():
            self.steps.labels(name).inc(seconds)


class SecurityMiddleware:
    """Refuses what may not pass, reads the body of the rest, and logs every request."""

    def __init__(self, app: App, access: Access, limits: Limits, counts: Counts, log_text: bool) -> None:
        self._app, self._access, self._limits, self._counts, self._log_text = app, access, limits, counts, log_text

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        begin, status, name = time.perf_counter(), 500, secrets.token_hex(8)
        body = b""

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = self._headers(scope["path"], message.get("headers", []), name)
            await send(message)

        try:
            refused = self._access.refused(scope["path"], scope["headers"])
            if refused:
                code, reason = refused
                shown = {"WWW-Authenticate": "Bearer"} if code == 401 else None
                await problem(code, reason, headers=shown)(scope, receive, sending)
                return
            read = await self._body(dict(scope["headers"]), receive)
            if isinstance(read, int):
                reason = (
                    f"the body is too large; at most {self._limits.body:,} bytes"
                    if read == 413
                    else f"the body took longer than {self._limits.timeout:g} seconds"
                )
                await problem(read, reason, headers={"Connection": "close"})(scope, receive, sending)
                return
            body = read
            if not await _answered(self._app, scope, receive, sending, body):
                status = LEFT
        except Exception:
            LOG.exception("error", extra={"id": name, "path": scope["path"][:200]})
            if status == 500:
                await _last_words(scope, receive, sending)
        finally:
            self._note(scope, status, time.perf_counter() - begin, name, body)

    async def _body(self, headers: dict[bytes, bytes], receive: Receive) -> bytes | int:
        """The whole body, or the status if it is too large or comes too slowly."""
        stated = headers.get(b"content-length", b"0")
        if stated.isdigit() and int(stated[:20]) > self._limits.body:
            return 413
        parts: list[bytes] = []
        size, more = 0, True
        try:
            async with asyncio.timeout(self._limits.timeout):
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return 408
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > self._limits.body:
                        return 413
                    more = message.get("more_body", False)
        except TimeoutError:
            return 408
        return b"".join(parts)

    def _headers(self, path: str, given: list[tuple[bytes, bytes]], name: str) -> list[tuple[bytes, bytes]]:
        own = HEADERS | {"x-request-id": name} | ({} if path.startswith("/page/") else NO_STORE)
        return [*given, *((each.encode(), value.encode()) for each, value in own.items())]

    def _note(self, scope: Message, status: int, seconds: float, name: str, body: bytes) -> None:
        route = getattr(scope.get("route"), "path", "none")
        method = scope["method"] if scope["method"] in ("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS") else "other"
        self._counts.requests.labels(route, method, str(status)).inc()
        self._counts.seconds.labels(route).observe(seconds)
        said: dict[str, Any] = {"id": name, "route": route, "method": method, "status": status}
        said |= {"ms": round(1000 * seconds, 1), "bytes": len(body)}
        if self._log_text:
            said["text"] = body.decode("utf-8", "replace")
        LOG.info("request", extra=said)


async def _answered(app: App, scope: Message, receive: Receive, send: Send, body: bytes) -> bool:
    """Whether the application answers before the client hangs up; if not, it is cancelled: no work is begun for
    nobody."""
    over = False

    async def sending(message: Message) -> None:
        nonlocal over
        await send(message)
        over = message["type"] == "http.response.body" and not message.get("more_body", False)

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        if not over:  # after the answer, servers say this too
            until.reschedule(0)

    try:
        async with asyncio.timeout(None) as until:
            watching = asyncio.create_task(watch())
            try:
                await app(scope, _replayed(body, receive), sending)
            finally:
                watching.cancel()
    except TimeoutError:
        if not until.expired():
            raise
        return False
    return True


async def _last_words(scope: Message, receive: Receive, send: Send) -> None:
    try:
        await problem(500, "an error of the service, which its log describes")(scope, receive, send)
    except Exception:  # the answer had begun
        LOG.error("cut", extra={"path": scope["path"][:200]})


def _replayed(body: bytes, receive: Receive) -> Receive:
    whole: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return whole.pop() if whole else await receive()

    return replay


class JSONLines(logging.Formatter):
    """A log record as one JSON object per line."""

    _OWN = frozenset({*logging.makeLogRecord({}).__dict__, "message", "taskName"})

    def format(self, record: logging.LogRecord) -> str:
        said = {name: value for name, value in record.__dict__.items() if name not in self._OWN}
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = {
            "time": f"{at}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line | said, default=str)
