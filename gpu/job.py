"""Run one job of QUEUE.md for one slice of time; the same command resumes where the last slice stopped.

    python gpu/job.py npm-mini --input runs/gpu --out "$OUT" --seconds 520

The work folder keeps checkpoints between slices; `--out` receives the adapter, its settings, the log and the numbers.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import numpy as np
import torch
from reader_job import joined
from realm_job import REALM_JOBS, train_realm

from quoth.corpus.documents import read_documents
from quoth.npm.batches import tokenize_documents
from quoth.npm.collate import make_batch
from quoth.npm.config import NPMConfig, TrainConfig
from quoth.npm.grad_cache import Contrast
from quoth.text.tokenizer import FastTokenizer, TextTokenizer
from quoth.training.distributed import SINGLE_PROCESS
from quoth.training.recipes import RECIPES, run_recipe

RETURNED = ("adapter_model.safetensors", "adapter_config.json", "quoth.json", "log.jsonl")
TINY = {
    "steps": "3",
    "batch_size": "4",
    "mini_batch_size": "2",
    "log_every": "1",
    "bf16": "false",
    "max_passage_tokens": "99",
}


@dataclass(frozen=True, slots=True)
class Job:
    """A recipe and what is different about it."""

    recipe: str
    settings: dict[str, str] = field(default_factory=dict)


JOBS = {
    "npm-mini": Job("npm-mini-gpu", {"steps": "4000"}),
    "npm-single-mini": Job("npm-single-mini-gpu", {"steps": "2000"}),
    "rank-16": Job("npm-mini-gpu", {"steps": "800", "lora_rank": "16"}),
    "rank-64": Job("npm-mini-gpu", {"steps": "800"}),
    "rank-128": Job("npm-mini-gpu", {"steps": "800", "lora_rank": "128"}),
    "full": Job("npm-mini-gpu", {"steps": "800", "lora_rank": "0", "learning_rate": "0.0003"}),
    "clean-keys": Job("npm-mini-gpu", {"steps": "800", "contrast_with": "clean"}),
}
MEMORY = "memory-large"


def base_of(options: argparse.Namespace) -> tuple[str, Path | None]:
    """The model to start an NPM from, and the folder of its base if that is another than the shipped one: its packed
    parts are joined in the work folder, in fp32."""
    packed = options.input / "base"
    folder = joined(packed, options.work / "base")
    return (str(packed), None) if folder == packed else ("quoth-mini-base", folder)


def train(job: Job, options: argparse.Namespace, work: Path) -> dict[str, Any]:
    """One slice of training."""
    settings = job.settings | (TINY if options.tiny else {})
    model, base = base_of(options)
    done = run_recipe(
        job.recipe,
        [str(file) for file in sorted(options.input.glob("text*"))],
        work,
        settings,
        model=model,
        base=base and str(base),
        seconds=options.seconds,
        progress=lambda now: print(now, flush=True),
    )
    speeds = [json.loads(line)["tokens_per_second"] for line in (work / "log.jsonl").read_text().splitlines()]
    return {"done": done, "body_tokens_per_second": float(np.median(speeds))}


def memory(options: argparse.Namespace) -> dict[str, Any]:
    """One step of npm-large's batch on a RoBERTa-large with random weights: the peak memory."""
    from transformers import RobertaConfig, RobertaModel

    recipe = RECIPES["npm-large"].config
    assert isinstance(recipe, TrainConfig)
    config = replace(recipe, batch_size=4, mini_batch_size=2, bf16=False) if options.tiny else recipe
    hf = FastTokenizer(options.input / "base")
    tokenizer = TextTokenizer(hf, num_masks=2, max_tokens=256)
    shape = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}
    if options.tiny:
        shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    vocabulary = len(hf.get_vocab())
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    settings = RobertaConfig(vocab_size=vocabulary, max_position_embeddings=514, pad_token_id=0, **shape)
    model = RobertaModel(settings, add_pooling_layer=False).eval().to(device)
    texts = read_documents(*(str(file) for file in sorted(options.input.glob("text*"))))
    data = tokenize_documents(
        (document for document, _ in zip(texts, range(2000), strict=False)),
        tokenizer,
        splitter=config.splitter,
        max_passage_tokens=config.max_passage_tokens,
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.learning_rate)
    passages = list(range(min(config.batch_size, data.num_passages)))
    batch = make_batch(data, passages, tokenizer, config, np.random.default_rng(0))
    contrast = Contrast(model, 0, NPMConfig(), config, SINGLE_PROCESS)
    loss = contrast.backward(batch)
    optimizer.step()
    peak = torch.cuda.max_memory_allocated() if device.type == "cuda" else 0
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return {"parameters": parameters, "body_tokens": batch.num_tokens, "loss": loss, "peak_gib": peak / 2**30}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("job", choices=[*JOBS, *REALM_JOBS, MEMORY])
    parser.add_argument("--input", type=Path, required=True, help="folder made by gpu/pack.py")
    parser.add_argument("--work", type=Path, default=Path("runs/gpu-work"), help="checkpoints, kept between slices")
    parser.add_argument("--out", type=Path, required=True, help="what is brought back")
    parser.add_argument("--seconds", type=float, default=520.0, help="how long a slice trains")
    parser.add_argument("--tiny", action="store_true", help="a few steps of a small batch, to try it on a CPU")
    options = parser.parse_args()
    work, out = options.work / options.job, options.out / options.job
    out.mkdir(parents=True, exist_ok=True)
    if options.job == MEMORY:
        facts = memory(options)
    elif options.job in REALM_JOBS:
        facts = train_realm(REALM_JOBS[options.job], options.input, work, out, options.seconds, options.tiny)
    else:
        facts = train(JOBS[options.job], options, work)
    facts["device"] = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    if torch.cuda.is_available():
        facts["peak_gib"] = torch.cuda.max_memory_allocated() / 2**30
    (out / "facts.json").write_text(json.dumps(facts, indent=1), encoding="utf-8")
    for name in RETURNED:
        if (work / name).is_file():
            shutil.copy(work / name, out)
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
