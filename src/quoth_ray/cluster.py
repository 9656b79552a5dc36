"""The Ray cluster that jobs run on, and the model that its workers load.

Knows: how to join a cluster, how a worker's errors come back, which model to expect. Does not know: what jobs do.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from quoth.encoders.tokens import TokenEncoder
from quoth.errors import ClusterError, EncoderMismatchError, InputError, QuothError
from quoth.hub import locate
from quoth.npm.config import NPMConfig

CONNECT_SECONDS = 10
START_SECONDS = 120
"""How long to try to start a cluster on this machine; Ray alone gives up after 30, too soon on a busy machine."""


@dataclass(frozen=True, slots=True)
class ModelName:
    """A model as every worker can load it; the loaded one must have this `fingerprint`."""

    name: str
    base: str | None = None
    device: str | None = None
    dtype: str | None = None
    fingerprint: str = ""

    def load(self) -> TokenEncoder:
        """Load it, once per process. Raises ModelNotFoundError, EncoderMismatchError if another one is installed."""
        encoder = _load(self.name, self.base, self.device, self.dtype)
        if self.fingerprint not in ("", encoder.fingerprint):
            raise EncoderMismatchError(
                f"{self.name} is {encoder.fingerprint[:8]} on this machine, but {self.fingerprint[:8]} was requested; "
                "install the same model everywhere"
            )
        return encoder


@lru_cache(maxsize=1)
def _load(name: str, base: str | None, device: str | None, dtype: str | None) -> TokenEncoder:
    return TokenEncoder.load(locate(name, NPMConfig, base), device=device, dtype=dtype)


def connect() -> int:
    """Joins the cluster that RAY_ADDRESS names, or starts one on this machine; returns its number of CPUs.

    Raises InputError if Ray is not installed or the cluster cannot be reached, ClusterError if none can be started.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    address = os.environ.get("RAY_ADDRESS")
    if not address and "ray" not in sys.modules:
        for name, value in local_settings().items():
            os.environ.setdefault(name, value)
    try:
        import ray
    except ModuleNotFoundError:
        raise InputError("--ray needs Ray; install it with: pip install '.[ray]' in a clone of Quoth") from None
    if not ray.is_initialized():
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        if address:
            _check_reachable(address)
        else:
            quiet |= {"address": "local", "include_dashboard": False}
        with starting(f"with the cluster at {address}" if address else "a cluster on this machine"):
            _patiently(lambda: ray.init(**quiet), ray.shutdown, 0 if address else START_SECONDS)
    resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
    return int(resources.get("CPU", 1))


def local_settings() -> dict[str, str]:
    """Settings for a cluster on this machine alone, which Ray reads when it is imported: its processes listen on the
    loopback interface only, and accept only requests with a token, which is not written to any file."""
    return {
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # on every system, this keeps Ray on 127.0.0.1
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
    }


def _patiently(begin: Callable[[], Any], undo: Callable[[], Any], seconds: float) -> None:
    """Tries again, for this long, if Ray does not start within its own time limit."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            begin()
            return
        except Exception:
            with suppress(Exception):
                undo()
            if time.monotonic() >= deadline:
                raise


@contextmanager
def starting(what: str) -> Iterator[None]:
    """Ray's own errors, of many kinds and many lines, as one line. Raises ClusterError."""
    try:
        yield
    except QuothError:
        raise
    except Exception as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ClusterError(
            f"Ray did not start {what}: {reason.rstrip('.')}; try again when the machine is less busy, or look into "
            "/tmp/ray/session_latest/logs"
        ) from error


def _check_reachable(address: str) -> None:
    """Raises InputError at once if nothing answers; Ray itself would try for minutes, in many lines."""
    host, _, port = address.rpartition("/")[2].rpartition(":")
    try:
        if port.isdecimal():
            socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
    except OSError as error:
        raise InputError(f"RAY_ADDRESS is {address!r}: no cluster there ({error}); start one, or unset it") from None


def machines() -> int:
    """Number of machines in the cluster now."""
    import ray

    nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    return sum(1 for node in nodes if node["Alive"])


def unwrapped(get: Callable[..., Any], *arguments: Any) -> Any:
    """What a worker returned; an error of Quoth is raised again as it was raised there."""
    from ray.exceptions import RayTaskError

    try:
        return get(*arguments)
    except RayTaskError as error:
        if isinstance(error.cause, QuothError):
            raise error.cause from None
        raise
