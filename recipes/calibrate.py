"""Fit what makes an answer's probability the chance that it is right, on questions or blanks with known answers.

    python recipes/calibrate.py questions FOLDER dev.jsonl entities.quoth=entities.jsonl … --count 900
    python recipes/calibrate.py blanks FOLDER pages.jsonl --short short_blanks.jsonl --count 300

FOLDER holds a model: a reader (questions) or an NPM that has a reader (blanks). Its quoth.json gets `calibration` and
the thresholds; a reader's `prior` and `sentence_calibration` too, an NPM's `read_weights`: the simplest that answer as
well as the best. Questions are asked over the passages of their own file, or over a corpus (CORPUS=FILE), as many of
each file: different kinds of text are worth most. `quoth calibrate` does the same for one corpus and its questions.
`--weights`: those to calibrate for, instead of the simplest. `--short`: single sentences with a blank and the passages
that fill them (question_blanks.py), as many as there are blanks drawn from the pages. Use no data that anything is
reported on.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path

from quoth.answers.calibration import calibrate as fit_thresholds
from quoth.answers.evidence import Proposal, features
from quoth.answers.options import FillOptions
from quoth.corpus.corpus import Corpus
from quoth.corpus.documents import read_documents
from quoth.datasets.blanks import KINDS, draw_blanks
from quoth.datasets.judging import normalise
from quoth.datasets.questions import QAExample
from quoth.hub import SETTINGS_FILE
from quoth.npm.blanks import PROPOSED, combine
from quoth.npm.model import NPM
from quoth.reader.calibration import calibrate, simplest
from quoth.reader.data import ReadingExample, read_examples
from quoth.reader.model import Reader
from quoth.records import Document
from quoth.storage import atomic_write_json, read_json
from quoth.text.passages import MEASURED, WHOLE
from quoth.text.tokenizer import MASK

AT_A_TIME = 16
Asked = tuple[Corpus, list[QAExample]]
Weights = tuple[float, float, float]
"""An NPM's `read_weights`."""
WEIGHTS: tuple[Weights, ...] = tuple(product((0.0, 0.1, 0.2, 0.35, 0.5, 1.0), (0.5,), (0.0, 0.5, 1.0)))
Judged = tuple[tuple[float, ...], bool]
"""The features of a first answer, and whether it is right."""


