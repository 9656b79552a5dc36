"""Recipes: named starting points for training, each a function that returns its settings.

Knows: numbers that work, and how documents become a run. Does not know: the loop.
"""

from __future__ import annotations

import hashlib
import json
import math
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import torch

from quoth.config import Config
from quoth.corpus.documents import read_documents, read_listing
from quoth.encoders.pretrained import locate
from quoth.encoders.transformer import load_base
from quoth.errors import InputError
from quoth.records import Document
from quoth.storage import WriterLock
from quoth.tokenizers.text import TextTokenizer
from quoth.training.batches import FILLED, TokenizedDocuments, tokenize_documents
from quoth.training.distributed import World
from quoth.training.neighbours import chain_of_neighbours
from quoth.training.npm_task import NPMTask
from quoth.training.settings import TrainConfig
from quoth.training.trainer import Evaluation, Progress, Trainer

Settings = TypeVar("Settings", bound=Config)


@dataclass(frozen=True, slots=True)
class Recipe:
    """A model to start from and how to train it."""

    model: str
    train: TrainConfig


_MINI = TrainConfig(
    steps=3000,
    warmup_steps=50,
    batch_size=32,
    learning_rate=6e-4,
    max_grad_norm=1.0,
    dropout=0.0,
    mask_ratio=0.2,
    max_repeats=3,
    contrast_with="masked",
    bf16=True,
)


def npm_mini_cpu() -> Recipe:
    """NPM over all-MiniLM-L6-v2 with LoRA, on two CPU cores in two or three hours."""
    return Recipe("quoth-mini-base", _MINI)


def npm_single_mini_cpu() -> Recipe:
    """NPM-single over all-MiniLM-L6-v2 with LoRA."""
    return Recipe("quoth-mini-base", replace(_MINI, masking="tokens"))


def npm_mini_gpu() -> Recipe:
    """NPM over all-MiniLM-L6-v2 with LoRA and the large batches that one GPU has room for."""
    return Recipe("quoth-mini-base", replace(_MINI, batch_size=512, mini_batch_size=256, warmup_steps=200))


def npm_single_mini_gpu() -> Recipe:
    """NPM-single over all-MiniLM-L6-v2, as npm_mini_gpu."""
    recipe = npm_mini_gpu()
    return replace(recipe, train=replace(recipe.train, masking="tokens"))


def npm_large() -> Recipe:
    """The paper's own NPM (Min et al. 2022, §4): RoBERTa-large whole, 512 inputs of up to 256 tokens a batch, 100 k
    steps."""
    config = TrainConfig(
        steps=100_000,
        warmup_steps=4_000,
        batch_size=512,
        mini_batch_size=32,
        splitter=FILLED,
        max_passage_tokens=254,
        learning_rate=3e-5,
        weight_decay=0.01,
        max_grad_norm=2.0,
        dropout=0.1,
        lora_rank=0,
        bf16=True,
        checkpoint_every=1_000,
    )
    return Recipe("FacebookAI/roberta-large", config)


def adapt() -> Recipe:
    """Go on from quoth-mini on a corpus of your own, in little memory."""
    return Recipe("quoth-mini", replace(_MINI, steps=300, batch_size=16, mini_batch_size=8, learning_rate=3e-4))


RECIPES: dict[str, Callable[[], Recipe]] = {
    "npm-mini-cpu": npm_mini_cpu,
    "npm-single-mini-cpu": npm_single_mini_cpu,
    "npm-mini-gpu": npm_mini_gpu,
    "npm-single-mini-gpu": npm_single_mini_gpu,
    "npm-large": npm_large,
    "adapt": adapt,
}


