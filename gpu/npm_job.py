"""Train an NPM on packed tokens for a given time: first with masked keys, then with clean ones, at one learning rate
that rises and then falls to 0 with the time.

    python gpu/pack.py runs/gpu --base runs/bases/mpnet
    python gpu/pack.py runs/gpu TEXT.jsonl.xz … --exclude heldout_pages.jsonl --tokens
    python gpu/npm_job.py runs/gpu --start adapters/npm-base --out "$OUT" --seconds 1400

Batches are made by other processes, ahead of the GPU. What comes back, every `--save` seconds and at the end: the
adapter in half precision in files of at most 15 MB (`--unpack` makes them one), and a log.
"""

from __future__ import annotations

import argparse
import io
import json
import lzma
import math
import queue
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import numpy as np
import torch
from reader_job import WARMUP, joined, save, stored_in
from safetensors.torch import save_file
from torch import Tensor
from torch.nn.functional import pad as widened
from torch.utils.data import DataLoader, Dataset

from quoth.encoders.transformer import load_base, pad
from quoth.hub import EncoderSource
from quoth.npm.batches import ARRAYS, TokenizedDocuments
from quoth.npm.collate import Batch
from quoth.npm.config import NPMConfig, TrainConfig
from quoth.npm.grad_cache import Contrast
from quoth.npm.task import NPMTask
from quoth.text.tokenizer import TextTokenizer
from quoth.training.distributed import SINGLE_PROCESS
from quoth.training.recipes import RECIPES

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SIDE = 8
"""Inputs are padded to a multiple of this many tokens: odd sizes are slow on a GPU."""
PARTS = 4
"""Inputs of similar length are encoded together, in so many parts."""


