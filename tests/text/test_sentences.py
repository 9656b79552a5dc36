"""Where sentences end, and phrases that no sentence contains."""

import pytest

from quoth.text.sentences import crosses_sentence, sentences


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        (" \n ", []),
        ("no end", ["no end"]),
        ("  One two. Three!  “Four?” Five", ["One two.", "Three!", "“Four?”", "Five"]),
        ("By J. Smith, e.g. here. It was good.", ["By J. Smith, e.g. here.", "It was good."]),
        ('He said "no." She said "yes."', ['He said "no."', 'She said "yes."']),
        ("Heading\n\nthe text. ", ["Heading", "the text."]),
        ("今天天气好。我们出去玩。", ["今天天气好。", "我们出去玩。"]),
    ],
)
def test_sentences(text: str, found: list[str]) -> None:
    assert [text[start:end] for start, end in sentences(text)] == found


@pytest.mark.parametrize(
    "text",
    [
        "Paris. The",
        "in 1875. It was first",
        'he left." Then',
        "the Seine. 1900",
        "Germany. Élysée",
        "the company. (The",
    ],
)
def test_a_phrase_across_the_end_of_a_sentence(text: str) -> None:
    assert crosses_sentence(text)


@pytest.mark.parametrize(
    "text",
    [
        "St. Petersburg",
        "J. R. R. Tolkien",
        "Washington D.C. area",
        "Washington, D.C. The",
        "Dr. Martin Luther King Jr. Day",
        "Yahoo! Inc. Japan",
        "Monsters vs. Aliens",
        "Op. 27 No. 2",
        "version 2.4 of Python 3.12",
        "e.g. apples",
        "U.S. Army",
        "Paris.",
        "Nikki Giovanni",
        "",
    ],
)
def test_a_phrase_with_full_stops_inside_a_sentence(text: str) -> None:
    assert not crosses_sentence(text)
