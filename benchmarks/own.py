"""Parts written here that a library has too, each against that library: what justifies them.

The encoder's forward, loading it, its tokenizer and its adapter against transformers and PEFT, both loads in fresh
processes, as one command pays for them; the training loop against the bare steps. Where both compute the same, that is
checked.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.measure import Result, alone, best_seconds, seconds
from quoth.encoders.transformer import apply_adapter, load_base, load_encoder
from quoth.hub import ModelSource, locate
from quoth.npm.config import NPMConfig
from quoth.text.tokenizer import FastTokenizer

REPEATS = 3
STEPS = 10


def run() -> Iterator[Result]:
    """Every benchmark of a part that a library has too."""
    yield fresh("quoth-mini: load the encoder and its tokenizer", load_own, load_library, "transformers' Auto classes")
    yield fresh("quoth-mini: load its tokenizer", tokenizer_own, tokenizer_library, "transformers' AutoTokenizer")
    yield fresh("quoth-mini-single: merge its adapter", merge_own, merge_library, "PEFT's merge_and_unload")
    yield from forward()
    yield loop()


def fresh(what: str, ours: Any, peer: Any, name: str) -> Result:
    """The time of a part in processes of its own, those of ours and of the peer in turn."""
    pairs = [(alone(ours, threads=1), alone(peer, threads=1)) for _ in range(REPEATS)]
    own, theirs = (min(times) for times in zip(*pairs, strict=True))
    return Result(f"{what}, fresh process", f"{own:.3f} s", f"{theirs:.3f} s ({name})", theirs / own)


def _source(name: str = "quoth-mini") -> ModelSource[NPMConfig]:
    return locate(name, NPMConfig)


def load_own() -> float:
    """Seconds of the encoder without its adapter, and the tokenizer."""
    source = _source().encoder
    return seconds(lambda: load_encoder(source))


def load_library() -> float:
    """The same by transformers, with its import."""
    source = _source().encoder
    return seconds(lambda: load_base(source))


def tokenizer_own() -> float:
    """Seconds of the tokenizer."""
    folder = Path(_source().base)
    return seconds(lambda: FastTokenizer(folder))


def tokenizer_library() -> float:
    """The same by transformers, with its import."""
    folder = _source().base

    def load() -> None:
        from transformers import AutoTokenizer

        AutoTokenizer.from_pretrained(folder)

    return seconds(load)


def merge_own() -> float:
    """Seconds of adding an adapter that PEFT reads too to the weights."""
    source = _source("quoth-mini-single")
    model, _ = load_encoder(source.encoder)
    assert source.adapter is not None
    adapter = source.adapter
    return seconds(lambda: apply_adapter(model, adapter))


def merge_library() -> float:
    """The same by PEFT, with its import but not that of transformers; checks that the weights are the same."""
    source = _source("quoth-mini-single")
    model, _ = load_base(source.encoder)
    own, _ = load_encoder(source.encoder)
    assert source.adapter is not None
    apply_adapter(own, source.adapter)
    began = time.perf_counter()
    from peft import PeftModel

    with warnings.catch_warnings(action="ignore", category=FutureWarning):
        merged = PeftModel.from_pretrained(model, source.adapter).merge_and_unload()
    took = time.perf_counter() - began
    for name, weight in own.state_dict().items():
        torch.testing.assert_close(merged.state_dict()[name], weight, atol=1e-5, rtol=1e-4)
    return took


def forward() -> Iterator[Result]:
    """The encoder's forward pass over a batch of passages, and over one query."""
    source = _source().encoder
    (own, _), (library, _) = load_encoder(source), load_base(source)
    library.eval()
    for what, texts, tokens in (("32 texts of 128 tokens", 32, 128), ("one text of 16 tokens", 1, 16)):
        ids_BT = torch.from_numpy(np.random.default_rng(0).integers(1000, 20000, (texts, tokens)))
        given = {"input_ids": ids_BT, "attention_mask": torch.ones_like(ids_BT)}
        ours, theirs = [], []
        with torch.inference_mode():
            torch.testing.assert_close(
                own(**given).last_hidden_state, library(**given).last_hidden_state, atol=1e-4, rtol=1e-3
            )
            for _ in range(REPEATS):
                ours.append(best_seconds(lambda given=given: own(**given)))
                theirs.append(best_seconds(lambda given=given: library(**given)))
        yield Result(
            f"BERT forward, {what}",
            f"{1e3 * min(ours):.2f} ms",
            f"{1e3 * min(theirs):.2f} ms (transformers' BertModel)",
            min(theirs) / min(ours),
        )


def loop() -> Result:
    """The trainer, with its log, checkpoint and saved model, against a loop of the same steps alone."""
    from benchmarks.training import mini_task
    from quoth.training.trainer import Trainer

    ours, theirs = [], []
    for _ in range(2):
        trained, bare = (mini_task(steps=STEPS, batch_size=16) for _ in range(2))
        with tempfile.TemporaryDirectory() as folder:
            ours.append(seconds(Trainer(trained, trained.config, Path(folder)).run))
        theirs.append(seconds(lambda bare=bare: plain_loop(bare, bare.config)))
    return Result(
        f"training loop, {STEPS} steps of npm-mini-cpu in batches of 16, with log and checkpoint",
        f"{min(ours):.2f} s",
        f"{min(theirs):.2f} s (a plain PyTorch loop, without)",
        min(theirs) / min(ours),
    )


def plain_loop(task: Any, config: Any) -> None:
    """As PyTorch's tutorials write it."""
    parameters = list(task.parameters.values())
    optimizer = torch.optim.AdamW(parameters, lr=config.learning_rate, weight_decay=config.weight_decay)
    for step in range(config.steps):
        task.backward(step)
        torch.nn.utils.clip_grad_norm_(parameters, config.max_grad_norm)
        optimizer.step()
        optimizer.zero_grad()
