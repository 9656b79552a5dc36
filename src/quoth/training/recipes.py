"""Recipes: named starting points for training, each a function that returns its settings.

Knows: numbers that work, and how documents become a run. Does not know: the loop.
"""

from __future__ import annotations

import hashlib
import json
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from quoth.corpus.documents import read_documents
from quoth.encoders.pretrained import locate
from quoth.encoders.tokenization import TextTokenizer
from quoth.encoders.transformer import load_base
from quoth.errors import InputError
from quoth.records import Document
from quoth.storage import WriterLock
from quoth.training.batches import TokenizedDocuments, tokenize_documents
from quoth.training.trainer import Progress, TrainConfig, Trainer


@dataclass(frozen=True, slots=True)
class Recipe:
    """A model to start from and how to train it."""

    model: str
    train: TrainConfig


_MINI = TrainConfig(
    steps=3000, warmup_steps=50, batch_size=32, learning_rate=6e-4, budget=0.2, max_repeats=3, keys="masked", bf16=True
)


def npm_mini_cpu() -> Recipe:
    """NPM over all-MiniLM-L6-v2 with LoRA, on two CPU cores in an hour or two."""
    return Recipe("quoth-mini-base", _MINI)


def npm_single_mini_cpu() -> Recipe:
    """NPM-single over all-MiniLM-L6-v2 with LoRA."""
    return Recipe("quoth-mini-base", replace(_MINI, masking="tokens"))


RECIPES: dict[str, Callable[[], Recipe]] = {
    "npm-mini-cpu": npm_mini_cpu,
    "npm-single-mini-cpu": npm_single_mini_cpu,
}


def run_recipe(
    name: str,
    documents: Sequence[str],
    output: Path,
    overrides: dict[str, str],
    *,
    base: str | None = None,
    progress: Callable[[Progress], None] | None = None,
    tokenizing: Callable[[int], None] | None = None,
) -> None:
    """Train by a recipe on the given files; a run that was broken off goes on from its last checkpoint.

    Raises InputError on an unknown recipe or setting, LockedError while another process trains into `output`.
    """
    if name not in RECIPES:
        raise InputError(f"recipe {name!r}; allowed are {', '.join(RECIPES)}")
    recipe = RECIPES[name]()
    config = with_overrides(recipe.train, overrides)
    source = locate(recipe.model, base)
    num_masks = 2 if config.masking == "spans" else 1
    npm = replace(source.config, num_masks=num_masks, base=source.config.base or source.base)
    model, hf = load_base(source)
    tokenizer = TextTokenizer(hf, num_masks=npm.num_masks, max_tokens=npm.max_tokens)
    output.mkdir(parents=True, exist_ok=True)
    with WriterLock(output / "writer.lock"):
        data = _data(documents, output / "tokens", tokenizer, config, tokenizing)
        Trainer(model, tokenizer, npm, data, config, output).run(progress)


def with_overrides(config: TrainConfig, overrides: dict[str, str]) -> TrainConfig:
    """Apply `key=value` settings, each read as the type of its field."""
    types: dict[str, Any] = typing.get_type_hints(TrainConfig)
    values = config.to_dict()
    for key, text in overrides.items():
        if key not in types:
            raise InputError(f"unknown setting {key!r}; allowed are {', '.join(types)}")
        values[key] = _parse(key, text, types[key])
    return TrainConfig.from_dict(values)


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
        "documents": [_state(path) for path in documents],
        "exclude": _state(config.exclude),
        "tokenizer": hashlib.sha256(tokenizer.hf.backend_tokenizer.to_str().encode()).hexdigest(),
        "num_documents": config.num_documents,
        "max_body_tokens": config.max_body_tokens,
    }
    label = json.dumps(settings)
    if "-" not in documents and (saved := TokenizedDocuments.load(folder, label)):
        return saved
    texts: Iterable[Document] = without(read_documents(*documents), config.exclude)
    if config.num_documents:
        texts = islice(texts, config.num_documents)
    data = tokenize_documents(texts, tokenizer, max_body_tokens=config.max_body_tokens, progress=progress)
    data.save(folder, label)
    return data


def _state(path: str) -> list[tuple[str, int, int]]:
    """Name, size and time of change of a file, or of all files in a folder; nothing for what is not there."""
    root = Path(path)
    files = sorted(root.rglob("*")) if path and root.is_dir() else [root]
    return [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files if file.is_file()]


def without(documents: Iterable[Document], listing: str) -> Iterator[Document]:
    """Leave out the documents whose id or title (case aside) stands in a JSONL file of ids and titles.

    Raises InputError when there is no such file, or naming a line with neither.
    """
    ids: set[str] = set()
    titles: set[str] = set()
    for record in _records(listing) if listing else ():
        ids.add(str(record.get("id") or ""))
        titles.add(str(record.get("title") or "").casefold())
    ids.discard("")
    titles.discard("")
    return (d for d in documents if d.id not in ids and d.title.casefold() not in titles)


def _records(listing: str) -> Iterator[dict[str, Any]]:
    try:
        lines = Path(listing).read_bytes().split(b"\n")
    except OSError:
        raise InputError(f"exclude {listing!r} cannot be read; name a JSONL file of ids and titles") from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError:
            record = None
        if not isinstance(record, dict) or not (record.get("id") or record.get("title")):
            raise InputError(f'{listing}:{number}: no JSON object with an "id" or a "title"; remove the line')
        yield record