class Sorted(Contrast):
    """Encodes inputs of similar length together, so that less is padded."""

    def _states(self, batch: Batch, part: slice) -> Tensor:
        inputs = batch.inputs[part]
        order = np.argsort([len(ids) for ids in inputs], kind="stable")
        longest = -(-len(inputs[order[-1]]) // SIDE) * SIDE
        states = []
        for some in np.array_split(order, PARTS):
            ids_BT, seen_BT = pad([inputs[number] for number in some], self._pad_id)
            more = -ids_BT.shape[1] % SIDE
            ids_BT, seen_BT = widened(ids_BT, (0, more), value=self._pad_id), widened(seen_BT, (0, more))
            with self._precision():
                output = self._model(input_ids=ids_BT.to(self._device), attention_mask=seen_BT.to(self._device))
            states_BTD = output.last_hidden_state
            states.append(widened(states_BTD, (0, 0, 0, longest - states_BTD.shape[1])))
        return torch.cat(states)[torch.from_numpy(np.argsort(order)).to(self._device)].float()


class Made(Dataset[list[Batch]]):
    """The batches of each step."""

    def __init__(self, task: NPMTask, config: TrainConfig) -> None:
        self._task, self._config = task, config

    def __getitem__(self, step: int) -> list[Batch]:
        self._task.config = self._config  # in a process of its own
        return self._task.batches(step)


def unpacked(file: Path) -> TokenizedDocuments:
    with lzma.open(file) as packed:
        stored = np.load(io.BytesIO(packed.read()))
    whole = {name: stored[name].astype(kind) for name, kind in ARRAYS.items() if name in stored}
    for name in ("offsets", "title_offsets"):
        whole[name] = np.cumsum([0, *stored[name]], dtype=np.int64)
    return TokenizedDocuments(**whole)


def packed(data: TokenizedDocuments, file: Path, documents: int) -> None:
    """The first documents, small."""
    passages = int(np.searchsorted(data.document, documents))
    tokens, title_tokens = int(data.offsets[passages]), int(data.title_offsets[passages])
    stored = {
        "ids": data.ids[:tokens].astype(np.uint16),
        "flags": data.flags[:tokens],
        "offsets": np.diff(data.offsets[: passages + 1]).astype(np.uint8),
        "titles": data.titles[:title_tokens].astype(np.uint16),
        "title_offsets": np.diff(data.title_offsets[: passages + 1]).astype(np.uint8),
        "document": data.document[:passages],
        "chain": data.chain,
    }
    with lzma.open(file, "wb", preset=4) as out:
        np.savez(out, **stored)


def ahead(task: NPMTask, config: TrainConfig, workers: int) -> Iterator[list[Batch]]:
    steps: Any = count()
    made = DataLoader(
        Made(task, config),
        batch_size=None,
        sampler=steps,
        num_workers=workers,
        collate_fn=lambda batches: batches,
        prefetch_factor=4 if workers else None,
    )
    ready: queue.Queue[list[Batch]] = queue.Queue(3)

    def fill() -> None:
        for batches in made:
            ready.put(batches)

    threading.Thread(target=fill, daemon=True).start()
    while True:
        yield ready.get()


def adapter(model: Any) -> dict[str, torch.Tensor]:
    from peft import get_peft_model_state_dict

    weights: dict[str, torch.Tensor] = get_peft_model_state_dict(model, save_embedding_layers=False)
    return weights


def train(options: argparse.Namespace) -> dict[str, Any]:
    """Until the time is over. Returns what was done."""
    entered = time.perf_counter()
    data = unpacked(options.input / "tokens.npz.xz")
    folder = joined(options.input / "base", options.work / "base")
    encoder, hf = load_base(EncoderSource(str(folder)))
    recipe = RECIPES["npm-mini-gpu"].config
    assert isinstance(recipe, TrainConfig)
    masked = replace(
        recipe,
        batch_size=options.batch,
        mini_batch_size=0,
        lora_rank=options.rank,
        max_repeats=10,
        similarity_chunk_size=2048,
        bf16=False,
        warm_start=str(options.start or ""),
        seed=options.seed,
    )
    clean = replace(masked, contrast_with="clean", batch_size=options.batch // 2, seed=options.seed + 1)
    npm = NPMConfig(similarity_scale=20.0, normalize=True)
    task = NPMTask(encoder, TextTokenizer(hf, num_masks=2, max_tokens=npm.max_tokens), npm, data, masked)
    sources = [ahead(task, config, options.workers) for config in (masked, clean)]
    for source in sources:
        next(source)  # all processes are there before the GPU is in use
    print("batches are made", flush=True)
    model = task.model.to(DEVICE)
    if options.compile:
        torch._dynamo.config.suppress_errors = True  # rather slow than not at all
        model.compile(dynamic=True)
    torch.set_float32_matmul_precision("high")
    masked, clean = (replace(config, bf16=DEVICE == "cuda") for config in (masked, clean))
    contrasts = [Sorted(model, int(hf.pad_token_id), npm, config, SINGLE_PROCESS) for config in (masked, clean)]
    optimizer = torch.optim.AdamW(
        task.parameters.values(), lr=options.rate, weight_decay=masked.weight_decay, fused=DEVICE == "cuda"
    )
    contrasts[0].backward(next(sources[0])[0])  # what is compiled is not counted
    optimizer.zero_grad()
    began = shown = saved = time.perf_counter()
    seconds = options.seconds - (began - entered)
    print(f"after {began - entered:.0f} s, training for {seconds:.0f} s", flush=True)
    steps, tokens, waited = 0, 0, 0.0
    losses: list[float] = []
    options.work.mkdir(parents=True, exist_ok=True)
    log = (options.out / "log.jsonl").open("a", encoding="utf-8")
    while (done := (time.perf_counter() - began) / seconds) < 1 and steps != options.steps:
        phase = int(done >= options.masked)
        for group in optimizer.param_groups:
            group["lr"] = options.rate * min(1.0, max(done, 1e-3) / WARMUP, (1 - done) / (1 - WARMUP))
        waited -= time.perf_counter()
        batches = next(sources[phase])
        waited += time.perf_counter()
        for batch in batches:
            losses.append(contrasts[phase].backward(batch))
            tokens += batch.num_tokens
        torch.nn.utils.clip_grad_norm_(task.parameters.values(), masked.max_grad_norm)
        optimizer.step()
        optimizer.zero_grad()
        steps, now = steps + 1, time.perf_counter()
        if not math.isfinite(losses[-1]):
            raise SystemExit(f"the loss is {losses[-1]} at step {steps}; train with a lower --rate")
        if now - shown > options.show or steps in (1, 2, 3):
            state = {
                "step": steps,
                "phase": ("masked", "clean")[phase],
                "loss": round(float(np.mean(losses)), 4),
                "tokens": tokens,
                "seconds": round(now - began, 1),
                "waited": round(waited, 1),
                "rate": optimizer.param_groups[0]["lr"],
            }
            print(json.dumps(state), file=log, flush=True)
            print(json.dumps(state), flush=True)
            shown, losses = now, []
        if now - saved > options.save:
            save(adapter(model), options.out)
            saved = now
    save(adapter(model), options.out)
    facts: dict[str, Any] = {"steps": steps, "tokens": tokens, "seconds": round(time.perf_counter() - began, 1)}
    if DEVICE == "cuda":
        facts |= {"device": torch.cuda.get_device_name(), "peak_gib": torch.cuda.max_memory_allocated() / 2**30}
    return facts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("input", type=Path, help="folder made by gpu/pack.py; with --unpack what came back")
    parser.add_argument("--start", type=Path, help="folder with an adapter to start from")
    parser.add_argument("--work", type=Path, default=Path("runs/gpu-work"))
    parser.add_argument("--out", type=Path, required=True, help="what is brought back")
    parser.add_argument("--seconds", type=float, default=1400.0)
    parser.add_argument("--masked", type=float, default=0.4, help="share of the time with masked keys")
    parser.add_argument("--steps", type=int, help="at most; the default is as many as the time allows")
    parser.add_argument("--rate", type=float, default=5e-4)
    parser.add_argument("--batch", type=int, default=512, help="passages in a step with masked keys; half with clean")
    parser.add_argument("--rank", type=int, default=64)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--workers", type=int, default=6, help="processes that make batches, for each kind of keys")
    parser.add_argument("--show", type=float, default=15.0, help="seconds between lines of the log")
    parser.add_argument("--save", type=float, default=120.0, help="seconds between adapters")
    parser.add_argument("--seed", type=int, default=21)
    parser.add_argument("--unpack", action="store_true", help="make the files that came back one adapter_model.safetensors")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.unpack:
        save_file(stored_in(options.input.glob("weights-*")), options.out / "adapter_model.safetensors")
        return
    facts = train(options)
    (options.out / "facts.json").write_text(json.dumps(facts, indent=1), encoding="utf-8")
    print(json.dumps(facts), flush=True)


if __name__ == "__main__":
    main()
