"""Training a reader: the loss by hand and by brute force, batches, hard negatives, runs that were stopped."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from test_span_reader import SMALL

from quoth.errors import InputError
from quoth.hub import READER_FILE, ModelSource
from quoth.reader.config import NEVER, ReaderConfig, ReaderTrainConfig
from quoth.reader.data import ReadingExample, TitledText, read_examples
from quoth.reader.recipe import with_negatives
from quoth.reader.spans import Reading
from quoth.reader.training import Inputs, ReadingTask, Teacher, distillation_loss, reading_loss, right_spans
from quoth.reader.weights import load_reader, save_reader
from quoth.training.recipes import run_recipe
from quoth.training.trainer import Progress, Step
from tiny import tiny_bert, tiny_mpnet

CITIES = {"France": "Paris", "Germany": "Berlin", "Greece": "Athens", "Korea": "Seoul", "Egypt": "Cairo"}


def example(country: str, city: str, number: int = 0) -> ReadingExample:
    text = f"{city} is the capital of {country}, above the river."
    negative = TitledText("", f"The tower of {country} stands upon the chamber.")
    question = f"What is the capital of {country}?"
    return ReadingExample(f"{country}-{number}", question, TitledText(city, text), ((0, len(city)),), (negative,))


EXAMPLES = [example(*each) for each in CITIES.items()]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("base") / "b")


@pytest.fixture(scope="module")
def start(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return untrained(base, tmp_path_factory.mktemp("start") / "m")


def untrained(base: Path, folder: Path) -> Path:
    """A folder with an untrained reader of small windows."""
    config = ReaderConfig(**SMALL, base=str(base))
    torch.manual_seed(0)
    model, _ = load_reader(ModelSource("tiny", config, None, str(base)))
    save_reader(folder, model, model, config.to_dict())
    return folder


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "questions.jsonl"
    records = [
        {
            "id": each.id,
            "title": each.passage.title,
            "context": each.passage.text,
            "question": each.question,
            "answers": [{"text": each.passage.text[a:b], "start": a} for a, b in each.answers],
        }
        for each in EXAMPLES
    ]
    path.write_text("\n".join(map(json.dumps, records)) + "\n", encoding="utf-8")
    return path


def make_task(
    base: Path, examples: Sequence[ReadingExample] = EXAMPLES, layers: int = 0, **settings: Any
) -> ReadingTask:
    """With `layers` of evidence."""
    config = ReaderTrainConfig(**{"batch_size": 3, "bf16": False, **settings})
    reader = ReaderConfig(**SMALL, base=str(base), evidence=layers > 0, evidence_layers=layers)
    torch.manual_seed(0)
    model, tokenizer = load_reader(ModelSource("tiny", reader, None, str(base)))
    untouched, _ = load_reader(ModelSource("tiny", reader, None, str(base)))
    inputs = Inputs(examples, tokenizer, reader)
    return ReadingTask(model, untouched, inputs, [(0, len(examples), 1.0)], config)


def test_the_loss_by_hand() -> None:
    odds_BTW = torch.tensor([[2.0, 3.0], [4.0, 5.0], [6.0, 7.0]]).log()[:, :, None]
    right_BTW = torch.zeros(3, 2, 1, dtype=torch.bool)
    right_BTW[0, 0] = True
    # Question 0 has the first two passages, one right span; question 1 the third, none right.
    loss = reading_loss(odds_BTW, right_BTW, torch.tensor([0, 0, 1]), 2)
    assert loss.item() == pytest.approx((math.log(15 / 2) + math.log(14)) / 2)


def test_spans_that_are_not_legal_have_no_part() -> None:
    odds_BTW = torch.full((1, 2, 2), NEVER)
    odds_BTW[0, 0, 0] = 0.0
    right_BTW = odds_BTW == 0.0
    odds_BTW.requires_grad_()
    loss = reading_loss(odds_BTW, right_BTW, torch.tensor([0]), 1)
    assert loss.item() == pytest.approx(math.log(2))
    loss.backward()
    assert odds_BTW.grad is not None
    assert odds_BTW.grad.flatten().tolist() == pytest.approx([-0.5, 0, 0, 0])
    none = torch.full((1, 1, 1), NEVER, requires_grad=True)
    reading_loss(none, torch.zeros(1, 1, 1, dtype=torch.bool), torch.tensor([0]), 1).backward()
    assert none.grad is not None
    assert none.grad.item() == 0


def test_the_gradient_of_the_shared_normalisation() -> None:
    random = torch.Generator().manual_seed(0)
    odds = torch.randn((5, 3, 2), generator=random, dtype=torch.float64, requires_grad=True)
    right = torch.rand((5, 3, 2), generator=random) < 0.3
    right[4] = False
    owner = torch.tensor([0, 1, 0, 1, 2])
    assert torch.autograd.gradcheck(lambda x: reading_loss(x, right, owner, 3), (odds,))
    expected = 0.0
    for q in range(3):
        mine = owner == q
        total = 1 + odds[mine].exp().sum()
        good = odds[mine].exp()[right[mine]].sum() if right[mine].any() else torch.tensor(1.0)
        expected += -math.log(good.item() / total.item()) / 3
    assert reading_loss(odds, right, owner, 3).item() == pytest.approx(expected)


def test_the_distance_to_a_teacher_is_the_divergence_of_all_answers() -> None:
    random = torch.Generator().manual_seed(1)
    odds, taught = torch.randn((2, 4, 3, 2), generator=random, dtype=torch.float64)
    odds[0, 0, 0] = taught[0, 0, 0] = NEVER
    odds.requires_grad_()
    owner, temperature = torch.tensor([1, 0, 1, 1]), 1.5
    expected = 0.0
    for q in range(2):
        mine = owner == q
        log_q, log_p = (
            (torch.cat([each[mine].flatten(), torch.zeros(1, dtype=torch.float64)]) / temperature).log_softmax(dim=0)
            for each in (odds.detach(), taught)
        )
        expected += float((log_p.exp() * (log_p - log_q)).sum()) * temperature**2 / 2
    assert distillation_loss(odds, taught, owner, 2, temperature).item() == pytest.approx(expected)
    assert torch.autograd.gradcheck(lambda x: distillation_loss(x, taught, owner, 2, temperature), (odds,))
    same = odds.detach()
    assert distillation_loss(same, same, owner, 2, temperature).item() == pytest.approx(0, abs=1e-12)


def test_parts_of_a_batch_together_are_the_batch(base: Path) -> None:
    gradients = []
    for padded in (64, 100000):
        task = make_task(base, padded_tokens=padded, negative_share=1.0, unanswerable=0.0)
        step = task.backward(0)
        gradients.append((step.loss, {name: each.grad.clone() for name, each in task.parameters.items()}))
    (loss, apart), (other, together) = gradients
    assert loss == pytest.approx(other, rel=1e-5)
    for name, gradient in apart.items():
        assert torch.allclose(gradient, together[name], atol=1e-5), name


def test_what_is_shown(base: Path) -> None:
    alone = make_task(base, negative_share=0.0, unanswerable=0.0)
    assert [len(each.right_R2) for each in alone._shown(alone._inputs, 0, 0)] == [1]
    both = make_task(base, negative_share=1.0, unanswerable=0.0)
    assert [len(each.right_R2) for each in both._shown(both._inputs, 0, 0)] == [1, 0]
    hidden = make_task(base, unanswerable=1.0)
    assert [len(each.right_R2) for each in hidden._shown(hidden._inputs, 0, 0)] == [0]


def test_an_answer_that_cannot_be_marked_teaches_nothing(base: Path) -> None:
    text = "the raven sat upon the bust " * 6
    long = ReadingExample("x", "What did it do?", TitledText("", text), ((0, len(text) - 1),), EXAMPLES[0].negatives)
    settings = {"negative_share": 1.0, "unanswerable": 0.0}
    assert make_task(base, examples=[long], **settings).backward(0) == Step(None, 0, 1)
    task = make_task(base, examples=[long, EXAMPLES[0]], **settings)
    both = task.backward(0)
    gradients = {name: each.grad.clone() for name, each in task.parameters.items() if each.grad is not None}
    alone = make_task(base, examples=[EXAMPLES[0]], **settings)
    assert (both.loss, both.skipped) == (alone.backward(0).loss, 1)
    assert gradients
    for name, gradient in gradients.items():
        assert torch.equal(gradient, alone.parameters[name].grad), name


def test_the_window_with_the_answer_is_shown(base: Path) -> None:
    text = "The raven sat upon the bust. " * 20 + "Paris is the capital."
    at = text.index("Paris")
    long = ReadingExample("x", "What is the capital?", TitledText("", text), ((at, at + 5),))
    reader = ReaderConfig(**SMALL, base=str(base))
    _, tokenizer = load_reader(ModelSource("tiny", reader, None, str(base)))
    found = Inputs([long], tokenizer, reader).read(0, long.passage, long.answers)
    [(first, beyond)] = found.right_R2.tolist()
    start, end = found.reading.offsets_T2[first, 0], found.reading.offsets_T2[first + beyond, 1]
    assert text[start:end] == "Paris"


def test_right_spans_leave_out_punctuation_at_the_ends() -> None:
    offsets = np.array([(0, 1), (1, 6), (6, 7)])
    reading = Reading(None, 0, offsets, np.array([0, 3, 0], np.uint8))  # type: ignore[arg-type]
    assert right_spans(reading, [(0, 7)], 3).tolist() == [[1, 0]]
    assert right_spans(reading, [(0, 9)], 3).tolist() == []


def test_every_example_is_drawn_once_an_epoch_and_a_share_in_turn(base: Path) -> None:
    task = make_task(base)
    assert sorted(np.concatenate(task._batches(0)).tolist()) == [0, 1, 2, 3, 4]
    drawn = [task._drawn(0, 5, 0.4, epoch) for epoch in range(5)]
    assert [len(each) for each in drawn] == [2] * 5
    assert sorted(np.concatenate(drawn).tolist()) == sorted([0, 1, 2, 3, 4] * 2)
    assert task.steps_of(1.5) == 3


def run(
    questions: Path, start: Path, output: Path, seconds: float | None = None, **settings: Any
) -> tuple[bool, list[Progress]]:
    told: list[Progress] = []
    overrides = {"epochs": "6", "batch_size": "2", "learning_rate": "0.01", "log_every": "1", "checkpoint_every": "2"}
    overrides |= {name: str(value) for name, value in settings.items()}
    done = run_recipe(
        "reader", [str(questions)], output, overrides, model=str(start), seconds=seconds, progress=told.append
    )
    return done, told


def test_it_learns_and_a_run_in_slices_ends_at_the_same_weights(questions: Path, start: Path, tmp_path: Path) -> None:
    done, told = run(questions, start, tmp_path / "whole", unanswerable=0, epochs=20)
    assert done
    assert told[-1].loss < 0.5 * told[0].loss
    slices = 0
    while not run(questions, start, tmp_path / "sliced", seconds=0.1, unanswerable=0, epochs=20)[0]:
        slices += 1
    assert slices > 1
    whole, sliced = (load_file(tmp_path / name / READER_FILE) for name in ("whole", "sliced"))
    assert whole.keys() == sliced.keys()
    for name, weight in whole.items():
        assert torch.equal(weight, sliced[name]), name


def test_it_learns_from_a_teacher(questions: Path, start: Path, tmp_path: Path) -> None:
    settings = {"unanswerable": 0, "negative_share": 1, "num_negatives": 1}
    teacher = untrained(tiny_mpnet(tmp_path / "mpnet"), tmp_path / "other")
    run(questions, teacher, tmp_path / "teacher", epochs=20, **settings)
    taught = settings | {"teacher": tmp_path / "teacher", "teacher_weight": 1}
    drawn = {"unanswerable": 0.3, "negative_share": 0.5, "padded_tokens": 64, "learning_rate": 0}
    _, itself = run(questions, start, tmp_path / "itself", teacher=start, teacher_weight=1, **drawn)
    assert [each.loss for each in itself] == pytest.approx([0] * len(itself), abs=1e-5)
    _, told = run(questions, start, tmp_path / "pupil", epochs=20, **taught)
    assert told[-1].loss < 0.3 * told[0].loss
    _, hot = run(questions, start, tmp_path / "hot", epochs=1, **taught | {"temperature": 3})
    assert hot[0].loss != pytest.approx(told[0].loss, rel=1e-3)
    _, both = run(questions, start, tmp_path / "both", epochs=1, **taught | {"teacher_weight": 0.25})
    _, alone = run(questions, start, tmp_path / "alone", epochs=1, **settings)
    assert both[0].loss == pytest.approx(0.25 * told[0].loss + 0.75 * alone[0].loss, rel=1e-4)


def test_a_teacher_reads_the_question_in_full(base: Path) -> None:
    asked = [
        replace(each, question=f"{country} capital", in_full=each.question)
        for each, country in zip(EXAMPLES, CITIES, strict=True)
    ]
    task = make_task(base, asked, batch_size=5, unanswerable=0, negative_share=0, teacher_weight=1, temperature=1)
    inputs = Inputs(EXAMPLES, task._inputs.tokenizer, task._inputs.config)
    task._teacher = Teacher(task.model, inputs)
    expected = 0.0
    for number, each in enumerate(asked):
        log_p, log_q = (_answers(task, read, number, each.passage, each.answers) for read in (inputs, task._inputs))
        expected += float((log_p.exp() * (log_p - log_q)).sum()) / len(asked)
    assert expected > 1e-4
    assert task.backward(0).loss == pytest.approx(expected, rel=1e-3)


def test_questions_in_full_come_from_the_files(questions: Path, start: Path, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in questions.read_text("utf-8").splitlines()]
    settings = {"teacher": start, "teacher_weight": 1, "learning_rate": 0, "unanswerable": 0, "epochs": 1}

    def loss(file: str, output: str, *in_full: object) -> float:
        told = [line | ({"in_full": in_full[0]} if in_full else {}) for line in lines]
        (tmp_path / file).write_text("\n".join(map(json.dumps, told)), "utf-8")
        return run(tmp_path / file, start, tmp_path / output, **settings)[1][0].loss

    assert loss("a.jsonl", "a") == pytest.approx(0, abs=1e-5)
    assert loss("b.jsonl", "b", "Which river runs east?") > 1e-3
    with pytest.raises(InputError, match="digest of the examples"):
        loss("b.jsonl", "b", "Who sat above the door?")
    with pytest.raises(InputError, match=r"b.jsonl:1: in_full 3 is not a text"):
        loss("b.jsonl", "c", 3)


def _answers(
    task: ReadingTask, inputs: Inputs, number: int, passage: TitledText, answers: Sequence[tuple[int, int]]
) -> torch.Tensor:
    """Logs of the shares of the passage's spans, and of no answer."""
    seen = inputs.read(number, passage, answers)
    with torch.no_grad():
        [odds_TW] = task._scores(task.model, inputs, [seen], torch.zeros(1, dtype=torch.int64))[0].double()
    of_passage = odds_TW[seen.reading.body :][: len(seen.reading.offsets_T2)].flatten()
    return torch.cat([of_passage, torch.zeros(1)]).log_softmax(dim=0)


