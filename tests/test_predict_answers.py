"""From spans of several passages to answers: both ways of bringing passages together, worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from quoth.predictors import reader, span_reader
from quoth.predictors.answers import Read, Source, predict_answers, predict_spans, propose_spans
from quoth.records import Passage, Prediction

NEAR, FAR = math.log(3), 0.0
"""Relevance of two passages, of which p(z|x) is 0.75 and 0.25."""
TEXTS = ("Athens Berlin", "ATHENS Cairo")


def passage(row: int, text: str) -> Passage:
    return Passage(row, f"d{row}", "", text, 0, len(text))


def places(text: str) -> tuple[Any, Any]:
    """Where each word stands."""
    starts = [i for i in range(len(text)) if i == 0 or text[i - 1] == " "]
    return np.array(starts), np.array([i + len(text[i:].split()[0]) for i in starts])


def read() -> list[Read]:
    none: Any = None
    pairs = zip(TEXTS, (NEAR, FAR), strict=True)
    return [Read(passage(row, text), "c", f, reading=none) for row, (text, f) in enumerate(pairs)]


def shares(found: list[Prediction]) -> dict[str, float]:
    return {each.text.casefold(): each.probability for each in found}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        # weights 1, 3 and 9, 1
        ({"add_relevance": False}, {"athens": 10 / 14, "berlin": 3 / 14, "cairo": 1 / 14}),
        # times 3 in the first passage
        ({"add_relevance": True}, {"athens": 12 / 22, "berlin": 9 / 22, "cairo": 1 / 22}),
        # 0.75 of 1/4, 3/4 and 0.25 of 9/10, 1/10
        (
            {"add_relevance": True, "marginal": True},
            {"athens": 0.75 * 0.25 + 0.25 * 0.9, "berlin": 0.75 * 0.75, "cairo": 0.25 * 0.1},
        ),
    ],
)
def test_answers_by_hand(options: dict[str, bool], expected: dict[str, float]) -> None:
    scores = (np.log([1.0, 3.0]), np.log([9.0, 1.0]))
    spans = [reader.Spans(*places(text), score) for text, score in zip(TEXTS, scores, strict=True)]
    found = predict_answers(read(), spans, top_k=5, **options)
    assert shares(found) == pytest.approx(expected)
    assert [each.text.casefold() for each in found] == sorted(expected, key=lambda text: -expected[text])
    for each in found:
        assert sum(place.score for place in each.evidence) == pytest.approx(each.probability)
    assert predict_answers(read(), spans, top_k=1, **options) == found[:1]


def test_every_place_of_an_answer_counts() -> None:
    """1,200 words of weight 2 stand before one of weight 1 that stands 1,500 times."""
    text = " ".join([*(f"w{i}" for i in range(1200)), *["often"] * 1500])
    none: Any = None
    one = [Read(passage(0, text), "c", 0.0, reading=none)]
    weights = [2.0] * 1200 + [1.0] * 1500
    found = predict_answers(one, [reader.Spans(*places(text), np.log(weights))], True, 2)
    assert [each.text for each in found] == ["often", "w0"]
    assert found[0].probability == pytest.approx(1500 / 3900)
    assert found[1].probability == pytest.approx(2 / 3900)
    assert len(found[0].evidence) == 1500


@pytest.mark.parametrize(
    ("marginal", "expected"),
    [
        # odds 1, 3 and one more of 1 that is not handed over; 9: all beside 1 for "no answer here"
        (False, {"athens": 10 / 15, "berlin": 3 / 15}),
        # 0.75 of 1/6, 3/6 and 0.25 of 9/10; the rest is no answer, and what is not handed over
        (True, {"athens": 0.75 / 6 + 0.25 * 0.9, "berlin": 0.75 * 0.5}),
    ],
)
def test_a_span_readers_answers_by_hand(marginal: bool, expected: dict[str, float]) -> None:
    start, end = places(TEXTS[0])
    first = span_reader.Spans(start, end, np.log([1.0, 3.0]), math.log(5))
    second = span_reader.Spans(start[:1], end[:1], np.log([9.0]), math.log(9))
    sources = [Source(each.passage, "c", each.relevance) for each in read()]
    found = predict_spans(sources, [first, second], 5, marginal=marginal)
    assert shares(found) == pytest.approx(expected)
    assert [each.text.casefold() for each in found] == sorted(expected, key=lambda text: -expected[text])


def test_a_prior_raises_what_is_in_the_more_relevant_passage() -> None:
    start, end = places(TEXTS[0])
    spans = [span_reader.Spans(start[:1], end[:1], np.log([odds]), math.log(odds)) for odds in (2.0, 3.0)]
    sources = [Source(passage(0, "Athens is"), "c", 0.0), Source(passage(1, "Berlin is"), "c", math.log(0.5))]
    # Half as relevant, and squared: 2 against 3 / 4, beside 1 for "no answer here".
    found = predict_spans(sources, spans, 5, prior=2.0)
    assert shares(found) == pytest.approx({"athens": 2 / 3.75, "berlin": 0.75 / 3.75})
    assert [each.best.probability for each in propose_spans(sources, spans, 5, 2.0)] == [
        pytest.approx(each.probability) for each in found
    ]


@pytest.mark.parametrize("marginal", [False, True])
def test_without_spans_there_is_no_answer(marginal: bool) -> None:
    nothing = np.zeros(0, np.int64)
    empty = reader.Spans(nothing, nothing, np.zeros(0))
    assert predict_answers(read(), [empty, empty], True, 3, marginal) == []
    assert predict_answers([], [], True, 3, marginal) == []
    assert predict_spans([], [], 3, marginal=marginal) == []
    none = span_reader.Spans(nothing, nothing, np.zeros(0), -1e30)
    assert predict_spans([Source(passage(0, "a"), "c")], [none], 3, marginal=marginal) == []


@pytest.mark.parametrize(
    ("answer", "whole"),
    [
        ("Catalan) with Spanish", False),
        ("A sex organ (or reproductive organ", False),
        ('Bible Black" (1974)', False),
        ("a) b (c", False),
        ("(a [b) c]", False),
        ("Yes (band)", True),
        ('the "Red" album', True),
        ("5 o'clock", True),
    ],
)
def test_an_answer_with_half_a_pair_of_brackets_or_quotes_is_not_listed(answer: str, whole: bool) -> None:
    text = f"{answer} Paris"
    ends = [len(answer), len(text)]
    spans = span_reader.Spans(np.array([0, len(answer) + 1]), np.array(ends), np.array([2.0, 1.0]), math.log(20))
    found = predict_spans([Source(passage(0, text), "c")], [spans], top_k=5)
    assert [each.text for each in found] == ([answer, "Paris"] if whole else ["Paris"])
    assert found[-1].probability == pytest.approx(math.e / 21)
