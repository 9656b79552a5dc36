"""Files of questions are read by what they hold; what is wrong is named by file and line."""

from __future__ import annotations

import json
import lzma
import os
from pathlib import Path
from typing import Any

import pytest

from quoth.datasets.questions import QAExample, Squad, read_questions, read_squad
from quoth.errors import InputError
from quoth.records import Document

TASKS = Path(os.environ.get("QUOTH_TEST_TASKS", "no tasks"))
SQUAD: dict[str, Any] = {
    "version": "1.1",
    "data": [
        {
            "title": "Black_Death",
            "paragraphs": [
                {
                    "context": "It came in 1347.",
                    "qas": [
                        {
                            "id": "q1",
                            "question": "When?",
                            "answers": [{"text": "1347"}, {"text": "1347"}, {"text": "in 1347"}],
                        }
                    ],
                },
                {"context": "Rats carried it.", "qas": []},
            ],
        }
    ],
}


def written(folder: Path, text: str, name: str = "q.tsv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("who sings\t['Linda', 'L. D.']\r\n", QAExample("q-1", "who sings", ("Linda", "L. D."))),
        ('"say ""hi"" now"\t"[\'a\', ""b\'s""]"\n', QAExample("q-1", 'say "hi" now', ("a", "b's"))),
        ('\n7\tfactoid\tWhen is "it"?\tSept?(ember)?\n', QAExample("7", 'When is "it"?', ("Sept?(ember)?",), True)),
        (
            '[{"qId": "w1", "answers": ["A", "", "A", " B"], "qText": "x?"}]',
            QAExample("w1", "x?", ("A", " B")),
        ),
        ('\ufeff[\n {"question": "x?", "answers": ["A"]}\n]', QAExample("q-1", "x?", ("A",))),
        ('{"question": "x\u2028y?", "answer": ["A"]}\n', QAExample("q-1", "x\u2028y?", ("A",))),
        ('\n{"question": "x?", "answer": "A"}\n\n', QAExample("q-2", "x?", ("A",))),
        (json.dumps(SQUAD), QAExample("q1", "When?", ("1347", "in 1347"), gold="squad:Black_Death:0")),
    ],
    ids=["nq", "quoted", "trec", "webquestions", "entityquestions", "jsonl", "jsonl-one-answer", "squad"],
)
def test_every_format_is_recognised_by_its_content(tmp_path: Path, text: str, expected: QAExample) -> None:
    assert read_questions(written(tmp_path, text)) == [expected]


def test_compressed_files_and_several(tmp_path: Path) -> None:
    packed = tmp_path / "nq.dev.tsv.xz"
    packed.write_bytes(lzma.compress("who\t['é']\n".encode()))
    more = written(tmp_path, '{"question": "a?", "answer": ["b|c"]}\n{"question": "d?", "answer": ["e"]}', "t.json")
    first, *rest = read_questions(packed, more, patterns=True)
    assert first == QAExample("nq.dev-1", "who", ("é",))
    assert [(each.id, each.pattern) for each in rest] == [("t-1", True), ("t-2", True)]


