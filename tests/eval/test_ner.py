"""Scores of names, by hand and by pooled counts, and the command that prints them."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from asking import mean, said

from quoth.cli.main import main
from quoth.records import TaggedSpan
from quoth_eval.errors import MISSED, WRONG_NAMES, wrong_answers
from quoth_eval.harness import evaluate, read_run
from quoth_eval.tasks.ner import f1_scores, ner_task, tags

GOLD = [[TaggedSpan(0, 3, "PER"), TaggedSpan(4, 9, "LOC")], [TaggedSpan(0, 5, "ORG")], []]
FOUND = [[TaggedSpan(0, 3, "PER"), TaggedSpan(4, 9, "ORG")], [TaggedSpan(0, 4, "ORG")], [TaggedSpan(1, 2, "PER")]]


def test_a_sentences_scores_by_hand() -> None:
    scores, weights = f1_scores(GOLD[0], FOUND[0])
    expected = {"f1": 0.5, "precision": 0.5, "recall": 0.5, "f1_without_class": 1.0}
    assert scores == {**expected, "f1_LOC": 0.0, "f1_ORG": 0.0, "f1_PER": 1.0, "all_names_right": 0.0}
    assert weights == {
        "f1": 4,
        "precision": 2,
        "recall": 2,
        "f1_without_class": 4,
        "f1_LOC": 1,
        "f1_ORG": 1,
        "f1_PER": 2,
    }
    assert f1_scores([], []) == ({"all_names_right": 1.0}, {})
    scores, weights = f1_scores([], FOUND[2])
    assert (scores["precision"], weights["precision"], "recall" in scores) == (0.0, 1.0, False)


class Fixed:
    """Finds what it was given, text by text."""

    def __init__(self, found: dict[str, list[TaggedSpan]]) -> None:
        self._found = found

    def names(self, texts: Sequence[str]) -> list[list[TaggedSpan]]:
        return [self._found[text] for text in texts]


def test_means_are_those_of_pooled_counts_and_intervals_those_of_sampled_sentences(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    labels, lines, found, counts = ["O", "B-PER", "B-LOC"], list[str](), dict[str, list[TaggedSpan]](), []
    for i in range(150):
        gold, said = rng.integers(3, size=(2, 4))
        words = [f"s{i}", "b", "c", "d"]
        text, starts = " ".join(words), np.cumsum([0, *(len(word) + 1 for word in words)])
        lines += [*(f"{word} {labels[tag]}" for word, tag in zip(words, gold, strict=True)), ""]
        spans = [
            TaggedSpan(int(starts[j]), int(starts[j]) + len(words[j]), labels[said[j]][2:])
            for j in np.flatnonzero(said)
        ]
        found[text] = spans
        counts.append([((gold == said) & (gold > 0)).sum(), (gold > 0).sum(), (said > 0).sum()])
    (tmp_path / "x").write_text("\n".join(lines), encoding="utf-8")
    report = evaluate(ner_task([str(tmp_path / "x")]), {"tagger": tags(Fixed(found))}, tmp_path / "run")
    score = report.systems[0].score()
    right, gold_total, found_total = np.array(counts).sum(axis=0)
    assert mean(score, "precision") == pytest.approx(right / found_total)
    assert mean(score, "recall") == pytest.approx(right / gold_total)
    assert mean(score, "f1") == pytest.approx(2 * right / (gold_total + found_total))
    # Sampled sentences without any name change nothing, so they may be left out of the samples.
    naming = np.array([each for each in counts if each[1] + each[2]])
    samples = np.random.default_rng(0)
    f1 = []
    for _ in range(1000):
        r, g, f = naming[samples.integers(len(naming), size=len(naming))].sum(axis=0)
        f1.append(2 * r / (g + f))
    bounds = score.interval("f1")
    assert bounds is not None
    assert [bounds.low, bounds.high] == pytest.approx(np.quantile(f1, [0.025, 0.975]))
    assert read_run(tmp_path / "run").systems == report.systems
    drawn = ner_task([str(tmp_path / "x")], limit=5, seed=1).examples
    assert [each.id for each in drawn] == sorted({each.id for each in drawn}, key=int)
    assert len(drawn) == 5


def test_wrong_sentences_are_listed_by_kind(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("Ada B-PER\nsang O\n\nRome B-LOC\n\nBonn B-LOC\n", encoding="utf-8")
    found = {"Ada sang": [TaggedSpan(0, 3, "PER")], "Rome": [TaggedSpan(0, 4, "PER")], "Bonn": list[TaggedSpan]()}
    (result,) = evaluate(ner_task([str(tmp_path / "x")]), {"tagger": tags(Fixed(found))}).systems
    wrong = wrong_answers(result)
    assert [(each.kind, each.row.answers, said(each.row)) for each in wrong] == [
        (WRONG_NAMES, ("Rome (LOC)",), ("Rome (PER)",)),
        (MISSED, ("Bonn (LOC)",), ("no name",)),
    ]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x").write_text("Ada B-PER\nLovelace I-PER\nlived O\nin O\nLondon B-LOC\n. O\n", encoding="utf-8")
    asked = ["eval", "ner", str(tmp_path / "x"), "--run", str(tmp_path / "run")]
    assert main(asked) == 0
    assert "| f1 | 100.0 [100.0, 100.0] |" in capsys.readouterr().out
    assert main([*asked, "--json"]) == 0
    (system,) = json.loads(capsys.readouterr().out)["systems"]
    assert system["recall"]["mean"] == 1.0
    assert main(["eval", "errors", str(tmp_path / "run")]) == 0
    assert "0 of 1 wrong" in capsys.readouterr().out
    assert main(["eval", "ner", str(tmp_path / "nowhere")]) == 2
    assert "nowhere: cannot be read" in capsys.readouterr().err
