"""When not to answer: calibration, thresholds, and the measures of both, by hand and by brute force."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from quoth.answers.calibration import SHARES, fit, not_found_threshold, threshold, thresholds
from quoth.answers.evidence import Source, calibrated, features, log_odds
from quoth.answers.options import NPMDefaults, answered_from
from quoth.errors import InputError
from quoth.reader.config import ReaderAskOptions, ReaderDefaults
from quoth.records import Evidence, Passage, Prediction
from quoth_eval.statistics import abstention, interval
from quoth_eval.tasks.reading import token_f1


def prediction(probability: float, score: float) -> Prediction:
    place = Evidence("d", "", 0, 0, 1, "a", probability / 2)
    return Prediction("a", score, probability, (place, place))


def test_a_calibrated_probability_by_hand() -> None:
    [found] = calibrated([prediction(0.8, 3.0)], (-1.0, 0.5, 0.25), (), 0.9)
    expected = 1 / (1 + math.exp(-(-1.0 + 0.5 * math.log(4) + 0.25 * 3.0)))
    assert found.probability == pytest.approx(expected)
    assert (found.status, found.abstained) == ("unsure", True)
    assert sum(place.score for place in found.evidence) == pytest.approx(expected)
    assert not calibrated([prediction(0.8, 3.0)], (-1.0, 0.5, 0.25), (), expected - 1e-9)[0].abstained


def test_chances_of_rivals_fall_and_add_up_to_one_at_most() -> None:
    weights, shares = (0.0, 1.0), (0.5, 0.75, 0.4, 0.3, 0.1)  # the chance is the share
    found = calibrated([prediction(share, 0.0) for share in shares], weights, (), 0.25)
    assert [each.probability for each in found] == pytest.approx([each / 1.8 for each in (0.5, 0.5, 0.4, 0.3, 0.1)])
    assert [each.status for each in found] == ["answered", "answered", "unsure", "unsure", "unsure"]
    found = calibrated([prediction(share, 0.0) for share in (0.4, 0.45, 0.05, 0.3)], weights, (), 0.5)
    assert [each.probability for each in found] == pytest.approx([0.4, 0.4, 0.05, 0.05])


def test_features_by_hand() -> None:
    best = Prediction("by the sea", 2.0, 0.6, (Evidence("d", "", 7, 0, 10, "by the sea", 0.5, "c"),))
    of = Source(Passage(7, "d", "", "by the sea", 0, 10), "c", -0.25, 40)
    for read, relevance in (([of], -0.25), ([replace(of, corpus="b"), of], -0.25), ([replace(of, corpus="b")], 0.0)):
        assert features(best, read) == pytest.approx((1.0, math.log(1.5), 2.0, relevance, -math.log(3), -math.log(40)))


def test_without_weights_the_share_is_told() -> None:
    given = prediction(0.3, -2.0)
    assert calibrated([given], None, (), 0.0) == [given]
    [sure] = calibrated([prediction(1.0, 800.0)], (0.0, 1.0, 1.0), (), 0.5)
    assert sure.probability == pytest.approx(1.0)
    assert calibrated([prediction(0.0, -900.0)], (0.0, 1.0, 1.0), (), 0.5)[0].abstained


@pytest.mark.parametrize(
    ("chances", "answered_from", "not_found_below", "expected"),
    [
        ((0.5, 0.25), 0.5, 0.25, "answered unsure"),  # at the threshold: answered
        ((0.49, 0.25), 0.5, 0.25, "unsure unsure"),
        ((0.25, 0.125), 0.5, 0.25, "unsure unsure"),  # at the lower one: not yet "not found"
        ((0.24, 0.125), 0.5, 0.25, "not_found not_found"),
        ((0.5, 0.125), 0.5, 0.25, "answered unsure"),  # only the best one decides
        ((0.125, 0.0), 0.0, 0.25, "answered answered"),  # with no threshold everything is answered
        ((0.125, 0.0625), 0.125, 0.25, "answered unsure"),
        ((0.1, 0.0625), 0.125, 0.25, "not_found not_found"),
        ((0.0, 0.0), 1.0, 0.0, "unsure unsure"),  # a model without the second threshold
    ],
)
def test_three_states_by_hand(
    chances: tuple[float, float], answered_from: float, not_found_below: float, expected: str
) -> None:
    found = calibrated([prediction(each, 0.0) for each in chances], None, (), answered_from, not_found_below)
    assert [each.status for each in found] == expected.split()
    assert calibrated([], None, (), answered_from, not_found_below) == []


@pytest.mark.parametrize("kind", [ReaderDefaults, NPMDefaults])
@pytest.mark.parametrize("name", ["min_probability", "not_found_below"])
def test_thresholds_of_a_model_are_probabilities(kind: type[ReaderDefaults | NPMDefaults], name: str) -> None:
    assert getattr(kind.from_dict({}), name) == 0.0
    assert getattr(kind.from_dict({name: 1.0}), name) == 1.0
    with pytest.raises(InputError, match=f"{name} is 1.1; it must be from 0 to 1"):
        kind.from_dict({name: 1.1})


def test_fitted_weights_are_those_that_made_the_data() -> None:
    rng = np.random.default_rng(0)
    x_N3 = np.stack([np.ones(20000), rng.normal(size=20000), rng.normal(size=20000)], axis=1)
    chance_N = 1 / (1 + np.exp(-(x_N3 @ np.array([-0.5, 1.5, 0.7]))))
    assert fit(x_N3, rng.random(20000) < chance_N) == pytest.approx([-0.5, 1.5, 0.7], abs=0.1)
    # The gradient of the likelihood is zero there, up to the ridge.
    right_N = rng.random(20000) < chance_N
    weights = np.array(fit(x_N3, right_N))
    p_N = 1 / (1 + np.exp(-(x_N3 @ weights)))
    assert np.abs(x_N3.T @ (p_N - right_N)).max() < 0.01
    assert fit(np.array([(1.0, log_odds(0.9), 1.0)] * 5), np.ones(5, bool))[0] > 1


def test_no_feature_counts_against_an_answer() -> None:
    rng = np.random.default_rng(1)
    x_N3 = np.stack([np.ones(5000), rng.normal(size=5000), rng.normal(size=5000)], axis=1)
    right_N = rng.random(5000) < 1 / (1 + np.exp(-(x_N3 @ np.array([-0.5, 1.0, -0.8]))))
    bias, first, second = fit(x_N3, right_N)
    assert (bias < 0, first > 0, second) == (True, True, 0.0)
    assert (bias, first) == pytest.approx(fit(x_N3[:, :2], right_N))


def test_thresholds_by_hand() -> None:
    chances, right = [0.9, 0.8, 0.7, 0.6, 0.5], [True, True, False, True, False]
    assert threshold(chances, right, 1.0) == 0.8
    assert threshold(chances, right, 0.75) == 0.6
    assert threshold(chances, right, 0.6) == 0.5
    assert threshold([0.9, 0.2], [False, False], 0.5) == 1.0
    # What is equally likely is answered together.
    assert threshold([0.9, 0.5, 0.5], [True, True, False], 0.9) == 0.9
    assert threshold([], [], 0.8) == 1.0


def test_thresholds_that_a_number_of_questions_can_promise() -> None:
    chances = [(100 - n) / 100 for n in range(100)]
    assert thresholds(chances, [True] * 100) == tuple((share, 0.01) for share in SHARES)
    # The first 60 are right, the others wrong: 75 % of the best 80, 60 % of 100.
    assert thresholds(chances, [True] * 60 + [False] * 40)[:4] == ((0.5, 0.01), (0.6, 0.01), (0.7, 0.16), (0.75, 0.21))
    # 98 % of 61 are right, with one wrong; of so few answers 98 % are not promised, which would take 50: they are.
    assert thresholds(chances, [True] * 60 + [False] * 40)[-1] == (0.98, 0.4)
    assert thresholds(chances[:29], [True] * 29) == ()
    assert [share for share, _ in thresholds(chances[:45], [True] * 45)] == [*SHARES[:-1]]  # 0.98 takes 50 answers


def test_a_precision_chooses_its_threshold() -> None:
    defaults = ReaderDefaults(min_probability=0.3, thresholds=((0.7, 0.25), (0.9, 0.6)))
    for precision, expected in ((None, 0.3), (0.5, 0.25), (0.7, 0.25), (0.71, 0.6), (0.9, 0.6)):
        assert answered_from(ReaderAskOptions(precision=precision), defaults) == expected
    assert answered_from(ReaderAskOptions(min_probability=0.1), defaults) == 0.1
    with pytest.raises(InputError, match=r"precision is 0.95; the model can promise at most 0.9, by the questions"):
        answered_from(ReaderAskOptions(precision=0.95), defaults)
    with pytest.raises(InputError, match=r"precision is 0.5; the model promises none"):
        answered_from(ReaderAskOptions(precision=0.5), ReaderDefaults())
    with pytest.raises(InputError, match=r"precision is 0.5 and min_probability 0.1; give only one"):
        answered_from(ReaderAskOptions(precision=0.5, min_probability=0.1), defaults)


def test_the_threshold_of_what_is_not_found_by_hand() -> None:
    chances, right = [0.5, 0.4, 0.3, 0.2, 0.1], [True, False, True, False, False]
    assert not_found_threshold(chances, right, 0.0) == 0.3
    assert not_found_threshold(chances, right, 0.2) == 0.3
    assert not_found_threshold(chances, right, 0.25) == 0.5  # of the four below, one is right
    assert not_found_threshold(chances, right, 0.4) == 1.0
    # Those of equal probability are on the same side: below 0.2 none is right, below 0.3 one of three.
    assert not_found_threshold([0.1, 0.2, 0.2, 0.3], [False, True, False, True], 0.4) == 0.3
    assert not_found_threshold([0.1, 0.2, 0.2, 0.3], [False, False, True, True], 0.1) == 0.2
    assert not_found_threshold([0.2, 0.2], [False, True], 0.1) == 0.0
    assert not_found_threshold([1.0, 0.5], [False, False], 0.1) == 1.0
    assert not_found_threshold([], [], 0.1) == 0.0


def told(probabilities: Sequence[float], right: Sequence[bool], threshold: float) -> dict[str, float]:
    return abstention(probabilities, right, [p >= threshold for p in probabilities])


def coverage(found: dict[str, float]) -> tuple[float, ...]:
    return tuple(share for name, share in found.items() if name.startswith("coverage at "))


def test_measures_by_hand() -> None:
    found = told([0.9, 0.6, 0.4, 0.1], [True, False, True, False], 0.5)
    assert found["AURC"] == pytest.approx((0 + 1 / 2 + 1 / 3 + 2 / 4) / 4)
    assert found["AUGRC"] == pytest.approx((0 + 1 / 4 + 1 / 4 + 2 / 4) / 4)
    assert coverage(found) == (0.25, 0.25, 0.25)
    assert found["Brier"] == pytest.approx((0.01 + 0.36 + 0.36 + 0.01) / 4)
    assert found["ECE"] == pytest.approx((0.1 + 0.6 + 0.6 + 0.1) / 4)
    assert (found["answered"], found["of these right"]) == (0.5, 0.5)
    exact = told([0.9, 0.8, 0.7, 0.6, 0.5], [True, True, True, True, False], 0.6)  # at a threshold: answered
    assert (exact["answered"], exact["of these right"]) == (0.8, 1.0)
    assert coverage(exact) == (1.0, 0.8, 0.8)
    with pytest.raises(InputError, match="no answer to measure"):
        told([], [], 0.5)


def test_equal_probabilities_by_hand() -> None:
    # Right with 0.9; one of two right with 0.5; wrong with 0.1.
    found = told([0.9, 0.5, 0.5, 0.1], [True, True, False, False], 0.5)
    assert found["AURC"] == pytest.approx((0 + 0.5 / 2 + 1 / 3 + 2 / 4) / 4)
    assert found["AUGRC"] == pytest.approx((0 + 0.5 + 1 + 2) / 16)
    # No threshold answers two of four: 0.9 answers one, 0.5 three, of which two are right.
    assert coverage(found) == (0.25, 0.25, 0.25)
    assert coverage(told([0.5] * 5, [False, True, True, True, True], 0.5)) == (1.0, 0.0, 0.0)
    assert told([0.5] * 4, [True, False, False, False], 0.5)["AURC"] == pytest.approx(0.75)


def test_measures_are_the_mean_over_the_orders_of_equal_probabilities_whatever_the_order_given() -> None:
    answers = [(0.9, True), (0.9, False), (0.9, True), (0.4, False), (0.4, True), (0.2, True)]
    only, *others = (told(*zip(*order, strict=True), 0.5) for order in permutations(answers))
    assert all(each == only for each in others)
    orders = [order for order in permutations(answers) if [p for p, _ in order] == [p for p, _ in answers]]
    wrong_ON = np.cumsum([[not right for _, right in order] for order in orders], axis=1)
    assert only["AURC"] == pytest.approx((wrong_ON / np.arange(1, 7)).mean())
    assert only["AUGRC"] == pytest.approx((wrong_ON / 6).mean())


def test_coverage_is_the_largest_share_that_keeps_the_precision() -> None:
    rng = np.random.default_rng(1)
    p = rng.random(200)
    right = rng.random(200) < p
    found = told(p.tolist(), right.tolist(), 2.0)
    order = np.argsort(-p)
    for share, precision in zip(coverage(found), (0.8, 0.9, 0.95), strict=True):
        best = max((n for n in range(1, 201) if right[order[:n]].mean() >= precision), default=0)
        assert share == best / 200
    assert (found["answered"], found["of these right"]) == (0.0, 1.0)


def test_intervals_hold_the_mean() -> None:
    found = interval([True] * 80 + [False] * 20)
    assert found.mean == 0.8
    assert 0.70 < found.low < 0.76
    assert 0.84 < found.high < 0.90
    assert str(found).startswith("80.0 [7")
    assert interval([]) == interval(())


@pytest.mark.parametrize(
    ("said", "answer", "f1"),
    [
        ("the Eiffel Tower", "Eiffel Tower", 1.0),
        ("Eiffel", "Eiffel Tower", 2 / 3),
        ("Paris", "Rome", 0.0),
        ("", "", 1.0),
    ],
)
def test_f1_by_hand(said: str, answer: str, f1: float) -> None:
    assert token_f1(said, answer) == pytest.approx(f1)
