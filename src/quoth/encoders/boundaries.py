"""Where a phrase may start and end, and when two tokens are the same word.

Knows: characters and character ranges. Does not know: tokenizers, so one rule serves WordPiece, byte-level BPE
and SentencePiece alike.
"""

from __future__ import annotations

import hashlib
import unicodedata
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

MAY_START, MAY_END, SPACE_BEFORE = 1, 2, 4

_UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")


@lru_cache(maxsize=65536)
def _joins(char: str) -> bool:
    """Whether a character belongs to a word that goes on beside it."""
    if unicodedata.category(char)[0] == "M":
        return True
    return char.isalnum() and not unicodedata.name(char, "").startswith(_UNSPACED)


@lru_cache(maxsize=65536)
def _is_punctuation(surface: str) -> bool:
    return all(unicodedata.category(char)[0] == "P" for char in surface)


def trim(text: str, start: int, end: int) -> tuple[int, int]:
    """Drop white space at the edges and take in the combining marks that belong to the last character."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    while start < end < len(text) and unicodedata.category(text[end])[0] == "M":
        end += 1
    return start, end


def boundary_flags(text: str, offsets_T2: NDArray[np.int64]) -> NDArray[np.uint8]:
    """MAY_START, MAY_END and SPACE_BEFORE of each token: [T].

    A phrase starts and ends where no word is cut, never with a token of punctuation alone, and never inside a
    character that several tokens share.
    `offsets_T2` are ranges of `text`, in order.
    """
    flags = np.zeros(len(offsets_T2), np.uint8)
    ranges = [(int(start), int(end)) for start, end in offsets_T2]
    for i, (start, end) in enumerate(ranges):
        if start == end:
            continue
        previous = ranges[i - 1][1] if i else 0
        following = ranges[i + 1][0] if i + 1 < len(ranges) else len(text)
        if i and start > previous:
            flags[i] |= SPACE_BEFORE
        if _is_punctuation(text[start:end]):
            continue
        if start >= previous and not (start and _joins(text[start - 1]) and _joins(text[start])):
            flags[i] |= MAY_START
        if end <= following and not (end < len(text) and _joins(text[end - 1]) and _joins(text[end])):
            flags[i] |= MAY_END
    return flags


@lru_cache(maxsize=1 << 18)
def surface_group(surface: str) -> int:
    """A 64-bit name for a piece of text regardless of case: equal for equal case-folded text."""
    digest = hashlib.blake2b(surface.casefold().encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")
