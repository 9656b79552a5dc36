"""What two editions of a corpus differ in, and whether answers follow the swap."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from asking import mean

from quoth.cli.main import main
from quoth.corpus.corpus import Corpus
from quoth.errors import InputError
from quoth.records import Document, Prediction
from quoth_eval.harness import evaluate
from quoth_eval.report import Report
from quoth_eval.systems import fills
from quoth_eval.tasks.swap import Change, find_changes, find_unchanged, followed, of_both, swap_task

OLD = {
    "greece": "It lies in Europe. In 2015 its prime minister was Alexis Tsipras of the left. Its islands are many.",
    "rhine": "The source of the river is seen by many in the Lake Toma of old.",
    "start": "Athens is the largest city of Greece by the number of people.",
    "spelling": "The harbour is known as the Port of Saint Georges to all of its people.",
    "lower": "The people of this old town are mostly farmers who live by the river.",
    "longer": "The old town was founded by Count Otto of Castell and Remlingen in the west of it.",
    "two": "In the year 1901 the town had 300 people, a school and a church.",
    "short": "It was in 1900 there.",
    "gone": "The tower of the church was built in 1700 by monks from Italy.",
}
NEW = {
    "greece": "It lies in Europe. In 2015 its prime minister was Kyriakos Mitsotakis of the left. Its isles are many.",
    "rhine": "The source of the river is seen by many in the Piz Badus of old.",
    "start": "Sparta is the largest city of Greece by the number of people.",
    "spelling": "The harbour is known as the Port of St. Georges to all of its people.",
    "lower": "The people of this old town are mostly fishers who live by the river.",
    "longer": "The old town was founded by Duke Henry of Saxony and Bavaria in the west of it.",
    "two": "In the year 1902 the town had 400 people, a school and a church.",
    "short": "It was in 1950 there.",
    "born": "The tower of the church was built in 1800 by monks from Italy.",
}


def make(folder: Path, texts: dict[str, str]) -> Corpus:
    corpus = Corpus.create(folder)
    corpus.add([Document(name, name.title(), text) for name, text in texts.items()])
    return corpus


@pytest.fixture
def editions(tmp_path: Path) -> tuple[Corpus, Corpus]:
    return make(tmp_path / "old", OLD), make(tmp_path / "new", NEW)


def test_names_and_numbers_that_changed_are_found_and_nothing_else(editions: tuple[Corpus, Corpus]) -> None:
    assert list(find_changes(*editions)) == [
        Change(
            "Greece",
            "In 2015 its prime minister was [MASK] of the left.",
            "Alexis Tsipras",
            "Kyriakos Mitsotakis",
        ),
        Change("Rhine", "The source of the river is seen by many in the [MASK] of old.", "Lake Toma", "Piz Badus"),
    ]
    assert list(find_changes(*editions, max_words=1)) == []


def test_numbers_are_never_alike_and_the_first_of_a_document_counts(tmp_path: Path) -> None:
    old = make(tmp_path / "a", {"x": "The old town has about 3,000 people. The new town had 24 schools in 1990."})
    new = make(tmp_path / "b", {"x": "The old town has about 3,500 people. The new town had 25 schools in 1990."})
    assert list(find_changes(old, new)) == [Change("X", "The old town has about [MASK] people.", "3,000", "3,500")]


class Fixed:
    """Gives the same answers, best first, to each text in turn."""

    def __init__(self, *answers: str) -> None:
        self.answers, self.asked = answers, list[str]()

    def fill(self, text: Sequence[str], **options: Any) -> list[list[Prediction]]:
        assert options == {"top_k": 5, "passages": 2, "exclude": [frozenset()] * len(text)}
        self.asked = list(text)
        return [[Prediction(each, 1.0, 0.0, (), each) for each in answers.split("|")] for answers in self.answers]

    def embed(self, precision: str, recall: float) -> None:
        raise AssertionError


def run_swap(changes: list[Change], *models: Fixed, name: str = "answers", folder: Path | None = None) -> Report:
    """The report of a model over both editions."""
    old, new = (fills(model, {"passages": 2}) for model in models)
    return evaluate(swap_task(changes, {}), {name: of_both(old, new)}, folder)


def test_answers_are_counted_by_edition() -> None:
    changes = [Change("T", f"{number} [MASK]", "Old", "New") for number in range(4)]
    old, new = Fixed("old", "Old", "New|Old", "None"), Fixed("new", "Old", "New", "Old|None|New")
    report = run_swap(changes, old, new)
    assert old.asked == new.asked == [each.text for each in changes]
    (result,) = report.systems
    assert [row.scores["both"] for row in result.rows if row.groups["edition"] == "new"] == [1, 0, 0, 0]
    for edition in ("old", "new"):
        score = result.score(edition=edition)
        assert (score.num_examples, mean(score), mean(score, "hit_at_5")) == (4, 0.5, 0.75)
    whole = result.score()
    assert (report.settings["num_changes"], mean(whole, "both")) == (4, 0.25)
    assert mean(whole, "of_the_other_edition") == 3 / 8
    assert "| 50.0 " in report.markdown()
    assert followed(report, changes, 3, "answers") == "\nT: 0 [MASK]\n  old: old (0.0 %)\n  new: new (0.0 %)\n"


@pytest.mark.parametrize("kept", [0, 3, 4, 8])
def test_a_run_cut_anywhere_resumes_to_the_same_answers(tmp_path: Path, kept: int) -> None:
    changes = [Change("T", f"{number} [MASK]", "Old", "New") for number in range(4)]
    said = {"old": ("old", "Old", "New|Old", "None"), "new": ("new", "Old", "New", "Old|None|New")}
    whole = run_swap(changes, Fixed(*said["old"]), Fixed(*said["new"]), folder=tmp_path / "run")
    path = tmp_path / "run/predictions.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    torn = lines[kept][:40] if kept < len(lines) else b""
    path.write_bytes(b"".join(lines[:kept]) + torn)
    left = {edition: answers[kept // 2 :] for edition, answers in said.items()}
    again = run_swap(changes, Fixed(*left["old"]), Fixed(*left["new"]), folder=tmp_path / "run")
    assert again.markdown() == whole.markdown()
    assert [row.scores for row in again.systems[0].rows] == [row.scores for row in whole.systems[0].rows]


def test_two_models_in_one_run(tmp_path: Path) -> None:
    change = [Change("T", "[MASK]", "Old", "New")]
    run_swap(change, Fixed("Old"), Fixed("Old"), name="a", folder=tmp_path)
    report = run_swap(change, Fixed("Old"), Fixed("New"), name="b", folder=tmp_path)
    assert [followed(report, change, 1, name) == "" for name in ("a", "b")] == [True, False]


def test_facts_that_are_the_same_in_both_editions_have_no_other_edition() -> None:
    old, new = Fixed("a", "b"), Fixed("a", "c")
    report = run_swap([Change("T", "[MASK]", "a", "a"), Change("T", "[MASK]", "b", "c")], old, new)
    (result,) = report.systems
    assert [row.groups["facts"] for row in result.rows] == ["unchanged", "unchanged", "changed", "changed"]
    assert ["of_the_other_edition" in row.scores for row in result.rows] == [False, False, True, True]
    over = result.macro("facts", "exact_match")
    assert over is not None
    assert over.mean == 1.0


def test_unchanged_facts_are_names_that_both_editions_state(tmp_path: Path) -> None:
    same = "The river rises in the old canton of Graubünden among the high hills."
    texts = {
        "one": same,
        "short": "It was built in 1900 there.",
        "other": "The tower of the church was built by monks from Italy of old.",
        "long": "It was led for long years by old Count Otto Of Castell until the end.",
        "gone": "The harbour of the town was built in 1900 by monks of old.",
    }
    changed = texts | {"other": texts["other"].replace("Italy", "Malta")}
    old = make(tmp_path / "a", texts)
    new = make(tmp_path / "b", {name: text for name, text in changed.items() if name != "gone"})
    masked = same.replace("Graubünden", "[MASK]")
    assert list(find_unchanged(old, new)) == [Change("One", masked, "Graubünden", "Graubünden")]
    assert [each.new for each in find_unchanged(old, new, max_words=4)] == ["Graubünden", "Count Otto Of Castell"]


def test_editions_without_a_change_are_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no sentence differs in exactly one name or number; give two editions"):
        run_swap([], Fixed(), Fixed())


def test_the_command_asks_either_edition(
    editions: tuple[Corpus, Corpus], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    command = ["eval", "swap", "--corpus", str(tmp_path / "new"), "--set", f"old={tmp_path / 'old'}", "--limit", "1"]
    assert main([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [system["name"] for system in found["systems"]] == ["quoth-mini"]
    assert found["num_changes"] == 1
    assert main([*command, "--set", "max_words=1"]) == 2
    assert "no sentence differs" in capsys.readouterr().err
