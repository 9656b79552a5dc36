"""LAMA's files become blanks, and evidence the corpus."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from asking import given, mean, measured, plain, repeated
from tokenizers import Tokenizer

from quoth import NPM
from quoth.cli.main import main
from quoth.corpus.corpus import Corpus
from quoth.errors import InputError
from quoth.records import Document, Prediction
from quoth_eval import systems
from quoth_eval.report import Report
from quoth_eval.tasks.lama import (
    Fact,
    LamaSettings,
    asked_as,
    facts_over,
    listed,
    read_facts,
    read_templates,
    unhelpful,
)
from tiny import tiny_npm

TREX = {
    "uuid": "t1",
    "predicate_id": "P36",
    "sub_label": "France",
    "obj_label": "Paris",
    "evidences": [
        {"obj_surface": "Paris", "masked_sentence": "[MASK] is the capital of France."},
        {"obj_surface": "Paris", "masked_sentence": "[MASK] is the capital of France."},
        {"obj_surface": "PARIS", "masked_sentence": "France's capital, [MASK]."},
    ],
}
GOOGLE = {
    "uuid": "g1",
    "pred": "/people/person/date_of_birth",
    "sub_label": "Ann Lee",
    "obj_label": "1 May 1941",
    "evidences": [{"snippet": "Ann Lee (born 1 May 1941) sings."}],
}


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / "P36.jsonl", tmp_path / "date_of_birth.jsonl"]
    paths[0].write_text(json.dumps(TREX) + "\n" + json.dumps({**TREX, "uuid": "t2"}) + "\n", encoding="utf-8")
    paths[1].write_text(json.dumps(GOOGLE) + "\n", encoding="utf-8")
    return paths


def test_facts_of_both_sets(files: list[Path]) -> None:
    facts = read_facts(files)
    assert facts[::2] == [
        Fact("t1", "P36", "France", "Paris", ("Paris is the capital of France.", "France's capital, PARIS.")),
        Fact("g1", "date_of_birth", "Ann Lee", "1 May 1941", ("Ann Lee (born 1 May 1941) sings.",)),
    ]
    assert facts[1].id == "t2"


def test_blanks_by_template(files: list[Path], tmp_path: Path) -> None:
    templates = tmp_path / "relations.jsonl"
    templates.write_text('{"relation": "P36", "template": "The capital of [X] is [Y] ."}\n', encoding="utf-8")
    asked = [(each.relation, asked_as(each, read_templates(templates)), each.answer) for each in read_facts(files)[::2]]
    assert asked == [
        ("P36", "The capital of France is [MASK] .", "Paris"),
        ("date_of_birth", "Ann Lee (born [MASK]).", "1 May 1941"),
    ]
    with pytest.raises(InputError, match="relation 'P36' has no template; name the file with --set templates=FILE"):
        asked_as(read_facts(files)[0], read_templates(None))


def test_a_subject_that_contains_the_object_is_no_fact_to_know(files: list[Path]) -> None:
    france, _, ann = read_facts(files)
    apple = replace(france, subject="Apple Watch", answer="apple")
    assert unhelpful([france, apple, ann]) == [france, ann]


def test_a_list_keeps_its_facts_by_relation_subject_and_object(files: list[Path], tmp_path: Path) -> None:
    france, _, ann = read_facts(files)
    other = replace(france, subject="Spain")
    folder = tmp_path / "Hard"
    folder.mkdir()
    told = {"predicate_id": france.relation, "sub_label": france.subject, "obj_label": france.answer}
    wrong = {**told, "predicate_id": "P17"}
    (folder / "P36.jsonl").write_text(json.dumps(told) + "\n" + json.dumps(wrong) + "\n", encoding="utf-8")
    unnamed = {"sub_label": ann.subject, "obj_label": ann.answer}
    (folder / f"{ann.relation}.jsonl").write_text(json.dumps(unnamed) + "\n", encoding="utf-8")
    assert listed([france, other, ann], folder) == [france, ann]
    assert listed([france, other, ann], folder / "P36.jsonl") == [france]
    with pytest.raises(InputError, match="none of its 2 facts is among those to ask"):
        listed([other], folder / "P36.jsonl")
    (folder / "P36.jsonl").write_text('{"sub_label": "x"}\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"P36.jsonl:1: not a fact with sub_label and obj_label \(no 'obj_label'\)"):
        listed([france], folder)


class Knows:
    """Answers every text from a table, and counts a phrase's words as its tokens."""

    def __init__(self, corpora: Sequence[Corpus], answers: Mapping[str, Sequence[str]]) -> None:
        self.texts = {(each.title, each.text) for corpus in corpora for each in corpus.passages()}
        self.answers = answers
        self.asked: list[str] = []
        self.options: list[dict[str, Any]] = []

    def fill(self, text: Sequence[str], *, exclude: Sequence[Collection[int]], **options: Any) -> Any:
        self.asked += text
        self.options.append(options)
        return [[Prediction(each, 0.0, 1.0, ()) for each in self.answers.get(one, ("paris",))] for one in text]

    def num_tokens(self, phrase: str) -> int:
        return len(phrase.split())


