"""When an answer is right and a passage holds one: by hand, at Unicode's edges, against DPR's own definition."""

from __future__ import annotations

import random
import unicodedata

import pytest

from quoth.datasets.judging import (
    answer_ranges,
    answer_rank,
    answerable,
    exact_match,
    first,
    has_answer,
    holders,
    joined_tokens,
    normalise_answer,
    recall,
)
from quoth.datasets.questions import QAExample


def asked(*answers: str, pattern: bool = False) -> QAExample:
    return QAExample("q", "?", answers, pattern)


def tokens(text: str) -> list[str]:
    """DPR's tokenizer, a character at a time."""
    found: list[str] = []
    inside = False
    for char in unicodedata.normalize("NFD", text):
        kind = unicodedata.category(char)[0]
        if kind in "LNM" and inside:
            found[-1] += char
        elif kind not in "ZC":
            found.append(char)
        inside = kind in "LNM"
    return [each.lower() for each in found]


def holds(text: str, answers: tuple[str, ...]) -> bool:
    """DPR's `has_answer`, but that an answer without tokens is nowhere."""
    words = tokens(text)
    wanted = [found for answer in answers if (found := tokens(answer))]
    return any(words[i : i + len(each)] == each for each in wanted for i in range(len(words)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The  Great\tGatsby!", "great gatsby"),
        ("U.S.A.", "usa"),
        ("a b an the c", "b c"),
        ("Theatre", "theatre"),
        ("CAFÉ", "cafe\u0301"),
        ("“Curly”", "“curly”"),
        ("The The", ""),
    ],
)
def test_normalised_as_squad_and_orqa_do(text: str, expected: str) -> None:
    assert normalise_answer(text) == expected


@pytest.mark.parametrize(
    ("prediction", "answers", "right"),
    [
        ("the Beatles.", ("Beatles",), True),
        ("beatle", ("Beatles",), False),
        ("Sao Paulo", ("São Paulo",), False),
        ("Sa\u0303o Paulo", ("São Paulo",), True),
        ("x", ("y", "X"), True),
        ("the the", ("The The",), True),
        ("a", ("The The",), False),
        ("", ("The The",), False),
        ("", ("!",), False),
        ("", ("",), False),
        ("!", ("!",), True),
        ("anything", (), False),
    ],
)
def test_exact_match(prediction: str, answers: tuple[str, ...], right: bool) -> None:
    assert exact_match(prediction, asked(*answers)) is right


@pytest.mark.parametrize(
    ("prediction", "pattern", "right"),
    [
        ("september 5", "Sept?(ember)?", True),
        ("in September", "Sept?(ember)?", False),
        ("Ingrid", "x|in", True),
        ("anything", "x*", False),
        ("e\u0301te\u0301", "[é]t[é]", True),
    ],
)
def test_patterns_match_from_the_beginning_as_orqa_has_it(prediction: str, pattern: str, right: bool) -> None:
    assert exact_match(prediction, asked(pattern, pattern=True)) is right


@pytest.mark.parametrize(
    ("text", "answer", "there"),
    [
        ("He was born in New York City.", "new york", True),
        ("New Yorkers", "New York", False),
        ("New, York", "New York", False),
        ("New\n York", "New York", True),
        ("the U.S. army", "U.S.", True),
        ("the U. S. army", "U.S.", True),
        ("the US army", "U.S.", False),
        ("Röntgen", "Ro\u0308ntgen", True),
        ("Röntgen", "Rontgen", False),
        ("naïve", "nai", False),
        ("snake_case", "case", True),
        ("it’s", "it's", False),
        ("“Dog”", "Dog", True),
        ("x² + y", "x²", True),
        ("ΣΑΣ.Α", "σας", True),
        ("a\u200bb", "a b", True),
        ("a\u00a0b", "a b", True),
        ("İzmir", "izmir", False),
        ("anything", "\u200b", False),
        ("", "x", False),
    ],
)
def test_has_answer(text: str, answer: str, there: bool) -> None:
    assert has_answer(text, asked(answer)) is there
    assert holds(text, (answer,)) is there


def test_tokens_of_every_character() -> None:
    every = " ".join(map(chr, range(0x110000)))
    assert joined_tokens(every) == f" {' '.join(tokens(every))} "


def test_has_answer_equals_its_definition_spelled_out() -> None:
    rng = random.Random(0)
    letters = "aAbB1.,-_ \u0301\u0308é’ΣςİßЖ中\u200b\u00a0\t\n²ﬁ"
    pieces = ["".join(rng.choices(letters, k=rng.randrange(1, 5))) for _ in range(60)]
    outcomes = set()
    for _ in range(20_000):
        text, answer = "".join(rng.choices(pieces, k=8)), "".join(rng.choices(pieces, k=rng.randrange(1, 3)))
        found = has_answer(text, asked(answer))
        assert found is holds(text, (answer,)), (text, answer)
        outcomes.add(found)
    assert outcomes == {True, False}


