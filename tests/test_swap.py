"""What two editions of a corpus differ in, and whether answers follow the swap."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from quoth.cli.main import main
from quoth.corpus.corpus import Corpus
from quoth.errors import InputError
from quoth.evaluation.swap import Change, find_changes, run_swap, table
from quoth.records import Document, Prediction

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
        assert options == {"top_k": 5, "passages": 2}
        self.asked = list(text)
        return [[Prediction(each, 1.0, 0.0, (), each) for each in answers.split("|")] for answers in self.answers]


def test_answers_are_counted_by_edition() -> None:
    changes = [Change("T", f"{number} [MASK]", "Old", "New") for number in range(4)]
    old, new = Fixed("old", "Old", "New|Old", "None"), Fixed("new", "Old", "New", "Old|None|New")
    report = run_swap(changes, old, new, passages=2)
    assert old.asked == new.asked == [each.text for each in changes]
    assert report.followed == [True, False, False, False]
    assert report.to_dict() == {
        "num_changes": 4,
        "old": {"exact_match": 0.5, "hit_at_5": 0.75},
        "new": {"exact_match": 0.5, "hit_at_5": 0.75},
        "both": 0.25,
        "of_the_other_edition": 3 / 8,
    }
    assert "| 50.0 (75.0) | 50.0 (75.0) | 25.0 | 37.5 |" in table(report)
    assert table(report, 3).endswith("T: 0 [MASK]\n  old: Old   new: New\n")


def test_editions_without_a_change_are_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no sentence differs in exactly one name or number; give two editions"):
        run_swap([], Fixed(), Fixed())


def test_the_command_asks_either_edition(
    editions: tuple[Corpus, Corpus], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    command = ["eval", "swap", str(tmp_path / "old"), str(tmp_path / "new"), "--limit", "1", "--json"]
    assert main(command) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["model"] == "quoth-mini"
    assert found["num_changes"] == 1
    assert main([*command[:-1], "--max-words", "1"]) == 2
    assert "no sentence differs" in capsys.readouterr().err
