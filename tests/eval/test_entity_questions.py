"""EntityQuestions over a tiny corpus: coverage, recall by hand, ways to ask, Anserini's BM25 by a plain loop."""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from asking import given, plain

from quoth.cli.main import main
from quoth.corpus.corpus import Corpus
from quoth.datasets.questions import QAExample
from quoth.errors import InputError
from quoth.records import Document, Hit
from quoth.text.terms import analyse
from quoth_eval import entity_search
from quoth_eval.entity_search import Range, Search, by_entity, by_name, by_text, searches
from quoth_eval.harness import ProgressCallback, evaluate
from quoth_eval.report import Report
from quoth_eval.systems import BM25
from quoth_eval.task import Task
from quoth_eval.tasks.entities import (
    SHOWN,
    EntityQuestion,
    EntitySettings,
    QuestionTemplates,
    entities_task,
    has_string,
    read_entity_questions,
    with_coverage,
)

DOCUMENTS = (
    ("Ann Lee", "She was born in Paris."),
    ("Bob Ray", "Bob Ray was born in Rome, in the Italian capital."),
    ("Towns", "Paris and Oslo are capitals. Cy Dow is from there."),
    ("Rivers", "The Tiber is Italian."),
)
QUESTIONS = {
    "P19": [("Where was Ann Lee born?", ["Paris"]), ("Where was Bob Ray born?", ["Lima", "Rome"])],
    "P17": [
        ("Which country is Tiber located in?", ["Ital"]),
        ("Which country is Oslo located in?", ["Paris"]),
        ("Which country is Cy Dow Towns located in?", ["Oslo"]),
    ],
}
TEMPLATES = {"P17": "Which country is [X] located in?", "P19": "Where was [X] born?"}


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    made = Corpus.create(tmp_path / "people.quoth")
    made.add(Document(f"d{i}", title, text) for i, (title, text) in enumerate(DOCUMENTS))
    return made


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"{relation}.test.json" for relation in QUESTIONS]
    for path, asked in zip(paths, QUESTIONS.values(), strict=True):
        path.write_text(json.dumps([{"question": text, "answers": answers} for text, answers in asked]))
    return paths


@pytest.fixture
def templates(tmp_path: Path) -> str:
    (tmp_path / "templates.json").write_text(json.dumps(TEMPLATES))
    return str(tmp_path / "templates.json")


def task_of(
    settings: EntitySettings, corpus: Corpus, files: Sequence[Path], limit: int | None = None
) -> Task[EntityQuestion]:
    return entities_task(given(Path(), corpus, files=tuple(map(str, files)), limit=limit), settings)


class Told:
    """Finds the passages in their order, last first, and keeps what it was asked."""

    def __init__(self, corpus: Corpus) -> None:
        self.passages = list(corpus.passages())
        self.asked: list[tuple[str, Sequence[str | Range] | None]] = []
        self.encoder = SimpleNamespace(config=SimpleNamespace(ask_with="entity"))

    def search(self, query: str, k: int, *, entities: Sequence[str | Range] | None = None) -> list[Hit]:
        self.asked.append((query, entities))
        return [Hit(passage, 0.0) for passage in self.passages[::-1][:k]]


def test_a_string_may_stand_inside_a_word_and_accents_may_be_composed_or_not() -> None:
    def held(text: str, *answers: str) -> bool:
        return has_string(text, QAExample("", "", answers))

    assert held("the Iranian  plateau", "IRAN")
    assert held("ran to  New\nYork", "new york")
    assert held("Citta\u0300 Studi", "citt\u00e0")
    assert not held("Citta", "citt\u00e0")
    assert not held("", "x")
    assert not held("anything", "", " ")
    assert not held("", "")


def test_the_relation_is_the_file_and_the_entity_is_the_templates(files: list[Path]) -> None:
    read = read_entity_questions(files, QuestionTemplates(TEMPLATES))
    assert [each.relation for each in read] == ["P19", "P19", "P17", "P17", "P17"]
    assert [each.name for each in read] == ["Ann Lee", "Bob Ray", "Tiber", "Oslo", "Cy Dow Towns"]
    assert [(each.entity, each.name) for each in read_entity_questions(files)] == [(None, "")] * 5


def test_covered_is_what_a_passage_answers_that_names_the_entity(corpus: Corpus, files: list[Path]) -> None:
    read = read_entity_questions(files, QuestionTemplates(TEMPLATES))
    # Ann Lee stands in the title, Oslo in the text; no token is Ital; nothing is called Cy Dow Towns
    found = with_coverage(read, [corpus])
    assert [each.answerable for each in found] == [True, True, False, True, True]
    assert [each.covered for each in found] == [True, True, False, True, False]
    across = EntityQuestion(QAExample("", "Towns Paris", ("Oslo",)), "P", (0, 11))  # from the title into the text
    (found,) = with_coverage([across], [corpus])
    assert (found.answerable, found.covered) == (True, False)
    unknown = with_coverage(read_entity_questions(files), [corpus])
    assert [(each.answerable, each.covered) for each in unknown] == [(at != 2, None) for at in range(5)]


