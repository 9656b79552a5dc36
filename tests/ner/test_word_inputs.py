"""Words, their shapes and first tokens, and windows that lose nothing."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quoth.errors import InputError
from quoth.ner.words import SHAPES, WordTokenizer, word_shapes
from quoth.text.boundaries import words
from quoth.text.tokenizer import FastTokenizer
from tiny import TOKENIZERS

TEXT = "Zoë O'Neil sah 北京 🙂 in MÜNCHEN. The café, naïve!"


@pytest.fixture(scope="module", params=TOKENIZERS)
def hf(request: Any, tmp_path_factory: pytest.TempPathFactory) -> FastTokenizer:
    return FastTokenizer(TOKENIZERS[request.param](tmp_path_factory.mktemp("model") / request.param))


def shown(text: str) -> list[str]:
    return [text[start:end] for start, end in words(text)]


def test_words_by_hand() -> None:
    assert shown("O'Neil, 3.5 Jean-Luc") == ["O", "'", "Neil", ",", "3", ".", "5", "Jean", "-", "Luc"]
    assert shown("北京 in\tMu\u0308nchen\n") == ["北", "京", "in", "Mu\u0308nchen"]
    assert words("") == words(" \n") == []


@given(st.text(max_size=60))
def test_words_cover_all_but_white_space_once(text: str) -> None:
    found = words(text)
    inside = {at for start, end in found for at in range(start, end)}
    assert inside == {at for at, char in enumerate(text) if not char.isspace()}
    assert all(start < end for start, end in found)
    assert all(a[1] <= b[0] for a, b in pairwise(found))


def test_shapes_by_hand() -> None:
    text = "The iPhone, J. R. NASA B52 rose. 北 was 1999 “Then”\nafter"
    shapes = word_shapes(text, words(text))
    names = [(SHAPES[shape % len(SHAPES)], shape >= len(SHAPES)) for shape in shapes]
    assert names == [
        ("capitalised", True),
        ("mixed", False),
        ("other", False),
        ("capital", False),
        ("other", False),
        ("capital", False),
        ("other", False),
        ("capitals", False),
        ("digits", False),
        ("lower", False),
        ("other", False),
        ("uncased", True),
        ("lower", False),
        ("digits", False),
        ("other", False),
        ("capitalised", False),
        ("other", False),
        ("lower", True),
    ]


def test_first_tokens_stand_in_their_words(hf: FastTokenizer) -> None:
    text = WordTokenizer(hf, 64).texts([TEXT])[0]
    offsets = hf(TEXT, add_special_tokens=False)["offset_mapping"]
    assert len(text.ids_T) == len(text.shapes_T) == len(offsets)
    for (start, end), first in zip(text.words, text.first_W, strict=True):
        assert first >= 0
        assert offsets[first][0] < end
        assert offsets[first][1] > start
    assert (np.diff(text.first_W) >= 0).all()


@pytest.mark.parametrize("length", [0, 1, 13, 14, 15, 25, 60, 200])
def test_windows_answer_for_every_token_once(hf: FastTokenizer, length: int) -> None:
    tokenizer = WordTokenizer(hf, 16)
    text = tokenizer.texts(["raven " * length])[0]
    windows = tokenizer.windows(text)
    answered = [i for window in windows for i in range(window.tokens.start, window.tokens.stop)]
    assert answered == list(range(len(text.ids_T)))
    for window in windows:
        assert len(window.input_ids) == len(window.shapes) <= 16
        assert window.input_ids[window.inside].tolist() == text.ids_T[window.tokens].tolist()
        assert window.shapes[window.inside].tolist() == text.shapes_T[window.tokens].tolist()
        assert window.input_ids[: len(tokenizer.before)].tolist() == tokenizer.before
    assert tokenizer.texts([]) == []


def test_mistakes(hf: FastTokenizer) -> None:
    with pytest.raises(InputError, match="max_tokens 4 leaves no room for text; use 16 or more"):
        WordTokenizer(hf, 4)
    with pytest.raises(InputError, match="tokenizer object gives no character offsets"):
        WordTokenizer(object(), 64)