def test_what_leaves_a_teacher_room_for_less_is_skipped(base: Path) -> None:
    wordy = replace(EXAMPLES[0], in_full=EXAMPLES[0].question * 3, passage=TitledText("", EXAMPLES[0].passage.text * 5))
    task = make_task(base, [wordy, EXAMPLES[1]], unanswerable=0, negative_share=0)
    full = [replace(each, question=each.in_full or each.question) for each in (wordy, EXAMPLES[1])]
    task._teacher = Teacher(task.model, Inputs(full, task._inputs.tokenizer, task._inputs.config))
    assert task.backward(0).skipped == 1


def test_a_run_resumes_with_the_same_teacher_only(questions: Path, start: Path, tmp_path: Path) -> None:
    teacher = tmp_path / "teacher"
    shutil.copytree(start, teacher)
    run(questions, start, tmp_path / "m", teacher=teacher, epochs=2)
    run(questions, start, tmp_path / "m", teacher=teacher, epochs=3)
    run(questions, teacher, tmp_path / "other", epochs=3)
    shutil.rmtree(teacher)
    shutil.copytree(tmp_path / "other", teacher)
    with pytest.raises(InputError, match=r"digest of the teacher is '\w+', but '.*m' has a run with"):
        run(questions, start, tmp_path / "m", teacher=teacher, epochs=4)


