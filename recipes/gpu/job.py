"""Run one job of QUEUE.md for one slice of time; the same command resumes where the last slice stopped.

    python recipes/gpu/job.py npm-mini --input runs/gpu --out "$OUT" --seconds 520

The work folder keeps checkpoints between slices; `--out` receives the adapter, its settings, the log and the numbers.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "src"))

import numpy as np
import torch
from reader_job import told
from realm_job import REALM_JOBS, Settings, train_realm

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

JOBS: dict[str, tuple[str, Settings]] = {
    "npm-mini": ("npm-mini-gpu", {"steps": "4000"}),
    "npm-single-mini": ("npm-single-mini-gpu", {"steps": "2000"}),
    "rank-16": ("npm-mini-gpu", {"steps": "800", "lora_rank": "16"}),
    "rank-64": ("npm-mini-gpu", {"steps": "800"}),
    "rank-128": ("npm-mini-gpu", {"steps": "800", "lora_rank": "128"}),
    "full": ("npm-mini-gpu", {"steps": "800", "lora_rank": "0", "learning_rate": "0.0003"}),
    "clean-keys": ("npm-mini-gpu", {"steps": "800", "contrast_with": "clean"}),
}
"""Recipes, and what is different about each one's training."""
MEMORY = "memory-large"


def train(recipe: str, settings: Settings, options: argparse.Namespace, work: Path) -> dict[str, Any]:
    """One slice of training."""
    done = run_recipe(
        recipe,
        [str(file) for file in sorted(options.input.glob("text*"))],
        work,
        settings | (TINY if options.tiny else {}),
        model=str(options.input / "base"),
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
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return {"parameters": parameters, "body_tokens": batch.num_tokens, "loss": loss}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("job", choices=[*JOBS, *REALM_JOBS, MEMORY])
    parser.add_argument("--input", type=Path, required=True, help="folder made by recipes/gpu/pack.py")
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
        facts = train(*JOBS[options.job], options, work)
    if torch.cuda.is_available():
        facts["peak_gib"] = torch.cuda.max_memory_allocated() / 2**30
    for name in RETURNED:
        if (work / name).is_file():
            shutil.copy(work / name, out)
    told(facts, out)


if __name__ == "__main__":
    main()
