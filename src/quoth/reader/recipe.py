"""The recipe `reader`: from files of questions and blanks with their passages to a task.

Knows: files and their shares, hard negatives by BM25. Does not know: the loss, the loop.
"""

from __future__ import annotations

import copy
import hashlib
import json
import math
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from quoth.corpus.corpus import Corpus
from quoth.corpus.documents import OnBad
from quoth.datasets.judging import has_answer
from quoth.datasets.questions import QAExample
from quoth.encoders.transformer import attend_in_fp32, can_load
from quoth.errors import InputError
from quoth.hub import MINILM, ModelSource, locate
from quoth.reader.config import ReaderConfig, ReaderTrainConfig
from quoth.reader.data import ReadingExample, read_examples
from quoth.reader.network import SpanReaderModel
from quoth.reader.training import Inputs, ReadingTask, Teacher
from quoth.reader.weights import load_reader
from quoth.records import Document
from quoth.storage import atomic_write_bytes
from quoth.text.passages import WHOLE
from quoth.training.run import Job, Run

_SEARCHED = 12
_NEGATIVES_FILE = "negatives.json"


def prepare(run: Run, config: ReaderTrainConfig) -> Job:
    """Read the examples, find negatives for them unless an earlier call has done it, and load the reader."""
    source = run.source(ReaderConfig)
    if source.folder is None:
        source = replace(source, config=replace(source.config, head=config.head, span_width=config.span_width))
    elif not (source.config.evidence_layers and config.evidence) or config.dropout:
        source = replace(source, config=without_evidence(source.config))
    run.claim()
    examples, shares = read_files(run.inputs, run.on_bad)
    examples = with_negatives(examples, run.output, run.counter)
    torch.manual_seed(config.seed)
    model, tokenizer = load_reader(source, with_dropouts=config.dropout > 0)
    base = compared_with(source, model)
    if config.dropout and config.bf16 and run.device == "cpu":
        attend_in_fp32(model.encoder)
    inputs = Inputs(examples, tokenizer, source.config, run.counter("tokenizing texts"))
    teacher = _teacher(examples, config, source.config, run) if config.teacher else None
    task = ReadingTask(model, base, inputs, shares, config, run.device, teacher)
    config = replace(config, steps=task.steps_of(config.epochs))
    return Job(task, replace(config, warmup_steps=round(config.warmup_ratio * config.steps)))


def without_evidence(config: ReaderConfig) -> ReaderConfig:
    """The settings of a reader that marks spans alone: its layers change, and those of evidence stand on them."""
    if not config.evidence:
        return config
    return replace(config, evidence=False, evidence_layers=0, marked_passages=None, sentence_calibration=None)


def _teacher(examples: Sequence[ReadingExample], config: ReaderTrainConfig, reader: ReaderConfig, run: Run) -> Teacher:
    """The teacher, and its inputs of what the reader sees, with questions in full. Raises InputError if its answers
    have another width."""
    source = locate(config.teacher, ReaderConfig)
    if source.config.span_width != reader.span_width:
        raise InputError(
            f"teacher {config.teacher!r} has span_width {source.config.span_width}, the reader {reader.span_width}; "
            "they must be the same: name another teacher"
        )
    model, tokenizer = load_reader(source)
    asked = [replace(example, question=example.in_full or example.question) for example in examples]
    return Teacher(model, Inputs(asked, tokenizer, reader, run.counter("tokenizing texts for the teacher")))


def compared_with(source: ModelSource[ReaderConfig], model: SpanReaderModel) -> SpanReaderModel | Path:
    """What the trained weights are stored as differences from: the network before any training. The folder of the base
    if they are stored whole."""
    if source.config.base != MINILM:
        if not can_load(Path(source.base)):
            raise InputError(
                f"base {source.base!r} must be the folder of a BERT, RoBERTa or MPNet with tokenizer.json; name "
                "it with --base"
            )
        return Path(source.base)
    return copy.deepcopy(model) if source.folder is None else load_reader(replace(source, folder=None))[0]


def read_files(
    files: Sequence[str], on_bad: OnBad | None = None
) -> tuple[list[ReadingExample], list[tuple[int, int, float]]]:
    """All examples; and for each file the numbers of its first example and of the one after its last, and its share."""
    every: list[ReadingExample] = []
    shares = []
    for file in files:
        path, _, share = file.rpartition(":")
        if not path or Path(file).exists():
            path, share = file, "1"
        try:
            weight = float(share)
        except ValueError:
            weight = -1.0
        if not 0 < weight < math.inf:
            raise InputError(f"share {share!r} of {path!r}; it must be a number above 0, as in {path}:0.25")
        first = len(every)
        every += read_examples(path, skip_bad=on_bad is not None, on_bad=on_bad)
        shares.append((first, len(every), weight))
    return every, shares


def with_negatives(
    examples: Sequence[ReadingExample], output: Path, counter: Callable[[str, int], Callable[[int], None]]
) -> list[ReadingExample]:
    """The examples. Those without negatives get BM25's best passages of the other examples that do not contain an
    answer's text; they are searched once and kept in the folder `output`."""
    texts = list(dict.fromkeys(passage for example in examples for passage in (example.passage, *example.negatives)))
    digest = hashlib.sha256()
    for example in examples:
        digest.update(f"{example.question}\0{example.passage}\0{example.answers}\0{example.negatives}\n".encode())
    label, file = digest.hexdigest(), output / _NEGATIVES_FILE
    kept = json.loads(file.read_bytes()) if file.is_file() else {}
    if kept.get("label") != label:
        folder = output / "passages.quoth"
        shutil.rmtree(folder, ignore_errors=True)
        corpus = Corpus.create(folder, splitter=WHOLE)
        corpus.add(Document(str(i), passage.title, passage.text) for i, passage in enumerate(texts))
        progress, negatives = counter("searching negatives for examples", len(examples)), list[list[int]]()
        for number, example in enumerate(examples):
            negatives.append([] if example.negatives else _negatives(example, corpus))
            if number % 100 == 0:
                progress(number)
        kept = {"label": label, "negatives": negatives}
        atomic_write_bytes(file, json.dumps(kept).encode())
        shutil.rmtree(folder)
    return [
        example if not rows else replace(example, negatives=tuple(texts[row] for row in rows))
        for example, rows in zip(examples, kept["negatives"], strict=True)
    ]


def _negatives(example: ReadingExample, corpus: Corpus, most: int = 3) -> list[int]:
    rows, _ = corpus.bm25(example.question, _SEARCHED)
    said = tuple(example.texts)
    wanted = QAExample(example.id, example.question, said)
    negatives = []
    for row in rows.tolist():
        passage = corpus.passage(row)
        if passage.text != example.passage.text and not (said and has_answer(passage.text, wanted)):
            negatives.append(int(passage.document_id))
    return negatives[:most]