def run_recipe(
    name: str,
    documents: Sequence[str],
    output: Path,
    overrides: dict[str, str],
    *,
    model: str | None = None,
    base: str | None = None,
    seconds: float = math.inf,
    progress: Callable[[Progress], None] | None = None,
    tokenizing: Callable[[int], None] | None = None,
    evaluate: Callable[[Path, TrainConfig], float] | None = None,
) -> bool:
    """Train by a recipe on the given files; a run that was broken off goes on from its last checkpoint.

    `model` takes the place of the recipe's. After `seconds` the run stops; returns whether it is done.

    `evaluate` takes a model's folder and the settings, every `evaluate_every` steps; the best is kept in `best`.
    Raises InputError on an unknown recipe or setting, LockedError while another process trains into `output`.
    """
    if name not in RECIPES:
        raise InputError(f"recipe {name!r}; allowed are {', '.join(RECIPES)}")
    recipe = RECIPES[name]()
    config = with_overrides(recipe.train, overrides)
    evaluation = None
    if config.evaluate_every:
        if evaluate is None:
            raise InputError(f"evaluate_every is {config.evaluate_every}; give what measures the model, evaluate=…")
        evaluation = Evaluation(config.evaluate_every, lambda folder: {"score": evaluate(folder, config)})
    source = locate(model or recipe.model, base)
    if source.adapter is not None and not config.warm_start:
        config = replace(config, warm_start=str(source.adapter))
    num_masks = 2 if config.masking == "spans" else 1
    npm = replace(source.config, num_masks=num_masks, base=source.config.base or source.base)
    encoder, hf = load_base(source.encoder)
    tokenizer = TextTokenizer(hf, num_masks=npm.num_masks, max_tokens=npm.max_tokens)
    output.mkdir(parents=True, exist_ok=True)
    world = World.join()
    with WriterLock(output / "writer.lock") if world.is_main else nullcontext():
        prepared = _data(documents, output / "tokens", tokenizer, config, tokenizing) if world.is_main else None
        world.barrier()
        data = prepared or _data(documents, output / "tokens", tokenizer, config, None)
        task = NPMTask(encoder, tokenizer, npm, data, config, device=device_of(world), world=world)
        trainer = Trainer(task, config, output, world)
        done = trainer.run(progress, evaluation, seconds)
    world.shutdown()
    return done


def device_of(world: World) -> str:
    if not torch.cuda.is_available():
        return "cpu"
    return f"cuda:{world.rank % torch.cuda.device_count()}"


def with_overrides(config: Settings, overrides: dict[str, str]) -> Settings:
    """Apply `key=value` settings, each read as the type of its field."""
    types: dict[str, Any] = typing.get_type_hints(type(config))
    values = config.to_dict()
    for key, text in overrides.items():
        if key not in types:
            raise InputError(f"unknown setting {key!r}; allowed are {', '.join(types)}")
        values[key] = _parse(key, text, types[key])
    return type(config).from_dict(values)


def _parse(key: str, text: str, kind: Any) -> Any:
    if kind is bool:
        if text.lower() not in ("true", "false"):
            raise InputError(f"{key}={text!r}; allowed are true and false")
        return text.lower() == "true"
    if kind not in (int, float):
        return text
    try:
        return kind(text)
    except ValueError:
        raise InputError(f"{key}={text!r}; allowed is a number ({kind.__name__})") from None


def _data(
    documents: Sequence[str],
    folder: Path,
    tokenizer: TextTokenizer,
    config: TrainConfig,
    progress: Callable[[int], None] | None,
) -> TokenizedDocuments:
    """The training text as token ids, tokenized once and kept beside the run."""
    settings = {
        "documents": [state(path) for path in documents],
        "exclude": [state(config.exclude), state(config.evaluate_on)],
        "tokenizer": hashlib.sha256(tokenizer.hf.backend_tokenizer.to_str().encode()).hexdigest(),
        "num_documents": config.num_documents,
        "splitter": config.splitter,
        "max_passage_tokens": config.max_passage_tokens,
        "titles": "one a passage",
        "neighbours": config.grouping == "neighbours",
    }
    label = json.dumps(settings)
    if "-" not in documents and (saved := TokenizedDocuments.load(folder, label)):
        return saved
    texts: Iterable[Document] = without(read_documents(*documents), config.exclude, config.evaluate_on)
    if config.num_documents:
        texts = islice(texts, config.num_documents)
    data = tokenize_documents(
        texts,
        tokenizer,
        splitter=config.splitter,
        max_passage_tokens=config.max_passage_tokens,
        folder=folder.parent,
        progress=progress,
    )
    if config.grouping == "neighbours":
        data = replace(data, chain=chain_of_neighbours(data, progress))
    data.save(folder, label)
    return data


def state(path: str) -> list[tuple[str, int, int]]:
    """Name, size and time of change of a file, or of all files in a folder; nothing for what is not there."""
    root = Path(path)
    files = sorted(root.rglob("*")) if path and root.is_dir() else [root]
    return [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files if file.is_file()]


def without(documents: Iterable[Document], listing: str, evaluated: str = "") -> Iterator[Document]:
    """Leave out the documents whose id or title (case aside) stands in a JSONL file of ids and titles, or is that
    of a document in the file `evaluated`.

    Raises InputError when there is no such file, or naming a line with neither.
    """
    ids, titles = read_listing(listing) if listing else (set(), set())
    for document in read_documents(evaluated) if evaluated else ():
        ids.add(document.id)
        titles.update({document.title.casefold()} - {""})
    return (d for d in documents if d.id not in ids and d.title.casefold() not in titles)