def test_squad_gives_its_paragraphs_too(tmp_path: Path) -> None:
    path = written(tmp_path, json.dumps(SQUAD))
    assert read_squad(path) == Squad(
        (
            Document("squad:Black_Death:0", "Black Death", "It came in 1347."),
            Document("squad:Black_Death:1", "Black Death", "Rats carried it."),
        ),
        tuple(read_questions(path)),
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a\t['x']\nb\t[]\n", "q.tsv:2: no answer; fix it or skip it (--skip-bad)"),
        ("a\t['x']\nb\t['', ' ']\n", "q.tsv:2: no answer"),
        ("a\t['x']\n \t['x']\n", "q.tsv:2: no question"),
        ("a\t['x']\nb\n", "q.tsv:2: 1 cells; expected a question and a list"),
        ("a\t['x']\nb\t__import__('os')\n", "q.tsv:2: \"__import__('os')\" is not a list of answers"),
        ("a\t['x']\nb\t{'x': 1}\n", "q.tsv:2: \"{'x': 1}\" is not a list of answers"),
        ("a\t['x']\nb\t[1]\n", "q.tsv:2: '[1]' is not a list of answers"),
        (f"a\t['x']\nb\t{'[' * 5000}\n", "q.tsv:2: '[[["),
        ("a\t['x']\nb\t'x\n", 'q.tsv:2: "\'x" is not a list of answers'),
        ("1\tf\ta\tx\n2\tf\tb\t(x\n", "q.tsv:2: answer '(x' is not a regular expression (missing )"),
        ("1\tf\ta\tx\n2\tf\tb\t\n", "q.tsv:2: no answer"),
        ('{"question": "a", "answer": ["x"]}\n{"question": "b"}\n', "q.tsv:2: no answer"),
        ('{"question": "a", "answer": ["x"]}\n{"answer": ["x"]}\n', "q.tsv:2: no question"),
        ('{"question": "a", "answer": ["x"]}\n{"question\n', "q.tsv:2: not JSON (Unterminated string"),
        ('{"question": "a", "answer": ["x"]}\n[]\n', "q.tsv:2: not a JSON object"),
        ('{"question": "a", "answer": ["x"]}\n{"question": "\\ud800", "answer": ["x"]}', "q.tsv:2: 'utf-8' codec"),
        ('[{"question": "a", "answers": ["x"]}, {"question": "b", "answers": [2]}]', "q.tsv: entry 2: the answers are"),
        ('[{"question": "a", "answers": ["x"]}, 3]', "q.tsv: entry 2: not a JSON object"),
    ],
)
def test_broken_entries_are_named_or_left_out(tmp_path: Path, text: str, complaint: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(InputError) as raised:
        read_questions(path)
    assert str(raised.value).startswith(str(tmp_path / complaint[:5]) + complaint[5:])
    left_out: list[InputError] = []
    assert [each.text for each in read_questions(path, skip_bad=True, on_bad=left_out.append)] == ["a"]
    assert list(map(str, left_out)) == [str(raised.value)]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "neither a tab-separated table of questions and answers nor JSON"),
        (b"hello\nworld\n", "neither a tab-separated table"),
        (b'[\n{"question": 1,\n', "q.tsv:3: not JSON"),
        (b"[" * 100_000, "q.tsv:1: not JSON"),
        (b"[]", "no usable question"),
        (b"who\t['\xff']\n", "q.tsv:1: not UTF-8 text"),
        (b'{"data": [{"title": "x", "paragraphs": [{"qas": []}]}]}', "article 1 is not in SQuAD's format (KeyError"),
        (b'{"data": [{"title": 3, "paragraphs": [{"context": "c", "qas": []}]}]}', "article 1 is not in SQuAD's"),
        (b'{"data": [3]}', "article 1 is not in SQuAD's format (TypeError"),
        (b'{"data": []}', "no usable question"),
    ],
)
def test_broken_files_are_named(tmp_path: Path, content: bytes, complaint: str) -> None:
    path = tmp_path / "q.tsv"
    path.write_bytes(content)
    with pytest.raises(InputError) as raised:
        read_questions(path, skip_bad=True)
    assert complaint in str(raised.value)
    assert str(path) in str(raised.value)


def test_files_that_are_not_there_or_no_squad(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"x\.tsv: cannot be read"):
        read_questions(tmp_path / "x.tsv")
    (tmp_path / "cut.xz").write_bytes(lzma.compress(b"who\t['x']\n" * 1000)[:40])
    with pytest.raises(InputError, match=r"cut\.xz: cannot be read"):
        read_questions(tmp_path / "cut.xz")
    for text in ("[]", '{"question": "a"}', '{"question": "a"}\n{}', '{"data": 1}'):
        with pytest.raises(InputError, match="not a SQuAD file"):
            read_squad(written(tmp_path, text))


def test_a_question_of_squad_without_an_answer_is_left_out(tmp_path: Path) -> None:
    changed = json.loads(json.dumps(SQUAD))
    changed["data"][0]["paragraphs"][1]["qas"] = [{"id": "q2", "question": "Who?", "answers": []}, {"id": "q3"}]
    path = written(tmp_path, json.dumps(changed))
    with pytest.raises(InputError, match="paragraph squad:Black_Death:1, question 1: no answer"):
        read_squad(path)
    left_out: list[InputError] = []
    assert [each.id for each in read_questions(path, skip_bad=True, on_bad=left_out.append)] == ["q1"]
    assert len(left_out) == 2


@pytest.mark.skipif(not TASKS.is_dir(), reason="QUOTH_TEST_TASKS names no folder of tasks")
@pytest.mark.parametrize(
    ("name", "patterns", "count"),
    [
        ("open_qa/nq.test.tsv.xz", False, 3610),
        ("open_qa/wq.test.tsv", False, 2032),
        ("open_qa/devtest.json", False, 189),
        ("open_qa/curated.test.tsv", True, 694),
        ("open_qa/curated-train.tsv", False, 430),
        ("squad/dev-v1.1.json.xz", False, 10570),
        ("entityquestions/test/P112.test.json", False, 510),
    ],
)
def test_the_published_files(name: str, patterns: bool, count: int) -> None:
    questions = read_questions(TASKS / name, patterns=patterns)
    assert len(questions) == count
    assert {each.pattern for each in questions} == {"curated" in name}
