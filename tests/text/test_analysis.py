"""Terms: what must meet meets, in every script, and no string raises."""

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quoth.text.terms import ANALYZERS, FIRST, MAX_TERM_LENGTH, Analysis, analyse, analyse_apart, is_unspaced_character

ANY_TEXT = st.text(st.characters(exclude_categories=()))


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("", []),
        ("?! — … 🙂 _ \x00", []),
        ("The running dogs' 2nd day", ["the", "run", "dog", "2nd", "day"]),
        ("snake_case", ["snake", "case"]),
        ("１２３ ﬁne", ["123", "fine"]),
        ("القاهرة", ["القاهرة"]),
        ("दिल्ली", ["दिल्ली"]),
        ("Ёлка", ["ёлка"]),
        ("북", ["북"]),
        ("세종대왕은", ["세종", "종대", "대왕", "왕은"]),
        ("北京", ["北京"]),
        ("東京タワーのAI技術", ["東京", "京タ", "タワ", "ワー", "ーの", "ai", "技術"]),
        ("ครับ", ["ครั", "รับ"]),
        ("Hawaiʻi", ["hawaii"]),
        ("1️⃣", ["1"]),
        ("1998³ 10⁶ ٣⁶ 101₂ ²³", ["1998", "3", "10", "6", "٣", "6", "101", "2", "23"]),
        ("2½ cups, ½ 5", ["2", "1", "2", "cup", "1", "2", "5"]),
        ("H₂O", ["h2o"]),
        ("450 m² Brandt⁵", ["450", "m", "m2", "brandt", "brandt5"]),
        ("XXᵉ 2ª", ["xx", "xxe", "2", "2a"]),
        ("lone \ud800 surrogate", ["lone", "surrog"]),
    ],
)
def test_terms(text: str, terms: list[str]) -> None:
    assert analyse(text) == terms


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("München", "MUNCHEN"),
        ("Łódź Ærø Þórr", "lodz aero thorr"),
        ("İstanbul", "istanbul"),
        ("Straße", "STRASSE"),
        ("Καζαντζάκης", "ΚΑΖΑΝΤΖΑΚΗΣ"),
        ("Ἀχιλλεύς ᾼδης", "ΑΧΙΛΛΕΥΣ αδης"),
        ("x\u0302", "x"),
        ("Nguyễn", "Nguyen"),
        ("ｶﾞｷﾞ", "ガギ"),
        ("می\u200cخواهم", "میخواهم"),
        ("محـــمد", "محمد"),
        ("葛\U000e0100飾", "葛飾"),
        ("co\u00adoperate", "cooperated"),
        ("МОСКВА", "москва"),
    ],
)
def test_spellings_meet(one: str, other: str) -> None:
    assert analyse(one) == analyse(other) != []


@pytest.mark.parametrize("text", ["München", "세종대왕", "ガギグ", "दिल्ली", "ёй", "القَاهِرَة"])
def test_composed_and_decomposed_meet(text: str) -> None:
    assert analyse(unicodedata.normalize("NFC", text)) == analyse(unicodedata.normalize("NFD", text))


def test_no_character_becomes_a_digit_of_the_number_before_it() -> None:
    for char in map(chr, range(0xA0, 0x20000)):
        if not char.isdecimal() and unicodedata.normalize("NFKC", char)[:1].isdecimal():
            assert analyse(f"87{char}")[0] == "87"
            assert analyse(f"{char}87")[-1] == "87"


def test_diacritics_of_other_scripts_stay() -> None:
    assert analyse("й") != analyse("и")
    assert analyse("が") != analyse("か")


def test_characters_of_unspaced_runs() -> None:
    assert analyse_apart("in 北京 京") == Analysis(["in", "北京", "京"], [], ["北", "京", "京"])
    assert analyse_apart("plain") == Analysis(["plain"], [], [])


def test_unspaced_character() -> None:
    assert [is_unspaced_character(term) for term in ("京", "รั", "か", "북")] == [True] * 4
    assert not any(is_unspaced_character(term) for term in ("北京", "a", "7", "я", "", "द"))


def test_long_words_are_cut() -> None:
    assert analyse("x" * 1000) == ["x" * MAX_TERM_LENGTH]
    assert analyse("я" * 1000) == ["я" * MAX_TERM_LENGTH]


@given(ANY_TEXT)
def test_any_string_gives_plain_terms(text: str) -> None:
    words, joined, characters = analyse_apart(text)
    terms = words + joined
    assert terms == analyse(text)
    for term in terms + characters:
        assert 0 < len(term) <= MAX_TERM_LENGTH
        assert term.split() == [term]
        assert term.encode()


# What is written in one piece


@pytest.mark.parametrize(
    ("typed", "written"),
    [
        ("email", "e-mail"),
        ("emails", "E\u2011Mail"),
        ("SKU8847", "SKU-8847"),
        ("1250000", "1,250,000"),
        ("1250000", "1.250.000"),
        ("oneill", "O'Neill"),
        ("OBrien", "O\u2019Brien"),
        ("rocknroll", "rock'n'roll"),
        ("5552031569", "555-203-1569"),
        ("munchenost", "München-Ost"),
        ("kopenickdorf", "Köpenick‐Dorf"),
        ("C++", "C++11"),
        ("notepad", "Notepad++"),
    ],
)
def test_what_is_in_one_piece_is_found_however_it_is_typed(typed: str, written: str) -> None:
    (term,) = analyse(typed)
    assert term in analyse(f"before {written}, after")
    assert term in analyse(f"({written})")
    assert {*analyse(written, FIRST)} - {"c"} <= {*analyse(written)}


def test_signs_tell_names_apart() -> None:
    assert [analyse(each) for each in ("C", "C++", "C#", "F#;", "c+")] == [["c"], ["c++"], ["c#"], ["f#"], ["c+"]]
    assert analyse("a+b, 1+1, 50+, foo#1, G#7") == ["a", "b", "1", "1", "50", "foo", "1", "g", "7"]
    assert analyse_apart("Notepad++").joined == ["notepad++"]


@pytest.mark.parametrize(
    "text",
    ["3-5", "3.14", "12345,678", "1,2,3", "1,111,1111", "don't", "Ann's", "the dogs' 'bone'", "a - b", "192.168.0.1"],
)
def test_what_is_not_one_is_not_joined(text: str) -> None:
    assert analyse(text) == analyse(text, FIRST)
    assert analyse_apart(text).joined == []


@given(ANY_TEXT)
def test_the_words_of_both_analyzers_are_the_same_but_for_signs_and_what_is_raised(text: str) -> None:
    plain = unicodedata.normalize("NFKC", text).replace("+", " ").replace("#", " ")
    first, latest = (analyse_apart(plain, each) for each in ANALYZERS)
    assert (first.words, first.characters) == (latest.words, latest.characters)
    assert first.joined == []


@pytest.mark.parametrize("part", ["a-", "1,111,", "1.111.", "x'", "+", "#", "a+", "١,", "п’", "1'", "-.,'"])
def test_repeated_signs_take_time_in_proportion(part: str) -> None:
    def seconds(times: int) -> float:
        began = time.process_time()
        analyse(part * times)
        return time.process_time() - began

    assert seconds(80_000) < 20 * (seconds(20_000) + 0.05)
