"""The training loop of NPM and NPM-single: mask, encode, contrast, step, save.

Knows: optimisation, checkpoints, progress. Does not know: where text comes from (batches.py) or what a recipe's
numbers are (recipes.py).
"""

from __future__ import annotations

import json
import math
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from quoth.config import NPMConfig
from quoth.encoders.pretrained import SETTINGS_FILE
from quoth.encoders.tokenization import TextTokenizer
from quoth.encoders.transformer import attend_in_fp32
from quoth.errors import InputError, TrainingError
from quoth.storage import atomic_write_bytes, atomic_write_json, publish_directory, read_json
from quoth.training.adapter import save_adapter, with_adapter
from quoth.training.batches import BatchSampler, TokenizedDocuments
from quoth.training.collate import Batch, check_room, make_batch
from quoth.training.contrast import Contrast
from quoth.training.ranks import ALONE, Ranks
from quoth.training.settings import TrainConfig, rate_at

BEST = "best"
LOG = "log.jsonl"


@dataclass(frozen=True, slots=True)
class Progress:
    """What was done since the last report. `without_spans` counts passages in which nothing could be hidden."""

    step: int
    steps: int
    loss: float
    tokens_per_second: float
    learning_rate: float
    without_spans: int


class Trainer:
    """Trains an encoder in `output`, from its last checkpoint if there is one."""

    def __init__(
        self,
        model: Any,
        tokenizer: TextTokenizer,
        npm: NPMConfig,
        data: TokenizedDocuments,
        config: TrainConfig,
        output: Path,
        device: str = "cpu",
        ranks: Ranks = ALONE,
    ) -> None:
        self.tokenizer, self.npm, self.data, self.config, self.output = tokenizer, npm, data, config, output
        self.device, self.ranks = torch.device(device), ranks
        output.mkdir(parents=True, exist_ok=True)
        check_room(int(model.config.max_position_embeddings), tokenizer, config)
        if config.bf16 and self.device.type == "cpu":
            attend_in_fp32(model)
        self.model = with_adapter(model, config.lora_rank, config.seed, config.warm_start).to(self.device)
        self.contrast = Contrast(self.model, int(tokenizer.hf.pad_token_id or 0), npm, config, ranks)
        self.sampler = BatchSampler(data, config.batch_size // config.groups, config.seed, config.grouping)
        self.parameters = {n: p for n, p in self.model.named_parameters() if p.requires_grad}
        self.optimizer = torch.optim.AdamW(
            self.parameters.values(), lr=config.learning_rate, weight_decay=config.weight_decay
        )
        self.step = 0
        self._resume()
        if ranks.first:
            self._forget_log()

    def run(
        self,
        progress: Callable[[Progress], None] | None = None,
        evaluate: Callable[[Path], float] | None = None,
        seconds: float = math.inf,
    ) -> bool:
        """Train to the last step; a checkpoint every `checkpoint_every` steps, the model at the end.

        After `seconds` it stops with a checkpoint; returns whether the last step was done. `evaluate` takes a model's
        folder every `evaluate_every` steps and gives its score, which is logged; the best model is kept in `best`.
        Raises TrainingError when the loss is no number.
        """
        config = self.config
        since, tokens, without_spans, losses = time.perf_counter(), 0, 0, []
        deadline = since + seconds
        while self.step < config.steps:
            batches, rate = self._batches(), self.learning_rate
            if any(len(batch.positive_query) for batch in batches):
                losses.append(self._train_on(batches, rate))
            tokens += sum(batch.num_tokens for batch in batches)
            without_spans += sum(batch.without_spans for batch in batches)
            self.step += 1
            if self.step % config.log_every == 0 or self.step == config.steps:
                now = time.perf_counter()
                speed = tokens / (now - since)
                loss = float(np.mean(losses)) if losses else 0.0
                self._report(Progress(self.step, config.steps, loss, speed, rate, without_spans), progress)
                since, tokens, without_spans, losses = now, 0, 0, []
            if self.ranks.first and evaluate and config.evaluate_every and self.step % config.evaluate_every == 0:
                self._keep_best(evaluate)
            late = math.isfinite(seconds) and self.ranks.any(time.perf_counter() > deadline, self.device)
            if self.ranks.first and (late or self.step % config.checkpoint_every == 0):
                self.save_checkpoint()
            if late:
                break
        if self.ranks.first:
            self.save_model(self.output)
        return self.step == config.steps

    def _batches(self) -> list[Batch]:
        """The groups of the step to come."""
        config, rng = self.config, np.random.default_rng((self.config.seed, 1, self.step))
        numbers = range(self.step * config.groups, (self.step + 1) * config.groups)
        return [make_batch(self.data, self.sampler[number], self.tokenizer, config, rng) for number in numbers]

    def _train_on(self, batches: list[Batch], rate: float) -> float:
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        loss = sum(self.contrast.backward(batch, 1 / len(batches)) for batch in batches)
        self.contrast.sum_gradients()
        if not math.isfinite(loss):
            raise TrainingError(
                f"the loss is {loss} at step {self.step + 1}; the last checkpoint in {str(self.output)!r} is kept: "
                "train again into another folder with a lower learning_rate"
            )
        torch.nn.utils.clip_grad_norm_(self.parameters.values(), self.config.max_grad_norm)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss

    @property
    def learning_rate(self) -> float:
        """That of the step to come."""
        config = self.config
        return rate_at(self.step + 1, config.steps, config.learning_rate, config.warmup_steps)

    def _report(self, state: Progress, progress: Callable[[Progress], None] | None) -> None:
        if not self.ranks.first:
            return
        self._log(
            step=state.step,
            loss=round(state.loss, 5),
            tokens_per_second=round(state.tokens_per_second, 1),
            learning_rate=state.learning_rate,
            without_spans=state.without_spans,
        )
        if progress:
            progress(state)

    def _log(self, **record: Any) -> None:
        with (self.output / LOG).open("a", encoding="utf-8") as log:
            log.write(json.dumps(record) + "\n")

    def _keep_best(self, evaluate: Callable[[Path], float]) -> None:
        part = self.output / f"{BEST}.part"
        shutil.rmtree(part, ignore_errors=True)
        self.save_model(part)
        score = evaluate(part)
        earlier = [record["score"] for record in self._logged() if "score" in record]
        self._log(step=self.step, score=score)
        if score > max(earlier, default=-math.inf):
            publish_directory(part, self.output / BEST)
        shutil.rmtree(part, ignore_errors=True)

    def _logged(self) -> list[dict[str, Any]]:
        """The records of the log; a torn last line is none."""
        log = self.output / LOG
        lines = log.read_bytes().splitlines(keepends=True) if log.is_file() else []
        return [json.loads(line) for line in lines if line.endswith(b"\n")]

    def save_model(self, folder: Path) -> None:
        """Write the adapter in fp16 (or the whole model in fp32) with the settings that `from_pretrained` reads."""
        folder.mkdir(parents=True, exist_ok=True)
        if self.config.lora_rank:
            save_adapter(folder, self.parameters, self.model, self.npm.base)
            atomic_write_json(folder / SETTINGS_FILE, self.npm.to_dict())
        else:
            self._save_whole(folder)

    def _save_whole(self, folder: Path) -> None:
        """The file that makes the folder a model, config.json, comes last."""
        part = folder / "model.part"
        shutil.rmtree(part, ignore_errors=True)
        self.model.save_pretrained(part)
        self.tokenizer.hf.save_pretrained(part)
        atomic_write_json(part / SETTINGS_FILE, replace(self.npm, base="").to_dict())
        for file in sorted(part.iterdir(), key=lambda file: file.name == "config.json"):
            atomic_write_bytes(folder / file.name, file.read_bytes())
        shutil.rmtree(part)

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
        steps = [int(step) for path in self.output.glob("checkpoint-*") if (step := path.name[11:]).isdecimal()]
        if not steps:
            return
        folder = self.output / f"checkpoint-{max(steps)}"
        state = read_json(folder / "state.json")
        self._check_settings(state)
        tensors = load_file(folder / "state.safetensors", device=str(self.device))
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

    def _settings(self) -> dict[str, Any]:
        data = {"passages": self.data.num_passages, "tokens": len(self.data.ids)}
        return {"config": self.config.to_dict(), "model": self.npm.to_dict(), "data": data}

    def _check_settings(self, state: dict[str, Any]) -> None:
        for group, mine in self._settings().items():
            for key, value in mine.items():
                if (theirs := state.get(group, {}).get(key, value)) != value:
                    raise InputError(
                        f"{key} is {value!r}, but {str(self.output)!r} holds a run with {theirs!r}; "
                        "use the same settings to go on, or another folder"
                    )

    def _forget_log(self) -> None:
        """Drop what a broken-off run logged after its last checkpoint, a torn line included."""
        kept = [json.dumps(record) + "\n" for record in self._logged() if record["step"] <= self.step]
        if (self.output / LOG).is_file():
            atomic_write_bytes(self.output / LOG, "".join(kept).encode())
