"""How long each of a query's five steps takes: encode, search, expand, score, explain.

Knows clocks and names. Does not know what happens in a step. Measures only inside `timed()`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter

STEPS = ("encode", "search", "expand", "score", "explain")


_LISTENER: ContextVar[tuple[dict[str, float], list[float]] | None] = ContextVar("listener", default=None)
"""The seconds of each step and, of the steps that are running, outermost first, those spent in steps inside them."""


@contextmanager
def step(name: str) -> Iterator[None]:
    """Charge the time spent inside the `with` block to this step, except for that of the steps inside it."""
    listener = _LISTENER.get()
    if listener is None:
        yield
        return
    seconds, inside = listener
    inside.append(0.0)
    began = perf_counter()
    try:
        yield
    finally:
        spent = perf_counter() - began
        seconds[name] += spent - inside.pop()
        if inside:
            inside[-1] += spent


@contextmanager
def timed() -> Iterator[dict[str, float]]:
    """Measure this thread's queries: seconds per step, complete when the `with` block ends."""
    seconds = dict.fromkeys(STEPS, 0.0)
    token = _LISTENER.set((seconds, []))
    try:
        yield seconds
    finally:
        _LISTENER.reset(token)
