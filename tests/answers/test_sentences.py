"""Lists and sentences that may answer: their mass by hand, and what counts as one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from quoth.answers.evidence import Source, Spans, predict_spans
from quoth.answers.sentences import (
    answer_phrases,
    answer_sentences,
    asks_for_several,
    items_around,
    lines_and_sentences,
)
from quoth.records import Passage

TEXT = "Bees make honey. Wax is made too. Ants do not."


def source(row: int, text: str, relevance: float = 0.0) -> Source:
    return Source(Passage(row, f"d{row}", "T", text, 10, 10 + len(text)), "c", relevance)


def spans(text: str, odds: dict[str, float]) -> Spans:
    """Phrases of a text and their odds, not their logarithms."""
    starts = [text.index(phrase) for phrase in odds]
    ends = [start + len(phrase) for start, phrase in zip(starts, odds, strict=True)]
    return Spans(np.array(starts), np.array(ends), np.log([*odds.values()]), math.log(sum(odds.values())))


def test_the_mass_of_phrases_inside_by_hand() -> None:
    """With "no answer" 1, all odds sum to 16: 5 + 2 are in the first sentence, 4 in the second, 1 in the last; 3 are
    of a phrase across two."""
    found = spans(TEXT, {"Bees": 2.0, "honey": 5.0, "Wax": 4.0, "honey. Wax": 3.0, "Ants": 1.0})
    first, second, third = answer_sentences([source(0, TEXT)], [found], 0.0, None)
    assert [each.text for each in (first, second, third)] == ["Bees make honey.", "Wax is made too.", "Ants do not."]
    assert [each.probability for each in (first, second, third)] == pytest.approx([7 / 16, 4 / 16, 1 / 16])
    assert [each.answer for each in (first, second, third)] == ["honey", "Wax", "Ants"]
    [place] = second.evidence
    assert (place.document_id, place.start, place.end, place.score) == ("d0", 27, 43, second.probability)
    assert TEXT[place.start - 10 : place.end - 10] == second.text
    assert [each.text for each in answer_sentences([source(0, TEXT)], [found], 0.0, None, most=1)] == [first.text]


def test_relevance_counts_by_its_prior_and_equal_texts_once() -> None:
    texts = ("Bees fly.", "Ants crawl.", "BEES  fly.")
    read = [source(row, text, -math.log(2) * row) for row, text in enumerate(texts)]
    marked = [spans(text, {text.split()[0]: odds}) for text, odds in zip(texts, (1.0, 3.0, 3.5), strict=True)]
    weighed = answer_sentences(read, marked, 1.0, None)
    assert [(each.text, each.evidence[0].document_id) for each in weighed] == [
        ("Ants crawl.", "d1"),
        ("Bees fly.", "d0"),
    ]
    total = 1 + 1 + 3 / 2 + 3.5 / 4
    assert [each.probability for each in weighed] == pytest.approx([1.5 / total, 1 / total])
    assert [each.text for each in answer_sentences(read, marked, 0.0, None)] == ["BEES fly.", "Ants crawl."]


def test_a_share_becomes_a_chance() -> None:
    [found] = answer_sentences([source(0, "Bees fly.")], [spans("Bees fly.", {"Bees": 3.0})], 0.0, (0.5, 2.0))
    assert found.probability == pytest.approx(1 / (1 + math.exp(-(0.5 + 2 * math.log(3)))))


def test_nothing_read_has_no_sentences() -> None:
    assert answer_sentences([], [], 0.0, None) == []


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("One. Two", ["One.", "Two"]),
        ("Made of:\n- wax\n- honey", ["Made of:", "wax", "honey"]),
        ("* \n* wax\n-", ["wax", "-"]),
        ("Country\tFrance\nCapital\tParis", ["Country\tFrance", "Capital\tParis"]),
        (
            "A line of wrapped prose that is long enough\nto go on in another line.\n\nNext",
            ["A line of wrapped prose that is long enough\nto go on in another line.", "Next"],
        ),
        ("", []),
    ],
)
def test_sentences_end_with_lines_that_are_no_prose(text: str, parts: list[str]) -> None:
    assert [text[start:end] for start, end in lines_and_sentences(text)] == parts


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
