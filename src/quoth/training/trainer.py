"""The training loop of NPM and NPM-single: mask, encode, contrast, step, save.

Knows: optimisation, checkpoints, progress. Does not know: where text comes from (batches.py) or what a recipe's
numbers are (recipes.py).

Shape suffixes: B encoder inputs, T tokens, N body tokens of the batch laid end to end, K of them that are keys,
M hidden spans, D dimensions.
"""

from __future__ import annotations

import contextlib
import json
import math
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save, save_file
from torch import Tensor

from quoth.config import Config, NPMConfig
from quoth.encoders.pretrained import SETTINGS_FILE
from quoth.encoders.tokenization import MAX_TITLE_TOKENS, TextTokenizer
from quoth.encoders.transformer import pad
from quoth.errors import InputError
from quoth.storage import atomic_write_bytes, atomic_write_json, publish_directory, read_json
from quoth.training.adapter import adapter_settings, saved_name, with_adapter
from quoth.training.batches import BatchSampler, TokenizedDocuments
from quoth.training.losses import contrastive_loss, phrase_contrastive_loss
from quoth.training.masking import MaskingOptions, mask_spans, mask_tokens

_LEAST = {
    "steps": 1,
    "batch_size": 2,
    "warmup_steps": 0,
    "lora_rank": 0,
    "max_body_tokens": 1,
    "max_repeats": 1,
    "chunk": 0,
    "seed": 0,
    "checkpoint_every": 1,
    "log_every": 1,
    "num_documents": 0,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainConfig(Config):
    """How to train; `lora_rank` 0 stands for full fine-tuning. `warm_start` names a folder with an adapter.

    `keys`: queries are contrasted with the tokens of the passages as they are ("clean", as the paper does), or with
    those that the masked passages still show ("masked"), which encodes each passage once instead of twice.
    `budget` is the share of a passage's tokens to hide, `max_repeats` how often in a batch one n-gram may be hidden.
    """

    steps: int = 600
    batch_size: int = 16
    learning_rate: float = 1e-3
    weight_decay: float = 0.01
    warmup_steps: int = 50
    lora_rank: int = 64
    masking: Literal["spans", "tokens"] = "spans"
    budget: float = 0.15
    max_repeats: int = 10
    keys: Literal["clean", "masked"] = "clean"
    max_body_tokens: int = 192
    chunk: int = 0
    bf16: bool = False
    max_grad_norm: float = 1.0
    seed: int = 0
    checkpoint_every: int = 100
    log_every: int = 10
    num_documents: int = 0
    warm_start: str = ""
    exclude: str = ""

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            if getattr(self, name) < least:
                raise InputError(f"{name} is {getattr(self, name)}; allowed is {least} or more")
        for name in ("learning_rate", "weight_decay", "max_grad_norm"):
            if not 0 <= getattr(self, name) < math.inf:
                raise InputError(f"{name} is {getattr(self, name)}; allowed is a finite number, 0 or more")
        if not 0 < self.budget <= 0.5:
            raise InputError(f"budget is {self.budget}; allowed is a share above 0, up to 0.5")
        for name, allowed in (("masking", ("spans", "tokens")), ("keys", ("clean", "masked"))):
            if (value := getattr(self, name)) not in allowed:
                raise InputError(f"{name} {value!r}; allowed are {', '.join(allowed)}")


@dataclass(frozen=True, slots=True)
class Batch:
    """One step's encoder inputs, and where in them to look.

    `keys_K2`, `masks_M2`: input and position of each key, and of each hidden span's first mask; `sequence_K`,
    `sequence_M`: their passages. Positives are pairs of a span and the keys where it starts and ends elsewhere.
    """

    inputs: list[NDArray[np.int64]]
    num_tokens: int
    keys_K2: NDArray[np.int64]
    sequence_K: NDArray[np.int64]
    masks_M2: NDArray[np.int64]
    sequence_M: NDArray[np.int64]
    positive_query: NDArray[np.int64]
    positive_start: NDArray[np.int64]
    positive_end: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Progress:
    step: int
    steps: int
    loss: float
    tokens_per_second: float
    learning_rate: float


def make_batch(
    data: TokenizedDocuments,
    passages: list[int],
    tokenizer: TextTokenizer,
    config: TrainConfig,
    rng: np.random.Generator,
) -> Batch:
    """Mask the given passages and lay out what the encoder reads."""
    bodies = [data.ids[data.offsets[p] : data.offsets[p + 1]] for p in passages]
    titles = [data.titles[data.title_offsets[d] : data.title_offsets[d + 1]] for d in data.document[passages]]
    flags_N = np.concatenate([data.flags[data.offsets[p] : data.offsets[p + 1]] for p in passages])
    sequence_N = np.repeat(np.arange(len(bodies)), [len(body) for body in bodies])
    masker = mask_spans if config.masking == "spans" else mask_tokens
    options = MaskingOptions(budget=config.budget, max_repeats=config.max_repeats)
    spans = masker(np.concatenate(bodies).astype(np.int64), sequence_N, flags_N, rng, options)

    clean, masked = [], []
    clean_at, masked_at = [], []
    first_row = 0
    for b, (title, body) in enumerate(zip(titles, bodies, strict=True)):
        mine = sequence_N[spans.start_M] == b
        ids, at_T = hide(body, spans.start_M[mine] - first_row, spans.length_M[mine], tokenizer)
        head = len(tokenizer.before) + len(title)
        clean.append(tokenizer.framed(title, body))
        masked.append(tokenizer.framed(title, ids))
        clean_at.append(head + np.arange(len(body)))
        masked_at.append(head + at_T)
        first_row += len(body)

    twice = config.keys == "clean"
    masked_N2 = np.stack([sequence_N + len(bodies) * twice, np.concatenate(masked_at)], axis=1)
    keys_N2 = np.stack([sequence_N, np.concatenate(clean_at)], axis=1) if twice else masked_N2
    shown_N = np.ones(len(sequence_N), np.bool_)
    if not twice:
        shown_N[[row for s, n in zip(spans.start_M, spans.length_M, strict=True) for row in range(s, s + n)]] = False
    key_of_N = np.cumsum(shown_N) - 1
    start = spans.positive_start
    end = start + spans.length_M[spans.positive_query] - 1
    both = shown_N[start] & shown_N[end]
    return Batch(
        inputs=clean + masked if twice else masked,
        num_tokens=len(sequence_N),
        keys_K2=keys_N2[shown_N],
        sequence_K=sequence_N[shown_N],
        masks_M2=masked_N2[spans.start_M],
        sequence_M=sequence_N[spans.start_M],
        positive_query=spans.positive_query[both],
        positive_start=key_of_N[start[both]],
        positive_end=key_of_N[end[both]],
    )


def hide(
    body: NDArray[np.int32], start_M: NDArray[np.int64], length_M: NDArray[np.int64], tokenizer: TextTokenizer
) -> tuple[list[int], NDArray[np.int64]]:
    """Replace each span by the model's masks: the new ids, and where each token went (a hidden one: its first mask)."""
    ids: list[int] = []
    at_T = np.empty(len(body), np.int64)
    done = 0
    for start, length in [*zip(start_M.tolist(), length_M.tolist(), strict=True), (len(body), 0)]:
        at_T[done:start] = len(ids) + np.arange(start - done)
        ids.extend(body[done:start].tolist())
        if length:
            at_T[start : start + length] = len(ids)
            ids.extend([tokenizer.mask_id] * tokenizer.num_masks)
        done = start + length
    return ids, at_T


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
    ) -> None:
        self.tokenizer, self.npm, self.data, self.config, self.output = tokenizer, npm, data, config, output
        self.device = torch.device(device)
        output.mkdir(parents=True, exist_ok=True)
        _check_room(int(model.config.max_position_embeddings), tokenizer, config)
        self.model = with_adapter(model, config.lora_rank, config.seed, config.warm_start).to(self.device)
        self.sampler = BatchSampler(np.asarray(data.document), config.batch_size, config.seed)
        self.parameters = {n: p for n, p in self.model.named_parameters() if p.requires_grad}
        self.optimizer = torch.optim.AdamW(
            self.parameters.values(), lr=config.learning_rate, weight_decay=config.weight_decay
        )
        self.step = 0
        self._resume()
        self._forget_log()

    def run(self, progress: Callable[[Progress], None] | None = None) -> None:
        """Train to the last step; a checkpoint every `checkpoint_every` steps, the model at the end."""
        config = self.config
        seconds, tokens, losses = time.perf_counter(), 0, []
        while self.step < config.steps:
            batch = make_batch(
                self.data,
                self.sampler[self.step],
                self.tokenizer,
                config,
                np.random.default_rng((config.seed, 1, self.step)),
            )
            losses.append(self._train_on(batch))
            tokens += batch.num_tokens
            self.step += 1
            if self.step % config.log_every == 0 or self.step == config.steps:
                now = time.perf_counter()
                self._log(float(np.mean(losses)), tokens / (now - seconds), progress)
                seconds, tokens, losses = now, 0, []
            if self.step % config.checkpoint_every == 0:
                self.save_checkpoint()
        self.save_model(self.output)

    def loss(self, batch: Batch) -> Tensor:
        """The contrastive loss of a batch; zero when nothing could be hidden."""
        ids_BT, attention_BT = pad(batch.inputs, int(self.tokenizer.hf.pad_token_id or 0))
        precision = torch.autocast(self.device.type, torch.bfloat16) if self.config.bf16 else contextlib.nullcontext()
        with precision:
            output = self.model(input_ids=ids_BT.to(self.device), attention_mask=attention_BT.to(self.device))
        hidden_BTD = output.last_hidden_state.float()
        keys, masks, sequence_K, sequence_M, query, start, end = (
            torch.from_numpy(x).to(self.device)
            for x in (
                batch.keys_K2.T,
                batch.masks_M2.T,
                batch.sequence_K,
                batch.sequence_M,
                batch.positive_query,
                batch.positive_start,
                batch.positive_end,
            )
        )
        c_KD = hidden_BTD[keys[0], keys[1]]
        q_start_MD, q_end_MD = (hidden_BTD[masks[0], masks[1] + i] for i in (0, self.npm.num_masks - 1))
        if self.npm.normalize:
            c_KD, q_start_MD, q_end_MD = (
                torch.nn.functional.normalize(x, dim=-1) for x in (c_KD, q_start_MD, q_end_MD)
            )
        scale = self.npm.similarity_scale or c_KD.shape[1] ** -0.5
        chunk = self.config.chunk or None
        if self.npm.num_masks == 1:
            return contrastive_loss(q_start_MD, c_KD, sequence_M, sequence_K, query, start, scale=scale, chunk=chunk)
        return phrase_contrastive_loss(
            q_start_MD, q_end_MD, c_KD, sequence_M, sequence_K, query, start, end, scale=scale, chunk=chunk
        )

    def _train_on(self, batch: Batch) -> float:
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate
        loss = self.loss(batch)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.parameters.values(), self.config.max_grad_norm)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.item()

    @property
    def learning_rate(self) -> float:
        """Linear warm-up, then linear decay to zero at the last step."""
        config, step = self.config, self.step + 1
        rising = step / max(config.warmup_steps, 1)
        falling = (config.steps - step + 1) / max(config.steps - config.warmup_steps, 1)
        return config.learning_rate * min(1.0, rising, falling)

    def _log(self, loss: float, speed: float, progress: Callable[[Progress], None] | None) -> None:
        state = Progress(self.step, self.config.steps, loss, speed, self.learning_rate)
        record = {
            "step": state.step,
            "loss": round(loss, 5),
            "tokens_per_second": round(speed, 1),
            "learning_rate": state.learning_rate,
        }
        with (self.output / "log.jsonl").open("a", encoding="utf-8") as log:
            log.write(json.dumps(record) + "\n")
        if progress:
            progress(state)

    def save_model(self, folder: Path) -> None:
        """Write the adapter in fp16 (or the whole model in fp32) with the settings that `from_pretrained` reads."""
        folder.mkdir(parents=True, exist_ok=True)
        if self.config.lora_rank:
            weights = {saved_name(n): p.detach().half().cpu() for n, p in self.parameters.items()}
            atomic_write_bytes(folder / "adapter_model.safetensors", save(weights))
            atomic_write_json(folder / "adapter_config.json", adapter_settings(self.model, self.npm.base))
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
        return {"config": self.config.to_dict(), "model": self.npm.to_dict()}

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
        log = self.output / "log.jsonl"
        lines = log.read_bytes().splitlines(keepends=True) if log.is_file() else []
        kept = [line for line in lines if line.endswith(b"\n") and json.loads(line)["step"] <= self.step]
        if kept != lines:
            atomic_write_bytes(log, b"".join(kept))


def _check_room(positions: int, tokenizer: TextTokenizer, config: TrainConfig) -> None:
    """A hidden token becomes `num_masks` masks, so a masked body can be longer than the body."""
    framing = len(tokenizer.before) + len(tokenizer.after) + MAX_TITLE_TOKENS + 2
    longest = int(config.max_body_tokens * (1 + MaskingOptions().budget * (tokenizer.num_masks - 1)))
    if framing + longest > positions:
        room = int((positions - framing) / (1 + MaskingOptions().budget))
        raise InputError(f"max_body_tokens is {config.max_body_tokens}; this encoder takes at most {room}")
