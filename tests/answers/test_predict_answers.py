"""From spans of several passages to answers: both ways of bringing passages together, worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from quoth.answers.evidence import Source, Spans, predict_spans, propose_spans, settled
from quoth.reader.spans import Reading
from quoth.realm.answering import explain_likelihood, predict_answers, predict_words
from quoth.records import Evidence, Passage, PassageShare, Prediction
from quoth.text.boundaries import MAY_END, MAY_START
from quoth.text.tokenizer import Pair

NEAR, FAR = math.log(3), 0.0
"""Relevance of two passages, of which p(z|x) is 0.75 and 0.25."""
TEXTS = ("Athens Berlin", "ATHENS Cairo")


def passage(row: int, text: str) -> Passage:
    return Passage(row, f"d{row}", "", text, 0, len(text))


def places(text: str) -> tuple[Any, Any]:
    """Where each word stands."""
    starts = [i for i in range(len(text)) if i == 0 or text[i - 1] == " "]
    return np.array(starts), np.array([i + len(text[i:].split()[0]) for i in starts])


def scored(text: str, score: Any) -> Spans:
    """The words of a text with these scores."""
    return Spans(*places(text), np.asarray(score), math.log(np.exp(score).sum()))


def read() -> list[Source]:
    pairs = zip(TEXTS, (NEAR, FAR), strict=True)
    return [Source(passage(row, text), "c", f) for row, (text, f) in enumerate(pairs)]


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
    spans = [scored(text, score) for text, score in zip(TEXTS, scores, strict=True)]
    found = predict_answers(read(), spans, top_k=5, **options)
    assert shares(found) == pytest.approx(expected)
    assert [each.text.casefold() for each in found] == sorted(expected, key=lambda text: -expected[text])
    for each in found:
        assert sum(place.score for place in each.evidence) == pytest.approx(each.probability)
    assert predict_answers(read(), spans, top_k=1, **options) == found[:1]


def test_a_null_document_takes_its_share_from_all_answers() -> None:
    """Relevance 3, 1 and 4: p(z|x) is 3/8, 1/8 and 4/8."""
    scores = (np.log([1.0, 3.0]), np.log([9.0, 1.0]))
    spans = [scored(text, score) for text, score in zip(TEXTS, scores, strict=True)]
    found = predict_answers(read(), spans, True, 5, marginal=True, null=math.log(4))
    assert shares(found) == pytest.approx({"athens": 3 / 32 + 0.9 / 8, "berlin": 9 / 32, "cairo": 0.1 / 8})
    # odds 1, 3 and 9, 1, each beside 1 for "no answer here"
    odds = [
        Spans(*places(text), score, math.log(np.exp(score).sum())) for text, score in zip(TEXTS, scores, strict=True)
    ]
    listed = predict_spans(read(), odds, 5, distinct=False, marginal=True, null=math.log(4))
    assert shares(listed) == pytest.approx({"athens": 3 / 40 + 9 / 88, "berlin": 9 / 40, "cairo": 1 / 88})
    assert predict_spans(read(), odds, 1, distinct=False, marginal=True, null=math.log(4)) == listed[:1]


CUT = ("Athens Berlin Cai ro", "ATHENS Cairo Athens")
"""Tokens 5 Athens, 6 Berlin, 7 Cai, which only starts a word, 8 ro, which only ends one, 9 Cairo."""


def read_tokens() -> tuple[list[Source], list[Reading]]:
    """Two passages that start at character 100 of their documents, after three ids of a question; p(z|x) is 1/2, 1/4,
    and 1/4 for a null document of relevance 0."""
    sources, seen = [], []
    ids, flags = ([5, 6, 7, 8], [5, 9, 5]), ([3, 3, MAY_START, MAY_END], [3, 3, 3])
    for row, text in enumerate(CUT):
        starts, ends = places(text)
        pair = Pair(np.array([1, 9, 2, *ids[row], 2, 5]), 3)
        seen.append(Reading(pair, 3, np.stack([starts, ends], axis=1), np.array(flags[row], np.uint8)))
        shown = Passage(row, f"d{row}", f"T{row}", text, 100, 100 + len(text))
        sources.append(Source(shown, "c", math.log(2 - row)))
    return sources, seen


def test_words_by_hand() -> None:
    p_NV = np.zeros((3, 10))
    # p(y|z) of Athens, Berlin, ro and Cairo
    p_NV[:, [5, 6, 8, 9]] = [[0.2, 0.4, 0.3, 0.1], [0.4, 0.2, 0.3, 0.1], [0.8, 0.04, 0.3, 0.2]]
    with np.errstate(divide="ignore"):
        log_p_NV = np.log(p_NV)
    athens, _, cairo = found = predict_words(*read_tokens(), 0.0, log_p_NV, 5)
    assert [each.text for each in found] == ["Athens", "Berlin", "Cairo"]
    assert [each.probability for each in found] == pytest.approx([0.1 + 0.1 + 0.2, 0.2 + 0.05 + 0.01, 0.125])
    assert [math.exp(each.log_score) for each in found] == pytest.approx([each.probability for each in found])
    # Half of Athens' share is the first passage's, a quarter each of the second's places'.
    assert [(e.document_id, e.start, e.end) for e in athens.evidence] == [
        *(("d0", 100, 106), ("d1", 100, 106), ("d1", 113, 119))
    ]
    assert [each.score for each in athens.evidence] == pytest.approx([0.2, 0.1, 0.1])
    assert athens.num_places == 3
    assert cairo.evidence == (Evidence("d1", "T1", 1, 107, 112, CUT[1], pytest.approx(0.125), "c", 100),)
    assert predict_words(*read_tokens(), 0.0, log_p_NV, 1) == [athens]
    # without the null document p(z|x) is 2/3 and 1/3
    assert shares(predict_words(*read_tokens(), None, log_p_NV[:2], 5)) == pytest.approx(
        {"athens": 0.8 / 3, "berlin": 1 / 3, "cairo": 0.1}
    )
    assert predict_words([], [], 0.0, log_p_NV[2:], 5) == []


def test_a_likelihood_by_hand() -> None:
    log_p_NM = np.log(np.array([[0.5, 0.4], [0.2, 0.5], [0.1, 0.1]], np.float32))
    one, two = read_tokens()[0]
    found = explain_likelihood([one, two], 0.0, "Bagdad", ["bag", "##dad"], log_p_NM)
    assert (found.answer, found.pieces) == ("Bagdad", ("bag", "##dad"))
    assert found.probability == pytest.approx(0.1 + 0.025 + 0.0025)
    assert found.passages == tuple(
        PassageShare(shown, corpus, *(pytest.approx(value, rel=1e-5) for value in numbers))
        for shown, corpus, *numbers in (
            (one.passage, "c", math.log(0.5), math.log(0.2), 0.1 / 0.1275),
            (two.passage, "c", math.log(0.25), math.log(0.1), 0.025 / 0.1275),
            (None, "", math.log(0.25), math.log(0.01), 0.0025 / 0.1275),
        )
    )


def test_answers_apart_are_those_that_overlap_no_better_one_of_their_passage() -> None:
    """Spans of 0123456789 in two passages; each text occurs once, so that its place is its best."""
    ranges = [(2, 5), (5, 7), (4, 6), (0, 3), (0, 1), (1, 9), (7, 8)]
    texts = ["0123456789", "abcdefghij"]
    sources = [Source(passage(row, text), "c") for row, text in enumerate(texts)]
    starts, ends = (np.array(each) for each in zip(*ranges, strict=True))
    odds = -np.arange(len(ranges), dtype=float)
    spans = [Spans(starts, ends, odds - 0.1 * n, 3.0) for n in range(2)]
    found = predict_spans(sources, spans, 100)
    kept = [(2, 5), (5, 7), (0, 1), (7, 8)]
    assert [each.text for each in found] == [text[start:end] for start, end in kept for text in texts]
    assert [each.text for each in predict_spans(sources, spans, 3)] == ["234", "cde", "56"]


def test_every_place_of_an_answer_counts() -> None:
    """1,200 words of weight 2 stand before one of weight 1 that stands 1,500 times."""
    text = " ".join([*(f"w{i}" for i in range(1200)), *["often"] * 1500])
    one = [Source(passage(0, text), "c")]
    weights = [2.0] * 1200 + [1.0] * 1500
    found = predict_answers(one, [scored(text, np.log(weights))], True, 2)
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
    first = Spans(start, end, np.log([1.0, 3.0]), math.log(5))
    second = Spans(start[:1], end[:1], np.log([9.0]), math.log(9))
    sources = [Source(each.passage, "c", each.relevance) for each in read()]
    found = predict_spans(sources, [first, second], 5, marginal=marginal)
    assert shares(found) == pytest.approx(expected)
    assert [each.text.casefold() for each in found] == sorted(expected, key=lambda text: -expected[text])


def test_a_prior_raises_what_is_in_the_more_relevant_passage() -> None:
    start, end = places(TEXTS[0])
    spans = [Spans(start[:1], end[:1], np.log([odds]), math.log(odds)) for odds in (2.0, 3.0)]
    sources = [Source(passage(0, "Athens is"), "c", 0.0), Source(passage(1, "Berlin is"), "c", math.log(0.5))]
    # Half as relevant, and squared: 2 against 3 / 4, beside 1 for "no answer here".
    found = predict_spans(sources, spans, 5, prior=2.0)
    assert shares(found) == pytest.approx({"athens": 2 / 3.75, "berlin": 0.75 / 3.75})
    assert [each.best.probability for each in propose_spans(sources, spans, 5, 2.0)] == [
        pytest.approx(each.probability) for each in found
    ]


@pytest.mark.parametrize(
    ("first", "second", "bound", "enough"),
    [
        ((8.0, 1.0), (), 16, True),  # the others' 16 (1/4 + 1/16) = 5, and 1, are less than 8
        ((8.0, 1.0), (), 32, False),  # their 10 are not
        ((8.0, 4.0), (), 16, False),  # their 5, and 4, are not
        ((8.0, 4.0), (16.0, 1.0), 32, True),  # 8 + 16/4 = 12 of Athens, in both; 32/16 = 2, and 4
        ((8.0, 4.0), (16.0, 1.0), 128, False),  # 128/16 = 8, and 4, are as much, not less
    ],
)
def test_what_is_unread_cannot_change_the_best_answer_by_hand(
    first: tuple[float, ...], second: tuple[float, ...], bound: float, enough: bool
) -> None:
    relevance, texts = (1.0, 0.5, 0.25), (*TEXTS, "Delhi")
    sources = [Source(passage(n, texts[n]), "c", math.log(relevance[n])) for n in range(3)]
    spans = [scored(text, np.log(odds)) for text, odds in zip(texts, (first, second), strict=False) if odds]
    assert settled(sources, spans, 2.0, math.log(bound)) == enough


def test_without_an_answer_all_is_read() -> None:
    nothing = np.zeros(0, np.int64)
    sources = [Source(passage(n, "a"), "c") for n in range(2)]
    assert not settled(sources, [Spans(nothing, nothing, np.zeros(0), -1e30)], 0.0, -100.0)
    assert settled(sources, [scored("a", np.zeros(1))], 0.0, -100.0)


@pytest.mark.parametrize("marginal", [False, True])
def test_without_spans_there_is_no_answer(marginal: bool) -> None:
    nothing = np.zeros(0, np.int64)
    empty = Spans(nothing, nothing, np.zeros(0), -math.inf)
    assert predict_answers(read(), [empty, empty], True, 3, marginal) == []
    assert predict_answers([], [], True, 3, marginal) == []
    assert predict_spans([], [], 3, marginal=marginal) == []
    none = Spans(nothing, nothing, np.zeros(0), -1e30)
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
    spans = Spans(np.array([0, len(answer) + 1]), np.array(ends), np.array([2.0, 1.0]), math.log(20))
    found = predict_spans([Source(passage(0, text), "c")], [spans], top_k=5)
    assert [each.text for each in found] == ([answer, "Paris"] if whole else ["Paris"])
    assert found[-1].probability == pytest.approx(math.e / 21)


def test_overlapping_passages_of_a_document_do_not_answer_twice() -> None:
    """ "in Rome" of one passage and "Rome" of the next are the same place of the document."""
    first, second = Passage(0, "d", "", "in Rome", 0, 7), Passage(1, "d", "", "Rome fell", 3, 12)
    spans = [
        Spans(np.array([0]), np.array([7]), np.log([2.0]), math.log(2)),
        Spans(np.array([0]), np.array([4]), np.log([1.0]), 0.0),
    ]
    sources = [Source(first, "c"), Source(second, "c")]
    assert [each.text for each in predict_spans(sources, spans, top_k=5)] == ["in Rome"]
    assert [each.text for each in predict_spans(sources, spans, 5, distinct=False)] == ["in Rome", "Rome"]
    elsewhere = [sources[0], Source(second, "other")]
    assert [each.text for each in predict_spans(elsewhere, spans, top_k=5)] == ["in Rome", "Rome"]


def phrases(text: str, odds: dict[str, float]) -> Spans:
    """Phrases of a text, where each first stands, with their odds."""
    starts = [text.index(phrase) for phrase in odds]
    ends = [start + len(phrase) for start, phrase in zip(starts, odds, strict=True)]
    return Spans(np.array(starts), np.array(ends), np.log([*odds.values()]), math.log(sum(odds.values())))


def test_an_answer_with_about_and_its_unit_is_no_rival() -> None:
    """With "no answer" 1 all odds are 15: 4 + 3 + 2 are of one number, 5 of the word that would win alone."""
    text = "Its population is about 340 million people"
    odds = {"population": 5.0, "340 million": 4.0, "about 340 million": 3.0, "340 million people": 2.0}
    source, spans = Source(passage(0, text), "c"), phrases(text, odds)
    number, word = predict_spans([source], [spans], 5)
    assert [(number.text, number.probability), (word.text, word.probability)] == [
        ("340 million", pytest.approx(9 / 15)),
        ("population", pytest.approx(5 / 15)),
    ]
    assert number.log_score == pytest.approx(math.log(9))
    # It is quoted as it is shown, in the one place that has its whole share.
    [place] = number.evidence
    assert (text[place.start : place.end], place.score, number.num_places) == ("340 million", number.probability, 1)
    assert shares(predict_spans([source], [spans], 5, distinct=False)) == pytest.approx(
        {phrase: weight / 15 for phrase, weight in odds.items()}
    )


def test_what_says_the_same_in_one_passage_adds_up_over_all() -> None:
    texts = ("On the Danube", "Danube and Sava")
    found = predict_spans(
        [Source(passage(row, text), "c") for row, text in enumerate(texts)],
        [phrases(texts[0], {"the Danube": 4.0, "Danube": 1.0}), phrases(texts[1], {"Danube": 2.0, "Sava": 3.0})],
        5,
    )
    assert shares(found) == pytest.approx({"the danube": 7 / 11, "sava": 3 / 11})
    assert [place.document_id for place in found[0].evidence] == ["d0"]


def test_half_a_pair_of_quotation_marks_absorbs_nothing() -> None:
    text = 'They call it the "Big Apple" there'
    source, spans = Source(passage(0, text), "c"), phrases(text, {'"Big Apple': 5.0, "Big Apple": 4.0, "there": 3.0})
    assert shares(predict_spans([source], [spans], 5)) == pytest.approx({"big apple": 9 / 13, "there": 3 / 13})


def test_two_that_share_a_number_stay_two() -> None:
    """ "120 km" takes 1 + 1 of "120", and "120 hours" nothing."""
    texts = ("It is 120 km long", "It took 120 hours")
    found = predict_spans(
        [Source(passage(row, text), "c") for row, text in enumerate(texts)],
        [phrases(texts[0], {"120 km": 4.0, "120": 1.0}), phrases(texts[1], {"120 hours": 3.0, "120": 1.0})],
        5,
    )
    assert shares(found) == pytest.approx({"120 km": 6 / 10, "120 hours": 3 / 10})