def asked(
    task: Task[EntityQuestion],
    corpus: Corpus,
    search: Search,
    ks: Sequence[int] = (20,),
    progress: ProgressCallback | None = None,
) -> Report:
    """The report of BM25 and of a search."""
    named = {"bm25": by_text(BM25([corpus])), "told": search}
    made = {name: searches(each, lambda _: max(ks)) for name, each in named.items()}
    return evaluate(task, made, progress=progress)


def test_scores_by_hand(corpus: Corpus, files: list[Path], templates: str) -> None:
    told = Told(corpus)
    seen: list[str] = []
    task = task_of(EntitySettings(templates=templates, ks=(1, 2, 3)), corpus, files)
    report = asked(task, corpus, by_entity(told), (1, 2, 3), lambda name, *_: seen.append(name))
    result = report.systems[1]
    assert told.asked[0] == ("Where was Ann Lee born?", [(10, 17)])
    # the passages come as Rivers, Towns, Bob Ray
    found = {
        name: [[row.scores[f"{name}@{k}"] for k in (1, 2, 3)] for row in result.rows] for name in ("dpr", "string")
    }
    second, third, nowhere = [0, 1, 1], [0, 0, 1], [0, 0, 0]
    assert found["dpr"] == [second, third, nowhere, second, second]
    assert found["string"] == [second, third, [1, 1, 1], second, second]
    assert seen == ["bm25"] * 5 + ["told"] * 5
    record = report.to_dict()
    assert (record["num_examples"], record["num_answerable"], record["num_covered"]) == (5, 4, 3)
    assert record["relations"]["P17"] == {"num_read": 3, "num_questions": 3, "num_answerable": 2, "num_covered": 1}
    scores = record["systems"][1]
    assert scores["macro"]["relation"]["dpr@3"]["mean"] == pytest.approx((2 / 2 + 2 / 3) / 2)
    assert scores["dpr@3"]["mean"] == pytest.approx(4 / 5)
    relations = {name: each["dpr@3"]["mean"] for name, each in scores["groups"]["relation"].items()}
    assert relations == {"P19": 1.0, "P17": pytest.approx(2 / 3)}
    assert scores["macro"]["relation"]["string@1"]["mean"] == pytest.approx((0 + 1 / 3) / 2)
    assert scores["macro"]["covered relation"]["dpr@3"]["mean"] == 1.0
    assert scores["groups"]["covered"]["covered"]["dpr@3"]["mean"] == 1.0
    assert {name: each["dpr@3"]["mean"] for name, each in scores["groups"]["covered relation"].items()} == {
        "P19": 1.0,
        "P17": 1.0,
    }
    lines = plain(report.markdown(SHOWN))
    assert lines[0].startswith("| entities; read: 5; passages: 4; answerable: 4; covered: 3 | examples | dpr@1 |")
    assert "| told | 5 | 0.0 | 60.0 | 80.0 | 20.0 | 80.0 | 100.0 |" in lines
    assert "| told: mean over relation |  | 0.0 | 58.3 | 83.3 | 16.7 | 75.0 | 100.0 |" in lines
    assert "| told: covered | 3 | 0.0 | 66.7 | 100.0 | 0.0 | 66.7 | 100.0 |" in lines
    assert "| told: P17 | 3 | 0.0 | 66.7 | 66.7 | 33.3 | 100.0 | 100.0 |" in lines


def test_only_covered_questions_are_asked_where_that_is_wanted(
    corpus: Corpus, files: list[Path], templates: str
) -> None:
    covered = EntitySettings(templates=templates, covered=True)
    task = task_of(covered, corpus, files, limit=1)
    assert [each.source.relation for each in task.examples] == ["P19", "P17"]
    assert {name: each["num_read"] for name, each in task.settings["relations"].items()} == {"P19": 2, "P17": 3}
    assert (task.settings["num_answerable"], task.settings["num_covered"]) == (2, 2)
    for name in ("covered", "idf"):
        with pytest.raises(InputError, match=f"{name} requires each question's entity; give --set templates=FILE"):
            EntitySettings(**{name: True})
    (files[0].with_name("P17.json")).write_text('[{"question": "Which country is Ur located in?", "answers": ["x"]}]')
    with pytest.raises(InputError, match="none of the 1 questions is covered"):
        task_of(covered, corpus, [files[0].with_name("P17.json")])


