"""The processes of a training run, as torchrun starts them; one alone without it.

Knows: torch.distributed's collectives. Does not know: what is summed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

import torch
from torch import Tensor

PATIENCE = timedelta(days=1)
"""So long processes wait for the one that tokenizes or embeds; torchrun ends all of them where one dies."""


@dataclass(frozen=True, slots=True)
class Ranks:
    """This process's number and how many there are."""

    rank: int = 0
    size: int = 1

    @classmethod
    def join(cls) -> Ranks:
        """Join the processes that torchrun's environment variables name (NCCL with CUDA, else gloo); `leave` at the
        end, or the processes may crash on their way out."""
        size = int(os.environ.get("WORLD_SIZE", "1"))
        if size == 1:
            return cls()
        backend = "nccl" if torch.cuda.is_available() else "gloo"
        if not torch.distributed.is_initialized():
            torch.distributed.init_process_group(backend, timeout=PATIENCE)
        return cls(torch.distributed.get_rank(), size)

    @property
    def first(self) -> bool:
        """Whether this process is the one that writes files."""
        return self.rank == 0

    def share(self, count: int) -> slice:
        """This process's part of `count` things in a row."""
        return slice(self.rank * count // self.size, (self.rank + 1) * count // self.size)

    def sum(self, tensors: Iterable[Tensor]) -> None:
        """Replace each tensor by its sum over the processes."""
        if self.size > 1:
            for tensor in tensors:
                torch.distributed.all_reduce(tensor)

    def sum_gradients(self, parameters: Iterable[Tensor]) -> None:
        """Give every process the sum of all processes' gradients, zeros where one has none."""
        if self.size > 1:
            for parameter in parameters:
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
                torch.distributed.all_reduce(parameter.grad)

    def gather(self, rows: Tensor) -> Tensor:
        """Every process's rows, as many of each, one process after another; gradients go back to each its own."""
        if self.size == 1:
            return rows
        from torch.distributed.nn.functional import all_gather

        return torch.cat(all_gather(rows))  # type: ignore[no-untyped-call]

    def of_first(self, number: int, device: torch.device) -> int:
        """The first process's number."""
        told = torch.tensor([number if self.first else 0], device=device)
        self.sum([told])
        return int(told.item())

    def any(self, here: bool, device: torch.device) -> bool:
        """Whether it is so in some process."""
        if self.size == 1:
            return here
        count = torch.tensor([float(here)], device=device)
        self.sum([count])
        return count.item() > 0

    def leave(self) -> None:
        """Take leave of the other processes, once all are here."""
        if self.size > 1:
            self.wait()
            torch.distributed.destroy_process_group()

    def wait(self) -> None:
        """Until every process is here."""
        if self.size > 1:
            torch.distributed.barrier()


ALONE = Ranks()
