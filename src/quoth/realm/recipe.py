"""REALM's recipes: warm start, pre-training and fine-tuning, from documents or questions to a task.

Knows: how corpora are made and checked, which parts of a model learn, how pre-training is measured. Does not know: the
loop, or what a step is.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
import torch

from quoth.corpus.corpus import Corpus
from quoth.corpus.documents import read_documents
from quoth.corpus.manifest import snapshots
from quoth.datasets.judging import answer_rank, recall
from quoth.datasets.questions import QAExample, read_questions
from quoth.errors import InputError
from quoth.hub import ModelSource, is_shipped, locate
from quoth.index.tables import KeyTables
from quoth.ner.tagger import Tagger
from quoth.reader.runtime import open_reader
from quoth.reader.spans import SpanReader
from quoth.realm.config import FineTuneConfig, ICTConfig, PretrainConfig, REALMConfig
from quoth.realm.finetune import FineTuneTask
from quoth.realm.ict import ICTTask
from quoth.realm.index_refresh import FixedIndex, IndexRefresher
from quoth.realm.passages import PassageEncoder
from quoth.realm.pretrain import PretrainTask
from quoth.realm.salient import Masked, MaskedTexts
from quoth.realm.trained import PARTS, TrainedREALM
from quoth.records import Document
from quoth.storage import atomic_write_bytes, remove
from quoth.training.run import Job, Run, file_states, without
from quoth.training.trainer import Evaluation

CORPUS = "corpus.quoth"
EXAMPLES_AT_A_TIME = 8
"""Of the blanks that measure a model."""


def prepare(run: Run, config: ICTConfig | PretrainConfig | FineTuneConfig) -> Job:
    """The task of one of the three stages, by its settings."""
    source = run.source(REALMConfig)
    if not isinstance(config, ICTConfig) and config.reader_sees != "model":
        source = replace(source, config=replace(source.config, reader_titles=config.reader_sees == "titles"))
    run.claim()
    match config:
        case ICTConfig():
            corpus = run.shared(partial(_corpus, run, config))
            model = TrainedREALM(source, config, trained=("passages", "queries"), device=run.device)
            return Job(ICTTask(model, corpus, config, run.world), config)
        case PretrainConfig():
            return _pretrain(run, source, config)
        case FineTuneConfig():
            return _fine_tune(run, source, config)


def _pretrain(run: Run, source: ModelSource[REALMConfig], config: PretrainConfig) -> Job:
    """Masked words, with passages that are retrieved for them."""
    reader = None
    if config.reader:
        reader = open_reader(config.reader, device=run.device, base=run.base, beside=source.config)
        if not is_shipped(config.reader) and Path(config.reader).is_dir():  # the model names it, wherever it is loaded
            config = replace(config, reader=str(Path(config.reader).resolve()))
    searched = None if run.corpus is None else Corpus.open(run.corpus)
    corpus = run.shared(partial(_corpus, run, config))
    if searched is not None and searched.path.resolve() == corpus.path.resolve():
        searched = None
    changed = replace(source.config, num_candidates=config.num_candidates, reader=config.reader)
    source = replace(source, config=changed)
    model = TrainedREALM(source, config, trained=PARTS[:2] if reader else PARTS, device=run.device)
    tagger_of = cache(partial(Tagger.load, device=run.device))  # which has a base of its own
    tagger = tagger_of(config.tagger) if config.masking == "salient" else None
    texts = MaskedTexts(corpus, model.tokenizer, model.config.question_room, config.masking, tagger)
    evaluation = None
    if config.evaluate_on and run.world.is_main:
        folder = run.stack.enter_context(tempfile.TemporaryDirectory(prefix="quoth-probe-"))
        names = tagger_of(PretrainConfig().tagger)
        probe = Probe(Path(folder), read_documents(config.evaluate_on), config, names, reader)
        evaluation = Evaluation(
            config.evaluate_every, lambda saved: probe.measure(locate(str(saved), REALMConfig, run.base))
        )
    refresher = _refresher(run, searched or corpus, config)
    task = PretrainTask(model, texts, refresher, config, searched, run.world, reader)
    return Job(task, config, evaluation)


def _fine_tune(run: Run, source: ModelSource[REALMConfig], config: FineTuneConfig) -> Job:
    """Questions, over passage vectors that stay as they are, or are made again."""
    if not config.corpus:
        raise InputError("no corpus to answer from; name one with --set corpus=DIR")
    corpus = Corpus.open(config.corpus)
    questions = read_questions(*run.inputs, skip_bad=True)
    encoder = PassageEncoder.load(source, dtype="fp32")
    if KeyTables(corpus, encoder).missing():
        raise InputError(
            f"{corpus.path}: not all passages have vectors of {encoder.name}; "
            f"`quoth embed {corpus.path} --model {encoder.name}` makes them"
        )
    parts = PARTS if config.refresh_every else ("queries", "reader")
    model = TrainedREALM(source, config, trained=parts, own_queries=True, device=run.device)
    index = _refresher(run, corpus, config) if config.refresh_every else None
    progress = run.counter("searching passages for answers", corpus.num_passages)
    return Job(FineTuneTask(model, encoder, corpus, questions, config, progress, run.world, index), config)


def _refresher(run: Run, corpus: Corpus, config: PretrainConfig | FineTuneConfig) -> IndexRefresher:
    """What makes the vectors of all passages again, to the end of the run."""
    every, dtype = config.refresh_every, "bf16" if config.bf16 else "fp32"
    refresher = IndexRefresher(run.output, corpus, every, config.asynchronous, run.base, dtype, run.world)
    run.stack.callback(refresher.close)
    return refresher


def _corpus(run: Run, config: ICTConfig | PretrainConfig) -> Corpus:
    """The corpus that was given, or the run's own of the given documents, made once."""
    measured = config.evaluate_on if isinstance(config, PretrainConfig) else ""
    if len(run.inputs) == 1 and snapshots(Path(run.inputs[0])):
        if config.exclude:
            raise InputError(
                f"`exclude` leaves documents out of files, not out of a corpus; delete them in {run.inputs[0]}"
            )
        corpus = Corpus.open(run.inputs[0])
        kept = sum(1 for _ in without(corpus.documents(), "", measured)) if measured else corpus.num_documents
        if held := corpus.num_documents - kept:
            raise InputError(
                f"`evaluate_on` has {held} of the documents in {run.inputs[0]}, which would be trained on; delete them "
                "there"
            )
        return corpus
    folder, label = run.output / CORPUS, run.output / "corpus.json"
    made_of = {
        "documents": [file_states(path) for path in run.inputs],
        "exclude": file_states(config.exclude),
        "splitter": config.splitter,
    }
    settings = json.dumps(made_of | ({"evaluate_on": file_states(measured)} if measured else {})).encode()
    if label.is_file() and label.read_bytes() == settings:
        return Corpus.open(folder)
    label.unlink(missing_ok=True)
    remove(folder)
    corpus = Corpus.create(folder, splitter=config.splitter)
    corpus.add(without(read_documents(*run.inputs), config.exclude, measured), run.counter("indexing documents"))
    atomic_write_bytes(label, settings)
    return corpus


