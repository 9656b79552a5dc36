"""Training a reader's evidence beside its spans: the losses by hand, what stays as it was, what is learned."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from test_reading import CITIES, EXAMPLES, make_task, run
from test_span_reader import SMALL
from torch.nn.functional import binary_cross_entropy_with_logits as bce

from quoth.errors import InputError
from quoth.hub import READER_FILE, ModelSource
from quoth.reader.config import ReaderConfig
from quoth.reader.data import ReadingExample, TitledText, read_examples
from quoth.reader.evidence_loss import (
    OF_PASSAGES,
    OF_TOKENS,
    Marks,
    by_passage,
    joined_marks,
    marked_loss,
    relevance_distillation,
    token_distillation,
)
from quoth.reader.training import Teacher
from quoth.reader.weights import load_reader, save_reader
from tiny import tiny_bert


def marks(seed: int, questions: list[int], lengths: list[int]) -> Marks:
    random = torch.Generator().manual_seed(seed)
    passage_N = torch.arange(len(lengths)).repeat_interleave(torch.tensor(lengths))
    relevance_B, evidence_N = (
        torch.randn(n, generator=random, dtype=torch.float64) for n in (len(lengths), sum(lengths))
    )
    return Marks(relevance_B, torch.tensor(questions), evidence_N, passage_N)


def test_the_loss_of_marked_passages_by_hand() -> None:
    said = marks(0, [0, 0, 1], [2, 3, 1])
    target_N = torch.tensor([0, 1, 0, 0, 0, 0], dtype=torch.float64)
    relevance = said.relevance_B.tolist()
    first = math.log(1 + math.exp(relevance[0]) + math.exp(relevance[1])) - relevance[0]
    second = math.log(1 + math.exp(relevance[2]))
    assert by_passage(said, torch.tensor([True, False, False])).item() == pytest.approx((first + second) / 2)
    tokens = [bce(said.evidence_N[at], target_N[at], reduction="none").tolist() for at in range(6)]
    by_token = 0.7 * (tokens[0] + tokens[1]) / 2 + 0.3 * sum(tokens[2:]) / 4
    expected = OF_TOKENS * by_token + OF_PASSAGES * (first + second) / 2
    assert marked_loss(said, target_N, torch.tensor([True, False, False])).item() == pytest.approx(expected)


def test_what_a_teacher_says_of_passages_by_hand() -> None:
    said, taught = marks(1, [1, 0, 1], [1, 1, 1]), marks(2, [1, 0, 1], [1, 1, 1])
    own, its = said.relevance_B.tolist(), taught.relevance_B.tolist()
    squares = sum((a - b) ** 2 for a, b in zip(own, its, strict=True)) / 3
    p = 1 / (1 + math.exp((its[2] - its[0]) / 2))
    q = 1 / (1 + math.exp((own[2] - own[0]) / 2))
    apart = p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))
    assert relevance_distillation(said, taught.relevance_B).item() == pytest.approx(0.1 * squares + 4 * apart / 2)
    assert token_distillation(taught, taught).item() == pytest.approx(0)
    assert token_distillation(said, taught).item() > 0
    nothing = said.of(torch.zeros(3, dtype=torch.bool))
    assert token_distillation(nothing, nothing).item() == 0


def test_marks_of_some_passages_and_of_several_batches() -> None:
    whole = marks(3, [0, 1, 2, 2], [2, 1, 3, 2])
    some = whole.of(torch.tensor([True, False, True, False]))
    assert some.relevance_B.tolist() == whole.relevance_B[[0, 2]].tolist()
    assert some.evidence_N.tolist() == whole.evidence_N[[0, 1, 3, 4, 5]].tolist()
    assert (some.question_B.tolist(), some.passage_N.tolist()) == ([0, 2], [0, 0, 1, 1, 1])
    halves = [whole.of(torch.tensor(half)) for half in ([True, True, False, False], [False, False, True, True])]
    for joined, expected in zip(joined_marks(halves), whole, strict=True):
        assert torch.equal(joined, expected)


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("evidence")
    base = tiny_bert(folder / "b")
    config = ReaderConfig(**SMALL, base=str(base), evidence=True, evidence_layers=1)
    torch.manual_seed(0)
    model, _ = load_reader(ModelSource("tiny", config, None, str(base)))
    save_reader(folder / "m", model, model, config.to_dict())
    return folder / "m"


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of each passage the first half is evidence; no span is marked."""
    path = tmp_path_factory.mktemp("data") / "marked.jsonl"
    lines = [
        {
            "context": each.passage.text,
            "question": each.question,
            "evidence": [[0, len(city) + 4]],
            "negatives": [{"context": each.negatives[0].text}],
        }
        for each, city in zip(EXAMPLES, CITIES.values(), strict=True)
    ]
    path.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    return path


