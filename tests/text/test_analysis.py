"""Terms: what must meet meets, in every script, and no string raises."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quoth.text.terms import MAX_TERM_LENGTH, analyse, analyse_with_characters, is_unspaced_character

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
    assert analyse_with_characters("in 北京 京") == (["in", "北京", "京"], ["北", "京", "京"])
    assert analyse_with_characters("plain") == (["plain"], [])


def test_unspaced_character() -> None:
    assert [is_unspaced_character(term) for term in ("京", "รั", "か", "북")] == [True] * 4
    assert not any(is_unspaced_character(term) for term in ("北京", "a", "7", "я", "", "द"))


def test_long_words_are_cut() -> None:
    assert analyse("x" * 1000) == ["x" * MAX_TERM_LENGTH]
    assert analyse("я" * 1000) == ["я" * MAX_TERM_LENGTH]


@given(ANY_TEXT)
def test_any_string_gives_plain_terms(text: str) -> None:
    terms, characters = analyse_with_characters(text)
    assert terms == analyse(text)
    for term in terms + characters:
        assert 0 < len(term) <= MAX_TERM_LENGTH
        assert term.split() == [term]
        assert term.encode()
