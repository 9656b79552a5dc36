"""Timing, memory, fresh processes, and the form of a result."""

from __future__ import annotations

import multiprocessing
import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

SAMPLES = Path(__file__).parents[1] / "samples" / "atlas-2026.jsonl"
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")


@dataclass(frozen=True, slots=True)
class Result:
    """One line of the report. `ratio` says how many times better than the peer ours is, where there is a peer."""

    what: str
    ours: str
    peer: str = ""
    ratio: float | None = None

    def row(self) -> str:
        ratio = "" if self.ratio is None else f"{self.ratio:.3g}×"
        return f"| {self.what} | {self.ours} | {self.peer} | {ratio} |"


def machine() -> str:
    """The processor's name."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.is_file() else []
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.processor())


def best_seconds(call: Callable[[], Any], repeats: int = 3) -> float:
    """The shortest of several runs, after one to warm up."""
    call()
    return min(seconds(call) for _ in range(repeats))


def seconds(call: Callable[[], Any]) -> float:
    """How long one run takes."""
    before = time.perf_counter()
    call()
    return time.perf_counter() - before


def cpu_seconds(call: Callable[[], Any]) -> float:
    """The processor time of one run, over all threads: other programs that run at the same time do not count."""
    before = time.process_time()
    call()
    return time.process_time() - before


def alone(call: Callable[..., Any], *arguments: Any, threads: int | None = None) -> Any:
    """What a module-level function returns in a fresh process, on so many threads if a number is given."""
    limits = dict.fromkeys(THREADS, str(threads)) if threads else {}
    with mock.patch.dict(os.environ, limits), multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(call, arguments)


def peak_bytes(call: Callable[[], Any]) -> int:
    """The resident memory that a fresh process needs at most for a module-level function, beyond what it has
    after importing it."""
    return int(alone(_peak_of, call))


def _peak_of(call: Callable[[], Any]) -> int:
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = status_bytes("VmHWM")
    call()
    return status_bytes("VmHWM") - before


def status_bytes(name: str) -> int:
    """A size from this process's status (Linux): VmHWM, the largest resident memory since it was last reset; RssAnon
    and RssFile, what is resident now of its own and of mapped files."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return 1024 * int(next(line for line in status.splitlines() if line.startswith(f"{name}:")).split()[1])


def available_bytes() -> int:
    """The memory that is free, or would be without caches (Linux)."""
    info = Path("/proc/meminfo").read_text(encoding="ascii")
    return 1024 * int(next(line for line in info.splitlines() if line.startswith("MemAvailable:")).split()[1])
