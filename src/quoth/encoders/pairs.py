"""Encoder inputs of one or two texts: "[CLS] a [SEP]" and "[CLS] a [SEP] b [SEP]", as BERT reads them.

Knows: special tokens, cutting to a length, token types, padding. Does not know: what the texts are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from quoth.encoders.transformer import pad
from quoth.errors import InputError
from quoth.text.tokenizer import around_mask

Pieces = tuple[list[int], list[tuple[int, int]]]
"""The token ids of a text, and their character ranges."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Input ids [T], and the position where the second text begins (the end if there is none)."""

    ids_T: NDArray[np.int64]
    second: int


@dataclass(frozen=True, slots=True)
class PairBatch:
    """Inputs padded on the right: ids, attention mask and token types (None: all 0), each [B, T]."""

    ids_BT: Tensor
    mask_BT: Tensor
    types_BT: Tensor | None

    def arguments(self) -> dict[str, Tensor]:
        """As an encoder's `forward` names them."""
        named = {"input_ids": self.ids_BT, "attention_mask": self.mask_BT}
        return named if self.types_BT is None else named | {"token_type_ids": self.types_BT}


class PairTokenizer:
    """Makes inputs of one or two texts, each followed by the separator; with `types`, the second text's tokens have
    type 1. No input is longer than `longest`, whatever limit a caller gives."""

    def __init__(self, tokenizer: Any, types: bool, longest: int = 512) -> None:
        if not getattr(tokenizer, "is_fast", False):
            raise InputError(
                f"tokenizer {type(tokenizer).__name__} gives no character offsets; use a folder with tokenizer.json"
            )
        if tokenizer.mask_token is None:
            raise InputError(f"tokenizer {tokenizer.name_or_path!r} has no mask token; use a masked language model's")
        self.hf, self.types, self.longest = tokenizer, types, longest
        framed = tokenizer("x", add_special_tokens=True)["input_ids"]
        self.cls_id, self.sep_id = int(framed[0]), int(framed[-1])
        self.mask_id, self.mask_token = tokenizer.mask_token_id, tokenizer.mask_token
        self.pad_id = int(tokenizer.pad_token_id or 0)

    def pieces(self, texts: Sequence[str]) -> list[Pieces]:
        """The ids and character ranges of texts, without special tokens."""
        if not texts:
            return []
        encoded = self.hf(
            list(texts), add_special_tokens=False, return_offsets_mapping=True, verbose=False, truncation=False
        )
        return list(zip(encoded["input_ids"], encoded["offset_mapping"], strict=True))

    def single(self, ids: Sequence[int], limit: int) -> Pair:
        """ "[CLS] a [SEP]" of at most `limit` tokens."""
        room = min(limit, self.longest) - 2
        cut = np.array([self.cls_id, *ids[:room], self.sep_id], np.int64)
        return Pair(cut, len(cut))

    def pair(self, first: Sequence[int], second: Sequence[int], limit: int) -> Pair:
        """ "[CLS] a [SEP] b [SEP]" of at most `limit` tokens: b is cut first, and a if it leaves no room for b."""
        limit = min(limit, self.longest)
        head = [self.cls_id, *first[: limit - 4], self.sep_id]
        return Pair(np.array([*head, *second[: limit - len(head) - 1], self.sep_id], np.int64), len(head))

    def batch(self, pairs: Sequence[Pair], device: torch.device) -> PairBatch:
        """The inputs as tensors."""
        ids_BT, mask_BT = pad([pair.ids_T for pair in pairs], self.pad_id)
        if not self.types:
            return PairBatch(ids_BT.to(device), mask_BT.to(device), None)
        second_B1 = torch.tensor([[pair.second] for pair in pairs])
        types_BT = (torch.arange(ids_BT.shape[1]) >= second_B1).long() * mask_BT
        return PairBatch(ids_BT.to(device), mask_BT.to(device), types_BT.to(device))


def masked_ids(tokenizer: PairTokenizer, text: str, limit: int, masks: int = 1) -> list[int]:
    """The ids of a text with one blank, which becomes `masks` mask tokens; a longer text is cut to `limit` ids around
    it.

    Raises InputError unless the text has exactly one blank.
    """
    before, after = around_mask(text, tokenizer.mask_token)
    (left, _), (right, _) = tokenizer.pieces([before.rstrip(), after])
    first = max(len(left) - max(min(limit // 2, limit - masks), limit - masks - len(right)), 0)
    return [*left[first:], *[tokenizer.mask_id] * masks, *right][:limit]


def answer_ids(tokenizer: PairTokenizer, text: str, answer: str) -> list[int]:
    """The ids of an answer as it would be tokenized in a text's blank: after white space if the blank is.

    Raises InputError unless the text has exactly one blank, or if the answer has no tokens, contains a mask, or
    contains a character that the tokenizer does not know.
    """
    before, _ = around_mask(text, tokenizer.mask_token)
    [(ids, _)] = tokenizer.pieces([before[len(before.rstrip()) :] + answer.strip()])
    if not answer.strip() or not ids:
        raise InputError(f"answer {answer!r} is empty; give the words of the blank, such as 'Leo Tolstoy'")
    for id_, trouble in (
        (tokenizer.mask_id, "contains a mask"),
        (tokenizer.hf.unk_token_id, "has characters that the tokenizer does not know"),
    ):
        if id_ in ids:
            raise InputError(f"answer {answer!r} {trouble}, so it has no probability; give other words")
    return ids


def fill_in(tokenizer: PairTokenizer, text: str, phrase: str) -> str:
    """The text with a phrase in place of its blank."""
    return phrase.join(around_mask(text, tokenizer.mask_token))
