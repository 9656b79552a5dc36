"""Raised and lowered characters, written so that they are no part of what is before them."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quoth_sources.superscripts import lowered, raised


@pytest.mark.parametrize(
    ("before", "text", "written"),
    [
        ("0", "6", "⁶"),
        ("m", "2", "²"),
        ("0", "-3", "⁻³"),
        ("0", "−3", "⁻³"),
        ("0", "–3", "⁻³"),
        ("8", "3", "³"),
        ("t", "5", "⁵"),
        ("t", "1,2", "¹,²"),
        ("t", "3–5", "³–⁵"),
        ("t", "3-5", "³-⁵"),
        ("t", "1, 2", "¹,²"),
        ("t", "1,*", "¹,*"),
        ("t", "[5]", "[5]"),
        ("t", "*", "*"),
        ("t", "®", "®"),
        ("h", "TM", "™"),
        ("1", "st", "st"),
        ("2", "th", "th"),
        ("1", "er", "er"),
        ("9", "ème", "ème"),
        ("2", "e", "ᵉ"),
        ("X", "e", "ᵉ"),
        ("M", "lle", "ˡˡᵉ"),
        ("x", "n", "ⁿ"),
        ("2", "n+1", "ⁿ⁺¹"),
        ("2", "n + 1", "ⁿ⁺¹"),
        ("x", "(n+1)", "⁽ⁿ⁺¹⁾"),
        ("x", "(n/2)", "^(n/2)"),
        ("x", "n/2", "^(n/2)"),
        ("0", "-3.5", "^-3.5"),
        ("0", "1/2", "^(1/2)"),
        ("x", "q", "^q"),
        ("ن", "٣", "^٣"),
        ("h", "beta", " beta"),
        ("h", "see the log", " see the log"),
        ("h", " see the log", " see the log"),
        ("", "see the log", "see the log"),
        ("", "1", "¹"),
        (" ", "14", "¹⁴"),
        (" ", "st", "st"),
        ("h", "", ""),
        ("h", " ", " "),
        ("h", " 3 ", " ³ "),
    ],
)
def test_raised(before: str, text: str, written: str) -> None:
    assert raised(text, before) == written


@pytest.mark.parametrize(
    ("before", "text", "written"),
    [
        ("H", "2", "₂"),
        ("1", "2", "₂"),
        ("x", "i", "ᵢ"),
        ("x", "i+1", "ᵢ₊₁"),
        ("x", "max", "ₘₐₓ"),
        ("V", "DD", "_DD"),
        ("x", "i/2", "_(i/2)"),
        ("/", "2", "₂"),
        ("", "DD", "DD"),
        ("t", "total mass", " total mass"),
    ],
)
def test_lowered(before: str, text: str, written: str) -> None:
    assert lowered(text, before) == written


@given(st.text(max_size=12), st.text(max_size=1))
def test_no_digit_is_glued_to_a_digit_and_no_character_is_lost(text: str, before: str) -> None:
    for write in (raised, lowered):
        written = write(text, before)
        assert not (before.isdecimal() and written[:1].isdecimal())
        same = "".join(unicodedata.normalize("NFKC", written).split()).replace("−", "-").replace("–", "-")
        plain = "".join(unicodedata.normalize("NFKC", text).split()).replace("−", "-").replace("–", "-")
        assert same.startswith(plain) or plain in same
