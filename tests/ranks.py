"""Functions that run in two processes that know of each other, as in distributed training."""

from __future__ import annotations

import multiprocessing
import os
import socket
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from quoth.training.distributed import World

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["torch", "transformers", "quoth.npm.task", "quoth.realm.pretrain"])
"""These take longest, and are imported once for all."""


def together(work: Callable[..., Any], *arguments: object) -> list[Any]:
    """`work(world, *arguments)` in two processes; what each of them returned."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with ProcessPoolExecutor(2, mp_context=PROCESSES) as pool:
        return [each.result(300) for each in [pool.submit(_join, rank, port, work, *arguments) for rank in range(2)]]


def _join(rank: int, port: int, work: Callable[..., Any], *arguments: object) -> Any:
    os.environ.update(WORLD_SIZE="2", RANK=str(rank), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    world = World.join()
    try:
        return work(world, *arguments)
    finally:
        world.shutdown()
