"""LAMA's files become blanks, and evidence the corpus."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pytest

from quoth.corpus.corpus import Corpus
from quoth.errors import InputError
from quoth.evaluation.lama import Fact, blanks, read_facts, read_templates, run_lama
from quoth.records import Prediction

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
    facts = read_facts(files, limit=1)
    assert facts == [
        Fact("t1", "P36", "France", "Paris", ("Paris is the capital of France.", "France's capital, PARIS.")),
        Fact("g1", "date_of_birth", "Ann Lee", "1 May 1941", ("Ann Lee (born 1 May 1941) sings.",)),
    ]
    assert len(read_facts(files)) == 3


def test_blanks_by_template(files: list[Path], tmp_path: Path) -> None:
    listed = tmp_path / "relations.jsonl"
    listed.write_text('{"relation": "P36", "template": "The capital of [X] is [Y] ."}\n', encoding="utf-8")
    asked = blanks(read_facts(files, 1), read_templates(listed))
    assert [(each.kind, each.text, each.answer, each.num_words) for each in asked] == [
        ("P36", "The capital of France is [MASK] .", "Paris", 1),
        ("date_of_birth", "Ann Lee (born [MASK]).", "1 May 1941", 3),
    ]
    with pytest.raises(InputError, match="relation 'P36' has no template; name the file with --templates"):
        blanks(read_facts(files), read_templates(None))


class KnowsOne:
    """Answers "Paris" to everything."""

    def __init__(self, corpus: Corpus) -> None:
        self.texts = {(each.title, each.text) for each in corpus.passages()}

    def fill(self, text: Sequence[str], *, exclude: Sequence[Collection[int]], **options: Any) -> Any:
        assert options == {"passages": 3, "combine": "joint", "top_k": 5}
        return [[Prediction("paris", 0.0, 1.0, ())] for _ in text]

    def embed(self, precision: str, recall: float) -> None:
        raise AssertionError


def test_scores_by_relation(files: list[Path], tmp_path: Path) -> None:
    more = tmp_path / "more.jsonl"
    more.write_text('{"id": "x", "title": "Oslo", "text": "Oslo is in Norway."}\n', encoding="utf-8")
    opened: list[KnowsOne] = []

    def load(name: str, corpus: Corpus) -> Any:
        opened.append(KnowsOne(corpus))
        return opened[0]

    templates = read_templates(None) | {"P36": "[X]: [Y]"}
    found = run_lama(read_facts(files), templates, "m", load, distractors=[str(more)], passages=3, combine="joint")
    scores = {each.kind: (each.num_blanks, each.exact_match) for each in found.scores if each.length == "all"}
    assert scores == {"all": (3, pytest.approx(2 / 3)), "P36": (2, 1.0), "date_of_birth": (1, 0.0)}
    assert opened[0].texts == {
        ("France", "Paris is the capital of France."),
        ("France", "France's capital, PARIS."),
        ("Ann Lee", "Ann Lee (born 1 May 1941) sings."),
        ("Oslo", "Oslo is in Norway."),
    }


def test_broken_files_are_named(tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"pred": "x"}\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"bad\.jsonl:1: not a fact of T-REx or Google-RE"):
        read_facts([bad])
    with pytest.raises(InputError, match="no fact to ask"):
        run_lama([], {}, "m", lambda name, corpus: None)  # type: ignore[arg-type, return-value]
