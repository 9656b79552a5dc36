"""The processes of a training run, as torchrun starts them; a single one without it.

Knows: torch.distributed's collectives. Does not know: what is summed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

import torch
from torch import Tensor

TIMEOUT = timedelta(days=1)
"""Processes wait this long for the one that tokenizes or embeds; if a process dies, torchrun ends all of them."""


@dataclass(frozen=True, slots=True)
class World:
    """The number of this process, and how many processes there are."""

    rank: int = 0
    size: int = 1

    @classmethod
    def join(cls) -> World:
        """Join the processes that torchrun's environment variables name, by NCCL with CUDA, else by gloo. Call
        `shutdown` at the end, or the processes may crash when they exit."""
        size = int(os.environ.get("WORLD_SIZE", "1"))
        if size == 1:
            return cls()
        backend = "nccl" if torch.cuda.is_available() else "gloo"
        if not torch.distributed.is_initialized():
            torch.distributed.init_process_group(backend, timeout=TIMEOUT)
        return cls(torch.distributed.get_rank(), size)

    @property
    def is_main(self) -> bool:
        """Whether this process is the one that writes files."""
        return self.rank == 0

    def share(self, count: int) -> slice:
        """This process's part of `count` things in a row."""
        return slice(self.rank * count // self.size, (self.rank + 1) * count // self.size)

    def sum(self, tensors: Iterable[Tensor]) -> None:
        """Replace every tensor by its sum over the processes."""
        if self.size > 1:
            for tensor in tensors:
                torch.distributed.all_reduce(tensor)

    def sum_gradients(self, parameters: Iterable[Tensor]) -> None:
        """Give every process the sum of all processes' gradients; a missing gradient counts as zeros."""
        if self.size > 1:
            for parameter in parameters:
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
                torch.distributed.all_reduce(parameter.grad)

    def gather(self, rows: Tensor) -> Tensor:
        """The rows of all processes, the same number from every process, in the order of the processes. Gradients flow
        back to the process that a row came from."""
        if self.size == 1:
            return rows
        from torch.distributed.nn.functional import all_gather

        return torch.cat(all_gather(rows))  # type: ignore[no-untyped-call]

    def from_main(self, number: int, device: torch.device) -> int:
        """The main process's number."""
        received = torch.tensor([number if self.is_main else 0], device=device)
        self.sum([received])
        return int(received.item())

    def any(self, value: bool, device: torch.device) -> bool:
        """Whether `value` is true in at least one process."""
        if self.size == 1:
            return value
        count = torch.tensor([float(value)], device=device)
        self.sum([count])
        return count.item() > 0

    def barrier(self) -> None:
        """Wait until every process has arrived here."""
        if self.size > 1:
            torch.distributed.barrier()

    def shutdown(self) -> None:
        """Leave the group of processes, once all have arrived here."""
        if self.size > 1:
            self.barrier()
            torch.distributed.destroy_process_group()


SINGLE_PROCESS = World()
