"""Lists and sentences that may answer: their mass by hand, and what counts as one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from quoth.answers.evidence import Source, Spans
from quoth.reader.sentences import answer_sentences, cut
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


BREAD = "Bread\n\nFor one loaf:\n- 500 g flour\n- 3 eggs\n- salt\n\nMix it all. Then bake."


def test_a_list_is_given_whole_if_no_item_has_half_of_it_or_if_it_is_asked_for() -> None:
    """With "no answer" 1, all odds sum to 13; those in the list to 9, in its best item to 4."""
    read, even = [source(0, BREAD)], {"flour": 4.0, "eggs": 3.0, "one loaf": 2.0, "bake": 3.0}
    whole, then = answer_sentences(read, [spans(BREAD, even)], 0.0, None)
    assert (whole.text, whole.answer) == ("For one loaf: - 500 g flour - 3 eggs - salt", "flour")
    assert (whole.probability, then.text) == (pytest.approx(9 / 13), "Then bake.")
    [place] = whole.evidence
    assert BREAD[place.start - 10 : place.end - 10] == "For one loaf:\n- 500 g flour\n- 3 eggs\n- salt"
    single = {"flour": 1.0, "eggs": 4.0, "one loaf": 0.5, "bake": 2.0}
    texts = [each.text for each in answer_sentences(read, [spans(BREAD, single)], 0.0, None, question="How many eggs?")]
    assert texts == ["3 eggs", "Then bake.", "500 g flour"]
    for question in ("What are the ingredients?", "Which things do I need?", "List what is in it."):
        best = answer_sentences(read, [spans(BREAD, single)], 0.0, None, question=question)[0]
        assert best.text == whole.text


def test_what_a_line_with_a_colon_leads_to_belongs_to_it() -> None:
    text = "Use rm. To remove -foo, use one of:\n    rm -- -foo\n\n    rm ./-foo\n\nA note.\n\nIn short:\nNever."
    found = cut(text)
    assert [text[each.start : each.end] for each in found.lists] == [text[8 : text.index("\n\nA note")]]
    answers = ["Use rm.", "rm -- -foo", "rm ./-foo", "A note.", "In short:\nNever."]
    assert [text[each.start : each.end] for each in found.parts] == answers


def test_only_short_lists_are_given_whole() -> None:
    def items(count: int, characters: int) -> str:
        return "\n".join(f"- {i:0{characters}}" for i in range(count))

    assert [len(cut(items(*size)).lists) for size in ((9, 20), (6, 100), (9, 100), (6, 200), (1, 9))] == [1, 1, 0, 0, 0]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("One. Two", ["One.", "Two"]),
        ("Made of:\n- wax\n- honey", ["wax", "honey"]),
        ("Steps:\n1. Mix. Rest.\n2) Bake.", ["Mix.", "Rest.", "Bake."]),
        ("* \n* wax\n-", ["wax"]),
        ("Country\tFrance\nCapital\tParis", ["Country\tFrance", "Capital\tParis"]),
        (
            "A line of wrapped prose that is long enough\nto go on in another line.\n\nNext",
            ["A line of wrapped prose that is long enough\nto go on in another line."],
        ),
        (
            "NAME\n  cp - copies\n\nOPTIONS\n  General\n    -f\n      Force it. Or not.\n\n  -n   Never.",
            ["NAME\n  cp - copies", "-f\n      Force it.", "Or not.", "-n   Never."],
        ),
        ("Bees\n====\nBees fly.\n\n## Ants\nAnts crawl.\n\nSee also", ["Bees fly.", "Ants crawl."]),
        ("Home | Products | About\n\nBees fly.\n\nCP(1)   Manual   CP(1)", ["Bees fly."]),
        ("name,state\nship,afloat,sea\nA name of a boat that is rather long,in repair,Kiel\nb,in repair,Bonn", None),
        ("-f[={name|id}]\n    Follow it.", ["-f[={name|id}]\n    Follow it."]),
        ("Bees", ["Bees"]),
        ("Options\n\n--help show this and exit\n\nA sentence.", ["--help show this and exit", "A sentence."]),
        (
            "This line of prose is as long as the block\nBees had no room above.\n\nBut a line that ends here\nIs one.",
            [
                "This line of prose is as long as the block\nBees had no room above.",
                "But a line that ends here",
                "Is one.",
            ],
        ),
        ("", []),
    ],
)
def test_what_may_answer_are_sentences_items_and_rows_with_what_heads_them(text: str, parts: list[str] | None) -> None:
    """A row that goes on for long is not taken for prose; headings, navigation and rules are nobody's answer."""
    assert [text[part.start : part.end] for part in cut(text).parts] == (text.split("\n") if parts is None else parts)
