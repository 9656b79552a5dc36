"""What training NPM, NPM-single and their parametric twin is: mask, encode, contrast or predict; and what is saved.

Knows: how data, masking and loss become a step's gradient. Does not know: the loop, or where text comes from.
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch

from quoth.errors import InputError
from quoth.hub import SETTINGS_FILE
from quoth.npm.batches import BatchSampler, TokenizedDocuments
from quoth.npm.collate import Batch, check_room, make_batch
from quoth.npm.config import NPMConfig, TrainConfig
from quoth.npm.grad_cache import Contrast
from quoth.storage import atomic_write_bytes, atomic_write_json
from quoth.text.tokenizer import TextTokenizer
from quoth.training.adapter import merged_weights, save_adapter, trainable
from quoth.training.distributed import SINGLE_PROCESS, World
from quoth.training.trainer import Step


class NPMTask:
    """Trains an encoder as a nonparametric masked LM; a transformers masked LM also by its own loss, or only by it.

    Raises InputError if passages are longer than it takes.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: TextTokenizer,
        npm: NPMConfig,
        data: TokenizedDocuments,
        config: TrainConfig,
        device: str = "cpu",
        world: World = SINGLE_PROCESS,
    ) -> None:
        self.tokenizer, self.npm, self.data, self.config = tokenizer, npm, data, config
        self.device = torch.device(device)
        check_room(int(model.config.max_position_embeddings), tokenizer, config)
        self.masked_lm = model.to(self.device) if config.mlm_weight else None
        head, encoder = (_head(model), model.base_model) if config.mlm_weight else (None, model)
        self.model, self.parameters = trainable(encoder, config, self.device, config.warm_start)
        if config.compile:
            _compile(self.model, self.device)
        self.sampler = BatchSampler(data, config.masked_together, config.seed, config.grouping)
        self.contrast = self.make_contrast(int(tokenizer.hf.pad_token_id or 0), world, head)
        if head is not None:  # its word embeddings are the encoder's
            own = set(self.model.parameters())
            learned = {f"head.{n}": p for n, p in head.named_parameters() if p not in own}
            self.parameters = {**self.parameters, **learned}

    def make_contrast(self, pad_id: int, world: World, head: Any) -> Contrast:
        """The loss of a batch, and its gradient."""
        return Contrast(self.model, pad_id, self.npm, self.config, world, head)

    def backward(self, step: int) -> Step:
        """Mask, encode and contrast the step's groups, or predict what is hidden."""
        batches = self.batches(step)
        loss = None
        if any(len(batch.hidden_X if self.config.mlm_weight else batch.positive_query) for batch in batches):
            loss = sum(self.contrast.backward(batch, 1 / len(batches)) for batch in batches)
            self.contrast.sum_gradients()
        return Step(loss, sum(batch.num_tokens for batch in batches), sum(batch.without_spans for batch in batches))

    def batches(self, step: int) -> list[Batch]:
        """The groups of a step, always the same."""
        config, rng = self.config, np.random.default_rng((self.config.seed, 1, step))
        size = min(config.batch_size // config.groups // config.masked_together, len(self.sampler))
        first, last = (number * config.groups * size for number in (step, step + 1))
        groups = (chain(*(self.sampler[n] for n in range(at, at + size))) for at in range(first, last, size))
        return [make_batch(self.data, [*group], self.tokenizer, config, rng) for group in groups]

    def save_model(self, folder: Path) -> None:
        """Write the adapter in fp16 (or the whole model in fp32) with the settings that `from_pretrained` reads; the
        parametric twin as transformers saves a masked LM."""
        folder.mkdir(parents=True, exist_ok=True)
        if self.config.contrast_with == "nothing":
            self._save_whole(folder, self.masked_lm)
        elif self.config.lora_rank:
            save_adapter(folder, self.model, self.npm.base)
            atomic_write_json(folder / SETTINGS_FILE, self.npm.to_dict())
        else:
            self._save_whole(folder, self.model)

    def _save_whole(self, folder: Path, model: Any) -> None:
        """The file that makes the folder a model, config.json, comes last."""
        part = folder / "model.part"
        shutil.rmtree(part, ignore_errors=True)
        model.save_pretrained(part, state_dict=merged_weights(model))
        self.tokenizer.hf.save_pretrained(part)
        if model is self.model:
            atomic_write_json(part / SETTINGS_FILE, replace(self.npm, base="").to_dict())
        for file in sorted(part.iterdir(), key=lambda file: file.name == "config.json"):
            atomic_write_bytes(folder / file.name, file.read_bytes())
        shutil.rmtree(part)

    def settings(self) -> dict[str, Any]:
        data = {"passages": self.data.num_passages, "tokens": len(self.data.ids)}
        return {"model": self.npm.to_dict(), "data": data}


def _head(masked_lm: Any) -> Any:
    """The head of a transformers masked LM. Raises InputError if it is not one module, as in BERT and RoBERTa."""
    heads = [part for name, part in masked_lm.named_children() if name != masked_lm.base_model_prefix]
    if len(heads) != 1:
        raise InputError(f"mlm_weight requires a BERT or RoBERTa, not a {type(masked_lm).__name__}; leave it out")
    return heads[0]


def _compile(model: torch.nn.Module, device: torch.device) -> None:
    """Let PyTorch compile the model when it is first called. Raises InputError if there is no compiler."""
    compiler = os.environ.get("CXX", "clang++" if sys.platform == "darwin" else "g++")
    if device.type == "cpu" and not shutil.which(compiler):
        raise InputError(f"compile needs a C++ compiler, and {compiler} is not here; install it, or set compile=false")
    model.compile(dynamic=True)
