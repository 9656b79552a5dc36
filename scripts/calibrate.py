"""Fit what makes an answer's probability the chance that it is right, on questions or blanks with known answers.

    python scripts/calibrate.py questions FOLDER dev.jsonl … --beside more.jsonl --count 600
    python scripts/calibrate.py blanks FOLDER pages.jsonl --short short_blanks.jsonl --count 300

FOLDER holds a model: a reader (questions) or an NPM that has a reader (blanks). Its quoth.json gets `calibration` and
two thresholds: `min_probability`, the least probability from which 80 % of the answers given are right, and
`not_found_below`, the largest below which at most 5 % of the first answers are right: there, the passages that were
read do not say. Answers of equal probability are on the same side of both. A reader's also gets `prior` and, for its
first sentences, `sentence_calibration`; an NPM's `read_weights`: the simplest that answer as well as the best. A fifth
of the questions are asked without the passages that answer them. `--weights`: those to calibrate for, instead of the
simplest. `--short`: single sentences with a blank and the passages that fill them (question_blanks.py), as many as
there are blanks drawn from the pages. Use no data that anything is reported on.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, product
from math import floor
from pathlib import Path
from typing import TypeVar

import numpy as np

from quoth.answers.calibration import fit, not_found_threshold, threshold
from quoth.answers.evidence import Proposal, calibrated, features, predict_spans
from quoth.answers.options import FillOptions
from quoth.answers.sentences import answer_sentences
from quoth.corpus.corpus import Corpus
from quoth.corpus.documents import read_documents
from quoth.datasets.blanks import KINDS, draw_blanks
from quoth.datasets.judging import exact_match, has_answer, normalise
from quoth.datasets.questions import QAExample
from quoth.hub import SETTINGS_FILE
from quoth.npm.blanks import PROPOSED, combine
from quoth.npm.model import NPM
from quoth.reader.data import read_examples
from quoth.reader.model import Reader
from quoth.records import Document, Prediction, Sentence
from quoth.storage import atomic_write_json, read_json
from quoth.text.passages import WHOLE
from quoth.text.tokenizer import MASK

PRECISION = 0.8
NOT_FOUND = 0.05
"""The share of right answers among those that are not shown as answers."""
UNANSWERABLE = 0.2
AT_A_TIME = 16
Weights = tuple[float, float, float]
"""An NPM's `read_weights`."""
WEIGHTS: tuple[Weights, ...] = tuple(product((0.0, 0.1, 0.2, 0.35, 0.5, 1.0), (0.5,), (0.0, 0.5, 1.0)))
PRIORS = (0.0, 1.0, 2.0, 3.0, 5.0, 8.0, 12.0)
Setting = TypeVar("Setting")
Judged = tuple[Prediction, bool]
"""A first answer, and whether it is right."""


