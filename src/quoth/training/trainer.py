"""The training loop: step, log, checkpoint, save; a stopped run resumes.

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
from quoth.training.settings import LoopConfig

BEST = "best"
LOG = "log.jsonl"
_MOMENTS = ("step", "exp_avg", "exp_avg_sq")
"""What AdamW keeps of a parameter."""
SHOW_EVERY = 30.0
"""Seconds after which progress is reported, whatever `log_every` is."""
SAVE_EVERY = 600.0
"""Seconds after which a checkpoint is written, whatever `checkpoint_every` is."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one step did: its loss, None if there was nothing to learn from; tokens read; examples without anything to
    learn from; further numbers for the log."""

    loss: float | None
    tokens: int
    skipped: int = 0
    measures: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A function that measures the model in a folder, and after how many steps to call it; higher scores are better."""

    every: int
    measure: Callable[[Path], Mapping[str, float]]


class Task(Protocol):
    """What is trained. `device` is that of its parameters."""

    parameters: Mapping[str, torch.nn.Parameter]
    device: torch.device

    def backward(self, step: int) -> Step:
        """Add a step's gradient to the parameters'."""
        ...

    def save_model(self, folder: Path) -> None:
        """Write what `from_pretrained` reads."""
        ...

    def settings(self) -> dict[str, Any]:
        """What must be the same for a run to resume, by groups."""
        ...


