"""The harness: what is asked, what is kept and resumed, how means, intervals and differences come about."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from asking import is_listed, mean

from quoth.errors import InputError
from quoth.records import Evidence, Passage, Prediction
from quoth_eval.harness import PREDICTIONS, Lazy, evaluate, read_run
from quoth_eval.report import Report
from quoth_eval.statistics import Interval, interval, macro_interval, paired
from quoth_eval.task import Answer, Example, Task, draw, draw_as_released, draw_of_each

stats = pytest.importorskip("scipy.stats")


def task(size: int = 6, **settings: object) -> Task[int]:
    examples = [Example(str(i), f"text {i}", (str(i % 2),), i, {"half": f"half {i // 3}"}) for i in range(size)]
    return Task(name="parity", examples=examples, judge=is_listed, settings=settings, macro=("half",), at_a_time=2)


class Says:
    """Says the same to everything, and breaks down when it has been asked for so many."""

    def __init__(self, *texts: str, until: int = 99) -> None:
        self.texts, self.until, self.asked = texts, until, list[int]()

    def __call__(self, examples: Sequence[Example[int]]) -> list[Answer]:
        self.asked += [example.source for example in examples]
        if len(self.asked) > self.until:
            raise KeyboardInterrupt
        place = Evidence("d", "Title", 3, 0, 1, "1 in context", 0.5)
        said = [Prediction(text, -1.5, 0.5, (place,) * 5) for text in self.texts]
        return [Answer(said, [Passage(3, "d", "Title", "1 in context", 10, 22)]) for _ in examples]


def means(report: Report) -> dict[str, dict[str, float | None]]:
    found = {}
    for result in report.systems:
        score = result.score()
        found[result.name] = {name: mean(score, name) for name in report.measures}
    return found


def test_means_by_hand() -> None:
    report = evaluate(task(), {"zero": Says("0", "1"), "one": Says("1"), "mute": Says()})
    assert means(report) == {
        "zero": {"exact_match": 0.5, "hit_at_5": 1.0},
        "one": {"exact_match": 0.5, "hit_at_5": 0.5},
        "mute": {"exact_match": 0.0, "hit_at_5": 0.0},
    }
    halves = report.system("zero").by_group("half")
    assert {name: (each.num_examples, mean(each)) for name, each in halves.items()} == {
        "half 0": (3, pytest.approx(2 / 3)),
        "half 1": (3, pytest.approx(1 / 3)),
    }
    assert report.system("zero").macro("half", "exact_match") == Interval(pytest.approx(0.5), *_two())


def _two() -> tuple[object, object]:
    whole = macro_interval([[1, 0, 1], [0, 1, 0]])
    return whole.low, whole.high


def test_a_run_that_broke_off_resumes_where_it_stopped(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        evaluate(task(), {"zero": Says("0"), "one": Says("1", until=3)}, tmp_path / "run")
    with (tmp_path / "run" / PREDICTIONS).open("a") as file:
        file.write('{"system": "one", "id": "2"')  # what a killed process leaves
    unasked, rest = Says("0"), Says("1")
    steps: list[tuple[str, int, int]] = []
    resumed = evaluate(task(), {"zero": unasked, "one": rest}, tmp_path / "run", lambda *each: steps.append(each))
    assert (unasked.asked, rest.asked) == ([], [2, 3, 4, 5])
    assert steps == [("one", 4, 6), ("one", 6, 6)]
    whole = evaluate(task(), {"zero": Says("0"), "one": Says("1")})
    assert means(resumed) == means(whole)
    assert resumed.to_dict() == json.loads((tmp_path / "run" / "report.json").read_text())
    assert resumed.markdown() == (tmp_path / "run" / "report.md").read_text()
    assert read_run(tmp_path / "run") == resumed


def test_every_answer_is_kept_with_its_evidence(tmp_path: Path) -> None:
    evaluate(task(2), {"one": Says("1", "0")}, tmp_path / "run")
    rows = [json.loads(line) for line in (tmp_path / "run" / PREDICTIONS).read_text().splitlines()]
    assert [(row["id"], row["text"], row["answers"], row["scores"]["exact_match"]) for row in rows] == [
        ("0", "text 0", ["0"], 0.0),
        ("1", "text 1", ["1"], 1.0),
    ]
    assert [prediction["text"] for prediction in rows[0]["predictions"]] == ["1", "0"]
    evidence = rows[0]["predictions"][0]["evidence"]
    assert (len(evidence), evidence[0]["context"]) == (3, "1 in context")
    assert rows[0]["passages"] == ["d:10-22"]


def test_a_system_that_is_complete_is_not_made_again_and_another_may_join(tmp_path: Path) -> None:
    evaluate(task(), {"zero": Says("0")}, tmp_path / "run")
    evaluate(task(), {"zero": Lazy(Mock(side_effect=AssertionError("made again")))}, tmp_path / "run")
    both = evaluate(task(), {"one": Says("1")}, tmp_path / "run")
    assert [each.name for each in both.systems] == ["zero", "one"]


def test_a_folder_of_another_run_is_refused(tmp_path: Path) -> None:
    evaluate(task(seed=1), {"zero": Says("0")}, tmp_path / "run")
    with pytest.raises(InputError, match="run is a run with seed=1; resume it with the same, or name a new folder"):
        evaluate(task(seed=2), {"zero": Says("0")}, tmp_path / "run")
    others = task(seed=1)
    other = replace(others, examples=[replace(each, answers=("2",)) for each in others.examples])
    with pytest.raises(InputError, match=r"run is a run with examples='[0-9a-f]{8}'; resume it"):
        evaluate(other, {"zero": Says("0")}, tmp_path / "run")
    (tmp_path / "run" / PREDICTIONS).write_text('{"system": "x"}\n')
    with pytest.raises(InputError, match=r"predictions\.jsonl:1: not a row of a run"):
        evaluate(task(seed=1), {"zero": Says("0")}, tmp_path / "run")
    with pytest.raises(InputError, match="name the folder of a run"):
        read_run(tmp_path)


def test_a_run_goes_on_from_the_same_inputs_alone(tmp_path: Path) -> None:
    """Systems that join have inputs of their own; a change of a system's weights, or of a corpus, is another run."""
    evaluate(task(), {"zero": Says("0")}, tmp_path / "run", inputs={"zero": "a", "corpus c": "1"})
    both = evaluate(task(), {"one": Says("1")}, tmp_path / "run", inputs={"one": "b", "corpus c": "1"})
    assert [each.name for each in both.systems] == ["zero", "one"]
    for changed, told in (({"zero": "b"}, "zero a"), ({"one": "b", "corpus c": "2"}, "corpus c 1")):
        with pytest.raises(InputError, match=f"run has answers from another {told}; name a new folder"):
            evaluate(task(), {"zero": Says("0")}, tmp_path / "run", inputs=changed)


