"""The recipes of NPM, NPM-single and their parametric twin: from documents to a task.

Knows: how text becomes token ids, once per run, and how a run is measured. Does not know: the loss, the loop.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from quoth.corpus.corpus import Corpus
from quoth.corpus.documents import read_documents
from quoth.datasets.blanks import KINDS, Blank, draw_blanks
from quoth.datasets.judging import normalise
from quoth.encoders.transformer import load_base, load_masked_lm
from quoth.npm.batches import TokenizedDocuments, chain_of_neighbours, tokenize_documents
from quoth.npm.config import NPMConfig, TrainConfig
from quoth.npm.model import NPM
from quoth.npm.task import NPMTask
from quoth.npm.twin import MaskedModel
from quoth.records import Document
from quoth.text.passages import MEASURED
from quoth.text.tokenizer import TextTokenizer
from quoth.training.run import Job, Run, file_states, without
from quoth.training.trainer import Evaluation

BLANKS_AT_A_TIME = 32


def prepare(run: Run, config: TrainConfig, make: type[NPMTask] = NPMTask) -> Job:
    """Tokenize the documents, unless an earlier call has done it, and load the encoder, for a task of this class."""
    if config.evaluate_on and run.world.is_main:
        with _held_out(config):
            pass  # what is wrong with these pages is told now, not at the first measurement
    source = run.source(NPMConfig)
    if source.adapter is not None and not config.warm_start:
        config = replace(config, warm_start=str(source.adapter))
    npm = replace(source.config, num_masks=config.num_masks, base=source.config.base or source.base)
    torch.manual_seed(config.seed)  # for a new masked LM head
    encoder, hf = (load_masked_lm if config.mlm_weight else load_base)(source.encoder)
    tokenizer = TextTokenizer(hf, num_masks=npm.num_masks, max_tokens=npm.max_tokens)
    run.claim()
    data = run.shared(partial(_data, run, tokenizer, config))
    task = make(encoder, tokenizer, npm, data, config, run.device, run.world)
    measure = partial(_measure, config, run.base)
    return Job(task, config, Evaluation(config.evaluate_every, measure) if config.evaluate_every else None)


def _measure(config: TrainConfig, base: str | None, model: Path) -> Mapping[str, float]:
    """The share of exact answers among blanks of held-out pages. NPM searches BM25's best of the other passages; its
    parametric twin fills a blank with one token."""
    with _held_out(config) as (corpus, blanks):
        twin = config.contrast_with == "nothing"
        loaded: Any = (
            MaskedModel.from_pretrained(str(model)) if twin else NPM.from_pretrained(model, corpus=corpus, base=base)
        )
        right = 0
        for at in range(0, len(blanks), BLANKS_AT_A_TIME):
            part = blanks[at : at + BLANKS_AT_A_TIME]
            filled = loaded.fill([blank.text for blank in part], exclude=[{blank.row} for blank in part], top_k=5)
            said = [normalise(found[0].text) if found else None for found in filled]
            right += sum(text == normalise(blank.answer) for blank, text in zip(part, said, strict=True))
    return {"score": right / len(blanks)}


@contextmanager
def _held_out(config: TrainConfig) -> Iterator[tuple[Corpus, list[Blank]]]:
    """The held-out pages, for as long as they are measured, and their blanks. Raises InputError if there are none."""
    with tempfile.TemporaryDirectory(prefix="quoth-blanks-") as folder:
        corpus = Corpus.create(Path(folder) / "pages.quoth", MEASURED)
        corpus.add(read_documents(config.evaluate_on))
        passages = list(corpus.passages())
        drawn = [blank for kind in KINDS for blank in draw_blanks(passages, kind, config.evaluate_blanks, seed=0)]
        yield corpus, sorted(drawn, key=lambda blank: blank.row)


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
