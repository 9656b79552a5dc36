"""Names in other scripts: which are found, and how they are asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from asking import given, mean, measured

from quoth import Corpus, Document
from quoth.errors import InputError
from quoth.records import Prediction
from quoth_eval.tasks import find
from quoth_eval.tasks.translation import find_translations

PAGES = [
    Document("athens", "Athens", "Athens (; Modern Greek: Αθήνα, Athína; Ancient Greek: Ἀθῆναι) is the capital."),
    Document("tbilisi", "Tbilisi (city)", 'Tbilisi (Georgian: თბილისი; Russian: "Тбилиси") is a city.'),
    Document("latin", "Oslo", "Oslo (Russian: Oslo) is a city. (Greek: Όσλο)"),
    Document("late", "Rome", "Rome " + "is old. " * 100 + "(Greek: Ρώμη)"),
    Document("other", "Paris", "The town of Troy (Greek: Τροία) fell."),
]


def test_spellings_of_a_title_in_other_scripts_are_found() -> None:
    found = list(find_translations(PAGES))
    assert [(each.name, each.language, each.spelling) for each in found] == [
        ("Athens", "Greek", "Αθήνα"),
        ("Tbilisi", "Georgian", "თბილისი"),
        ("Tbilisi", "Russian", "Тбилиси"),
        ("Oslo", "Greek", "Όσλο"),
    ]


class Knows:
    """Answers all with one spelling, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def fill(self, text: list[str], **options: Any) -> list[list[Prediction]]:
        self.asked.append({"text": text, **options})
        return [[Prediction("Αθήνα", 0.0, 1.0, ())] for _ in text]


def test_they_are_asked_by_language_with_and_without_the_right_passage(tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "c.quoth")
    corpus.add(PAGES)
    model, options = Knows(), {"max_phrase_tokens": 20}
    prepared = find("translation").prepare(given(tmp_path, corpus, opens=model), {})
    report = measured(prepared, {"open": options, "oracle": {**options, "oracle": True}})
    assert model.asked[0]["text"][0] == "The Greek translation of Athens is: [MASK]."
    assert model.asked[0]["max_phrase_tokens"] == 20
    assert model.asked[1]["searched"][:2] == [PAGES[0].text, PAGES[1].text]
    assert model.asked[1]["passages"] == 1
    languages = report.system("open").by_group("language")
    assert {name: (each.num_examples, mean(each)) for name, each in languages.items()} == {
        "Georgian": (1, 0.0),
        "Greek": (2, 0.5),
        "Russian": (1, 0.0),
    }
    over = report.system("oracle").macro("language", "exact_match")
    assert over is not None
    assert over.mean == pytest.approx(1 / 6)
    few = find("translation").prepare(given(tmp_path, corpus, limit=1), {}).task
    assert sorted(each.groups["language"] for each in few.examples) == ["Georgian", "Greek", "Russian"]


def test_documents_without_any_and_a_missing_folder_are_named(tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "c.quoth")
    corpus.add(PAGES[4:])
    with pytest.raises(InputError, match="no document spells its title in another script"):
        find("translation").prepare(given(tmp_path, corpus), {})
    with pytest.raises(InputError, match=r"nq is read from DIR/open_qa/nq\.test\.tsv; name DIR with --data"):
        find("nq").prepare(given(tmp_path, corpus), {})