@dataclass(frozen=True, slots=True)
class Progress:
    """What was done since the last record of the log.

    `step` of `steps` are done. `loss` is the mean since then, `skipped` the number of examples with nothing to learn
    from (NPM: passages in which nothing could be masked). `measures` are means of the task's further numbers, and what
    was measured after this step on held-out documents ("score").
    """

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
        self._whole = True
        self._resume()
        if world.is_main:
            self._forget_log()

    def run(
        self,
        progress: Callable[[Progress], None] | None = None,
        evaluation: Evaluation | None = None,
        seconds: float | None = None,
    ) -> bool:
        """Train to the last step; write a checkpoint and the model every `checkpoint_every` steps, at least every
        `SAVE_EVERY` seconds, and at the end.

        After `seconds`, or on Ctrl-C, the run stops with a checkpoint; returns whether the last step was done. What
        `evaluation` measures is logged, and the best model kept in `best`. `progress` is called after the first step,
        after logged and measured steps, and at least every `SHOW_EVERY` seconds, steps permitting. Raises TrainingError
        if the loss is not a finite number.
        """
        first = self.step
        try:
            self._loop(progress, evaluation, math.inf if seconds is None else time.perf_counter() + seconds)
        except KeyboardInterrupt:
            # Most of a step's time passes in `backward`, before the weights change. Other processes may be at another
            # step.
            if self._whole and self.step > first and self.world.size == 1:
                self._save()
            raise
        if self.world.is_main and self.step == first:
            self.task.save_model(self.output)
        return self.step == self.config.steps

    def _loop(
        self, progress: Callable[[Progress], None] | None, evaluation: Evaluation | None, deadline: float
    ) -> None:
        config, first, steps = self.config, self.step, list[Step]()
        since = shown = saved = time.perf_counter()
        while self.step < config.steps:
            rate = self.learning_rate
            steps.append(self._train(rate))
            self.step += 1
            elapsed = time.perf_counter() - since
            logged = self.step % config.log_every == 0 or self.step == config.steps
            scores = self._evaluated(evaluation)
            now = time.perf_counter()
            if self.world.is_main and (logged or scores or self.step == first + 1 or now - shown >= SHOW_EVERY):
                shown, state = now, self._progress(steps, elapsed, rate, scores)
                if logged:
                    self._log_step(state, scores)
                if progress:
                    progress(state)
            self._whole = True  # weights, optimizer and log are those of this step
            if logged:
                give_back_memory()
                since, steps = now, []
            late = math.isfinite(deadline) and self.world.any(now > deadline, self.task.device)
            due = self.step % config.checkpoint_every == 0 or self.step == config.steps or now - saved >= SAVE_EVERY
            if self.world.is_main and (late or due):
                self._save()
                saved = time.perf_counter()
            if late:
                break

    def _train(self, rate: float) -> Step:
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        # Of the step, not of the run so far: a run that resumes drops the same units as an unbroken one.
        torch.manual_seed((self.world.rank << 40) + 1_000_003 * self.config.seed + self.step)
        step = self.task.backward(self.step)
        self._whole = False
        if step.loss is None:
            return step
        if not math.isfinite(step.loss):
            kept = f"the last checkpoint in {str(self.output)!r} is kept: " if checkpoints(self.output) else ""
            raise TrainingError(
                f"the loss is {step.loss} at step {self.step + 1}; {kept}train again into another folder with a lower "
                "learning_rate"
            )
        torch.nn.utils.clip_grad_norm_(self.parameters.values(), self.config.max_grad_norm)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return step

    @property
    def learning_rate(self) -> float:
        """That of the next step: it rises linearly, over at most half of the run, then falls to zero after the last."""
        config, step = self.config, self.step + 1
        warmup = min(config.warmup_steps, config.steps // 2)
        rising, falling = step / max(warmup, 1), (config.steps - step + 1) / (config.steps - warmup)
        return config.learning_rate * min(1.0, rising, falling)

    def _progress(self, steps: list[Step], seconds: float, rate: float, scores: Mapping[str, float]) -> Progress:
        losses = [step.loss for step in steps if step.loss is not None]
        names = dict.fromkeys(name for step in steps for name in step.measures)
        means = {
            name: float(np.mean([step.measures[name] for step in steps if name in step.measures])) for name in names
        }
        return Progress(
            step=self.step,
            steps=self.config.steps,
            loss=float(np.mean(losses)) if losses else 0.0,
            tokens_per_second=sum(step.tokens for step in steps) / seconds,
            learning_rate=rate,
            skipped=sum(step.skipped for step in steps),
            measures={**means, **scores},
        )

    def _log_step(self, state: Progress, scores: Mapping[str, float]) -> None:
        means = {name: round(value, 5) for name, value in state.measures.items() if name not in scores}
        self._log(
            step=state.step,
            loss=round(state.loss, 5),
            tokens_per_second=round(state.tokens_per_second, 1),
            learning_rate=state.learning_rate,
            skipped=state.skipped,
            **means,
        )

    def _log(self, **record: Any) -> None:
        with (self.output / LOG).open("a", encoding="utf-8") as log:
            log.write(json.dumps(record) + "\n")

    def _evaluated(self, evaluation: Evaluation | None) -> Mapping[str, float]:
        """The scores of the model, if they are due after this step; the best model is kept."""
        if evaluation is None or not self.world.is_main or self.step % evaluation.every:
            return {}
        part = self.output / f"{BEST}.part"
        shutil.rmtree(part, ignore_errors=True)
        self.task.save_model(part)
        scores = evaluation.measure(part)
        earlier = [record["score"] for record in self._logged() if "score" in record]
        self._log(step=self.step, **scores)
        if scores["score"] > max(earlier, default=-math.inf):
            publish_directory(part, self.output / BEST)
        shutil.rmtree(part, ignore_errors=True)
        return scores

    def _logged(self) -> list[dict[str, Any]]:
        """The records of the log, without a torn last line."""
        log = self.output / LOG
        lines = log.read_bytes().splitlines(keepends=True) if log.is_file() else []
        return [json.loads(line) for line in lines if line.endswith(b"\n")]

    def _save(self) -> None:
        """Write a checkpoint and its model, so that a stopped run can be loaded with its last checkpoint's weights."""
        self.save_checkpoint()
        self.task.save_model(self.output)

    def save_checkpoint(self) -> None:
        """Replace the checkpoint by this step's, whole or not at all."""
        folder = self.output / f"checkpoint-{self.step}"
        part = self.output / "checkpoint.part"
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        tensors = {f"parameter.{n}": p.detach().contiguous() for n, p in self.parameters.items()}
        for name, parameter in self.parameters.items():
            if state := self.optimizer.state.get(parameter):
                tensors.update({f"{key}.{name}": state[key].contiguous() for key in _MOMENTS})
        save_file(tensors, part / "state.safetensors")
        atomic_write_json(part / "state.json", {"step": self.step, **self._settings()})
        publish_directory(part, folder)
        for old in self.output.glob("checkpoint-*"):
            if old != folder:
                shutil.rmtree(old, ignore_errors=True)

    def _resume(self) -> None:
        steps = checkpoints(self.output)
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
                    moments = {key: tensors[f"{key}.{name}"] for key in _MOMENTS}
                    self.optimizer.state[parameter] = moments | {"step": moments["step"].cpu()}  # as AdamW keeps it

    def _settings(self) -> dict[str, Any]:
        """What must be the same for a run to resume, as JSON has it."""
        settings: dict[str, Any] = json.loads(json.dumps({"config": self.config.to_dict(), **self.task.settings()}))
        return settings

    def _check_settings(self, state: dict[str, Any]) -> None:
        """Refuse to resume with other settings than the checkpoint's. More steps than before extend the run."""
        groups = [(state.get(group, {}), mine) for group, mine in self._settings().items()]
        different = [
            (key, value, before[key])
            for before, mine in groups
            for key, value in mine.items()
            if key in before and before[key] != value and not _extends(key, value, before)
        ]
        if different:
            names = ", ".join(f"{key} is {value!r}" for key, value, _ in different)
            others = ", ".join(repr(before) for *_, before in different)
            raise InputError(
                f"{names}, but {str(self.output)!r} has a run with {others}; "
                "use the same settings to resume it, or another folder"
            )

    def _forget_log(self) -> None:
        """Drop what a stopped run logged after its last checkpoint, including a torn line."""
        kept = [json.dumps(record) + "\n" for record in self._logged() if record["step"] <= self.step]
        if (self.output / LOG).is_file():
            atomic_write_bytes(self.output / LOG, "".join(kept).encode())


def checkpoints(output: Path) -> list[int]:
    """The steps of the checkpoints in a run's folder."""
    return [int(step) for path in output.glob("checkpoint-*") if (step := path.name[11:]).isdecimal()]


def _extends(key: str, value: Any, before: Mapping[str, Any]) -> bool:
    """Whether a setting differs because the run is longer than before, as a reader's warm-up does."""
    if key == "warmup_steps":
        return "warmup_ratio" in before
    return key in ("steps", "epochs") and bool(value > before[key])


def give_back_memory() -> None:
    """Return free memory to the system: glibc keeps what tensors of changing sizes leave between them, which grows to
    gigabytes over some hundred steps on a CPU. Elsewhere nothing is done."""
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)
