"""The recipe `reader`: from files of questions and blanks with their passages to a trained reader.

Knows: files and their shares, hard negatives by BM25, where a run resumes. Does not know: the loss, the loop.
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
from quoth.corpus.passages import WHOLE
from quoth.datasets.answers import has_answer
from quoth.datasets.comprehension import OnBad, ReadingExample, read_examples
from quoth.datasets.questions import Question
from quoth.encoders.pretrained import ReaderSource, locate_reader
from quoth.encoders.transformer import attend_in_fp32
from quoth.errors import InputError
from quoth.predictors.reader_weights import load_reader
from quoth.records import Document
from quoth.storage import WriterLock, atomic_write_bytes
from quoth.training.distributed import World
from quoth.training.reading import Inputs, ReadingTask
from quoth.training.recipes import device_of, with_overrides
from quoth.training.settings import ReaderTrainConfig
from quoth.training.trainer import Progress, Trainer

_SEARCHED = 12
_NEGATIVES_FILE = "negatives.json"


def run_reader_recipe(
    files: Sequence[str],
    output: Path,
    overrides: dict[str, str],
    *,
    model: str | ReaderSource = "quoth-reader",
    base: str | None = None,
    seconds: float = math.inf,
    progress: Callable[[Progress], None] | None = None,
    reading: Callable[[int], None] | None = None,
    on_bad: OnBad | None = None,
) -> bool:
    """Train a reader on files of questions and blanks (`read_examples`), a share of a file by `FILE:SHARE` an epoch.

    A run that was stopped resumes from its last checkpoint; after `seconds` it stops. Returns whether it is done.
    With `on_bad` broken lines go there and are left out. Raises InputError on a broken file or setting, LockedError
    while another process trains into `output`.
    """
    if "steps" in overrides:
        raise InputError(f"steps={overrides['steps']}: a reader's follow from its examples; set epochs instead")
    config = with_overrides(ReaderTrainConfig(), overrides)
    source = model if isinstance(model, ReaderSource) else locate_reader(model, base)
    if source.folder is None:
        source = replace(source, config=replace(source.config, head=config.head, span_width=config.span_width))
    output.mkdir(parents=True, exist_ok=True)
    with WriterLock(output / "writer.lock"):
        examples, shares = _examples(files, on_bad)
        examples = _with_negatives(examples, output, config, reading)
        task = _task(source, examples, shares, config, reading)
        config = replace(config, steps=task.steps_of(config.epochs))
        warmup = round(config.warmup_ratio * config.steps)
        return Trainer(task, replace(config, warmup_steps=warmup), output).run(progress, seconds=seconds)


def _task(
    source: ReaderSource,
    examples: Sequence[ReadingExample],
    shares: Sequence[tuple[int, int, float]],
    config: ReaderTrainConfig,
    reading: Callable[[int], None] | None,
) -> ReadingTask:
    torch.manual_seed(config.seed)
    model, tokenizer = load_reader(source, with_dropouts=config.dropout > 0)
    base = model if source.folder is None else load_reader(replace(source, folder=None))[0]
    if config.dropout and config.bf16 and device_of(World()) == "cpu":
        attend_in_fp32(model.encoder)
    inputs = Inputs(examples, tokenizer, source.config, reading)
    return ReadingTask(model, copy.deepcopy(base), inputs, shares, config, device_of(World()))


def _examples(files: Sequence[str], on_bad: OnBad | None) -> tuple[list[ReadingExample], list[tuple[int, int, float]]]:
    """All examples, and of each file the first, the one after its last, and its share."""
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
            raise InputError(f"share {share!r} of {path!r}; allowed is a number above 0, as in {path}:0.25")
        first = len(every)
        every += read_examples(path, skip_bad=on_bad is not None, on_bad=on_bad)
        shares.append((first, len(every), weight))
    return every, shares


def _with_negatives(
    examples: Sequence[ReadingExample],
    output: Path,
    config: ReaderTrainConfig,
    progress: Callable[[int], None] | None,
) -> list[ReadingExample]:
    """The examples, those without negatives of their own with BM25's best passages of the others that do not hold an
    answer's text; found once, kept beside the run."""
    texts = list(dict.fromkeys(passage for each in examples for passage in (each.passage, *each.negatives)))
    digest = hashlib.sha256()
    for each in examples:
        digest.update(f"{each.question}\0{each.passage.text}\0{each.answers}\n".encode())
    label, file = digest.hexdigest(), output / _NEGATIVES_FILE
    kept = json.loads(file.read_bytes()) if file.is_file() else {}
    if kept.get("label") != label:
        folder = output / "passages.quoth"
        shutil.rmtree(folder, ignore_errors=True)
        corpus = Corpus.create(folder, splitter=WHOLE)
        corpus.add(Document(str(i), each.title, each.text) for i, each in enumerate(texts))
        found = []
        for number, each in enumerate(examples):
            found.append([] if each.negatives else _negatives(each, corpus))
            if progress and number % 500 == 0:
                progress(number)
        kept = {"label": label, "negatives": found}
        atomic_write_bytes(file, json.dumps(kept).encode())
        shutil.rmtree(folder)
    return [
        each if not rows else replace(each, negatives=tuple(texts[row] for row in rows))
        for each, rows in zip(examples, kept["negatives"], strict=True)
    ]


def _negatives(example: ReadingExample, corpus: Corpus, most: int = 3) -> list[int]:
    rows, _ = corpus.bm25(example.question, _SEARCHED)
    said = tuple(example.texts)
    wanted = Question(example.id, example.question, said)
    found = []
    for row in rows.tolist():
        passage = corpus.passage(row)
        if passage.text != example.passage.text and not (said and has_answer(passage.text, wanted)):
            found.append(int(passage.document_id))
    return found[:most]