def test_patterns_are_searched_anywhere_but_not_empty() -> None:
    assert has_answer("It was\nSeptember.", asked("^sept", pattern=True))
    assert has_answer("at Sne\u030cz\u030cka", asked(r"Sn\ě\žka", pattern=True))
    assert not has_answer("October", asked("^sept", "x*", pattern=True))
    assert has_answer("aab", asked("a*?b|", pattern=True))


def test_ranks_and_recall() -> None:
    assert answer_rank(["no", "a yes b", "yes"], asked("Yes")) == 1
    assert answer_rank(["no"], asked("yes")) is None
    assert first([]) is None
    assert [recall((0, 4, None, 5), k) for k in (1, 5, 6)] == [0.25, 0.5, 0.75]


def test_what_a_corpus_can_answer_equals_asking_every_passage() -> None:
    rng = random.Random(1)
    words = ["one", "two", "three", "Four", "fünf", "six-6", "the"]
    texts = [" ".join(rng.choices(words, k=6)) for _ in range(12)]
    questions = [asked(*(" ".join(rng.choices(words, k=rng.randrange(1, 4))) for _ in range(2))) for _ in range(80)]
    questions += [asked(pattern, pattern=True) for pattern in ("f.r one", "six", "")] + [asked("\u200b"), asked()]
    expected = {i for i, each in enumerate(questions) if any(has_answer(text, each) for text in texts)}
    assert answerable(questions, iter(texts)) == expected
    assert 0 < len(expected) < len(questions)
    everywhere = {i: [t for t, text in enumerate(texts) if has_answer(text, questions[i])] for i in expected}
    assert holders(questions, iter(texts)) == everywhere
    assert max(map(len, everywhere.values())) > 1
    assert holders(questions, []) == holders([], texts) == {}


@pytest.mark.parametrize(
    ("text", "question", "found"),
    [
        ("New York, new york.", asked("new york"), ["New York", "new york"]),
        ("the U. S. army", asked("U.S."), ["U. S."]),
        ("a b a b", asked("a b", "b a", "A B"), ["a b", "a b", "b a"]),
        ("Ro\u0308ntgen, Röntgen", asked("röntgen"), ["Ro\u0308ntgen", "Röntgen"]),
        ("ΟΔΟΣ. οδος", asked("οδός", "οδος"), ["ΟΔΟΣ", "οδος"]),
        ("1≠2", asked("="), ["≠"]),
        ("1≠2", asked("2"), []),
        ("x🙂y", asked("🙂"), ["🙂"]),
        ("anything", asked("", "\u200b"), []),
        ("e\u0301te\u0301 été", asked("[é]t", pattern=True), ["e\u0301t", "ét"]),
        ("\u1112\u1161\u11ab 한", asked("한", pattern=True), ["\u1112\u1161\u11ab", "한"]),
        ("in 1969 and 1970", asked(r"19\d\d", "x*", pattern=True), ["1969", "1970"]),
    ],
)
def test_where_an_answer_stands(text: str, question: QAExample, found: list[str]) -> None:
    ranges = answer_ranges(text, question)
    assert [text[start:end] for start, end in ranges] == found
    assert len(set(ranges)) == len(ranges)
    assert has_answer(text, question) == bool(found)


def test_an_answer_stands_where_has_answer_finds_it() -> None:
    rng = random.Random(2)
    letters = "aAbB1.,-_= \u0301\u0308\u0323\u0338é≠’ΣςİßЖ中\u200b\u00a0\t\n²ﬁ\u212b한\u1112\u1161"
    pieces = ["".join(rng.choices(letters, k=rng.randrange(1, 5))) for _ in range(60)]
    several = 0
    for _ in range(5000):
        text = "".join(rng.choices(pieces, k=8))
        question = asked("".join(rng.choices(pieces, k=rng.randrange(1, 3))), "".join(rng.choices(pieces, k=2)))
        ranges = answer_ranges(text, question)
        assert bool(ranges) is has_answer(text, question), (text, question)
        for start, end in ranges:
            assert 0 <= start < end <= len(text)
            assert has_answer(text[start:end], question), (text, question, start, end)
        several += len(ranges) > 1
    assert several > 50


def test_a_pattern_matches_where_has_answer_finds_it() -> None:
    rng = random.Random(3)
    patterns = ["é", "a.?b", "[=≠]1", "Å+", "한", "ß|ss", "\\w+,"]
    for _ in range(2000):
        text = "".join(rng.choices(["e\u0301", "é", "a", "b", "=", "\u0338", "1", "A\u030a", "한", "ß", ",", " "], k=9))
        question = asked(*rng.sample(patterns, 2), pattern=True)
        ranges = answer_ranges(text, question)
        assert bool(ranges) is has_answer(text, question), (text, question)
        assert all(has_answer(text[start:end], question) for start, end in ranges), (text, question)
