import re

import numpy as np
import pytest

from quoth.text.boundaries import (
    BREAK_BEFORE,
    MAY_END,
    MAY_START,
    SPACE_BEFORE,
    boundary_flags,
    breaks,
    surface_group,
    trim,
    uncut,
)


def flags(text: str, *ranges: tuple[int, int]) -> list[str]:
    """The flags of each token as letters: S may start, E may end, _ white space before, | a break before."""
    found = boundary_flags(text, np.array(ranges, np.int64).reshape(-1, 2))
    names = {MAY_START: "S", MAY_END: "E", SPACE_BEFORE: "_", BREAK_BEFORE: "|"}
    return ["".join(name for bit, name in names.items() if flag & bit) for flag in found]


def test_shapes() -> None:
    assert boundary_flags("", np.zeros((0, 2), np.int64)).shape == (0,)
    found = boundary_flags("a b", np.array([[0, 1], [2, 3]]))
    assert found.shape == (2,)
    assert found.dtype == np.uint8


@pytest.mark.parametrize(
    ("text", "ranges", "expected"),
    [
        ("two words", [(0, 3), (4, 9)], ["SE", "SE_"]),
        ("playing", [(0, 4), (4, 7)], ["S", "E"]),
        ("a tower.", [(0, 1), (2, 5), (5, 7), (7, 8)], ["SE", "S_", "E", ""]),
        ("x\t\ny", [(0, 1), (3, 4)], ["SE", "SE_|"]),
        ("x\n\u200by", [(0, 1), (3, 4)], ["SE", "SE_|"]),
        ("x-y", [(0, 1), (1, 2), (2, 3)], ["SE", "", "SE"]),
        ("北京市", [(0, 1), (1, 2), (2, 3)], ["SE", "SE", "SE"]),
        ("세종대왕", [(0, 2), (2, 4)], ["S", "E"]),
        ("القاهرة", [(0, 2), (2, 7)], ["S", "E"]),
        ("दिल्ली", [(0, 2), (2, 6)], ["S", "E"]),
        ("cafe\u0301 x", [(0, 4), (4, 5), (6, 7)], ["S", "E", "SE_"]),
        ("か\u3099き", [(0, 1), (1, 2), (2, 3)], ["S", "E", "SE"]),
        ("👩\u200d🔬!", [(0, 1), (1, 2), (2, 3), (3, 4)], ["S", "", "E", ""]),
        ("👍🏽", [(0, 1), (1, 2)], ["S", "E"]),
        ("می\u200cخواهم", [(0, 2), (3, 8)], ["S", "E"]),
        ("🦜", [(0, 1), (0, 1), (0, 1)], ["S", "", "E"]),
        ("a b", [(0, 1), (2, 2), (2, 3)], ["SE", "", "SE_"]),
    ],
)
def test_flags_by_hand(text: str, ranges: list[tuple[int, int]], expected: list[str]) -> None:
    assert flags(text, *ranges) == expected


def test_whitespace_is_what_space_before_means() -> None:
    assert flags("a\x01b", (0, 1), (2, 3)) == ["SE", "SE"]


def test_trim() -> None:
    assert trim(" word ", 0, 6) == (1, 5)
    assert trim("   ", 1, 3) == (3, 3)
    assert trim("e\u0301\u0323f", 0, 1) == (0, 3)
    assert trim("👍🏽x", 0, 1) == (0, 2)


def test_groups_ignore_case_and_nothing_else() -> None:
    assert surface_group("München") == surface_group("MÜNCHEN")
    assert surface_group("ΟΔΟΣ") == surface_group("οδος")
    assert surface_group("München") != surface_group("Munchen")
    assert 0 <= surface_group("") < 1 << 64


def cut(text: str) -> dict[str, str]:
    """The flags of runs of digits, runs of letters, and other characters, by what they say; the last of equal ones."""
    ranges = [found.span() for found in re.finditer(r"\d+|[^\W\d]+|[^\w\s]", text)]
    return {text[start:end]: each for (start, end), each in zip(ranges, flags(text, *ranges), strict=True)}


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("a border of 13,676 km", "13,676"),
        ("a summit of 3.776 km", "3.776"),
        ("on 2018-05-17 it rained", "2018-05-17"),
        ("on 17/5/2018 it rained", "17/5/2018"),
        ("at 12:30 sharp", "12:30"),
        ("Python 3.11.7 is out", "3.11.7"),
        ("1 234 567.89 of 1,234,567.89", "1,234,567.89"),
    ],
)
def test_no_phrase_starts_or_ends_inside_a_number(text: str, whole: str) -> None:
    ranges = [found.span() for found in re.finditer(r"\d+|[^\W\d]+|[^\w\s]", text)]
    first, last = text.rindex(whole), text.rindex(whole) + len(whole)
    for (start, end), each in zip(ranges, flags(text, *ranges), strict=True):
        if first <= start and end <= last:
            assert ("S" in each) == (start == first)
            assert ("E" in each) == (end == last)


def test_years_that_a_hyphen_joins_are_two() -> None:
    assert cut("in 1939-1945") == {"in": "SE", "1939": "SE_", "-": "", "1945": "SE"}


