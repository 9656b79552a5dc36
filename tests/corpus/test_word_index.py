"""A segment's words: what is counted, by hand; the file, damaged or not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from quoth.corpus.word_index import Words, hashes
from quoth.errors import CorruptionError

TEXTS = ["The cat saw the cats", "", "北京 cat", "dog"]


def held(words: Words, word: str) -> dict[int, int]:
    (at,) = words.find(hashes([word]))
    return dict(zip(words.passages_O[at].tolist(), words.counts_O[at].tolist(), strict=True))


def test_occurrences_by_hand() -> None:
    words = Words.of(TEXTS)
    assert words.num_passages == 4
    assert words.lengths_2P.tolist() == [[5, 0, 2, 1], [0, 0, 2, 0]]
    assert held(words, "cat") == {0: 2, 2: 1}
    assert held(words, "the") == {0: 2}
    assert held(words, "北京") == held(words, "北") == held(words, "京") == {2: 1}
    assert held(words, "zebra") == held(words, "cats") == held(words, "") == {}


def test_a_character_that_is_a_term_too_counts_once_as_each() -> None:
    words = Words.of(["京", "北京 京"])
    assert words.lengths_2P.tolist() == [[1, 2], [1, 3]]
    assert held(words, "京") == {0: 1, 1: 2}


def test_frequent_words_take_more_bytes() -> None:
    assert Words.of(["a " * 255]).counts_O.dtype == np.uint8
    words = Words.of(["a " * 70_000])
    assert (words.counts_O.dtype, held(words, "a")) == (np.dtype(np.uint32), {0: 70_000})


@pytest.mark.parametrize("texts", [[], [""], TEXTS, [f"word{n} again" for n in range(20_000)]])
def test_the_file_holds_them(tmp_path: Path, texts: list[str]) -> None:
    words = Words.of(texts)
    words.save(tmp_path / "words.bin")
    read = Words.open(tmp_path / "words.bin")
    for name in ("hashes_W", "first_W1", "passages_O", "counts_O", "lengths_2P"):
        written, there = getattr(words, name), getattr(read, name)
        np.testing.assert_array_equal(written, there)
        assert (written.dtype, written.shape) == (there.dtype, there.shape)
        assert not there.flags.writeable or not there.size
    assert held(read, "again") == held(words, "again")


@pytest.mark.parametrize("left", [0, 5, 70, 300])
def test_a_damaged_file_is_named(tmp_path: Path, left: int) -> None:
    Words.of(TEXTS).save(tmp_path / "words.bin")
    content = (tmp_path / "words.bin").read_bytes()
    (tmp_path / "words.bin").write_bytes(content[:left])
    with pytest.raises(CorruptionError, match=r"words\.bin"):
        Words.open(tmp_path / "words.bin")
    (tmp_path / "words.bin").write_bytes(b"?" + content[1:])
    with pytest.raises(CorruptionError, match=r"words\.bin"):
        Words.open(tmp_path / "words.bin")