def test_a_teacher_of_other_widths_is_refused(questions: Path, start: Path, tmp_path: Path) -> None:
    teacher = tmp_path / "teacher"
    shutil.copytree(start, teacher)
    settings = json.loads((teacher / "quoth.json").read_text())
    (teacher / "quoth.json").write_text(json.dumps(settings | {"span_width": settings["span_width"] - 1}))
    with pytest.raises(InputError, match=r"teacher '.*' has span_width \d+, the reader \d+; they must be the same"):
        run(questions, start, tmp_path / "m", teacher=teacher)


def test_a_teacher_of_other_tokens_is_refused(questions: Path, start: Path, tmp_path: Path) -> None:
    other = untrained(tiny_bert(tmp_path / "b", [ascii_lowercase]), tmp_path / "other")
    with pytest.raises(InputError, match=r"teacher '.*other' cuts texts into other tokens than the reader"):
        run(questions, start, tmp_path / "m", teacher=other)


def test_a_run_with_dropout_can_be_repeated(questions: Path, start: Path, tmp_path: Path) -> None:
    found = []
    for name, dropout in (("one", 0.2), ("two", 0.2), ("none", 0.0)):
        torch.manual_seed(len(found))
        run(questions, start, tmp_path / name, epochs=1, dropout=dropout)
        found.append(load_file(tmp_path / name / READER_FILE))
    assert found[0].keys() == found[2].keys()
    assert all(torch.equal(weight, found[1][name]) for name, weight in found[0].items())
    assert not all(torch.equal(weight, found[2][name]) for name, weight in found[0].items())