class Probe:
    """Held-out documents, indexed in a folder, and blanks in them, the same for model after model of one run."""

    def __init__(
        self,
        folder: Path,
        documents: Iterable[Document],
        config: PretrainConfig,
        tagger: Tagger,
        reader: SpanReader | None = None,
    ) -> None:
        self._corpus = Corpus.create(folder / "heldout.quoth", splitter=config.splitter)
        self._corpus.add(documents)
        self._config, self._tagger, self._reader = config, tagger, reader
        self._drawn: list[Masked] = []

    @torch.inference_mode()
    def measure(self, source: ModelSource[REALMConfig]) -> dict[str, float]:
        """Of the blanks, in passages other than their own: `recall_at_1` and `recall_at_5`, the shares for which one of
        this many retrieved passages contains the hidden words; `score`, the mean log p(y|x); `gain`, the part due to
        passages; `utility`, the mean retrieval utility of the retrieved passages. With the reader of a `Reader`, which
        says nothing without a passage, `score` is the mean p(y|x), and there is no `gain` and no `utility`."""
        model = TrainedREALM(source)
        encoder = PassageEncoder.load(source, dtype="fp32")  # its figures are the same anywhere
        KeyTables(self._corpus, encoder).build("fp32", recall=1.0)
        texts = MaskedTexts(self._corpus, model.tokenizer, model.config.question_room, "salient", self._tagger)
        task = PretrainTask(model, texts, FixedIndex(self._corpus, encoder), self._config, reader=self._reader)
        drawn = self._drawn = self._drawn or texts.draw(self._config.evaluate_blanks, np.random.default_rng(0))
        ranks, score, gain, utility = [], [], [], []
        for at in range(0, len(drawn), EXAMPLES_AT_A_TIME):
            part = drawn[at : at + EXAMPLES_AT_A_TIME]
            found, _ = task.marginal(part)
            log_p_B = found.log_likelihood(False)
            if self._reader is None:
                score += log_p_B.tolist()
                gain += found.gain().tolist()
                utility += found.utility().mean(dim=1).tolist()
            else:
                score += (log_p_B.exp() * found.explained_B).tolist()
            for example, passages in zip(part, found.passages, strict=True):
                question = QAExample("", "", (example.answer,))
                ranks.append(answer_rank((passage.text for passage in passages), question))
        due = {} if self._reader else {"gain": float(np.mean(gain)), "utility": float(np.mean(utility))}
        return {
            "score": float(np.mean(score)),
            **due,
            "recall_at_1": recall(ranks, 1),
            "recall_at_5": recall(ranks, 5),
        }
