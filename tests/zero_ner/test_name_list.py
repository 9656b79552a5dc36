"""Names of a list in texts: whole words, the longest, as they stand; against a look at every range."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quoth.corpus.corpus import Corpus
from quoth.errors import InputError
from quoth.records import Document, TaggedSpan
from quoth.text.boundaries import words
from quoth.zero_ner.recognition import NAME, NameList

NAMES = [
    *("York", "New York", "New York City", "City", "Mercury", "O'Brien", "U.S.", "C++", "K2", "!!! band", "Yahoo!"),
    *(
        "Café",
        "北京",
        "Αθήνα",
        "Mu\u0308nchen",
        "القاهرة",
        "US",
        "The Who",
        "Jean-Paul",
        "Jean",
        "New York City Hall of",
    ),
]
MARKED = [
    "He left [New York] for [New York City]; [York] is no [City].",
    "[New\u00a0\n York\tCity] Hall, [New York City] of",
    "[New York]-[City]: NewYork, Yorks, York2, yorks, [York]_ and 2York",
    "[O'Brien], O’Brien, O 'Brien; [U.S.]A, [U.S.]: U. S. U.S; a [C++] of C+ +",
    "[K2]. K 2, [!!! band], !!!band; [Yahoo!]! Yahoo",
    "[Café], Cafe\u0301, Cafés, café; [Mu\u0308nchen], München, Munchen",
    "in [北京]大学 und [Αθήνα], αθήνα; [القاهرة]. 🙂[City]🙂",
    "let us, [US] citizens; [The Who] and who, The\nwho",
    "[Jean-Paul] and [Jean]-Pierre, [Jean]-[Jean-Paul]",
    "MERCURY mercury Mercurys [Mercury]'s",
    "",
    " \n",
]


@pytest.mark.parametrize("marked", MARKED)
def test_names_stand_where_they_are_marked(marked: str) -> None:
    wanted = re.findall(r"\[(.*?)\]", marked, re.DOTALL)
    text = re.sub(r"[\[\]]", "", marked)
    (found,) = NameList(NAMES).names([text])
    assert [text[each.start : each.end] for each in found] == wanted
    assert {each.label for each in found} <= {NAME}


def test_names_that_would_be_found_everywhere_are_left_out() -> None:
    left_out = ["A", "é", "北", "1984", "0.999...", "!!!", "?", "", " ", "It", "it", "The", "Who", "May"]
    found = NameList([*left_out, "Rome", "IT"]).names([" ".join(left_out), "IT: it, May, Rome; It may."])
    assert found == [[], [TaggedSpan(0, 2, NAME), TaggedSpan(13, 17, NAME)]]


def by_hand(names: set[str], text: str) -> list[tuple[int, int]]:
    """Every range in turn, those that start first before the others and of these the longest."""
    starts, ends = {start for start, _ in words(text)}, {end for _, end in words(text)}
    found: list[tuple[int, int]] = []
    for start in sorted(starts):
        for end in sorted(ends, reverse=True):
            free = start < end and (not found or found[-1][1] <= start)
            if free and re.sub(r"\s+", " ", text[start:end]) in names:
                found.append((start, end))
    return found


SMALL = st.text("ab B-.'\n\u0301北", max_size=6)


@settings(max_examples=500)
@given(st.lists(SMALL, max_size=12), st.text("ab B-.'\n\u0301北", max_size=24))
def test_names_are_those_of_a_look_at_every_range(drawn: list[str], text: str) -> None:
    names = {" ".join(each.split()) for each in drawn}
    kept = {each for each in names if len(each) > 1 and re.search(r"[^\W\d_]", each)}
    (found,) = NameList([*drawn, "never there"]).names([text])
    assert [(each.start, each.end) for each in found] == by_hand(kept, text)


OTHER = st.text(st.characters(exclude_characters="x"), max_size=30)


@given(OTHER, OTHER, OTHER)
def test_any_name_is_found_between_spaces(before: str, name: str, after: str) -> None:
    text = f"{before} x{name}x {after}"
    place = TaggedSpan(len(before) + 1, len(before) + len(name) + 3, NAME)
    assert NameList([f"x{name}x"]).names([text]) == [[place]]


def test_fifty_thousand_names() -> None:
    rng = random.Random(0)
    vocabulary = ["".join(rng.choices("abcdefgh", k=3)).title() for _ in range(300)]
    names = {" ".join(rng.choices(vocabulary, k=rng.choice([2, 3, 4]))) for _ in range(50_000)}
    text = " ".join(rng.choices(vocabulary, k=3_000))
    (found,) = NameList(names).names([text])
    places, wanted, at = words(text), [], 0
    while at < len(places):
        ends = [places[at + count][1] for count in (3, 2, 1) if at + count < len(places)]
        end = next((end for end in ends if text[places[at][0] : end] in names), None)
        if end is not None:
            wanted.append((places[at][0], end))
        at += 1 if end is None else text[places[at][0] : end].count(" ") + 1
    assert [(each.start, each.end) for each in found] == wanted
    assert len(wanted) > 100


def test_equal_lists_have_equal_fingerprints() -> None:
    one = NameList(["New York", "Rome"], "cities")
    assert one.name == "cities"
    assert one.fingerprint == NameList(["Rome", " New\n York", "Rome", "1984"]).fingerprint
    assert one.fingerprint != NameList(["New", "York", "Rome"]).fingerprint
    assert len({one.fingerprint, NameList(["Rome"]).fingerprint, NameList(["New York Rome"]).fingerprint}) == 3
    assert len(NameList(["\ud800x"]).fingerprint) == 64


def test_a_file_holds_a_name_a_line(tmp_path: Path) -> None:
    path = tmp_path / "names.txt"
    path.write_bytes("\ufeffNew York\r\n\n  Zoë  \nO'Brien, Jr.".encode())
    read = NameList.read(path)
    assert read.name == str(path)
    assert read.fingerprint == NameList(["New York", "Zoë", "O'Brien, Jr."]).fingerprint


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"Rome\n\xff\n", "names.txt:2: not UTF-8 text"),
        (b"\n \n1984\nThe\n", "names.txt: no name to look for; give names of several letters, such as Rome"),
        (b"", "names.txt: no name to look for"),
        (None, "names.txt: cannot be read"),
    ],
)
def test_broken_files_are_named(tmp_path: Path, content: bytes | None, complaint: str) -> None:
    path = tmp_path / "names.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError) as raised:
        NameList.read(path)
    assert str(raised.value).startswith(f"{tmp_path}/{complaint}")


def test_titles_of_corpora_are_names_without_what_tells_namesakes_apart(tmp_path: Path) -> None:
    titles = [
        "Mercury (planet)",
        "Mercury (element) ",
        "(500) Days",
        "If (magazine)",
        "",
        "(a)",
        "f(x)",
        "Paris, Texas",
    ]
    one, two = (Corpus.create(tmp_path / f"{name}.quoth") for name in ("one", "two"))
    one.add([Document(f"d{i}", title, "Text.") for i, title in enumerate(titles)])
    two.add([Document("d", "Rome (city (old))", "Text."), Document("gone", "Gone", "Text.")])
    two.delete(["gone"])
    found = NameList.of_titles(one, two)
    assert found.name == "titles of one, two"
    expected = ["Mercury", "(500) Days", "(a)", "f(x)", "Paris, Texas", "Rome (city (old))"]
    assert found.fingerprint == NameList(expected).fingerprint
    with pytest.raises(InputError, match="titles of none: no name to look for"):
        NameList.of_titles(Corpus.create(tmp_path / "none.quoth"))


def test_a_string_in_place_of_a_list_is_refused() -> None:
    with pytest.raises(InputError, match="texts is a string; it must be a list of texts"):
        NameList(["Rome"]).names("Rome")
    assert NameList(["Rome"]).names([]) == []
