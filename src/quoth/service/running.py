"""The web server of one process, from its socket to its last reply.

Knows: uvicorn, signals, sockets. Does not know: the routes.
"""

from __future__ import annotations

import logging
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI

from quoth.errors import InputError
from quoth.service.shield import JSONLines

IDLE_SECONDS = 15
MOST_CONNECTIONS = 2048
STOPPED_BY = (signal.SIGINT, signal.SIGTERM)


def bound(host: str, port: int) -> socket.socket:
    """A socket bound to an address; port 0 takes any that is free. Raises InputError if it cannot be bound."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        found = socket.socket(family, kind, protocol)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
    except OSError as error:
        raise InputError(f"{host}:{port}: {error.strerror}; choose another --port or --host") from None
    return found


class _Server(uvicorn.Server):
    """Says that it is draining as soon as it is told to stop."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        app: Any = self.config.app
        app.state.service.draining = True
        super().handle_exit(sig, frame)


def run(app: FastAPI, listening: socket.socket) -> None:
    """Answer requests until SIGINT or SIGTERM; then finish those at work, and return."""
    limits = app.state.service.limits
    config = uvicorn.Config(
        app,
        access_log=False,
        log_config=None,
        server_header=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=ceil(limits.timeout),
    )
    with _signals_left_alone():
        _Server(config).run(sockets=[listening])


def log_lines() -> None:
    """Write the service's log to standard error, one JSON object per line."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JSONLines())
    log = logging.getLogger("quoth.service")
    log.handlers, log.propagate = [handler], False
    log.setLevel(logging.INFO)


@contextmanager
def _signals_left_alone() -> Iterator[None]:
    """Once stopped, uvicorn raises the signals that stopped it again: that is not an interruption."""
    before = {each: signal.signal(each, lambda *_: None) for each in STOPPED_BY}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
