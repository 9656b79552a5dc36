"""A reader fitted to questions: by what it answers afterwards, asked one question after another."""

from __future__ import annotations

import random
from copy import copy
from pathlib import Path
from typing import Any

import pytest
from test_span_reader import make_reader

import quoth
from quoth.cli.main import main
from quoth.datasets.judging import exact_match, has_answer
from quoth.datasets.questions import QAExample
from quoth.errors import InputError
from quoth.reader.calibration import UNANSWERABLE, calibrate, simplest
from quoth.reader.weights import save_reader
from tiny import TEXT, tiny_bert, tiny_corpus

QUESTIONS = 60


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> quoth.Corpus:
    return tiny_corpus(tmp_path_factory.mktemp("corpus") / "c.quoth")


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return make_reader(tmp_path_factory.mktemp("base") / "b", max_tokens=128)


@pytest.fixture(scope="module")
def questions(reader: Any, corpus: quoth.Corpus) -> list[QAExample]:
    """Questions of some words of the texts; two of three have the reader's own answer as the right one."""
    words, rng = " ".join(TEXT).split(), random.Random(0)
    texts = [f"{' '.join(rng.sample(words, 4))} {number}" for number in range(QUESTIONS)]
    answered = quoth.Reader(reader, [corpus]).ask(texts, top_k=1)
    said = [best[0].text if number % 3 else "nobody" for number, best in enumerate(answered)]
    return [QAExample(str(n), text, (answer,)) for n, (text, answer) in enumerate(zip(texts, said, strict=True))]


def test_the_numbers_are_those_of_asking_afterwards(
    reader: Any, corpus: quoth.Corpus, questions: list[QAExample]
) -> None:
    asked: list[int] = []
    found = calibrate(quoth.Reader(reader), [(corpus, questions)], seed=3, progress=asked.append)
    fitted = quoth.Reader(copy(reader), [corpus])
    fitted.reader.config = found.config
    rng, right, given, units = random.Random(3), [], [], []
    for question in questions:
        hidden = rng.random() < UNANSWERABLE
        rows = range(corpus.num_passages)
        gone = {row for row in rows if hidden and has_answer(corpus.passage(row).text, question)}
        answers = fitted.ask(question.text, exclude=gone)
        best, [unit] = answers[0], answers.sentences[:1]
        units.append((unit.status == "answered", has_answer(unit.text, question) and not gone))
        right.append(exact_match(best.text, question) and not gone)
        given.append(best.status == "answered")
    assert asked == list(range(1, QUESTIONS + 1))
    assert (found.questions, found.right, found.answered) == (QUESTIONS, sum(right), sum(given))
    assert found.right_answered == sum(yes for yes, answered in zip(right, given, strict=True) if answered)
    assert 0 < found.right < QUESTIONS
    assert found.config.defaults.fitted_on == (QUESTIONS, QUESTIONS)
    sure = [yes for answered, yes in units if answered]
    assert sum(sure) >= 0.8 * len(sure)


def test_too_few_questions_are_refused(reader: Any, corpus: quoth.Corpus, questions: list[QAExample]) -> None:
    with pytest.raises(InputError, match="29 questions; give at least 30; a few hundred are good"):
        calibrate(quoth.Reader(reader), [(corpus, questions[:20]), (corpus, questions[:9])])


def test_the_simplest_setting_that_is_as_good_by_hand() -> None:
    one, more, most = [True] * 4 + [False] * 6, [True] * 5 + [False] * 5, [True] * 9 + [False]
    assert simplest({"one": one, "more": more}) == "one"  # one better, where one is within sqrt(1)
    assert simplest({"one": one, "most": most}) == "most"  # five better, more than sqrt(5)
    assert simplest({"more": more, "one": one}) == "more"


def test_the_command_writes_a_reader_with_its_thresholds(
    corpus: quoth.Corpus, questions: list[QAExample], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = tiny_bert(tmp_path / "base")
    own = make_reader(base, max_tokens=128, base=lambda folder: folder)
    save_reader(tmp_path / "reader", own.model, base, own.config.to_dict())
    file = tmp_path / "questions.tsv"
    file.write_text("".join(f"{each.text}\t{list(each.answers)!r}\n" for each in questions))
    arguments = ["calibrate", corpus.path, file, "-o", tmp_path / "fitted", "--model", tmp_path / "reader"]
    assert main([*map(str, arguments)]) == 0
    assert "first answers are right; from" in capsys.readouterr().err
    fitted = quoth.Reader.from_pretrained(tmp_path / "fitted", corpus=corpus)
    assert fitted.config.calibration is not None
    assert len(fitted.config.calibration) == 6
    assert fitted.ask(questions[0].text)[0].text == quoth.Reader(own, [corpus]).ask(questions[0].text)[0].text
    assert main([*map(str, arguments)]) == 2  # the folder is there
    assert "is not empty; name a new folder" in capsys.readouterr().err
