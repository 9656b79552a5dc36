"""What makes a reader's probabilities mean something, fitted on questions with known answers.

Knows: how questions are asked for this, a part of them without their evidence, and which settings follow. Does not
know: how weights and thresholds are found (`answers/calibration`).
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from quoth.answers.calibration import LEAST_ANSWERS
from quoth.answers.calibration import calibrate as fit_thresholds
from quoth.answers.evidence import Source, Spans, chance, features, predict_spans, settled
from quoth.corpus.corpus import Corpus
from quoth.datasets.judging import exact_match, has_answer
from quoth.datasets.questions import QAExample
from quoth.errors import InputError
from quoth.hub import SETTINGS_FILE, locate
from quoth.reader.config import ReaderConfig
from quoth.reader.model import Reader
from quoth.reader.spans import AT_A_TIME
from quoth.reader.units import judged_units
from quoth.storage import atomic_write_json

UNANSWERABLE = 0.2
"""The share of the questions that are asked without the passages that answer them."""
SEARCHED = 100
PRIORS = (0.0, 1.0, 2.0, 3.0, 5.0, 8.0, 12.0)
LOSS = 0.0025
"""The share of right first answers, at most, that reading less may cost."""
BOUNDS = tuple(each / 2 for each in range(-8, 11))
Read = tuple[list[Source], list[Spans]]
"""Passages, and what a reader marks in them."""
Asked = tuple[QAExample, bool, Read]
"""A question, whether its evidence was hidden, and everything that was read for it."""
Judged = tuple[tuple[float, ...], bool]
"""Features, and whether it is right."""
Setting = TypeVar("Setting")


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A reader's settings, fitted; and of how many questions the first answer was right; how many of these answers are
    given by default, and how many of those are right."""

    config: ReaderConfig
    questions: int
    right: int
    answered: int
    right_answered: int


def calibrate(
    reader: Reader,
    asked: Sequence[tuple[Corpus, Sequence[QAExample]]],
    seed: int = 7,
    progress: Callable[[int], None] = lambda count: None,
) -> Calibrated:
    """Fit `prior`, `unread_bound`, `calibration`, `sentence_calibration` and the thresholds of a reader, of phrases and
    of units, on questions, those about a corpus asked over it.

    `progress` receives the number of questions asked so far. Raises InputError if there are too few questions, and as
    `Reader.ask` does.
    """
    if (number := sum(len(questions) for _, questions in asked)) < LEAST_ANSWERS:
        raise InputError(f"{number} questions; give at least {LEAST_ANSWERS}; a few hundred are good")
    whole = copy(reader.reader)
    whole.config = replace(reader.config, unread_bound=None)
    rng, read, count = random.Random(seed), list[Asked](), 0
    for corpus, questions in asked:
        own = Reader(whole, [corpus])
        hidden = [_evidence(corpus, each) if rng.random() < UNANSWERABLE else set() for each in questions]
        texts = [each.text for each in questions]
        for question, rows, found in zip(questions, hidden, own.read(texts, texts, exclude=hidden), strict=True):
            read.append((question, bool(rows), found))
            progress(count := count + 1)
    return fitted(reader.config, read)


def fitted(config: ReaderConfig, read: Sequence[Asked]) -> Calibrated:
    """The settings by questions of which everything was read. Raises InputError if no passage was found for any."""
    first = {
        prior: [
            not gone and exact_match(best.text, question)
            for question, gone, found in read
            for best in predict_spans(*found, 1, prior=prior)
        ]
        for prior in PRIORS
    }
    prior = simplest(first)
    bound = least_bound(read, prior)
    answers, sentences = list[Judged](), list[Judged]()
    for question, gone, found in read:
        part = enough(found, prior, bound)
        for best in predict_spans(*part, 1, prior=prior):
            answers.append((features(best, *part), not gone and exact_match(best.text, question)))
        for unit, known in judged_units(*part, replace(config, prior=prior), 1):
            sentences.append((known, not gone and has_answer(unit.text, question)))
    if not answers:
        raise InputError("no passage is found for any of the questions; give questions about the corpus")
    by, of_units = (fit_thresholds(*zip(*each, strict=True)) for each in (answers, sentences))
    settings = replace(
        config,
        prior=prior,
        unread_bound=bound,
        calibration=by.calibration,
        sentence_calibration=of_units.calibration,
        defaults=replace(
            config.defaults,
            min_probability=by.min_probability,
            unit_probability=of_units.min_probability,
            fitted_on=(len(answers), len(sentences)),
            not_found_below=by.not_found_below,
            thresholds=by.thresholds,
        ),
    )
    given = [yes for row, yes in answers if chance(by.calibration, row) >= by.min_probability]
    return Calibrated(settings, len(read), sum(yes for _, yes in answers), len(given), sum(given))


def least_bound(read: Sequence[Asked], prior: float) -> float | None:
    """The smallest `unread_bound` with which, as with all larger ones, hardly any first answer is lost, if there is
    one."""
    known = [(question, found) for question, gone, found in read if not gone]
    everything, least = _right(known, prior, None), None
    for bound in reversed(BOUNDS):
        if _right(known, prior, bound) < everything - LOSS * len(read):
            break
        least = bound
    return least


def _right(read: Sequence[tuple[QAExample, Read]], prior: float, bound: float | None) -> int:
    """How many first answers are right."""
    first = ((question, predict_spans(*enough(found, prior, bound), 1, prior=prior)) for question, found in read)
    return sum(exact_match(best.text, question) for question, found in first for best in found)


def enough(read: Read, prior: float, bound: float | None) -> Read:
    """The part of everything that is read with a bound (None: everything)."""
    sources, spans = read
    for n in range(AT_A_TIME, len(sources), AT_A_TIME):
        if bound is not None and settled(sources, spans[:n], prior, bound):
            return sources[:n], spans[:n]
    return read


def simplest(right: Mapping[Setting, Sequence[bool]]) -> Setting:
    """The first setting that is as good as the one with most right answers.

    As good: what it has fewer right is within one standard error of the difference (the settings stand from the
    simplest on; Hastie et al. 2009, §7.10).
    """
    most = max(right.values(), key=sum)
    for setting, own in right.items():
        changed = [better - yes for yes, better in zip(own, most, strict=True) if yes != better]
        if sum(changed) <= len(changed) ** 0.5:
            return setting
    raise AssertionError("the best is as good as itself")


def _evidence(corpus: Corpus, question: QAExample) -> set[int]:
    """The passages that would answer a question, among those that could be read."""
    rows = corpus.bm25(question.text, SEARCHED)[0].tolist()
    return {row for row in rows if has_answer(corpus.passage(row).text, question)}


def save_settings(name: str, folder: Path, settings: ReaderConfig) -> None:
    """Write a copy of a reader that has other settings. Raises InputError if the folder has something in it."""
    source = locate(name, ReaderConfig)
    if source.folder is None:
        raise InputError(f"{name} has no weights of its own; name a reader that was trained")
    if folder.exists() and any(folder.iterdir()):
        raise InputError(f"{folder} is not empty; name a new folder")
    shutil.copytree(source.folder, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("checkpoint-*", "*.md"))
    atomic_write_json(folder / SETTINGS_FILE, settings.to_dict())
