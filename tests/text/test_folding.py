"""What typography does to a text and what it does not: by hand, and by properties over drawn texts."""

import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quoth.text.folding import fold, fold_with_places, is_word_end, word_starts

SAME = [
    ("the ﬁrst oﬃce", "the first office"),
    ("cafe\u0301", "café"),
    ("Ｗｉｄｅ", "wide"),
    ("a\u00a0b \t c\n\nd", "a b c d"),
    ("infor\u00ad\nmation", "information"),
    ("infor-\n  mation", "information"),
    ("infor\ufffemation", "information"),
    ("COVID\ufffe19", "COVID-19"),
    ("well\u2010known", "well-known"),
    ("COVID-\n19", "COVID-19"),
    ("1914–18", "1914-18"),
    ("−5 degrees", "-5 degrees"),
    ("word — word", "word--word"),
    ("word – word", "word - word"),
    ("“No,” he said", "'No,' he said"),
    ("« Non », dit-il", '"Non", dit-il'),
    ("sagte »ja« und", 'sagte "ja" und'),
    ("eine ›große‹ »›Tat‹«, »…« so", 'eine ‚große‘ "\'Tat\'", "…" so'),
    ("l’« ami » ; (« oui ») « ‹ non › »", "l’«ami» ; («oui») «‹non›»"),
    ("``LaTeX''", "“LaTeX”"),
    ("don’t", "don't"),
    ("and so on…", "and so on..."),
    ("and . . . so on", "and ... so on"),
    ("[t]he end", "The end"),
    ("STRASSE", "straße"),
    ("H₂O", "H2O"),
    ("10⁶", "10^6"),
    ("zero\u200bwidth", "zerowidth"),
    ("1ˢᵗ", "1st"),
    ("5′ 6″", "5' 6\""),
]
OTHERS = [
    ("10⁶", "106"),
    ("1998³", "19983"),
    ("2ⁿ", "2n"),
    ("00\u1161²", "0 0\u1161²"),
    ("2½", "21/2"),
    ("x₁2", "x12"),
    ("−5", "5"),
    ("5-3", "53"),
    ("naïve", "naive"),
    ("array[1]", "array[2]"),
    ("ab", "a b"),
    ("5′", "5″"),
    ("may not", "may"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_typography_makes_no_difference(one: str, other: str) -> None:
    assert fold(one) == fold(other)


@pytest.mark.parametrize(("one", "other"), OTHERS)
def test_what_carries_meaning_is_kept(one: str, other: str) -> None:
    assert fold(one) != fold(other)


def test_case_is_kept_if_asked() -> None:
    assert fold("The “Straße” of ﬁre", case=False) == 'The "Straße" of fire'


ODD = "²½①₂ﬁ…中ไท่한\u0301\u00ad\u200b\ufffe\u1161\u11a8\u093f\u09be\0"
PIECES = st.sampled_from([*"aBé ßİ-–—'\"’“«».\n\t[]^_0", *ODD, "--", "''", ". . ."])
TEXTS = st.lists(PIECES | st.characters(), max_size=30).map("".join)


@settings(max_examples=300, deadline=None)
@given(TEXTS)
def test_every_word_folds_from_its_own_place(text: str) -> None:
    """What an index relies on: it sorts by the folding of the whole, and compares foldings of parts."""
    folded = fold_with_places(text)
    assert folded.text == fold(text)
    for at, source in np.stack(folded.starts(), axis=1).tolist():
        assert fold(text[source:]) == folded.text[at:]


@settings(max_examples=300, deadline=None)
@given(TEXTS)
def test_a_word_that_is_found_is_cut_out_of_the_original(text: str) -> None:
    folded = fold_with_places(text)
    ends = [
        at for at in range(1, len(folded.text) + 1) if folded.text[at - 1].isalnum() and is_word_end(folded.text, at)
    ]
    for at, source in np.stack(folded.starts(), axis=1).tolist():
        for end in (each for each in ends if at < each):
            begin, finish = folded.source(at, end)
            assert begin == source
            assert fold(text[begin:finish]).strip().startswith(folded.text[at:end].strip())


@settings(max_examples=300, deadline=None)
@given(st.text(st.characters(codec="utf-8")))
def test_composed_and_decomposed_texts_fold_to_the_same(text: str) -> None:
    assert fold(unicodedata.normalize("NFC", text)) == fold(unicodedata.normalize("NFD", text))


def test_words_begin_at_letters_of_scripts_without_spaces() -> None:
    assert np.flatnonzero(word_starts("ab cd_1 北京x é")).tolist() == [0, 3, 6, 8, 9, 10, 12]
    assert [at for at in range(8) if is_word_end("ab 北京 x1", at)] == [0, 2, 3, 4, 5, 6]