def run_lama(
    facts: Sequence[Fact],
    templates: Mapping[str, str],
    opened: list[Knows],
    answers: Mapping[str, Sequence[str]] | None = None,
    corpora: Sequence[Corpus] = (),
    limit: int | None = None,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Report:
    """The report of such a model, which is put in `opened`."""

    def opens(name: str, searched: Sequence[Corpus]) -> Knows:
        if not mine:
            mine.append(Knows(searched, answers or {}))
            opened.append(mine[0])
        return mine[0]

    mine: list[Knows] = []
    with tempfile.TemporaryDirectory() as scratch:
        call = given(Path(scratch), *corpora, opens=opens, systems=("m",), limit=limit, seed=seed)
        return measured(facts_over(call, LamaSettings(**settings), facts, templates), {"m": options or {}})


def test_scores_by_relation_over_the_evidence(files: list[Path], tmp_path: Path) -> None:
    more = tmp_path / "more.jsonl"
    more.write_text('{"id": "x", "title": "Oslo", "text": "Oslo is in Norway."}\n', encoding="utf-8")
    opened: list[Knows] = []
    templates = read_templates(None) | {"P36": "[X]: [Y]"}
    facts = read_facts(files)
    found = run_lama(facts, templates, opened, distractors=(str(more),), options={"combine": "joint"})
    (result,) = found.systems
    scored = {"all": result.score()} | result.by_group("relation")
    scores = {name: each and (each.num_examples, mean(each)) for name, each in scored.items()}
    assert scores == {"all": (3, pytest.approx(2 / 3)), "P36": (2, 1.0), "date_of_birth": (1, 0.0)}
    assert opened[0].texts == {
        ("France", "Paris is the capital of France."),
        ("France", "France's capital, PARIS."),
        ("Ann Lee", "Ann Lee (born 1 May 1941) sings."),
        ("Oslo", "Oslo is in Norway."),
    }
    assert opened[0].options == [{"combine": "joint", "top_k": 5}]


FACTS = [Fact(f"{name}{i}", name, f"{name}{i}", answer, ()) for name, answer, n in (
    ("a", "The Rome", 4), ("a", "Oslo", 2), ("b", "New York City of old", 2), ("b", "St. Louis", 1)
) for i in range(n)]  # fmt: skip
ASKED = {"a": "[X] a [Y].", "b": "[X] b [Y]."}


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    made = Corpus.create(tmp_path / "own.quoth")
    made.add([Document("x", "Rome", "Rome is old.")])
    return made


def test_groups_by_tokens_and_means_by_hand(corpus: Corpus) -> None:
    """Answers of one word: 2, of two: 4 and 1, of five: 2."""
    answers = {
        "a0 a [MASK].": ["rome!", "x"],  # articles, case and punctuation aside
        "a1 a [MASK].": ["The Rome"],
        "b0 b [MASK].": ["no", "new york city of old"],
        "b1 b [MASK].": ["New York"],
    }
    facts = [replace(fact, id=str(i), subject=f"{fact.relation}{i % 6}") for i, fact in enumerate(FACTS)]
    opened: list[Knows] = []
    found = run_lama(facts, ASKED, opened, answers, [corpus])
    assert opened[0].texts == {("Rome", "Rome is old.")}
    assert [fact.subject for fact in facts] == ["a0", "a1", "a2", "a3", "a4", "a5", "b0", "b1", "b2"]
    (result,) = found.systems
    tokens = result.by_group("tokens")
    assert [(name, each.num_examples, mean(each), mean(each, "hit_at_5")) for name, each in tokens.items()] == [
        ("1 token", 2, 0.0, 0.0),
        ("2 tokens", 5, 0.4, 0.4),
        ("4+ tokens", 2, 0.0, 0.5),
    ]
    relations = result.by_group("relation")
    assert [(name, each.num_examples, mean(each)) for name, each in relations.items()] == [
        ("a", 6, pytest.approx(1 / 3)),
        ("b", 3, 0.0),
    ]
    lines = plain(found.markdown())
    assert lines == [
        "| lama; passages: 1 | examples | exact match | hit at 5 |",
        "| --- | ---: | ---: | ---: |",
        "| m | 9 | 22.2 | 33.3 |",
        "| m: 1 token | 2 | 0.0 | 0.0 |",
        "| m: 2 tokens | 5 | 40.0 | 40.0 |",
        "| m: 4+ tokens | 2 | 0.0 | 50.0 |",
        "| m: mean over tokens |  | 13.3 | 30.0 |",
        "| m: a | 6 | 33.3 | 33.3 |",
        "| m: b | 3 | 0.0 | 33.3 |",
        "| m: mean over relation |  | 16.7 | 33.3 |",
    ]
    macro = found.to_dict()["systems"][0]["macro"]
    means = {name: {measure: each["mean"] for measure, each in of.items()} for name, of in macro.items()}
    assert means == {
        "tokens": {"exact_match": pytest.approx(0.4 / 3), "hit_at_5": pytest.approx(0.9 / 3)},
        "relation": {"exact_match": pytest.approx(1 / 6), "hit_at_5": pytest.approx(1 / 3)},
    }


def test_facts_are_drawn_by_seed_so_many_of_each_relation_and_number_of_tokens(corpus: Corpus) -> None:
    many = [Fact(f"{name}{i}", name, f"{name}{i}", "x y" if i % 2 else "x", ()) for name in "ab" for i in range(40)]

    def asked(facts: list[Fact], **options: Any) -> list[str]:
        opened: list[Knows] = []
        run_lama(facts, ASKED, opened, corpora=[corpus], **options)
        return [text.split()[0] for text in opened[0].asked]

    drawn = asked(many, limit=10)
    assert [sum(each[0] == name for each in drawn) for name in "ab"] == [10, 10]
    assert drawn == asked(many, limit=10) != asked(many, limit=10, seed=1)
    assert drawn != [*(f"a{i}" for i in range(10)), *(f"b{i}" for i in range(10))]
    assert asked(many[:40], limit=10) == drawn[:10]
    few = asked(many, limit=30, per_group=3)
    assert [sum(int(each[1:]) % 2 == odd for each in few) for odd in (0, 1)] == [3, 3]
    with pytest.raises(InputError, match="per_group is 0; it must be 1 or more"):
        asked(many, per_group=0)


def test_distractors_do_not_go_with_a_corpus_of_ones_own(corpus: Corpus) -> None:
    with pytest.raises(InputError, match="distractors are only for searching the facts' evidence"):
        run_lama(FACTS, ASKED, [], corpora=[corpus], distractors=("d.jsonl",))


def test_the_command(
    files: list[Path], corpus: Corpus, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Knows] = []

    def loads(name: str, corpora: Sequence[Corpus], setup: object) -> Knows:
        opened.append(Knows(corpora, {}))
        return opened[-1]

    monkeypatch.setattr(systems, "load_predictor", loads)
    command = ["eval", "lama", str(files[1]), "--corpus", str(corpus.path), "--json", "--limit", "1", "--seed", "3"]
    told = ("combine=sum", 'banned_tokens=["born"]', "passages=null", "k=7", "length_exponent=0.5", "per_group=1")
    assert main([*command, *repeated("--set", *told)]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["num_examples"], shown["num_passages"], shown["seed"]) == (1, 1, 3)
    (asked,) = opened[0].options
    told = {"combine": "sum", "banned_tokens": ["born"], "passages": None, "k": 7, "length_exponent": 0.5}
    assert asked == {**told, "top_k": 5}
    assert main([*command, "--system", "quoth-reader,passages=2"]) == 0
    assert opened[1].options == [{"passages": 2, "top_k": 5}]


def test_a_models_tokens_are_counted_as_inside_a_text(tmp_path: Path) -> None:
    npm = NPM.from_pretrained(tiny_npm(tmp_path / "npm"))
    raw = Tokenizer.from_file(str(tmp_path / "npm" / "tokenizer.json"))
    for phrase in ("Paris", "the river", "Hagios Demetrios, 1535"):
        assert npm.num_tokens(f" {phrase} ") == len(raw.encode(phrase, add_special_tokens=False).ids)


def test_broken_files_are_named(tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"pred": "x"}\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"bad\.jsonl:1: not a fact of T-REx or Google-RE"):
        read_facts([bad])
    with pytest.raises(InputError, match="no facts to ask for"):
        run_lama([], {}, [])