def test_without_templates_or_coverage_nothing_is_said_of_them(corpus: Corpus, files: list[Path]) -> None:
    unmeasured = asked(task_of(EntitySettings(coverage=False), corpus, files), corpus, by_text(Told(corpus)))
    assert unmeasured.to_dict()["num_answerable"] is None
    assert not {"covered", "corpus"} & set(unmeasured.dimensions)
    assert unmeasured.settings["relations"]["P17"] == {
        "num_read": 3,
        "num_questions": 3,
        "num_answerable": None,
        "num_covered": None,
    }
    told = task_of(EntitySettings(), corpus, files).settings["relations"]["P17"]
    assert (told["num_questions"], told["num_answerable"], told["num_covered"]) == (3, 2, None)


def test_a_system_is_asked_with_the_text_the_name_or_both(corpus: Corpus) -> None:
    told = Told(corpus)
    for search in (by_text(told), by_name(told), by_entity(told)):
        search("Where was Ann Lee born?", (10, 17), 1)
        search("Where?", None, 1)
    text = "Where was Ann Lee born?"
    assert told.asked == [
        (text, None),
        ("Where?", None),
        ("Ann Lee", None),
        ("Where?", None),
        (text, [(10, 17)]),
        ("Where?", None),
    ]


def test_mistakes_are_named(corpus: Corpus, files: list[Path]) -> None:
    with pytest.raises(InputError, match="no file of questions"):
        task_of(EntitySettings(), corpus, [])
    with pytest.raises(InputError, match=r"ks is \(\); it must be a list of whole numbers, not empty"):
        EntitySettings(ks=())
    with pytest.raises(InputError, match="limit is 0"):
        task_of(EntitySettings(), corpus, files, limit=0)


def test_anserinis_bm25_is_lucenes_formula(corpus: Corpus) -> None:
    pytest.importorskip("bm25s")
    texts = [analyse(f"{title} {text}") for title, text in DOCUMENTS]
    average = sum(map(len, texts)) / len(texts)

    def score(query: str, terms: list[str], k1: float, b: float) -> float:
        total = 0.0
        for term in analyse(query):
            holding = sum(term in each for each in texts)
            rare = math.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
            frequency = Counter(terms)[term]
            total += rare * frequency / (frequency + k1 * (1 - b + b * len(terms) / average))
        return total

    search = BM25([corpus], {"k1": 0.9})
    for query in ("Where was Bob Ray born?", "Italian capitals of Paris, Paris", "is", "Italian"):
        expected = sorted(((-score(query, terms, 0.9, 0.4), row) for row, terms in enumerate(texts)))
        hits = search.search(query, 3)
        assert [hit.passage.row for hit in hits] == [row for value, row in expected if value < 0][:3]
        assert [-hit.score for hit in hits] == pytest.approx([value for value, _ in expected if value < 0][:3])
    assert search.search("?", 3) == search.search("Wagner", 3) == []
    again = BM25([corpus], {"k1": 1.2, "b": 0.75}).search("Italian Paris", 4)
    assert [hit.passage for hit in again] == [hit.passage for hit in BM25((corpus,)).search("Italian Paris", 4)]


def test_without_bm25s_its_package_is_named(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bm25s", None)
    with pytest.raises(InputError, match="pip install '\\.\\[eval\\]' in a clone of Quoth"):
        BM25([corpus], {"k1": 0.9})


def test_the_command_asks_a_model_with_and_without_the_entity(
    corpus: Corpus,
    files: list[Path],
    templates: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = Told(corpus)
    setups: list[object] = []
    monkeypatch.setattr(entity_search, "load_entities", lambda name, corpora, setup: setups.append(setup) or told)
    asked = ["eval", "entities", *map(str, files), "--corpus", str(corpus.path), "--set", f"templates={templates}"]
    asked += ["--set", "ks=1,3", "--set", "idf=true", "--system", "bm25"]
    asked += ["--system", "quoth-zero-ner", "--system", "quoth-zero-ner,told=true"]
    assert main([*asked, "--json", "--dtype", "bf16"]) == 0
    assert setups == [(None, None, "bf16")]
    found = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in found["systems"]] == ["bm25", "quoth-zero-ner", "quoth-zero-ner,told=true"]
    assert found["systems"][2]["dpr@3"]["mean"] == pytest.approx(0.8)
    assert sum(each["num_examples"] for each in found["systems"][2]["groups"]["rarity"].values()) == 5
    assert [entities for _, entities in told.asked[4:6]] == [None, [(10, 17)]]
    assert main([*asked, "--set", "covered=true"]) == 0
    shown = capsys.readouterr().out
    assert "| entities; read: 5; passages: 4; answerable: 3; covered: 3 | examples |" in shown
    assert "| quoth-zero-ner | 3 |" in shown
    assert "IDF" in shown
    told.encoder.config.ask_with, told.asked = "question", []  # the whole question, whatever its entity
    assert main([*asked, "--set", "covered=true"]) == 0
    assert {entities for _, entities in told.asked} == {None}
