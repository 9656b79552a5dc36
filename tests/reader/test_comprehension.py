"""Files to train a reader on: what is read, what is refused and where."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from quoth.errors import InputError
from quoth.reader.data import TitledText, read_examples

TEXT = "Carmen is an opera by Georges Bizet."
GOOD = {
    "id": "1",
    "title": "Carmen",
    "context": TEXT,
    "question": "Who wrote Carmen?",
    "answers": [{"text": "Georges Bizet", "start": 22}],
    "negatives": [{"title": "Tosca", "context": "Tosca is by Puccini."}],
}


def written(path: Path, *records: Any) -> Path:
    lines = [each if isinstance(each, str) else json.dumps(each) for each in records]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_line_is_an_example(tmp_path: Path) -> None:
    [found] = read_examples(written(tmp_path / "a.jsonl", GOOD))
    assert (found.id, found.question, found.passage) == ("1", "Who wrote Carmen?", TitledText("Carmen", TEXT))
    assert [TEXT[start:end] for start, end in found.answers] == ["Georges Bizet"]
    assert found.negatives == (TitledText("Tosca", "Tosca is by Puccini."),)


def test_compressed_files_and_lines_without_an_answer(tmp_path: Path) -> None:
    bare = {"question": "Who wrote Tosca?", "context": TEXT}
    with gzip.open(tmp_path / "a.jsonl.gz", "wt", encoding="utf-8") as stream:
        stream.write(json.dumps(bare) + "\n\n")
    [found] = read_examples(tmp_path / "a.jsonl.gz")
    assert (found.id, found.answers, found.passage.title) == ("1", (), "")


def test_squad(tmp_path: Path) -> None:
    asked = [
        {"id": "q1", "question": "Who?", "answers": [{"text": "Georges Bizet", "answer_start": 22}] * 2},
        {"id": "q2", "question": "When?", "answers": [], "is_impossible": True},
    ]
    squad = {"data": [{"title": "Carmen_(opera)", "paragraphs": [{"context": TEXT, "qas": asked}]}]}
    path = tmp_path / "squad.json"
    path.write_text(json.dumps(squad), encoding="utf-8")
    first, second = read_examples(path)
    assert (first.passage.title, first.answers, second.answers) == ("Carmen (opera)", ((22, 35),), ())


@pytest.mark.parametrize("asked", [None, 3, [None], ["Who?"], {"question": "Who?"}])
def test_an_article_without_lists_of_questions_is_named(tmp_path: Path, asked: Any) -> None:
    articles = [
        {"title": "Carmen", "paragraphs": [{"context": TEXT, "qas": each}]} for each in ([{"question": "Who?"}], asked)
    ]
    path = tmp_path / "squad.json"
    path.write_text(json.dumps({"data": articles}), encoding="utf-8")
    with pytest.raises(InputError, match=r"squad.json: article 2: not in SQuAD's format"):
        read_examples(path)
    told: list[InputError] = []
    assert len(read_examples(path, skip_bad=True, on_bad=told.append)) == len(told) == 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            {"answers": [{"text": "Bizet", "start": 21}]},
            "answer 'Bizet' does not occur at position 21 of its context, which has ' Geor'",
        ),
        ({"answers": [{"text": "Bizet", "start": -6}]}, "answer 'Bizet' does not occur at position -6"),
        ({"answers": [{"text": " ", "start": 6}]}, "answer ' ' is empty"),
        ({"answers": [{"start": 6}]}, "no 'text'"),
        ({"question": "…?"}, "question '…\\?' has no words"),
        ({"context": ""}, "the context is not a text"),
        *(({name: "half \ud83d of a pair"}, ".* surrogates not allowed") for name in ("question", "title", "in_full")),
    ],
)
def test_broken_lines_are_named(tmp_path: Path, change: dict[str, Any], reason: str) -> None:
    path = written(tmp_path / "a.jsonl", GOOD, GOOD | change)
    with pytest.raises(InputError, match=f"a.jsonl:2: {reason}"):
        read_examples(path)
    told: list[InputError] = []
    assert len(read_examples(path, skip_bad=True, on_bad=told.append)) == 1
    assert len(told) == 1


@pytest.mark.parametrize("line", ["[1]", '{"question": ', "nothing"])
def test_lines_that_are_no_objects(tmp_path: Path, line: str) -> None:
    with pytest.raises(InputError, match=r"a.jsonl:1: (not a JSON object|not JSON)"):
        read_examples(written(tmp_path / "a.jsonl", line, GOOD))


def test_nothing_left_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no question with its passage"):
        read_examples(written(tmp_path / "a.jsonl", "[1]"), skip_bad=True)
