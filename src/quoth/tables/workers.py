"""Several rows of a table asked at once.

Knows threads. Does not know how a row is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from itertools import islice

from quoth.tables.cells import Row


def at_once(ask: Callable[[str], Row], keys: Iterable[str], workers: int) -> Iterator[Row]:
    """The rows of these keys, each as soon as it is finished; this many are asked at once. In threads: the time of a
    row is mostly its network's, which others need not wait for."""
    if workers == 1:
        yield from map(ask, keys)
        return
    left = iter(keys)
    with ThreadPoolExecutor(workers) as pool:
        running = {pool.submit(ask, key) for key in islice(left, workers)}
        try:
            while running:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                running |= {pool.submit(ask, key) for key in islice(left, len(done))}
                yield from (each.result() for each in done)
        finally:
            for each in running:
                each.cancel()
