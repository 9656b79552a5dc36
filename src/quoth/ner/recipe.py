"""The recipe `tagger`: from CoNLL files to a task.

Knows: files, epochs, what a tagger starts from. Does not know: the loss, the loop.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

import torch

from quoth.encoders.config import TokenConfig
from quoth.encoders.transformer import attend_in_fp32, load_base
from quoth.errors import InputError
from quoth.hub import ModelSource, locate
from quoth.ner.config import TaggerConfig, TaggingConfig
from quoth.ner.data import read_conll
from quoth.ner.network import TagNetwork
from quoth.ner.tags import bio_labels
from quoth.ner.training import TaggingTask, plan_batches
from quoth.records import TaggedText
from quoth.text.words import WordTokenizer
from quoth.training.adapter import with_adapter
from quoth.training.run import Job, Run


def prepare(run: Run, config: TaggingConfig) -> Job:
    """Read the CoNLL files, whose classes the tagger learns, and plan all batches of the run."""
    documents = [document for file in run.inputs for document in read_conll(file)]
    labels = bio_labels(sorted({span.label for document in documents for text in document for span in text.spans}))
    if len(labels) == 1:
        raise InputError(f"no entity in {', '.join(run.inputs)}; give CoNLL files with labels such as B-PER")
    source = _plain_source(str(run.model), run.base)
    encoder, hf = load_base(source.encoder)
    settings = TaggerConfig(
        base=source.config.base or source.base,
        revision=source.config.revision,
        labels=labels,
        max_tokens=min(config.max_tokens, int(encoder.config.max_position_embeddings)),
    )
    tokenizer = WordTokenizer(hf, settings.max_tokens)
    plan = plan_batches(documents, tokenizer, labels, config, run.counter("tokenizing epochs", config.epochs))
    config = replace(config, steps=len(plan))
    run.claim()
    network = _network(encoder, config, len(labels), run.device)
    task = TaggingTask(network, plan, tokenizer.pad_id, config, settings, _digest(documents))
    return Job(task, config)


def _digest(documents: Sequence[Sequence[TaggedText]]) -> str:
    """A digest that identifies these documents."""
    return hashlib.sha256(repr(documents).encode()).hexdigest()[:16]


def _plain_source(model: str, base: str | None) -> ModelSource[TokenConfig]:
    source = locate(model, TokenConfig, base)
    if source.adapter is not None:
        raise InputError(f"model {model!r} has an adapter, but a tagger starts without one; name quoth-mini-base")
    return source


def _network(encoder: torch.nn.Module, config: TaggingConfig, num_labels: int, device: str) -> TagNetwork:
    if config.bf16 and device == "cpu":
        attend_in_fp32(encoder)
    adapted = with_adapter(encoder, config.lora_rank, config.seed)
    return TagNetwork(adapted, num_labels).to(device)
