"""How long each of a query's five steps takes: encode, search, expand, score, explain.

Knows clocks and names. Does not know what happens in a step. Measures only inside `timed()`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter

STEPS = ("encode", "search", "expand", "score", "explain")


class Clock:
    """Seconds spent in each step. A nested step pauses the clock of the outer one."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(STEPS, 0.0)
        self._running: list[str] = []
        self._since = perf_counter()

    def enter(self, name: str) -> None:
        self._charge()
        self._running.append(name)

    def leave(self) -> None:
        self._charge()
        self._running.pop()

    def _charge(self) -> None:
        now = perf_counter()
        if self._running:
            self.seconds[self._running[-1]] += now - self._since
        self._since = now


_LISTENER: ContextVar[Clock | None] = ContextVar("listener", default=None)


@contextmanager
def step(name: str) -> Iterator[None]:
    """Charge the time spent inside the `with` block to this step."""
    clock = _LISTENER.get()
    if clock is None:
        yield
        return
    clock.enter(name)
    try:
        yield
    finally:
        clock.leave()


@contextmanager
def timed() -> Iterator[dict[str, float]]:
    """Measure this thread's queries: seconds per step, complete when the `with` block ends."""
    clock = Clock()
    token = _LISTENER.set(clock)
    try:
        yield clock.seconds
    finally:
        _LISTENER.reset(token)
