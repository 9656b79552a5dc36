"""What is done to sentences, each by hand: what a faithful variant keeps, and what a forgery changes."""

from __future__ import annotations

import re
from random import Random

import pytest

from quoth_eval.quotations.faithful import FAITHFUL
from quoth_eval.quotations.forged import FORGED
from quoth_eval.quotations.source import Source, quotable

SENTENCE = (
    'The "official" café\'s owner, who may not sell well-known coffee — as in 1914-18 — paid $5 for 20 km of '
    "international traffic in France."
)
DOCUMENT = f"{SENTENCE} In winter the people of Germany drink their tea near the northern harbour, and nobody minds it."
OTHER = "A third of the mountains lie within the borders of the oldest national park."
SOURCE = Source(SENTENCE, DOCUMENT, OTHER)
FIXED = {
    "unchanged": SENTENCE,
    "marks": SENTENCE.replace('"official"', "“official”").replace("'", "’"),
    "decomposed": SENTENCE.replace("é", "e\u0301"),
    "ligatures": SENTENCE.replace("official", "oﬃcial").replace("coffee", "coﬀee").replace("traffic", "traﬃc"),
    "first_case": f"t{SENTENCE[1:]}",
    "bracketed": f"[t]{SENTENCE[1:]}",
    "modal": SENTENCE.replace("may", "must"),
    "negation": SENTENCE.replace("may not", "may"),
    "name": SENTENCE.replace("France", "Germany"),
}


def made(name: str, source: Source = SOURCE) -> set[str | None]:
    """What a change makes in many draws."""
    change = {**FAITHFUL, **FORGED}[name]
    return {change(source, Random(seed)) for seed in range(60)}


@pytest.mark.parametrize(("name", "text"), FIXED.items())
def test_some_changes_have_one_outcome(name: str, text: str) -> None:
    assert made(name) == {text}


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


def test_marks_are_changed_both_ways_and_inches_are_not() -> None:
    [curly] = made("marks")
    assert made("marks", Source(curly or "")) == {SENTENCE}
    assert made("marks", Source("A door of 6'5\" by 3'2\" is wide.")) == {"A door of 6'5\" by 3'2\" is wide."}
    assert made("nested") == {SENTENCE.replace('"', "'"), SENTENCE.replace('"official"', "‘official’")}


def test_dashes_change_and_nothing_else() -> None:
    texts = made("dashes")
    assert len(texts) == 5 * 2
    for text in texts:
        assert text is not None
        assert "1914–18" in text
        plain = re.sub("[\u2010\u2011]", "-", text.replace("1914–18", "1914-18"))
        assert re.sub(" ?(?:—|–|--) ?", " — ", plain) == SENTENCE


@pytest.mark.parametrize(("name", "mark", "count"), [("soft_hyphens", "\u00ad", 2), ("line_end", "-\n", 1)])
def test_long_words_are_cut(name: str, mark: str, count: int) -> None:
    for text in made(name):
        assert text is not None
        assert text.replace(mark, "") == SENTENCE
        assert text.count(mark) == count  # in "official" and "international", or one of them
        assert all(len(part) >= 3 for word in text.split(" ") if mark in word for part in word.split(mark))


def test_spaces_and_ends() -> None:
    assert all(text and text.split() == SENTENCE.split() and text != SENTENCE for text in made("spaces"))
    assert made("end") == {SENTENCE[:-1], f"{SENTENCE[:-1]},"}


def test_an_elision_leaves_five_words_on_both_sides_and_no_negation_out() -> None:
    texts = made("elided") - {None}
    assert len(texts) > 20
    for text in texts:
        assert text is not None
        first, last = re.split(r" (?:…|\.\.\.|\. \. \.|\[…\]|\[\.\.\.\]) ", text)
        assert SENTENCE.startswith(first)
        assert SENTENCE.endswith(last)
        assert len(words(first)) >= 5 <= len(words(last))
        assert "not" in first
        assert len(words(first) + words(last)) <= len(words(SENTENCE)) - 3


def test_a_digit_is_another() -> None:
    for text in made("digit"):
        assert text is not None
        assert re.sub(r"\d", "0", text) == re.sub(r"\d", "0", SENTENCE)
        assert sum(one != other for one, other in zip(text, SENTENCE, strict=True)) == 1


def test_units_and_signs_are_others() -> None:
    assert made("unit") == {SENTENCE.replace("$", "€"), SENTENCE.replace("km", "miles")}
    assert made("unit", Source("It was -5 °C at 10⁶ m², or 5% more.")) >= {
        "It was 5 °C at 10⁶ m², or 5% more.",
        "It was -5 °F at 10⁶ m², or 5% more.",
        "It was -5 °C at 10⁷ m², or 5% more.",
        "It was -5 °C at 10⁶ m³, or 5% more.",
        "It was -5 °C at 10⁶ m², or 5‰ more.",
    }


@pytest.mark.parametrize(
    ("text", "forged"),
    [
        ("It is open.", {"It is not open."}),
        ("It isn't open.", {"It is open."}),
        ("It cannot open.", {"It can open."}),
        ("It can't open.", {None}),
        ("It never had any.", {"It had any."}),
        ("Nothing here.", {None}),
    ],
)
def test_a_negation_is_dropped_or_added(text: str, forged: set[str | None]) -> None:
    assert made("negation", Source(text)) <= forged


def test_words_change_places_come_and_go() -> None:
    assert all(text and sorted(words(text)) == sorted(words(SENTENCE)) and text != SENTENCE for text in made("order"))
    for text in made("word"):
        assert text is not None
        differing = [pair for pair in zip(words(text), words(SENTENCE), strict=True) if pair[0] != pair[1]]
        assert len(differing) == 1
        assert differing[0][0] in words(DOCUMENT)
    assert all(text and len(words(text)) == len(words(SENTENCE)) + 1 for text in made("added"))


def test_a_clause_is_dropped() -> None:
    assert made("clause", Source("The town, which was built by monks, is old.")) == {"The town, is old."}
    assert made("clause", Source("The town is old.")) == {None}


def test_parts_of_two_places_are_joined() -> None:
    second = DOCUMENT[len(SENTENCE) + 1 :]
    for name, other, seams in (("joined", second, {" "}), ("documents", OTHER, {" ", " … "})):
        found = set()
        for text in made(name):
            assert text is not None
            [(seam, head)] = [
                (seam, text[: -len(tail) - len(seam)])
                for seam in (" … ", " ")
                for at in range(len(other))
                if text.endswith(seam + (tail := other[at:])) and SENTENCE.startswith(text[: -len(tail) - len(seam)])
            ][:1]
            assert len(words(head)) >= 5
            found.add(seam)
        assert found == seams
    assert made("joined", Source(SENTENCE, SENTENCE)) == {None}
    assert made("documents", Source(SENTENCE, DOCUMENT)) == {None}


def test_parts_are_in_the_wrong_order() -> None:
    for text in made("parts"):
        assert text is not None
        last, first = text.split(" … ")
        assert SENTENCE.startswith(first)
        assert SENTENCE[:-1].endswith(last)
        assert words(first) + words(last) == words(SENTENCE)


def test_what_can_be_quoted() -> None:
    long = "One two three four five six seven eight nine ten eleven twelve."
    texts = [
        long,
        "Too short.",
        f"{long[:-1]} … and so on.",
        f"{long[:-1]} [sic] thirteen.",
        long.lower(),
        f"{long[:20]}\n{long}",
    ]
    assert [[text[start:end] for start, end in quotable(text)] for text in texts] == [[long], [], [], [], [], []]
