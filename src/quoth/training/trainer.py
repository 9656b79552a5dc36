"""The training loop: step, log, checkpoint, save; goes on where it was broken off.

Knows: optimisation, checkpoints, progress. Does not know: what is trained (a task does), or what a recipe's numbers are
(recipes.py).
"""

from __future__ import annotations

import ctypes
import json
import math
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from quoth.errors import InputError, TrainingError
from quoth.storage import atomic_write_bytes, atomic_write_json, publish_directory, read_json
from quoth.training.distributed import SINGLE_PROCESS, World
from quoth.training.settings import LoopConfig, linear_schedule

BEST = "best"
LOG = "log.jsonl"


@dataclass(frozen=True, slots=True)
class Step:
    """What one step did: its loss, None where there was nothing to learn from; tokens read; examples without anything
    to learn from; further numbers for the log."""

    loss: float | None
    tokens: int
    skipped: int = 0
    measures: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What measures the model in a folder, every so many steps; the higher its "score", the better."""

    every: int
    measure: Callable[[Path], Mapping[str, float]]


class Task(Protocol):
    """What is trained. `device` is where its parameters lie."""

    parameters: Mapping[str, torch.nn.Parameter]
    device: torch.device

    def backward(self, step: int) -> Step:
        """Add a step's gradient to the parameters'."""
        ...

    def save_model(self, folder: Path) -> None:
        """Write what `from_pretrained` reads."""
        ...

    def settings(self) -> dict[str, Any]:
        """What must be the same for a run to go on, by groups."""
        ...


@dataclass(frozen=True, slots=True)
class Progress:
    """What was done since the last report. `skipped` counts examples in which there was nothing to learn from (NPM:
    passages in which nothing could be hidden); `measures` are means of the task's further numbers."""

    step: int
    steps: int
    loss: float
    tokens_per_second: float
    learning_rate: float
    skipped: int
    measures: Mapping[str, float]