def test_negatives_are_bm25s_best_passages_without_the_answer(questions: Path, start: Path, tmp_path: Path) -> None:
    run(questions, start, tmp_path / "m", epochs=1)
    found = json.loads((tmp_path / "m" / "negatives.json").read_text())["negatives"]
    texts = [each.passage.text for each in read_examples(questions)]
    for number, rows in enumerate(found):
        assert 1 <= len(rows) <= 3
        assert number not in rows
        assert not any(list(CITIES.values())[number] in texts[row] for row in rows)


def test_negatives_that_are_kept_are_those_of_the_same_passages(tmp_path: Path) -> None:
    bare = [replace(each, negatives=()) for each in EXAMPLES]
    retitled = [replace(bare[0], passage=replace(bare[0].passage, title="A city")), *bare[1:]]
    for number, examples in enumerate((bare, [EXAMPLES[0], *bare[1:]], retitled)):
        again = with_negatives(examples, tmp_path, lambda *_: lambda done: None)
        assert again == with_negatives(examples, tmp_path / f"new-{number}", lambda *_: lambda done: None)
        assert again == with_negatives(examples, tmp_path, lambda *_: pytest.fail("searched again"))


@pytest.mark.parametrize(
    ("files", "settings", "message"),
    [
        ([":0"], {}, "share '0' of '.*questions.jsonl'; it must be a number above 0"),
        ([":few"], {}, "share 'few'"),
        ([""], {"steps": "5"}, r"`steps` cannot be set for the recipe reader \(.*\); set `epochs` instead"),
        ([""], {"epochs": "0"}, "epochs is 0.0; it must be above 0"),
        ([""], {"unanswerable": "2"}, "unanswerable is 2.0; it must be from 0 to 1"),
        ([""], {"head": "biaffine"}, "head is 'biaffine'; it must be one of ends, mlp"),
        ([""], {"lora_rank": "8"}, "it must be 0: all of a reader's weights are trained"),
    ],
)
def test_mistakes(
    questions: Path, start: Path, tmp_path: Path, files: list[str], settings: dict[str, str], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        run_recipe("reader", [f"{questions}{each}" for each in files], tmp_path / "m", settings, model=str(start))


def test_a_base_is_refused_that_a_reader_would_not_read(questions: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"base '.*' is not read: quoth-reader has a base of its own"):
        run_recipe("reader", [str(questions)], tmp_path / "m", {}, model="quoth-reader", base=str(tmp_path))
    assert not (tmp_path / "m").exists()


def test_a_broken_line_is_named_or_left_out(questions: Path, start: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.jsonl"
    broken.write_text(questions.read_text() + '{"question": "Who?"}\n')
    with pytest.raises(InputError, match=r"broken.jsonl:6: no 'context'"):
        run_recipe("reader", [str(broken)], tmp_path / "m", {}, model=str(start))
    told: list[InputError] = []
    run_recipe("reader", [str(broken)], tmp_path / "m", {"epochs": "1"}, model=str(start), on_bad=told.append)
    assert len(told) == 1
