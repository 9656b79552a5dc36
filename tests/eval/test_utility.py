"""The task utility: what is measured of a REALM's likelihoods, by hand; whom it can ask."""

from __future__ import annotations

import json
from collections.abc import Collection
from math import log
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from asking import given, measured

from commands import Run
from quoth.datasets.blanks import Blank
from quoth.errors import InputError
from quoth.records import Likelihood, Passage, PassageShare
from quoth_eval.task import Example
from quoth_eval.tasks import find
from quoth_eval.tasks.utility import likelihoods
from tiny import tiny_realm

TEXTS = ("Nothing here.", "She wrote in Paris.", "Paris, again.")


def shares(log_p: Collection[float]) -> tuple[PassageShare, ...]:
    """The passages in order, and the null document."""
    passages = [*(Passage(n, f"d{n}", "", text, 0, len(text)) for n, text in enumerate(TEXTS)), None]
    return tuple(PassageShare(passage, "", 0.0, p, 0.25) for passage, p in zip(passages, log_p, strict=True))


class FakeREALM:
    """p(y|z,x) is 0.1, 0.4 and 0.2 with three passages, 0.05 without any, and 0.25 with all."""

    name = "fake"

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def likelihood(self, text: str, answer: str, *, passages: int, exclude: Collection[int]) -> Likelihood:
        self.asked.append((text, answer, passages, set(exclude)))
        return Likelihood(answer, ("p",), log(0.25), shares([log(p) for p in (0.1, 0.4, 0.2, 0.05)]))


def test_scores_by_hand() -> None:
    blank = Blank("content", 7, "d", "In [MASK].", "paris", 1)
    model, example = FakeREALM(), Example("0", blank.text, ("paris",), blank, hidden=frozenset({7}))
    [answer] = likelihoods(model)([example])
    assert model.asked == [("In [MASK].", "paris", 5, {7})]
    scores = {name: pytest.approx(value) for name, value in answer.scores.items()}
    # log of 2, 8 and 4 times as likely as without a passage: log 2 · (1 + 3 + 2) / 3
    assert scores == {
        "utility_(nats_/_100)": 2 * log(2),
        "likelier_with_passages": 1.0,
        "p_without_a_passage": 0.05,
        "p_with_the_best": 0.4,
        "p_with_all": 0.25,
    }


def test_a_run_of_pages(tmp_path: Path) -> None:
    """The only content phrases that two pages share are "Paris" and "stands"; of three passages the second has "Paris",
    and none has "stands"."""
    pages = tmp_path / "pages.jsonl"
    lines = ('{"id": "a", "text": "Paris stands here."}', '{"id": "b", "text": "There stands Paris."}')
    pages.write_text("\n".join(lines), encoding="utf-8")
    model = FakeREALM()
    prepared = find("utility").prepare(given(tmp_path, opens=model, files=(str(pages),)), {})
    report = measured(prepared, {"fake": {}})
    rows = report.system("fake").rows
    assert sorted(row.answers[0] for row in rows) == ["Paris", "Paris", "stands", "stands"]
    for row in rows:
        assert row.scores["recall@5"] == float(row.answers == ("Paris",))
        assert row.scores["recall@1"] == 0.0
    assert report.measures[:2] == ["recall@5", "recall@1"]
    assert sorted(next(iter(hidden)) for *_, hidden in model.asked) == [0, 0, 1, 1]  # a blank's own passage
    limited = find("utility").prepare(given(tmp_path / "2", opens=model, files=(str(pages),), limit=3), {})
    assert [example.id for example in limited.task.examples] == ["0", "1", "2"]
    with pytest.raises(InputError, match="not a REALM but SimpleNamespace"):
        measured(
            find("utility").prepare(given(tmp_path / "3", opens=SimpleNamespace(), files=(str(pages),)), {}), {"x": {}}
        )


def test_two_tasks_of_one_call_read_the_same_pages(tmp_path: Path, run: Run) -> None:
    """Each makes a corpus of its own of them."""
    pages = tmp_path / "pages.jsonl"
    pages.write_text(
        "".join(f'{{"id": "{name}", "text": "In {name} Paris stands here."}}\n' for name in "abc"), "utf-8"
    )
    model = tiny_realm(tmp_path / "realm")
    code, out, _ = run("eval", "cloze", "utility", pages, "--system", model, "--limit", 4, "--json")
    assert code == 0
    assert [json.loads(line)["task"] for line in out.splitlines()] == ["cloze", "utility"]
