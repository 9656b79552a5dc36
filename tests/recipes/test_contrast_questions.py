"""Made contrasts: where their answers and evidence stand, and that what is held out is nowhere in the rest."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from quoth.reader.data import read_examples

sys.path.insert(0, str(Path(__file__).parents[2] / "recipes"))

from contrast_questions import SHARES, filled

ROOT = Path(__file__).parents[2]
COMMITTED = [ROOT / "benchmarks" / "questions" / name for name in ("contrast.jsonl", "contrast_by_hand.jsonl")]
FIRSTS = ["Ada", "Ben", "Carl", "Dora", "Emil", "Frida", "Gus", "Hanna", "Ivo", "Jonas", "Klara", "Lars"]
LASTS = [start + end for start in ("Ber", "Ston", "Fal", "Rei", "Lin") for end in ("ger", "man", "sen", "kin")]
PLACES = [
    start + end
    for start in ("Vale", "Tarn", "Kent", "Brae", "Orl", "Holm", "Ash")
    for end in ("by", "ham", "wick", "ton", "dal")
]


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    """Persons and places, each the answer to a question, of passages with several sentences."""
    rows = []
    for number, (first, last) in enumerate(product(FIRSTS, LASTS)):
        place = PLACES[number % len(PLACES)]
        text = f"{first} {last} was born near the old bridge of {place}. The house still stands above the river there."
        for question, said in (("Who was born here?", f"{first} {last}"), ("Where does the house stand?", place)):
            answer = {"text": said, "start": text.index(said)}
            rows.append({"title": f"{place} {number % 9}", "context": text, "question": question, "answers": [answer]})
    file = tmp_path / "questions.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return file


@pytest.fixture
def make(script: Callable[..., str], questions: Path, tmp_path: Path) -> Callable[..., list[dict[str, Any]]]:
    def run(*options: str) -> list[dict[str, Any]]:
        out = tmp_path / "made.jsonl"
        script(ROOT / "recipes" / "contrast_questions.py", questions, "-o", out, "--count", "700", "--even", *options)
        read_examples(out)
        return [json.loads(line) for line in out.read_text(encoding="utf-8").split("\n") if line]

    return run


def check(rows: list[dict[str, Any]]) -> None:
    """Answers stand at their starts, within the evidence; every kind has questions with an answer and without."""
    for each in rows:
        ranges = each["evidence"]
        assert bool(ranges) == bool(each["answers"])
        assert all(each["context"][start:end].strip() == each["context"][start:end] != "" for start, end in ranges)
        for answer in each["answers"]:
            start, end = answer["start"], answer["start"] + len(answer["text"])
            assert each["context"][start:end] == answer["text"]
            assert any(first <= start and end <= last for first, last in ranges), each["question"]
    assert {(each["kind"], bool(each["answers"])) for each in rows} == set(product(SHARES, (True, False)))


def test_answers_stand_where_they_are_said_to_and_evidence_covers_them(
    make: Callable[..., list[dict[str, Any]]],
) -> None:
    rows = make()
    check(rows)
    assert make() == rows, "the same seed, the same questions"
    assert make("--seed", "1") != rows
    assert sum(bool(each["negatives"]) for each in rows) > len(rows) / 4


def test_what_is_held_out_shares_no_template_wording_or_name(make: Callable[..., list[dict[str, Any]]]) -> None:
    given, kept = make(), make("--held-out")
    check(kept)
    for key in ("template", "wording"):
        assert not {(each["kind"], each[key]) for each in given} & {(each["kind"], each[key]) for each in kept}
    names, others = (
        {answer["text"] for each in rows if "{role}" in each["wording"] for answer in each["answers"]}
        for rows in (given, kept)
    )
    persons = {name for name in others if name.split()[0] in FIRSTS}
    assert persons
    assert not persons & names


@pytest.mark.parametrize("file", COMMITTED, ids=lambda file: file.stem)
def test_committed_questions_stand_in_their_passages(file: Path) -> None:
    check([json.loads(line) for line in file.read_text(encoding="utf-8").split("\n") if line])


def test_a_template_is_filled_and_its_sentences_are_known() -> None:
    page = filled("{Role} of {body} is {new}. / {old} left.", {"role": "chair", "body": "X", "new": "Ann", "old": "Bo"})
    assert page.text == "Chair of X is Ann. Bo left."
    assert page.units == [(0, 18), (19, 27)]
    assert page.evidence(["new"]) == [(0, 18)]
    assert page.evidence(["old", "role"]) == [(0, 27)], "neighbours are one"
