"""Texts as words: their tokens, their shapes, and the windows that an encoder reads.

Knows: casing (which an uncased tokenizer drops), where a sentence begins, how windows overlap.
Does not know: labels, vectors.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from quoth.arrays import Ints
from quoth.errors import InputError
from quoth.text.boundaries import trim, words
from quoth.text.tokenizer import Pieces, check_fast, pieces_of

SHAPES = ("special", "lower", "capitalised", "capitals", "capital", "mixed", "digits", "uncased", "other")
"""What a word looks like. "special" tokens do not occur in texts; "uncased" scripts have no capitals."""
NUM_SHAPES = 2 * len(SHAPES)
"""Every shape occurs twice: inside a sentence and at its beginning."""

Spans = Sequence[tuple[int, int]] | Ints

_STOPS = re.compile(r"[.!?…。]")


@dataclass(frozen=True, slots=True)
class TextWords:
    """A text's words as character ranges [W, 2], each word's first token [W] (-1 if it has none), and the tokens: their
    ids [T] and the shapes of their words [T]."""

    words: list[tuple[int, int]]
    first_W: Ints
    ids_T: Ints
    shapes_T: Ints


@dataclass(frozen=True, slots=True)
class WordWindow:
    """An encoder input: ids and shapes with the special tokens, and the tokens of the text whose labels it decides.

    `inside` are their positions in the input, `tokens` in the text."""

    input_ids: Ints
    shapes: Ints
    inside: slice
    tokens: slice


class WordTokenizer:
    """A fast tokenizer that keeps track of words.

    `max_tokens` is the maximum length of an encoder input, special tokens included.
    """

    def __init__(self, tokenizer: Any, max_tokens: int) -> None:
        check_fast(tokenizer)
        self.hf = tokenizer
        self.pad_id = int(tokenizer.pad_token_id or 0)
        self.before, self.after = frame_of(tokenizer)
        self.room = max_tokens - len(self.before) - len(self.after)
        if self.room < 8:
            raise InputError(f"max_tokens {max_tokens} leaves no room for text; use 16 or more")

    def texts(self, texts: Sequence[str]) -> list[TextWords]:
        """Tokenize texts of any length, without special tokens."""
        return list(map(_text_words, texts, pieces_of(self.hf, texts)))

    def windows(self, text: TextWords) -> list[WordWindow]:
        """Windows that overlap by a quarter; a token in two windows belongs to the one where it is farther from a cut.

        The windows' `tokens` cover the text without gaps or overlaps.
        """
        length, overlap = len(text.ids_T), self.room // 4
        windows: list[WordWindow] = []
        start = 0
        while start < length:
            end = min(start + self.room, length)
            first = start + overlap // 2 if start else 0
            last = end if end == length else end - (overlap - overlap // 2)
            inside = slice(len(self.before) + first - start, len(self.before) + last - start)
            ids = np.array([*self.before, *text.ids_T[start:end], *self.after], np.int64)
            shapes = np.zeros(len(ids), np.int64)
            shapes[len(self.before) : len(self.before) + end - start] = text.shapes_T[start:end]
            windows.append(WordWindow(ids, shapes, inside, slice(first, last)))
            start = length if end == length else end - overlap
        return windows


def frame_of(tokenizer: Any) -> tuple[list[int], list[int]]:
    """The special tokens that a tokenizer puts before and after a text."""
    plain, framed = (list(tokenizer("a", add_special_tokens=special)["input_ids"]) for special in (False, True))
    cut = next(i for i in range(len(framed)) if framed[i : i + len(plain)] == plain)
    return framed[:cut], framed[cut + len(plain) :]


def _text_words(text: str, pieces: Pieces) -> TextWords:
    ids, offsets = pieces
    ranges, places = words(text), [trim(text, *place) for place in offsets]
    first_W, after_W = touching(places, ranges).T
    word_T, beyond_T = touching(ranges, places).T
    shape_W1 = np.append(word_shapes(text, ranges), 0)
    shapes_T = shape_W1[np.where(word_T < beyond_T, word_T, -1)]
    return TextWords(ranges, np.where(first_W < after_W, first_W, -1), np.array(ids, np.int64), shapes_T)


def touching(places: Spans, spans: Spans) -> Ints:
    """The first and the past-the-last of the ascending `places` that overlap each character range: [S, 2], equal if
    none does. An empty place overlaps nothing."""
    places_N2, spans_S2 = (np.array(ranges, np.int64).reshape(-1, 2) for ranges in (places, spans))
    filled = np.flatnonzero(places_N2[:, 0] < places_N2[:, 1])
    first_S = np.searchsorted(places_N2[filled, 1], spans_S2[:, 0], side="right")
    after_S = np.searchsorted(places_N2[filled, 0], spans_S2[:, 1], side="left")
    touched = (first_S < after_S) & (spans_S2[:, 0] < spans_S2[:, 1])
    found_S2 = np.zeros_like(spans_S2)
    found_S2[touched, 0] = filled[first_S[touched]]
    found_S2[touched, 1] = filled[after_S[touched] - 1] + 1
    return found_S2


def word_shapes(text: str, ranges: Sequence[tuple[int, int]]) -> Ints:
    """Each word's index in `SHAPES`, plus `len(SHAPES)` if it begins a sentence: [W]."""
    shapes = np.array([SHAPES.index(_shape(text[start:end])) for start, end in ranges], np.int64)
    begins = True
    for i, (start, end) in enumerate(ranges):
        if i and "\n" in text[ranges[i - 1][1] : start]:
            begins = True
        if text[start].isalnum():
            shapes[i] += len(SHAPES) * begins
            begins = False
        elif _STOPS.fullmatch(text[start:end]):  # but after an initial, as in "J. Smith"
            begins = not (i and ranges[i - 1] == (start - 1, start) and text[start - 1].isupper())
    return shapes


def _shape(word: str) -> str:
    if not word[0].isalnum():
        return "other"
    if any(char.isdigit() for char in word):
        return "digits"
    if word.islower():
        return "lower"
    if word.isupper():
        return "capital" if len(word) == 1 else "capitals"
    if word[0].isupper() and word[1:].islower():
        return "capitalised"
    return "mixed" if word.upper() != word.lower() else "uncased"