def test_a_per_cent_sign_ends_the_number_before_it_and_stands_for_nothing_alone() -> None:
    assert cut("of 32.1% now") == {"of": "SE", "32": "S_", ".": "", "1": "E", "%": "E", "now": "SE_"}
    assert cut("a % sign")["%"] == "_"


@pytest.mark.parametrize(
    ("text", "ranges", "expected"),
    [
        ("1998³", [(0, 4), (4, 5)], ["SE", "E"]),
        ("Brandtᵃ", [(0, 6), (6, 7)], ["SE", "E"]),
        ("10⁶", [(0, 2), (2, 3)], ["S", "E"]),
        ("cm³", [(0, 2), (2, 3)], ["S", "E"]),
        ("Mˡˡᵉ", [(0, 1), (1, 4)], ["S", "E"]),
        ("10^6", [(0, 2), (2, 3), (3, 4)], ["S", "", "E"]),
    ],
)
def test_a_phrase_may_leave_out_the_mark_of_a_note_but_no_power(
    text: str, ranges: list[tuple[int, int]], expected: list[str]
) -> None:
    assert flags(text, *ranges) == expected


def test_a_sentence_that_ends_in_a_number() -> None:
    assert cut("It was 3. Then 5")["3"] == "SE_"


LONG = "A paragraph whose lines are as long as the lines of prose are"


@pytest.mark.parametrize(
    ("text", "after", "broken"),
    [
        ("Area: 2 sq km\nland: 1 sq km", "land", True),
        (f"{LONG} wont to\nbe wrapped", "be", False),
        (f"{LONG}.\nAnother", "Another", True),
        (f"{LONG} of\nAnother one and {LONG}", "Another", True),
        (f"{LONG} of\nAnother author.", "Another", False),
        (f"{LONG} of\n{LONG} of\nAnother one", "Another", True),
        (f"{LONG} of\n{LONG} of\n{LONG} of\nAnother one", "Another", True),
        (f"{LONG} of\n{LONG} of\n{LONG} of\nAnother one\nand", "Another", False),
        (f"{LONG} of\n{LONG} of\nAnother one\nand", "Another", True),
        (f"{LONG}\n{LONG} wont\nto be", "to", False),
        (f"{LONG} and\n{LONG}\nit is not where a row of which {LONG} could take one more", "it", True),
        (f"{LONG}\nit may be where {LONG} could take one more", "it", False),
        (f"{LONG}\n\tand is set in", "and", False),
        (f"{LONG}\n b) the second", "b", True),
        (f"{LONG}\n (b) the second", "(", True),
        ("—\nleft", "left", True),
        ("price: 44 | of: it: 3", "44", True),
        ("price: 44 | of: it: 3", "3", False),
        ("44 | stock: 3 | of: 4\n", "3", True),
        ("a: b | c: d\u2028e: 5 | g: h", "5", True),
        ("price: 44", "44", False),
        ("| Alien: 44 | it |", "44", False),
        (f"{LONG}\n\nanother", "another", True),
        ("left\r\nRight", "Right", True),
        (f"{LONG} wont to\r\nbe wrapped", "be", False),
        ("left\u2028Right", "Right", True),
        ("left\tright", "right", True),
        ("left | right", "right", True),
        ("left|right", "right", True),
        ("left right", "right", False),
    ],
)
def test_breaks(text: str, after: str, broken: bool) -> None:
    assert ("|" in cut(text)[after]) == broken


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("Mail security@corvid.example.", ["security@corvid.example"]),
        ("(see https://a.org/b_c?d=1), or www.e.org.", ["https://a.org/b_c?d=1", "www.e.org"]),
        ("-80 °C, −5 and -£240.15", ["-8", "−5", "-£2"]),
        ("Call +44 20: 3-4 or 2019-20, x-1, a@b", ["+4"]),
        ("- 80 g of flour", []),
        ("price_eur: 44; __init__ and _it_, a _ b", ["price_eur", "__init__"]),
        ("-u, `--dry-run`; -C, -Carl, --Carl, well--known -- or a - b", ["-u", "--dry-run", "-C"]),
        ('"/etc/hosts". Or ~/a/b.txt, ../x (not km/h), .a.log.', ["/etc/hosts", "~/a/b.txt", "../x", ".a.log"]),
        ("Use Station.heights(), not f (x) or h(2).", ["Station.heights()"]),
        ("38 %, 40\u00a0‰ and 5\n% or 6\t% x", ["8 %", "0\u00a0‰"]),
    ],
)
def test_what_an_answer_has_all_of(text: str, whole: list[str]) -> None:
    assert [text[start:end] for start, end in uncut(text)] == whole


def test_a_text_of_many_rows() -> None:
    """One that compares every row with all others would take minutes."""
    rows = [f"{i:06d} a line of a log that is long enough to count" for i in range(50_000)]
    assert len(breaks("\n".join(rows))) == 49_999


def test_an_answer_in_one_endless_word() -> None:
    """One that tries every end from every start would take hours."""
    assert uncut("a" * 1_000_000 + ".b" * 500_000 + "+c" * 100_000) == []
