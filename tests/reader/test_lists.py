"""Answers that one list of a text gives are one answer: by hand."""

from __future__ import annotations

import math

import pytest
from test_sentences import source, spans

from quoth.answers.evidence import predict_spans
from quoth.reader.lists import answer_phrases, asks_for_several, asks_yes_or_no, items_around

BORDERS = "The north borders Russia and China. Hills, not France, are there."
COUNTRIES = {"Russia": 4.0, "China": 3.0, "Russia and China": 1.0, "France": 5.0}


def test_items_of_one_list_are_one_answer_by_hand() -> None:
    """With "no answer" 1 all odds are 14: 4 + 3 + 1 are in one list."""
    read, marked = [source(0, BORDERS)], [spans(BORDERS, COUNTRIES)]
    listed, other = answer_phrases("Which countries border it?", read, marked, 5, 0.0)
    assert (listed.text, listed.parts) == ("Russia and China", ("Russia", "China"))
    assert (listed.probability, listed.log_score) == (pytest.approx(8 / 14), pytest.approx(math.log(8)))
    [place] = listed.evidence
    assert (place.document_id, place.start, place.end, place.score) == ("d0", 28, 44, listed.probability)
    assert BORDERS[place.start - 10 : place.end - 10] == listed.text
    assert (other.text, other.probability, other.parts) == ("France", pytest.approx(5 / 14), ())
    assert listed.to_dict()["parts"] == ["Russia", "China"]
    assert "parts" not in other.to_dict()


def test_a_question_for_one_thing_has_no_list() -> None:
    read, marked = [source(0, BORDERS)], [spans(BORDERS, COUNTRIES)]
    found = answer_phrases("Which country borders it?", read, marked, 5, 0.0)
    assert found == predict_spans(read, marked, 5)
    assert [each.text for each in found] == ["France", "Russia", "China"]


def test_the_number_of_a_section_is_no_answer() -> None:
    text = "5. Directors\nThere are 7. And others."
    assert [each.text for each in predict_spans([source(0, text)], [spans(text, {"5": 4.0, "7": 3.0})], 5)] == ["7"]


def test_items_count_wherever_they_stand_and_a_list_that_was_marked_is_told_apart() -> None:
    """All odds are 11: the list's 4, its item's 1 and 2 elsewhere."""
    texts = ("By the Volga and the Don.", "The Don is long. So is Kama.")
    read = [source(row, text) for row, text in enumerate(texts)]
    marked = [
        spans(texts[0], {"the Volga and the Don": 4.0, "the Volga": 1.0, "Don": 0.5}),
        spans(texts[1], {"The Don": 2.0, "Kama": 2.5}),
    ]
    listed, other = answer_phrases("Name the rivers there.", read, marked, 5, 0.0)
    assert (listed.text, listed.parts) == ("the Volga and the Don", ("the Volga", "Don"))
    assert (listed.probability, other.probability) == (pytest.approx(7.5 / 11), pytest.approx(2.5 / 11))
    assert answer_phrases("Name the rivers there.", [], [], 5, 0.0) == []


@pytest.mark.parametrize(
    ("text", "odds", "items"),
    [
        ("in A, B, and C now", {"B": 3.0, "A": 1.0, "C": 1.0}, ["A", "B", "C"]),
        ("in A, B and C", {"B": 3.0, "C": 0.1}, ["B"]),  # too improbable
        ("1. A\n2. B\n3) C", {"A": 3.0, "B": 3.0, "C": 1.0}, ["A", "B", "C"]),
        ("in A, which is B", {"A": 3.0, "B": 3.0}, ["A"]),
        ("A. B", {"A": 3.0, "B": 3.0}, ["A"]),
        ("A as well as the B", {"A": 3.0, "the B": 1.0, "B": 2.0}, ["A", "B"]),
        ("A or B", {"A or B": 3.0, "A": 0.01, "B": 0.01}, ["A", "B"]),
        ("A and B, C", {"C": 3.0, "A and B": 2.0, "B": 1.0}, ["A and B", "C"]),
        ("- A\n- B\n\n- C", {"B": 3.0, "A": 1.0, "C": 1.0}, ["A", "B", "C"]),
        ("borders | A | B", {"A": 3.0, "B": 1.0}, ["A", "B"]),
        ("borders\tA\tB", {"A": 3.0, "B": 1.0}, ["A", "B"]),
    ],
)
def test_a_list_is_what_is_marked_with_commas_between(text: str, odds: dict[str, float], items: list[str]) -> None:
    marked = spans(text, odds)
    best = text.index(first := next(iter(odds)))
    assert [text[start:end] for start, end in items_around(text, (best, best + len(first)), marked)] == items


@pytest.mark.parametrize(
    ("question", "several"),
    [
        ("Which countries border Mongolia?", True),
        ("In which countries is Dutch spoken?", True),
        ("which two regions grow most of its rice", True),
        ("What European languages are spoken there?", True),
        ("What are the primary colours?", True),
        ("Who were the founders of Google?", True),
        ("Name the two largest cities.", True),
        ("List all members.", True),
        ("Which country borders Portugal?", False),
        ("What does it eat?", False),
        ("What was the cause?", False),
        ("What is the process called?", False),
        ("What causes the tides?", False),
        ("What continues to grow?", False),
        ("Which species lives longest?", False),
        ("Which bus goes there?", False),
        ("On which economics book did they work?", False),
        ("Who wrote Carmen?", False),
        ("Who founded Google?", False),
        ("Name the capital of France.", False),
        ("The river which flows through Bonn is what?", False),
    ],
)
def test_which_questions_ask_for_several(question: str, several: bool) -> None:
    assert asks_for_several(question) == several


@pytest.mark.parametrize(
    ("question", "yes_or_no"),
    [
        ("Is first class allowed on trains?", True),
        ("isn't it open on Sundays", True),
        ("Can I take a taxi in Riga?", True),
        ("Is it red or blue?", False),
        ("Can you tell me who wrote Carmen?", False),
        ("What is allowed?", False),
        ("Issue of what?", False),
        ("Will", False),
    ],
)
def test_which_questions_ask_for_yes_or_no(question: str, yes_or_no: bool) -> None:
    assert asks_yes_or_no(question) == yes_or_no
