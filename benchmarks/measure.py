"""Timing, peak memory, and the form of a result."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Result:
    """One line of the report. `ratio` says how many times better than the peer ours is."""

    what: str
    ours: str
    peer: str
    ratio: float

    def row(self) -> str:
        return f"| {self.what} | {self.ours} | {self.peer} | {self.ratio:.3g}× |"


def best_seconds(call: Callable[[], Any], repeats: int = 3) -> float:
    """The shortest of several runs, after one to warm up."""
    call()
    times = []
    for _ in range(repeats):
        before = time.perf_counter()
        call()
        times.append(time.perf_counter() - before)
    return min(times)


def peak_bytes(call: Callable[[], Any]) -> int:
    """The resident memory that a fresh process needs at most for a module-level function, beyond what it has
    after importing it."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return int(pool.apply(_peak_of, (call,)))


def _peak_of(call: Callable[[], Any]) -> int:
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = _peak()
    call()
    return _peak() - before


def _peak() -> int:
    """The process's largest resident memory since it was last reset (Linux)."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return 1024 * int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])
