"""Scores of spans, by hand, and the command that prints them."""

import json
from pathlib import Path

import pytest

from quoth.cli.main import main
from quoth.evaluation.ner import TagScore, run_ner, tag_scores
from quoth.records import TaggedSpan

GOLD = [[TaggedSpan(0, 3, "PER"), TaggedSpan(4, 9, "LOC")], [TaggedSpan(0, 5, "ORG")], []]
FOUND = [[TaggedSpan(0, 3, "PER"), TaggedSpan(4, 9, "ORG")], [TaggedSpan(0, 4, "ORG")], [TaggedSpan(1, 2, "PER")]]


def test_scores_by_hand() -> None:
    scores = {each.label: each for each in tag_scores(GOLD, FOUND)}
    assert list(scores) == ["all", "spans", "LOC", "ORG", "PER"]
    assert scores["all"] == TagScore("all", 3, 4, 1)
    assert scores["spans"] == TagScore("spans", 3, 4, 2)
    assert scores["ORG"] == TagScore("ORG", 1, 2, 0)
    assert scores["PER"] == TagScore("PER", 1, 2, 1)
    assert (scores["all"].precision, scores["all"].recall) == (0.25, pytest.approx(1 / 3))
    assert scores["all"].f1 == pytest.approx(2 * 0.25 * (1 / 3) / (0.25 + 1 / 3))
    assert scores["spans"].f1 == pytest.approx(4 / 7)


def test_nothing_to_find_and_nothing_found() -> None:
    assert [each.f1 for each in tag_scores([[]], [[]])] == [0, 0]
    assert (TagScore("all", 0, 0, 0).precision, TagScore("all", 0, 0, 0).recall) == (0, 0)


def test_the_same_span_in_another_text_is_another(tmp_path: Path) -> None:
    moved = [GOLD[1], GOLD[0], []]
    assert tag_scores(GOLD, moved)[0].num_right == 0


class Echo:
    """Tags what begins with a capital as a person."""

    def names(self, texts: list[str]) -> list[list[TaggedSpan]]:
        return [[TaggedSpan(0, len(text.split()[0]), "PER")] if text[0].isupper() else [] for text in texts]


def test_files_are_read_and_counted(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("Ada B-PER\nsang O\n\nno O\n\nRome B-LOC\n\n" * 30, encoding="utf-8")
    seen: list[tuple[int, int]] = []
    scores = run_ner([str(tmp_path / "x")], Echo(), lambda done, total: seen.append((done, total)))
    assert scores[0] == TagScore("all", 60, 60, 30)
    assert scores[1].f1 == 1
    assert seen == [(64, 90), (90, 90)]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x").write_text("Ada B-PER\nLovelace I-PER\nlived O\nin O\nLondon B-LOC\n. O\n", encoding="utf-8")
    assert main(["eval", "ner", str(tmp_path / "x")]) == 0
    assert "| all | 2 | 100.0 | 100.0 | 100.0 |" in capsys.readouterr().out
    assert main(["eval", "ner", str(tmp_path / "x"), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["scores"][0] == {
        "label": "all",
        "gold": 2,
        "found": 2,
        "right": 2,
        "precision": 1.0,
        "recall": 1.0,
        "f1": 1.0,
    }
    assert main(["eval", "ner", str(tmp_path / "nowhere")]) == 2
    assert "nowhere: cannot be read" in capsys.readouterr().err