def asked_over_their_passages(files: Sequence[str], count: int, place: Path, seed: int) -> list[Asked]:
    """As many questions of each file, over a corpus of all passages of the file; or, of CORPUS=FILE, over CORPUS."""
    asked = []
    for number, named in enumerate(files):
        own, _, file = named.rpartition("=")
        examples = read_examples(file)
        drawn = [each for each in examples if each.answers and MASK not in each.question]
        drawn = random.Random(seed).sample(drawn, min(count // len(files), len(drawn)))
        corpus = Corpus.open(own) if own else _corpus(place / f"{number}.quoth", examples)
        asked.append((corpus, [QAExample(each.id, each.question, tuple(each.texts)) for each in drawn]))
    return asked


def _corpus(place: Path, examples: Sequence[ReadingExample]) -> Corpus:
    corpus = Corpus.create(place, splitter=WHOLE)
    texts = dict.fromkeys(each.passage for each in examples)
    corpus.add(Document(str(i), each.title, each.text) for i, each in enumerate(texts))
    return corpus


def fill_blanks(
    folder: Path,
    pages: Sequence[str],
    short: Sequence[str],
    beside: Sequence[str],
    count: int,
    seed: int,
    among: Sequence[Weights] = WEIGHTS,
    dense: bool = False,
) -> tuple[Weights, list[Judged]]:
    """The weights `among` some by which blanks are filled best, and the first answers by these."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as place:
        drawn = Corpus.create(Path(place) / "pages.quoth", MEASURED)
        drawn.add(read_documents(*pages))
        passages = list(drawn.passages())
        blanks = [blank for kind in KINDS for blank in draw_blanks(passages, kind, count, seed)]
        asked = [(each.text, {each.row}, [each.answer]) for each in blanks]
        both = list(_filled(folder, drawn, asked))
        if dense:
            both += _filled(folder, drawn, asked, dense)
        pages = len(both)
        if short:
            examples = [each for file in short for each in read_examples(file) if each.answers]
            others = [each for file in beside for each in read_examples(file)]
            beneath = _corpus(Path(place) / "short.quoth", [*examples, *others])
            chosen = rng.sample(examples, min(len(asked), len(examples)))
            asked = [(each.question, set(), each.texts) for each in chosen]
            both += _filled(folder, beneath, asked)
    for kind, part in (("drawn", both[:pages]), ("short", both[pages:])):
        print(kind)
        _best({weights: _judged(part, weights) for weights in among})
    return _best({weights: _judged(both, weights) for weights in among})


Blank = tuple[str, set[int], list[str]]
"""A text, the rows that are hidden from it, and its answers."""
Filled = tuple[Blank, list[Proposal], list[Proposal]]
"""The blank, what NPM proposes, and what the reader marks."""


def _filled(folder: Path, corpus: Corpus, blanks: Sequence[Blank], dense: bool = False) -> Iterator[Filled]:
    npm = NPM.from_pretrained(folder, corpus=corpus)
    options = FillOptions(top_k=PROPOSED, distinct=False).resolved(npm.config.defaults)
    if dense:
        npm.embed("fp32", recall=1.0)
        options = replace(options, passages=None)
    for at in range(0, len(blanks), AT_A_TIME):
        part = blanks[at : at + AT_A_TIME]
        texts, hidden = [each[0] for each in part], [each[1] for each in part]
        asked = npm.asked(texts, [each.replace(MASK, " ") for each in texts], hidden, options)
        for each, (proposed, marked) in zip(part, npm.proposed_and_marked(asked, options), strict=True):
            yield each, proposed, marked


def _judged(filled: Sequence[Filled], weights: Weights) -> list[Judged]:
    return [
        (features(best), normalise(best.text) in {normalise(each) for each in answers})
        for (text, _, answers), proposed, marked in filled
        for best in combine(text, proposed, marked, weights, 1)
    ]


def _best(judged: Mapping[Weights, list[Judged]]) -> tuple[Weights, list[Judged]]:
    """The simplest weights that are as good as the best, and their answers."""
    right = {weights: [yes for _, yes in answers] for weights, answers in judged.items()}
    for weights, answers in right.items():
        print(weights, f"{sum(answers)} of {len(answers)} right", flush=True)
    chosen = simplest(right)
    return chosen, judged[chosen]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=("questions", "blanks"))
    parser.add_argument("folder", type=Path, help="the model's folder")
    parser.add_argument("files", nargs="+", help="questions with their passages (JSONL), or documents")
    parser.add_argument("--beside", nargs="*", default=(), help="files whose passages are searched for --short as well")
    parser.add_argument("--short", nargs="*", default=(), help="single sentences with a blank, with their passages")
    parser.add_argument("--count", type=int, default=900, help="questions in all, or blanks of each kind")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument(
        "--dense", action="store_true", help="fill the blanks of the pages with every token searched too"
    )
    parser.add_argument("--weights", nargs=3, type=float, metavar=("W", "V", "E"), help="an NPM's `read_weights`")
    options = parser.parse_args()
    settings = read_json(options.folder / SETTINGS_FILE)
    if options.kind == "questions":
        with tempfile.TemporaryDirectory() as place:
            asked = asked_over_their_passages(options.files, options.count, Path(place), options.seed)
            found = calibrate(Reader.from_pretrained(options.folder), asked, options.seed)
        settings |= {name: value for name, value in found.config.to_dict().items() if name in settings or value}
        print(f"{found.right} of {found.questions} right; {found.answered} answered, {found.right_answered} right")
    else:
        among = [tuple(options.weights)] if options.weights else WEIGHTS
        weights, judged = fill_blanks(
            options.folder,
            options.files,
            options.short,
            options.beside,
            options.count,
            options.seed,
            among,
            options.dense,
        )
        rows, right = zip(*judged, strict=True)
        fitted = asdict(fit_thresholds(rows, right))
        settings |= {"read_weights": list(weights), "calibration": fitted.pop("calibration")}
        settings["defaults"] = settings.get("defaults", {}) | fitted
    atomic_write_json(options.folder / SETTINGS_FILE, settings)
    print(json.dumps({name: settings[name] for name in ("calibration", "defaults")}))


if __name__ == "__main__":
    main()
