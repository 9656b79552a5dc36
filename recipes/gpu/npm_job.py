"""Train an NPM on packed tokens for a given time: first with masked keys, then with clean ones, at a learning rate that
rises, and falls to 0 with the time.

    python recipes/gpu/npm_job.py runs/gpu --out "$OUT" --seconds 1400 --compile
    python recipes/gpu/npm_job.py runs/gpu --out "$OUT" --teacher quoth-base --teacher-base FOLDER --groups 8 --masked 0
    python recipes/gpu/npm_job.py OUT --unpack --out after

The first folder is made by pack.py with --tokens. Other processes make batches ahead of the GPU. What comes back, every
`--save` seconds and at the end: the adapter and its settings, the weights in files of at most 15 MB (`--unpack` makes
a model's folder of them), and a log.
"""

from __future__ import annotations

import argparse
import io
import itertools
import json
import lzma
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "src"))
sys.path.insert(1, str(Path(__file__).parents[1]))

import numpy as np
import torch
from distillation import Distillation, Teacher
from reader_job import finite, joined, save, share_of_rate, stored_in, told
from safetensors.torch import load_file, save_file
from torch.utils.data import DataLoader, Dataset

from quoth.encoders.transformer import load_base
from quoth.hub import MPNET, SETTINGS_FILE, EncoderSource
from quoth.npm.batches import ARRAYS, TokenizedDocuments
from quoth.npm.collate import Batch
from quoth.npm.config import NPMConfig, TrainConfig
from quoth.npm.grad_cache import Contrast
from quoth.npm.task import NPMTask
from quoth.text.tokenizer import TextTokenizer
from quoth.training.adapter import ADAPTER
from quoth.training.distributed import SINGLE_PROCESS
from quoth.training.recipes import RECIPES

TOKENS = "tokens.npz.xz"
CUDA = torch.cuda.is_available()
WAIT = 600.0
"""Seconds after which a batch that does not come ends the run with an error."""
SHOWN_EVERY = 15.0
"""Seconds between lines of the log."""
OFFSETS = ("offsets", "title_offsets")
"""Stored as the lengths between them."""
STORED = {"ids": np.uint16, "titles": np.uint16} | dict.fromkeys(OFFSETS, np.uint8)
"""What takes fewer bits in the file."""
SETTINGS = ("adapter_config.json", SETTINGS_FILE)


def pack(data: TokenizedDocuments, file: Path) -> None:
    """Write tokens in 1.3 bytes each; of a vocabulary of at most 65,536, in passages of at most 255."""
    arrays = {name: getattr(data, name) for name in ARRAYS}
    arrays |= {name: np.diff(arrays[name]) for name in OFFSETS}
    with lzma.open(file, "wb", preset=4) as out:
        np.savez(out, **{name: array.astype(STORED.get(name, array.dtype)) for name, array in arrays.items()})


def unpack(file: Path) -> TokenizedDocuments:
    with lzma.open(file) as packed:
        stored = np.load(io.BytesIO(packed.read()))
    arrays = {name: stored[name].astype(kind) for name, kind in ARRAYS.items()}
    return TokenizedDocuments(**arrays | {name: np.cumsum([0, *arrays[name]]) for name in OFFSETS})


class Batches(Dataset[tuple[int, list[Batch]]]):
    """The phase (0: masked keys, 1: clean ones) and the batches of a step."""

    def __init__(self, task: NPMTask, configs: Sequence[TrainConfig]) -> None:
        self._task, self._configs = task, configs

    def __getitem__(self, phase_and_step: tuple[int, int]) -> tuple[int, list[Batch]]:
        phase, step = phase_and_step
        self._task.config = self._configs[phase]
        return phase, self._task.batches(step)


class MadeAhead:
    """The phase and the batches of one step after another, made by other processes.

    One loader serves both phases, because its processes are forked from this one: a second loader would be forked while
    the first one's threads run, and its processes would inherit locks that nobody releases. Batches that were ordered
    before `phase` changed still come.
    """

    def __init__(self, task: NPMTask, configs: Sequence[TrainConfig], workers: int, phase: int) -> None:
        self.phase = phase
        options: dict[str, Any] = {"num_workers": workers, "timeout": WAIT, "collate_fn": tuple}
        self._made = iter(DataLoader(Batches(task, configs), batch_size=None, sampler=self._orders(), **options))

    def _orders(self) -> Iterator[tuple[int, int]]:
        """Both phases' first steps, then those of the phase that is on."""
        steps = [itertools.count(), itertools.count()]
        for phase in (0, 1):
            yield phase, next(steps[phase])
        while True:
            yield self.phase, next(steps[self.phase])

    def __next__(self) -> tuple[int, list[Batch]]:
        made: tuple[int, list[Batch]] = next(self._made)
        return made