class Trainer:
    """Trains a task in `output`, from its last checkpoint if there is one."""

    def __init__(self, task: Task, config: LoopConfig, output: Path, world: World = SINGLE_PROCESS) -> None:
        self.task, self.config, self.output, self.world = task, config, output, world
        output.mkdir(parents=True, exist_ok=True)
        self.parameters = task.parameters
        self.optimizer = torch.optim.AdamW(
            self.parameters.values(), lr=config.learning_rate, weight_decay=config.weight_decay
        )
        self.step = 0
        self._resume()
        if world.is_main:
            self._forget_log()

    def run(
        self,
        progress: Callable[[Progress], None] | None = None,
        evaluation: Evaluation | None = None,
        seconds: float = math.inf,
    ) -> bool:
        """Train to the last step; a checkpoint every `checkpoint_every` steps, the model at the end.

        After `seconds` it stops with a checkpoint; returns whether the last step was done. What `evaluation`
        finds is logged, and the best model kept in `best`. Raises TrainingError when the loss is no number.
        """
        config = self.config
        since, done = time.perf_counter(), list[Step]()
        deadline = since + seconds
        while self.step < config.steps:
            rate = self.learning_rate
            done.append(self._train(rate))
            self.step += 1
            if self.step % config.log_every == 0 or self.step == config.steps:
                now = time.perf_counter()
                self._report(done, now - since, rate, progress)
                give_back_memory()
                since, done = now, []
            if self.world.is_main and evaluation and self.step % evaluation.every == 0:
                self._keep_best(evaluation)
            late = math.isfinite(seconds) and self.world.any(time.perf_counter() > deadline, self.task.device)
            if self.world.is_main and (late or self.step % config.checkpoint_every == 0):
                self.save_checkpoint()
            if late:
                break
        if self.world.is_main:
            self.task.save_model(self.output)
        return self.step == config.steps

    def _train(self, rate: float) -> Step:
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        torch.manual_seed(seed_of(self.config.seed, self.step, self.world.rank))
        done = self.task.backward(self.step)
        if done.loss is None:
            return done
        if not math.isfinite(done.loss):
            kept = f"the last checkpoint in {str(self.output)!r} is kept: " if self._checkpoints() else ""
            raise TrainingError(
                f"the loss is {done.loss} at step {self.step + 1}; {kept}train again into another folder with a lower "
                "learning_rate"
            )
        torch.nn.utils.clip_grad_norm_(self.parameters.values(), self.config.max_grad_norm)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return done

    @property
    def learning_rate(self) -> float:
        """That of the step to come."""
        config = self.config
        return linear_schedule(self.step + 1, config.steps, config.learning_rate, config.warmup_steps)

    def _report(
        self, done: list[Step], seconds: float, rate: float, progress: Callable[[Progress], None] | None
    ) -> None:
        if not self.world.is_main:
            return
        losses = [each.loss for each in done if each.loss is not None]
        names = dict.fromkeys(name for each in done for name in each.measures)
        state = Progress(
            step=self.step,
            steps=self.config.steps,
            loss=float(np.mean(losses)) if losses else 0.0,
            tokens_per_second=sum(each.tokens for each in done) / seconds,
            learning_rate=rate,
            skipped=sum(each.skipped for each in done),
            measures={
                name: float(np.mean([each.measures[name] for each in done if name in each.measures])) for name in names
            },
        )
        self._log(
            step=state.step,
            loss=round(state.loss, 5),
            tokens_per_second=round(state.tokens_per_second, 1),
            learning_rate=state.learning_rate,
            skipped=state.skipped,
            **{name: round(value, 5) for name, value in state.measures.items()},
        )
        if progress:
            progress(state)

    def _log(self, **record: Any) -> None:
        with (self.output / LOG).open("a", encoding="utf-8") as log:
            log.write(json.dumps(record) + "\n")

    def _keep_best(self, evaluation: Evaluation) -> None:
        part = self.output / f"{BEST}.part"
        shutil.rmtree(part, ignore_errors=True)
        self.task.save_model(part)
        found = evaluation.measure(part)
        earlier = [record["score"] for record in self._logged() if "score" in record]
        self._log(step=self.step, **found)
        if found["score"] > max(earlier, default=-math.inf):
            publish_directory(part, self.output / BEST)
        shutil.rmtree(part, ignore_errors=True)

    def _logged(self) -> list[dict[str, Any]]:
        """The records of the log; a torn last line is none."""
        log = self.output / LOG
        lines = log.read_bytes().splitlines(keepends=True) if log.is_file() else []
        return [json.loads(line) for line in lines if line.endswith(b"\n")]

    def save_checkpoint(self) -> None:
        """Replace the checkpoint by this step's, whole or not at all."""
        folder = self.output / f"checkpoint-{self.step}"
        part = self.output / "checkpoint.part"
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        tensors = {f"parameter.{n}": p.detach().contiguous() for n, p in self.parameters.items()}
        for name, parameter in self.parameters.items():
            if state := self.optimizer.state.get(parameter):
                tensors.update({f"{key}.{name}": state[key].contiguous() for key in ("exp_avg", "exp_avg_sq")})
        save_file(tensors, part / "state.safetensors")
        atomic_write_json(part / "state.json", {"step": self.step, **self._settings()})
        publish_directory(part, folder)
        for old in self.output.glob("checkpoint-*"):
            if old != folder:
                shutil.rmtree(old, ignore_errors=True)

    def _resume(self) -> None:
        steps = self._checkpoints()
        if not steps:
            return
        folder = self.output / f"checkpoint-{max(steps)}"
        state = read_json(folder / "state.json")
        self._check_settings(state)
        tensors = load_file(folder / "state.safetensors", device=str(self.task.device))
        self.step = int(state["step"])
        with torch.no_grad():
            for name, parameter in self.parameters.items():
                parameter.copy_(tensors[f"parameter.{name}"])
                if f"exp_avg.{name}" in tensors:
                    self.optimizer.state[parameter] = {
                        "step": torch.tensor(float(self.step)),
                        "exp_avg": tensors[f"exp_avg.{name}"],
                        "exp_avg_sq": tensors[f"exp_avg_sq.{name}"],
                    }

    def _checkpoints(self) -> list[int]:
        """The steps of the checkpoints there are."""
        return [int(step) for path in self.output.glob("checkpoint-*") if (step := path.name[11:]).isdecimal()]

    def _settings(self) -> dict[str, Any]:
        """What must be the same for a run to resume, as JSON has it."""
        settings: dict[str, Any] = json.loads(json.dumps({"config": self.config.to_dict(), **self.task.settings()}))
        return settings

    def _check_settings(self, state: dict[str, Any]) -> None:
        settings = [(state.get(group, {}), mine) for group, mine in self._settings().items()]
        other = [
            (key, value, theirs)
            for was, mine in settings
            for key, value in mine.items()
            if (theirs := was.get(key, value)) != value
        ]
        if other:
            keys = ", ".join(f"{key} is {value!r}" for key, value, _ in other)
            held = ", ".join(repr(theirs) for *_, theirs in other)
            raise InputError(
                f"{keys}, but {str(self.output)!r} holds a run with {held}; "
                "use the same settings to go on, or another folder"
            )

    def _forget_log(self) -> None:
        """Drop what a broken-off run logged after its last checkpoint, a torn line included."""
        kept = [json.dumps(record) + "\n" for record in self._logged() if record["step"] <= self.step]
        if (self.output / LOG).is_file():
            atomic_write_bytes(self.output / LOG, "".join(kept).encode())


def seed_of(seed: int, step: int, rank: int = 0) -> int:
    """What torch's random numbers of a step follow from, so that a run that resumes drops what an unbroken one does."""
    return (rank << 40) + 1_000_003 * seed + step


def give_back_memory() -> None:
    """Return free memory to the system: glibc keeps what tensors of changing sizes leave between them, which grows to
    gigabytes over some hundred steps on a CPU. Elsewhere nothing is done."""
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)
