"""What the recipes share: a run with its inputs and its folder, and which documents are left out of it.

Knows: files, locks, devices. Does not know: models, or how a task is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch

from quoth.config import ModelConfig
from quoth.corpus.documents import OnBad, read_documents, read_listing
from quoth.errors import InputError, UserError
from quoth.hub import ModelSource, locate
from quoth.records import Document
from quoth.registry import system_of
from quoth.storage import WriterLock, no_empty_folder, refuse_links_below, remove
from quoth.training.distributed import World
from quoth.training.settings import LoopConfig
from quoth.training.trainer import Evaluation, Task, checkpoints

Made = TypeVar("Made")
Settings = TypeVar("Settings", bound=ModelConfig)
Preparing = Callable[[str, int, int | None], None]
"""Called before the first step with what is being done, how much of it is done, and the total, if known."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run: what it learns from, the model it starts from, and the folder it writes.

    `corpus` is the corpus to retrieve from, if it is not that of the inputs; `base` a folder for the base encoder.
    `stack` closes at the end of the run what the recipe leaves open.
    """

    inputs: Sequence[str]
    output: Path
    model: str | ModelSource[Any]
    world: World
    stack: ExitStack
    base: str | None = None
    corpus: str | Path | None = None
    preparing: Preparing | None = None
    on_bad: OnBad | None = None

    def source(self, kind: type[Settings]) -> ModelSource[Settings]:
        """Where the files of the model are that the run starts from, and its settings of this `kind`.

        Raises InputError if a base was given that this model does not have, and as `locate`.
        """
        found = self.model if isinstance(self.model, ModelSource) else locate(self.model, kind, self.base)
        if self.base and Path(found.base) != Path(self.base):
            raise InputError(
                f"base {self.base!r} is not read: {self.model} has a base of its own; start a new model from "
                f"{system_of(kind).bare}"
            )
        return found

    def claim(self) -> None:
        """Make the output folder and hold its lock to the end of the run; if it is refused before its first checkpoint,
        nothing new is left. Raises LockedError if another process trains into the folder."""
        if self.world.is_main:
            self.stack.enter_context(_claimed(self.output))

    def shared(self, make: Callable[[], Made]) -> Made:
        """What `make` returns: first in the main process, so that the others find what it has written."""
        made = [make()] if self.world.is_main else []
        self.world.barrier()
        return made[0] if made else make()

    def counter(self, what: str, total: int | None = None) -> Callable[[int], None]:
        """A function that takes how much is done of `what` and reports it."""

        def report(done: int) -> None:
            if self.preparing and self.world.is_main:
                self.preparing(what, done, total)

        report(0)
        return report

    @property
    def device(self) -> str:
        """This process's GPU, or the CPU."""
        if not torch.cuda.is_available():
            return "cpu"
        return f"cuda:{self.world.rank % torch.cuda.device_count()}"


@contextmanager
def _claimed(output: Path) -> Iterator[None]:
    with no_empty_folder(output):
        output.mkdir(parents=True, exist_ok=True)
        refuse_links_below(output)
        before = set(output.iterdir())
        with WriterLock(output / "writer.lock"):
            try:
                yield
            except UserError:
                if not checkpoints(output):
                    for path in set(output.iterdir()) - before:
                        remove(path)
                raise


@dataclass(frozen=True, slots=True)
class Job:
    """What a recipe makes of a run: the task, the settings with their number of steps, and what measures the model."""

    task: Task
    config: LoopConfig
    evaluation: Evaluation | None = None


def file_states(path: str) -> list[tuple[str, int, int]]:
    """Name, size and time of change of a file, or of all files in a folder; nothing if the path does not exist."""
    root = Path(path)
    files = sorted(root.rglob("*")) if path and root.is_dir() else [root]
    return [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files if file.is_file()]


def without(documents: Iterable[Document], listing: str, evaluated: str = "") -> Iterator[Document]:
    """Leave out the documents whose id or title (ignoring case) occurs in the JSONL file `listing` of ids and titles,
    or is that of a document in the file `evaluated`.

    Raises InputError if there is no such file, or naming a line with neither.
    """
    ids, titles = read_listing(listing) if listing else (set(), set())
    for document in read_documents(evaluated) if evaluated else ():
        ids.add(document.id)
        titles.update({document.title.casefold()} - {""})
    return (d for d in documents if d.id not in ids and d.title.casefold() not in titles)
