"""The web server of one process, from its socket to its last reply.

Knows: uvicorn, signals, sockets. Does not know: the routes.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
from math import ceil
from types import FrameType
from typing import Any

import h11
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from quoth.errors import InputError
from quoth_serve.security import JSONLines

IDLE_SECONDS = 15
HEAD_SECONDS = 10.0
"""How long the head of a request may take, or the limit `timeout` if that is shorter."""
LOOKS = 4
"""How often a connection is looked at within the shorter of its deadlines."""
MOST_CONNECTIONS = 2048
ALIVE = "/healthz"


def bound(host: str, port: int) -> socket.socket:
    """A socket bound to an address; port 0 takes any that is free. Raises InputError if it cannot be bound."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        found = socket.socket(family, kind, protocol)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
    except UnicodeError:  # from the encoding of names
        raise InputError(f"--host {host!r} is no host name; use 127.0.0.1, or 0.0.0.0 for other machines") from None
    except OSError as error:
        raise InputError(f"{host}:{port}: {error.strerror}; choose another --port or --host") from None
    return found


class Connection(H11Protocol):
    """A connection that is dropped if the head of a request takes too long, or the client does not read its reply.

    uvicorn bounds only the time between two requests. Its timer for that is the only thing that is read here besides
    what has been received and what is still to be sent: nothing depends on the order of its callbacks.
    """

    _most: int | None = None

    @property
    def limit_concurrency(self) -> int | None:
        """The most connections at which this request is answered; /healthz always is."""
        return None if self.scope and self.scope["path"] == ALIVE else self._most

    @limit_concurrency.setter
    def limit_concurrency(self, most: int | None) -> None:
        self._most = most

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        app: Any = self.config.app
        self._seconds = app.state.service.limits.timeout
        self._head_seconds = min(HEAD_SECONDS, self._seconds)
        self._complete = self._read = self.loop.time()
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        self._next.cancel()
        super().connection_lost(exc)

    def resume_writing(self) -> None:
        """The client reads."""
        super().resume_writing()
        self._read = self.loop.time()

    def _look(self) -> None:
        now = self.loop.time()
        if self.conn.their_state is not h11.IDLE or self.timeout_keep_alive_task is not None:
            self._complete = now
        if not self.transport.get_write_buffer_size():
            self._read = now
        if now - self._complete >= self._head_seconds or now - self._read >= self._seconds:
            self.transport.abort()  # to close it would wait until the client has read everything
        self._next = self.loop.call_later(self._head_seconds / LOOKS, self._look)


class _Server(uvicorn.Server):
    """Says that it is draining as soon as it is told to stop."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """As uvicorn's, but without recording the signal: it would be raised again after the last reply, as if being
        told to stop were an interruption."""
        app: Any = self.config.app
        app.state.service.draining = True
        self.force_exit |= self.should_exit and sig == signal.SIGINT
        self.should_exit = True


def run(app: FastAPI, listening: socket.socket) -> None:
    """Answer requests until SIGINT or SIGTERM; then finish those at work, and return."""
    _Server(settings(app)).run(sockets=[listening])


def settings(app: FastAPI) -> uvicorn.Config:
    """How the web server treats connections."""
    return uvicorn.Config(
        app,
        http=Connection,
        access_log=False,
        log_config=None,
        server_header=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=ceil(app.state.service.limits.timeout),
    )


def log_lines() -> None:
    """Write the service's log to standard error, one JSON object per line."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JSONLines())
    log = logging.getLogger("quoth.service")
    log.handlers, log.propagate = [handler], False
    log.setLevel(logging.INFO)
