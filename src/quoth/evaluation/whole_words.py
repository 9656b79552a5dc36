"""Which tokens of a vocabulary may start and end a phrase, for models that fill masks without a corpus.

Knows: a Hugging Face tokenizer, and the rules of NPM's phrases (`boundary_flags`). Does not know: models.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quoth.tokenizers.boundaries import MAY_END, MAY_START, boundary_flags, trim

PART = "\ufffd"
"""What a tokenizer of bytes decodes a part of a character to."""


class WholeWords:
    """The boundaries of tokens in a blank."""

    def __init__(self, tokenizer: Any, vocab_size: int) -> None:
        self._tokenizer, self._size = tokenizer, vocab_size
        self._spaced = self._ids("(a") != self._ids("( a")
        self.bounds = lru_cache(self._bounds)

    def before(self, left: str) -> str:
        """A word in place of the text before a blank, or a bracket if the first token of a word is one without white
        space there."""
        return "(" if self._spaced and left == left.rstrip() else "a"

    def text(self, before: str, tokens: Sequence[int]) -> str:
        """The text of a blank's tokens; "" if they cut a character."""
        text = self._after(before, tokens).strip()
        return "" if PART in text else text

    def _bounds(self, before: str, alone: bool) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which tokens may start a phrase, and which may end one: [V] each. If they are `alone`, no token is a part of
        a character."""
        flags_V = np.zeros(self._size, np.uint8)
        for token in range(min(self._size, len(self._tokenizer))):
            text = before + self._after(before, [token])
            if not (alone and PART in text):
                ranges_T2 = np.array([(0, len(before)), trim(text, len(before), len(text))])
                flags_V[token] = boundary_flags(text, ranges_T2)[1]
        flags_V[self._tokenizer.all_special_ids] = 0
        return (flags_V & MAY_START) > 0, (flags_V & MAY_END) > 0

    def _after(self, before: str, tokens: Sequence[int]) -> str:
        ids = self._ids(before)
        return str(self._tokenizer.decode([*ids, *tokens]))[len(self._tokenizer.decode(ids)) :]

    def _ids(self, text: str) -> list[int]:
        return list(self._tokenizer(text, add_special_tokens=False)["input_ids"])