def ask_questions(
    folder: Path, files: Sequence[str], beside: Sequence[str], count: int, seed: int
) -> tuple[float, list[Judged], list[tuple[Sentence, bool]]]:
    """The prior by which questions, as many of each file, over all files' passages are answered best, the first
    answers with it, and the first sentences."""
    rng = random.Random(seed)
    parts = [[each for each in read_examples(file) if each.answers] for file in files]
    others = [each for file in beside for each in read_examples(file)]
    texts = dict.fromkeys(each.passage for each in (*chain(*parts), *others))
    asked = [each for part in parts for each in rng.sample(part, min(count // len(parts), len(part)))]
    with tempfile.TemporaryDirectory() as place:
        corpus = Corpus.create(Path(place) / "dev.quoth", splitter=WHOLE)
        corpus.add(Document(str(i), each.title, each.text) for i, each in enumerate(texts))
        reader = Reader.from_pretrained(folder, corpus=corpus)
        questions, hidden = list[QAExample](), list[set[int]]()
        for each in asked:
            questions.append(QAExample(each.id, each.question, tuple(each.texts)))
            rows = corpus.bm25(each.question, 100)[0].tolist() if rng.random() < UNANSWERABLE else []
            hidden.append({row for row in rows if has_answer(corpus.passage(row).text, questions[-1])})
        read = list(reader.read([each.text for each in questions], [each.text for each in questions], exclude=hidden))
    judged = {
        prior: [
            (best, not gone and exact_match(best.text, question))
            for question, gone, found in zip(questions, hidden, read, strict=True)
            for best in predict_spans(*found, 1, prior=prior)
        ]
        for prior in PRIORS
    }
    prior, answers = _best(judged)
    sentences = [
        (best, not gone and has_answer(best.text, question))
        for question, gone, found in zip(questions, hidden, read, strict=True)
        for best in answer_sentences(*found, prior, None, 1)
    ]
    return prior, answers, sentences


def fill_blanks(
    folder: Path,
    pages: Sequence[str],
    short: Sequence[str],
    beside: Sequence[str],
    count: int,
    seed: int,
    among: Sequence[Weights] = WEIGHTS,
) -> tuple[Weights, list[Judged]]:
    """The weights `among` some by which blanks are filled best, and the first answers by these."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as place:
        drawn = Corpus.create(Path(place) / "pages.quoth")
        drawn.add(read_documents(*pages))
        passages = list(drawn.passages())
        blanks = [blank for kind in KINDS for blank in draw_blanks(passages, kind, count, seed)]
        asked = [(each.text, {each.row}, [each.answer]) for each in blanks]
        both = list(_filled(folder, drawn, asked))
        if short:
            examples = [each for file in short for each in read_examples(file) if each.answers]
            others = [each for file in beside for each in read_examples(file)]
            beneath = Corpus.create(Path(place) / "short.quoth", splitter=WHOLE)
            texts = dict.fromkeys(each.passage for each in (*examples, *others))
            beneath.add(Document(str(i), each.title, each.text) for i, each in enumerate(texts))
            chosen = rng.sample(examples, min(len(asked), len(examples)))
            asked = [(each.question, set(), each.texts) for each in chosen]
            both += _filled(folder, beneath, asked)
    for kind, part in (("drawn", both[: len(blanks)]), ("short", both[len(blanks) :])):
        print(kind)
        _best({weights: _judged(part, weights) for weights in among})
    return _best({weights: _judged(both, weights) for weights in among})


Blank = tuple[str, set[int], list[str]]
"""A text, the rows that are hidden from it, and its answers."""
Filled = tuple[Blank, list[Proposal], list[Proposal]]
"""The blank, what NPM proposes, and what the reader marks."""


def _filled(folder: Path, corpus: Corpus, blanks: Sequence[Blank]) -> Iterator[Filled]:
    npm = NPM.from_pretrained(folder, corpus=corpus)
    options = FillOptions(top_k=PROPOSED, distinct=False).resolved(npm.config.defaults)
    for at in range(0, len(blanks), AT_A_TIME):
        part = blanks[at : at + AT_A_TIME]
        texts, hidden = [each[0] for each in part], [each[1] for each in part]
        asked = npm.asked(texts, [each.replace(MASK, " ") for each in texts], hidden, options)
        proposed = [list(each) for each in npm.proposals(asked, npm.encoder.blanks(texts), options)]
        read = npm.read(asked, proposed, npm.config.defaults.read)
        yield from zip(part, proposed, read, strict=True)


def _judged(filled: Sequence[Filled], weights: Weights) -> list[Judged]:
    return [
        (best, normalise(best.text) in {normalise(each) for each in answers})
        for (text, _, answers), proposed, marked in filled
        for best in combine(text, proposed, marked, weights, 1)
    ]


def _best(judged: Mapping[Setting, list[Judged]]) -> tuple[Setting, list[Judged]]:
    """The first setting that is as good as the one with most right answers, and its answers.

    As good: what it has fewer right is within one standard error of the difference (the settings stand from the
    simplest on; Hastie et al. 2009, §7.10).
    """
    for setting, found in judged.items():
        print(setting, f"{sum(right for _, right in found)} of {len(found)} right", flush=True)
    most = max(judged.values(), key=lambda found: sum(right for _, right in found))
    for setting, found in judged.items():
        pairs = [(right, better) for (_, right), (_, better) in zip(found, most, strict=True) if right != better]
        if sum(better - right for right, better in pairs) <= len(pairs) ** 0.5:
            return setting, found
    raise AssertionError("the best is as good as itself")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=("questions", "blanks"))
    parser.add_argument("folder", type=Path, help="the model's folder")
    parser.add_argument("files", nargs="+", help="questions with their passages (JSONL), or documents")
    parser.add_argument("--beside", nargs="*", default=(), help="files whose passages are searched as well")
    parser.add_argument("--short", nargs="*", default=(), help="single sentences with a blank, with their passages")
    parser.add_argument("--count", type=int, default=600, help="questions in all, or blanks of each kind")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--weights", nargs=3, type=float, metavar=("W", "V", "E"), help="an NPM's `read_weights`")
    options = parser.parse_args()
    settings = read_json(options.folder / SETTINGS_FILE)
    if options.kind == "questions":
        prior, judged, sentences = ask_questions(
            options.folder, options.files, options.beside, options.count, options.seed
        )
        settings["prior"] = prior
        marked = np.array([features(best.probability, 0.0) for best, _ in sentences])
        fitted = fit(marked, np.array([right for _, right in sentences]))
        settings["sentence_calibration"] = [round(each, 4) for each in fitted[:2]]
        print(f"{sum(right for _, right in sentences)} of {len(sentences)} first sentences right")
    else:
        among = [tuple(options.weights)] if options.weights else WEIGHTS
        weights, judged = fill_blanks(
            options.folder, options.files, options.short, options.beside, options.count, options.seed, among
        )
        settings["read_weights"] = list(weights)
    right = [each for _, each in judged]
    found = fit(np.array([features(best.probability, best.log_score) for best, _ in judged]), np.array(right))
    chances = [calibrated([best], found, 0.0)[0].probability for best, _ in judged]
    settings["calibration"] = [round(each, 4) for each in found]
    least = round(threshold(chances, right, PRECISION), 3)
    lowest = min(floor(1000 * not_found_threshold(chances, right, NOT_FOUND)) / 1000, least)
    settings["defaults"] = settings.get("defaults", {}) | {"min_probability": least, "not_found_below": lowest}
    atomic_write_json(options.folder / SETTINGS_FILE, settings)
    print(json.dumps({name: settings[name] for name in ("calibration", "defaults")}))
    print(f"{sum(right)} of {len(right)} right; {sum(p >= least for p in chances)} answered")


if __name__ == "__main__":
    main()