def train(options: argparse.Namespace) -> dict[str, Any]:
    """Until the time is over. Returns what was done."""
    entered = time.perf_counter()
    encoder, hf = load_base(EncoderSource(str(joined(options.input / "base", options.work / "base"))))
    recipe = RECIPES["npm-mini-gpu"].config
    assert isinstance(recipe, TrainConfig)
    masked = replace(
        recipe,
        batch_size=options.batch,
        mini_batch_size=0,
        max_repeats=10,
        similarity_chunk_size=2048,
        lora_rank=options.rank,
        compile=options.compile,
        warm_start=str(options.start or ""),
        bf16=CUDA,
        seed=options.seed,
        groups=options.groups,
    )
    clean = replace(masked, contrast_with="clean", batch_size=options.batch // 2)
    npm = NPMConfig(base=options.base, similarity_scale=20.0, normalize=True)
    tokenizer = TextTokenizer(hf, num_masks=npm.num_masks, max_tokens=npm.max_tokens)
    task = NPMTask(encoder, tokenizer, npm, unpack(options.input / TOKENS), masked)
    # The processes copy this one as it is before it has used the GPU.
    made = MadeAhead(task, (masked, clean), options.workers, phase=int(options.masked <= 0))
    first = dict([next(made), next(made)])
    model = task.model.to("cuda" if CUDA else "cpu")
    pad_id = int(hf.pad_token_id)
    if options.teacher:
        base = str(joined(options.teacher_base, options.work / "teacher")) if options.teacher_base else ""
        teacher = Teacher.load(options.teacher, base, npm, hf)
        contrast: Contrast = Distillation(model, pad_id, npm, clean, teacher, first[1])
    else:
        contrast = Contrast(model, pad_id, npm, clean, SINGLE_PROCESS)
    torch.set_float32_matmul_precision("high")
    optimizer = torch.optim.AdamW(
        task.parameters.values(), lr=options.rate, weight_decay=masked.weight_decay, fused=CUDA
    )
    if options.compile:  # which takes minutes, and is no part of what the learning rate follows
        contrast.backward(first[0][0])
        optimizer.zero_grad()
    began = shown = saved = time.perf_counter()
    seconds = options.seconds - (began - entered)
    steps, tokens, losses = 0, 0, list[float]()
    log = (options.out / "log.jsonl").open("a", encoding="utf-8")
    while (elapsed := time.perf_counter() - began) < seconds and steps != options.steps:
        done = elapsed / seconds
        rate = options.rate * share_of_rate(done)
        for group in optimizer.param_groups:
            group["lr"] = rate
        made.phase = int(done >= options.masked)
        phase, batches = next(made)
        for batch in batches:
            losses.append(contrast.backward(batch))
            tokens += batch.num_tokens
        torch.nn.utils.clip_grad_norm_(task.parameters.values(), masked.max_grad_norm)
        optimizer.step()
        optimizer.zero_grad()
        steps, now = steps + 1, time.perf_counter()
        finite(losses[-1:], steps)
        if now - shown > SHOWN_EVERY or steps == 1:
            state = {"step": steps, "clean": bool(phase), "loss": finite(losses, steps), "tokens": tokens}
            line = json.dumps(state | {"seconds": round(now - began, 1), "learning_rate": rate})
            print(line, file=log, flush=True)
            print(line, flush=True)
            shown, losses = now, []
        if now - saved > options.save:
            bring_back(task, options)
            saved = now
    bring_back(task, options)
    return {"steps": steps, "tokens": tokens, "seconds": time.perf_counter() - began}


def bring_back(task: NPMTask, options: argparse.Namespace) -> None:
    """The model as it is, in files that are small enough."""
    model = options.work / "model"
    task.save_model(model)
    save(load_file(model / ADAPTER), options.out)
    for name in SETTINGS:
        shutil.copy(model / name, options.out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("input", type=Path, help="folder made by recipes/gpu/pack.py; with --unpack what came back")
    parser.add_argument("--base", default=MPNET, help=f"the name of the base, which the model tells (default: {MPNET})")
    parser.add_argument("--start", type=Path, help="folder with an adapter to start from, of the same rank")
    parser.add_argument("--work", type=Path, default=Path("runs/gpu-work"))
    parser.add_argument("--out", type=Path, required=True, help="what is brought back")
    parser.add_argument("--seconds", type=float, default=1400.0, help="for all, with what is loaded and compiled")
    parser.add_argument("--masked", type=float, default=0.4, help="share of the time with masked keys")
    parser.add_argument("--steps", type=int, help="at most; the default is as many as the time allows")
    parser.add_argument("--rate", type=float, default=5e-4)
    parser.add_argument("--batch", type=int, default=512, help="passages in a step with masked keys; half with clean")
    parser.add_argument("--groups", type=int, default=1, help="parts of a step that are contrasted by themselves")
    parser.add_argument("--teacher", default="", help="an NPM, whose vectors are learned instead of by contrast")
    parser.add_argument("--teacher-base", type=Path, help="the folder of its base, whole or as pack.py makes it")
    parser.add_argument("--rank", type=int, default=64)
    parser.add_argument("--compile", action="store_true", help="compile the encoder, which took 215 s on an H100")
    parser.add_argument("--workers", type=int, default=12, help="processes that make batches")
    parser.add_argument("--save", type=float, default=120.0, help="seconds from one adapter to the next")
    parser.add_argument("--seed", type=int, default=21)
    parser.add_argument("--unpack", action="store_true", help="make a model's folder of what came back")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.unpack:
        save_file(stored_in(options.input.glob("weights-*")), options.out / ADAPTER)
        for name in SETTINGS:
            shutil.copy(options.input / name, options.out)
        return
    told(train(options), options.out)


if __name__ == "__main__":
    main()