def test_what_cannot_be_asked_is_named_and_equal_ids_are_told_apart() -> None:
    with pytest.raises(InputError, match="parity: no system to ask"):
        evaluate(task(), {})
    with pytest.raises(InputError, match="parity: no example to ask"):
        evaluate(task(0), {"zero": Says("0")})
    same = Task(name="same", examples=[Example("a", "", ("0",), 0)] * 3, judge=is_listed)
    assert [row.id for row in evaluate(same, {"zero": Says("0")}).systems[0].rows] == ["a", "a (2)", "a (3)"]


def test_tables_by_hand() -> None:
    report = evaluate(task(2, num_passages=1234), {"one": Says("1"), "zero": Says("0")})
    assert report.markdown(()).splitlines() == [
        "| parity; passages: 1,234 | examples | exact match | hit at 5 |",
        "| --- | ---: | ---: | ---: |",
        "| one | 2 | 50.0 [0.0, 100.0] | 50.0 [0.0, 100.0] |",
        "| one: mean over half |  | 50.0 [0.0, 100.0] | 50.0 [0.0, 100.0] |",
        "| zero | 2 | 50.0 [0.0, 100.0] | 50.0 [0.0, 100.0] |",
        "| zero: mean over half |  | 50.0 [0.0, 100.0] | 50.0 [0.0, 100.0] |",
        "",
        "| difference | measure | points | p, paired |",
        "| --- | ---: | ---: | ---: |",
        "| one − zero | exact match | 0.0 [-100.0, 100.0] | 1.0000 |",
    ]


def test_an_interval_is_scipys_percentile_bootstrap() -> None:
    rng = np.random.default_rng(3)
    for values in (rng.random(80) < 0.3, rng.normal(size=200), rng.random(50) ** 3):
        theirs = stats.bootstrap((values.astype(float),), np.mean, n_resamples=20_000, method="percentile", rng=rng)
        ours = interval(values.tolist())
        width = theirs.confidence_interval.high - theirs.confidence_interval.low
        assert ours.mean == pytest.approx(float(np.mean(values)))
        assert ours.low == pytest.approx(theirs.confidence_interval.low, abs=0.1 * width)
        assert ours.high == pytest.approx(theirs.confidence_interval.high, abs=0.1 * width)


def test_a_mean_over_groups_is_as_sure_as_its_groups() -> None:
    rng = np.random.default_rng(4)
    groups = [(rng.random(size) < share).astype(float) for size, share in ((40, 0.2), (400, 0.7))]
    found = macro_interval([each.tolist() for each in groups])
    deviation = np.sqrt(sum(each.var() / len(each) for each in groups)) / 2
    assert found.mean == pytest.approx(np.mean([each.mean() for each in groups]))
    assert found.high - found.low == pytest.approx(2 * 1.96 * deviation, rel=0.15)


def test_the_paired_test_is_the_exact_one() -> None:
    rng = np.random.default_rng(5)
    one, other = rng.random(100) < 0.6, rng.random(100) < 0.45
    better, worse = int((one & ~other).sum()), int((other & ~one).sum())
    found = paired([*map(float, one)], [*map(float, other)])
    assert found.points.mean == pytest.approx((better - worse) / 100)
    assert found.p == pytest.approx(stats.binomtest(better, better + worse).pvalue, abs=0.02)
    gain = rng.normal(0.2, 1, 60)
    theirs = stats.permutation_test((gain,), np.mean, permutation_type="samples", n_resamples=20_000, rng=rng)
    assert paired(gain.tolist(), [0.0] * 60).p == pytest.approx(theirs.pvalue, abs=0.02)
    assert paired([1.0, 0.0], [1.0, 0.0]).p == 1.0


def test_draws() -> None:
    items = list(range(50))
    assert draw_as_released(items, 10) == np.random.RandomState(0).permutation(50)[:10].tolist()
    assert draw_as_released(items, None) == draw(items, None, 3) == items
    tens = draw_of_each(items, 2, 0, lambda item: item // 10)
    assert [item // 10 for item in tens] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    for drawn in (draw, draw_as_released):
        with pytest.raises(InputError, match="limit is 0"):
            drawn(items, 0, 0)