SETTINGS: dict[str, Any] = {"unanswerable": 0, "negative_share": 1, "num_negatives": 1}


def test_evidence_is_learned_and_lower_layers_stay(questions: Path, start: Path, tmp_path: Path) -> None:
    done, told = run(questions, start, tmp_path / "m", epochs=20, **SETTINGS)
    assert done
    assert told[-1].loss < 0.5 * told[0].loss
    while not run(questions, start, tmp_path / "sliced", seconds=0.1, epochs=20, **SETTINGS)[0]:
        pass
    before, after, sliced = (load_file(folder / READER_FILE) for folder in (start, tmp_path / "m", tmp_path / "sliced"))
    for name, weight in after.items():
        assert torch.equal(weight, sliced[name]), name
        is_marked = name.startswith(("branch.", "evidence.", "relevance.", "pooler."))
        if name.startswith("encoder.") and ".layer.1." not in name:
            assert torch.equal(weight, before[name]), name
        elif not is_marked:  # nobody marked spans: only decay
            assert torch.allclose(weight, before[name], rtol=0.02), name
    assert json.loads((tmp_path / "m" / "quoth.json").read_text())["evidence_layers"] == 1


def test_spans_and_evidence_are_learned_together(questions: Path, start: Path, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in questions.read_text().splitlines()]
    for line, city in zip(lines, CITIES.values(), strict=True):
        line["answers"] = [{"text": city, "start": 0}]
    (tmp_path / "both.jsonl").write_text("\n".join(map(json.dumps, lines)))
    run(tmp_path / "both.jsonl", start, tmp_path / "m", epochs=4, **SETTINGS)
    before, after = (load_file(folder / READER_FILE) for folder in (start, tmp_path / "m"))
    changed = {name for name, weight in after.items() if not torch.equal(weight, before[name])}
    assert {"span.ends.weight", "evidence.weight", "relevance.weight"} <= changed
    assert any(name.startswith("branch.") for name in changed)
    run(tmp_path / "both.jsonl", start, tmp_path / "spans", epochs=2, evidence=False, **SETTINGS)
    assert not json.loads((tmp_path / "spans" / "quoth.json").read_text())["evidence"]


def test_a_teacher_is_heard_where_nobody_marked_evidence(tmp_path: Path) -> None:
    """Its own teacher: without marks the loss is 0, with them what the marks alone teach."""
    example = replace(EXAMPLES[0], negatives=())
    marked = replace(example, evidence=((0, 3),))
    base = tiny_bert(tmp_path / "b")

    def loss(each: ReadingExample, taught: bool) -> float | None:
        task = make_task(base, [each], layers=1, unanswerable=0, negative_share=0, teacher_weight=1.0)
        if taught:
            task._teacher = Teacher(task.model, task._inputs)
        return task.backward(0).loss

    assert loss(example, taught=True) == pytest.approx(0, abs=1e-5)
    assert loss(marked, taught=True) == pytest.approx(loss(marked, taught=False), rel=1e-5)


def test_evidence_that_is_no_range_is_refused(tmp_path: Path) -> None:
    for bad in ([[0, 99]], [[3, 3]], [[-1, 2]], [[0, "2"]]):
        line = {"question": "What is it?", "context": "A raven.", "evidence": bad}
        (tmp_path / "a.jsonl").write_text(json.dumps(line))
        with pytest.raises(InputError, match=r"a.jsonl:1: evidence .* is no range of its context, which has 8"):
            read_examples(tmp_path / "a.jsonl")
    (tmp_path / "a.jsonl").write_text(json.dumps(line | {"evidence": [[2, 7]]}))
    [example] = read_examples(tmp_path / "a.jsonl")
    assert (example.evidence, example.passage) == (((2, 7),), TitledText("", "A raven."))
