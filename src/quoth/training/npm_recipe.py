"""The recipes of NPM, NPM-single and their parametric twin: from documents to a task.

Knows: how text becomes token ids, once per run, and how a run is measured. Does not know: the loss, the loop.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from quoth.config import NPMConfig
from quoth.corpus.documents import read_documents
from quoth.encoders.transformer import load_base, load_masked_lm
from quoth.evaluation.language_models import MaskedModel
from quoth.evaluation.run import run_cloze
from quoth.hub import locate
from quoth.records import Document
from quoth.tokenizers.text import TextTokenizer
from quoth.training.batches import TokenizedDocuments, tokenize_documents
from quoth.training.neighbours import chain_of_neighbours
from quoth.training.npm_task import NPMTask
from quoth.training.run import Job, Run, file_states, without
from quoth.training.settings import TrainConfig
from quoth.training.trainer import Evaluation


def prepare(run: Run, config: TrainConfig) -> Job:
    """Tokenize the documents, unless an earlier call has done it, and load the encoder."""
    source = locate(str(run.model), NPMConfig, run.base)
    if source.adapter is not None and not config.warm_start:
        config = replace(config, warm_start=str(source.adapter))
    npm = replace(source.config, num_masks=config.num_masks, base=source.config.base or source.base)
    torch.manual_seed(config.seed)  # for a new masked LM head
    encoder, hf = (load_masked_lm if config.mlm_weight else load_base)(source.encoder)
    tokenizer = TextTokenizer(hf, num_masks=npm.num_masks, max_tokens=npm.max_tokens)
    run.claim()
    # The main process tokenizes; the others read what it has saved.
    prepared = _data(run, tokenizer, config) if run.world.is_main else None
    run.world.barrier()
    data = prepared or _data(run, tokenizer, config)
    task = NPMTask(encoder, tokenizer, npm, data, config, device=run.device, world=run.world)
    return Job(task, config, _evaluation(config, run.base) if config.evaluate_every else None)


def _evaluation(config: TrainConfig, base: str | None) -> Evaluation:
    """The share of exact answers among blanks of held-out pages. NPM searches BM25's passages; its parametric twin
    fills a blank with one token."""

    def measure(model: Path) -> Mapping[str, float]:
        load = _twin if config.contrast_with == "nothing" else None
        report = run_cloze(
            [config.evaluate_on],
            model=str(model),
            base=base,
            count=config.evaluate_blanks,
            systems=["model"],
            load=load,
        )
        score = report.systems[0].score()
        return {"score": score.exact_match if score else 0.0}

    return Evaluation(config.evaluate_every, measure)


def _twin(model: str, _: object) -> Any:
    return MaskedModel.from_pretrained(model)


def _data(run: Run, tokenizer: TextTokenizer, config: TrainConfig) -> TokenizedDocuments:
    """The training text as token ids, tokenized once and kept with the run."""
    settings = {
        "documents": [file_states(path) for path in run.inputs],
        "exclude": [file_states(config.exclude), file_states(config.evaluate_on)],
        "tokenizer": hashlib.sha256(tokenizer.hf.backend_tokenizer.to_str().encode()).hexdigest(),
        "num_documents": config.num_documents,
        "splitter": config.splitter,
        "max_passage_tokens": config.max_passage_tokens,
        "titles": "one a passage",
        "neighbours": config.grouping == "neighbours",
    }
    folder, label = run.output / "tokens", json.dumps(settings)
    if "-" not in run.inputs and (saved := TokenizedDocuments.load(folder, label)):
        return saved
    texts: Iterable[Document] = without(read_documents(*run.inputs), config.exclude, config.evaluate_on)
    if config.num_documents:
        texts = islice(texts, config.num_documents)
    data = tokenize_documents(
        texts,
        tokenizer,
        splitter=config.splitter,
        max_passage_tokens=config.max_passage_tokens,
        folder=run.output,
        progress=run.counter("tokenizing documents", config.num_documents or None),
    )
    if config.grouping == "neighbours":
        num_documents = len(set(data.document.tolist()))
        data = replace(data, chain=chain_of_neighbours(data, run.counter("finding similar documents", num_documents)))
    data.save(folder, label)
    return data
