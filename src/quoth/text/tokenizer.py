"""Token ids with exact character ranges: of passages, of masked queries, of one or two texts in an encoder's input.

Knows: Hugging Face fast tokenizers, which it reads without importing transformers; the "Title. text" form of a passage,
special tokens, the mask convention of a model, cutting to a length, padding to batches. Does not know: models, tensors,
vectors.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from quoth.errors import InputError, TextCutWarning, brief
from quoth.storage import read_json
from quoth.text.boundaries import boundary_flags, spelling, surface_group, trim

MASK = "[MASK]"
MASKS = (MASK, "<mask>")
"""Those of the tokenizers of BERT and of RoBERTa and MPNet."""
MAX_TITLE_TOKENS, CACHED_PASSAGES = 32, 1024
READ_OF_TITLE = 10_000
"""Characters of a title that are tokenized, far more than a model reads: a long title is there with every passage."""
Ids = NDArray[np.int64]
BATCH_TOKENS = 1024
"""Larger ones leave a processor's caches: in 8-bit integers a token of 2,048 takes 1.2 to 1.4 times as long."""
Pieces = tuple[list[int], list[tuple[int, int]]]
"""The token ids of a text, and their character ranges."""


def pieces_of(tokenizer: Any, texts: Sequence[str]) -> list[Pieces]:
    """The tokens of texts of any length, without special tokens. Raises InputError if one is not Unicode text."""
    if not texts:
        return []
    how = {"add_special_tokens": False, "return_offsets_mapping": True, "verbose": False, "truncation": False}
    try:
        made = tokenizer([*texts], **how)
    except TypeError:
        if not (half := next((text for text in texts if re.search("[\ud800-\udfff]", text)), "")):
            raise
        raise InputError(f"{brief(half)} is not valid Unicode (half of a surrogate pair); give Unicode text") from None
    return list(zip(made["input_ids"], made["offset_mapping"], strict=True))


@dataclass(frozen=True, slots=True)
class Window:
    """One encoder input: special tokens, title, and some consecutive tokens of a passage at `body`."""

    input_ids: NDArray[np.int64]
    body: slice


@dataclass(frozen=True, slots=True)
class Tokens:
    """A text's tokens: ids [T], character ranges without white space at their edges [T, 2], boundary flags [T]."""

    ids_T: NDArray[np.int32]
    offsets_T2: NDArray[np.int64]
    flags_T: NDArray[np.uint8]

    @classmethod
    def of(cls, text: str, pieces: Pieces) -> Tokens:
        """The tokens that `PairTokenizer.pieces` gave."""
        offsets_T2 = trimmed(text, pieces[1])
        return cls(np.array(pieces[0], np.int32), offsets_T2, boundary_flags(text, offsets_T2))


def trimmed(text: str, ranges: Iterable[tuple[int, int]]) -> NDArray[np.int64]:
    """The character ranges of tokens without white space at their edges: [T, 2]."""
    return np.array([trim(text, start, end) for start, end in ranges], np.int64).reshape(-1, 2)


@dataclass(frozen=True, slots=True)
class TokenizedPassage(Tokens):
    """A passage's tokens, without its title, with their grouping keys [T], and the encoder inputs that together cover
    them in order."""

    group_T: NDArray[np.uint64]
    windows: tuple[Window, ...]


class TextTokenizer:
    """A fast tokenizer with the conventions of this project.

    `num_masks` mask tokens replace one `[MASK]` in a query: two for phrases (start and end, NPM §3.1), one for single
    tokens. `max_tokens` is the maximum length of an encoder input, special tokens included.
    """

    def __init__(self, tokenizer: Any, *, num_masks: int, max_tokens: int) -> None:
        _check_masked(tokenizer)
        self.hf = tokenizer
        self.num_masks = num_masks
        self.max_tokens = max_tokens
        self._recent: dict[tuple[str, str], TokenizedPassage] = {}
        self.mask_id = int(tokenizer.mask_token_id)
        self.mask_token = str(tokenizer.mask_token)
        special = tokenizer(tokenizer.mask_token)["input_ids"]
        cut = special.index(self.mask_id)
        self.before, self.after = special[:cut], special[cut + 1 :]
        upper, lower, apart = self.hf(["(Quoth", "(quoth", "( quoth"], add_special_tokens=False)["input_ids"]
        self.uncased = bool(upper == lower)
        self.spells = not self.uncased or lower != apart
        """Whether a word's tokens depend on the white space before it or on case, so that groups are spellings."""

    def passages(self, texts: Sequence[str], titles: Sequence[str]) -> list[TokenizedPassage]:
        """Tokenize passages as "Title. text"; the title is context only, and its tokens are not in the result.

        Those that were tokenized lately are remembered.
        """
        asked = [
            (f"{title[:READ_OF_TITLE]}. " if title else "", text) for title, text in zip(titles, texts, strict=True)
        ]
        recent = self._recent
        fresh = [each for each in dict.fromkeys(asked) if each not in recent]
        pieces = pieces_of(self.hf, [prefix + text for prefix, text in fresh])
        found = {each: recent[each] for each in asked if each in recent}
        made = zip(fresh, pieces, strict=True)
        found |= {(prefix, text): self._passage(text, len(prefix), cut) for (prefix, text), cut in made}
        self._recent = dict(islice((found | recent).items(), CACHED_PASSAGES))
        return [found[each] for each in asked]

    def _passage(self, text: str, prefix: int, pieces: Pieces) -> TokenizedPassage:
        ids, offsets = pieces
        first = next((i for i, (_, end) in enumerate(offsets) if end > prefix), len(ids))
        body = [(max(start - prefix, 0), max(end - prefix, 0)) for start, end in offsets[first:]]
        tokens = Tokens.of(text, (ids[first:], body))
        group_T = np.array(self._groups(text, tokens.offsets_T2.tolist()), np.uint64)
        windows = self._windows(ids[: min(first, MAX_TITLE_TOKENS)], ids[first:])
        return TokenizedPassage(tokens.ids_T, tokens.offsets_T2, tokens.flags_T, group_T, windows)

    def _groups(self, text: str, ranges: list[tuple[int, int]]) -> list[int]:
        """A name for each token's text; a character that several tokens share counts for the first of them only."""
        if not self.spells:
            return [surface_group(text[start:end]) for start, end in ranges]
        until = [0, *accumulate((end for _, end in ranges), max)]
        return [
            self._spelling(text[max(start, known) : end]) for (start, end), known in zip(ranges, until, strict=False)
        ]

    def _spelling(self, piece: str) -> int:
        return spelling(piece.casefold() if self.uncased else piece)

    def groups_of(self, words: Iterable[str]) -> frozenset[int]:
        """The groups of these words as single tokens, and also of their capitalised forms if these differ."""
        if not self.spells:
            return frozenset(map(surface_group, words))
        return frozenset(self._spelling(form) for word in words for form in (word, word.capitalize()))

    def _windows(self, title: list[int], body: list[int]) -> tuple[Window, ...]:
        head = [*self.before, *title]
        room = self.max_tokens - len(head) - len(self.after)
        if room < 1:
            raise InputError(f"max_tokens {self.max_tokens} leaves no room for text; use 64 or more")
        return tuple(
            Window(
                np.array(head + body[at : at + room] + self.after, np.int64),
                slice(len(head), len(head) + len(body[at : at + room])),
            )
            for at in range(0, len(body), room)
        )

    def query(self, text: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The input ids of a text with one blank, and the positions of its `num_masks` mask tokens.

        A text longer than the encoder's input is cut to the part around the blank, with a TextCutWarning. Raises
        InputError unless the text has exactly one blank.
        """
        left, right = around_mask(text, self.mask_token)
        (before, _), (after, _) = pieces_of(self.hf, [left.rstrip(), right])
        room = self.max_tokens - len(self.before) - len(self.after) - self.num_masks
        if (length := len(before) + len(after)) > room:
            message = f"a text of {length} tokens is cut to the {room} around its blank, the most the encoder takes"
            warnings.warn(message, TextCutWarning, stacklevel=2)
            before = before[max(len(before) - max(room // 2, room - len(after)), 0) :]
            after = after[: room - len(before)]
        ids = [*self.before, *before, *[self.mask_id] * self.num_masks, *after, *self.after]
        at = len(self.before) + len(before)
        return np.array(ids, np.int64), np.arange(at, at + self.num_masks)

    def title_of(self, passage: TokenizedPassage) -> NDArray[np.int64]:
        """The ids of a passage's title in its encoder inputs; empty for a passage without tokens."""
        if not passage.windows:
            return np.zeros(0, np.int64)
        window = passage.windows[0]
        return window.input_ids[len(self.before) : window.body.start]

    def framed(self, title: Iterable[int], body: Iterable[int]) -> NDArray[np.int64]:
        """An encoder input made of a title's and a body's ids; the body starts at `len(self.before) + len(title)`."""
        return np.array([*self.before, *title, *body, *self.after], np.int64)

    def phrase(self, text: str) -> TokenizedPassage:
        """Tokenize a phrase as it would be inside a text (after a space); tokens of white space are left out."""
        padded = " " + text.strip()
        [(ids, offsets)] = pieces_of(self.hf, [padded])
        filled = [i for i, (start, end) in enumerate(offsets) if padded[start:end].strip()]
        return self._passage(padded, 0, ([ids[i] for i in filled], [offsets[i] for i in filled]))


def around_mask(text: str, mask_token: str, remedy: str = "put one [MASK] in place of the blank") -> tuple[str, str]:
    """The text before and after the blank, [MASK] or the tokenizer's own mask. Raises InputError, which says the
    remedy, unless there is one."""
    parts = re.split("|".join(map(re.escape, sorted({MASK, mask_token}))), text)
    if len(parts) != 2:
        found = "no [MASK]" if len(parts) == 1 else f"{len(parts) - 1} masks"
        shown = text if len(text) <= 60 else f"{text[:59]}…"
        raise InputError(f"{found} in {shown!r}; {remedy}")
    return parts[0], parts[1]


def check_fast(tokenizer: Any) -> None:
    """Raises InputError if a tokenizer gives no character offsets."""
    if not getattr(tokenizer, "is_fast", False):
        raise InputError(
            f"tokenizer {type(tokenizer).__name__} gives no character offsets; only fast tokenizers do "
            "(a folder with tokenizer.json)"
        )


def _check_masked(tokenizer: Any) -> None:
    """Raises InputError unless a tokenizer gives character offsets and has a mask token."""
    check_fast(tokenizer)
    if tokenizer.mask_token_id is None:
        raise InputError(f"tokenizer {tokenizer.name_or_path!r} has no mask token; use a masked language model's")


@dataclass(frozen=True, slots=True)
class Pair:
    """Input ids [T], and the position where the second text begins (the end if there is none)."""

    ids_T: NDArray[np.int64]
    second: int


class PairTokenizer:
    """Makes inputs of one or two texts, each followed by the separator; with `types`, the second text's tokens have
    type 1. No input is longer than `longest`, whatever limit a caller gives."""

    def __init__(self, tokenizer: Any, types: bool, longest: int = 512) -> None:
        _check_masked(tokenizer)
        self.hf, self.types, self.longest = tokenizer, types, longest
        framed = tokenizer("x", add_special_tokens=True)["input_ids"]
        self.cls_id, self.sep_id = int(framed[0]), int(framed[-1])
        self.mask_id, self.mask_token = tokenizer.mask_token_id, tokenizer.mask_token
        self.pad_id = int(tokenizer.pad_token_id or 0)

    @cached_property
    def semicolon_and_bar(self) -> tuple[int, int]:
        """The ids of ";" and of "|" between words."""
        semicolon, *_, bar = self.pieces(["; |"])[0][0]
        return semicolon, bar

    def pieces(self, texts: Sequence[str]) -> list[Pieces]:
        """The ids and character ranges of texts, without special tokens."""
        return pieces_of(self.hf, texts)

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


@lru_cache(maxsize=4)
def _backend(content: bytes) -> Tokenizer:
    """The tokenizer of these bytes: models with the same share it, at 15 MB each."""
    made = Tokenizer.from_buffer(content)
    made.no_truncation()
    made.no_padding()
    return made


class FastTokenizer:
    """Replaces `transformers.AutoTokenizer.from_pretrained(folder)` where only ids and offsets are needed."""

    is_fast = True

    def __init__(self, folder: Path) -> None:
        self.name_or_path = str(folder)
        self.backend_tokenizer = _backend((folder / "tokenizer.json").read_bytes())
        names: dict[str, str] = {}
        for file in (folder / "special_tokens_map.json", folder / "tokenizer_config.json"):
            for key, value in read_json(file).items() if file.is_file() else ():
                content = value.get("content") if isinstance(value, dict) else value
                if key.endswith("_token") and isinstance(content, str):
                    names[key] = content
        self.mask_token, self.pad_token, self.unk_token = (
            names.get(f"{kind}_token") for kind in ("mask", "pad", "unk")
        )
        self.mask_token_id, self.pad_token_id, self.unk_token_id = (
            None if token is None else self.backend_tokenizer.token_to_id(token)
            for token in (self.mask_token, self.pad_token, self.unk_token)
        )

    @classmethod
    def read(cls, folder: Path) -> FastTokenizer | None:
        """The folder's tokenizer, or None if it has no `tokenizer.json`."""
        return cls(folder) if (folder / "tokenizer.json").is_file() else None

    def cuts_like(self, other: Any) -> bool:
        """Whether another tokenizer is the same and gives a text the same tokens after a title as without.

        BERT's do: they cut at white space first, and know nothing of what comes before. Byte-level ones do not: their
        first token of a text has no space in front of it.
        """
        steps = self.backend_tokenizer
        if not (isinstance(steps.normalizer, BertNormalizer) and isinstance(steps.pre_tokenizer, BertPreTokenizer)):
            return False
        return isinstance(other, FastTokenizer) and steps.to_str() == other.backend_tokenizer.to_str()

    def get_vocab(self) -> dict[str, int]:
        return self.backend_tokenizer.get_vocab(with_added_tokens=True)

    def __call__(self, text: str | Sequence[str], *, add_special_tokens: bool = True, **_: Any) -> dict[str, list[Any]]:
        """`input_ids` and `offset_mapping` of a text, or a list of them for several texts."""
        if isinstance(text, str):
            encoding = self.backend_tokenizer.encode(text, add_special_tokens=add_special_tokens)
            return {"input_ids": encoding.ids, "offset_mapping": encoding.offsets}
        several = self.backend_tokenizer.encode_batch(list(text), add_special_tokens=add_special_tokens)
        return {"input_ids": [each.ids for each in several], "offset_mapping": [each.offsets for each in several]}


def batches_by_length(lengths: Sequence[int], limit: int = BATCH_TOKENS) -> Iterator[list[int]]:
    """Group inputs of similar length, longest first, so that a padded batch has at most `limit` tokens."""
    batch: list[int] = []
    for member in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if batch and (len(batch) + 1) * lengths[batch[0]] > limit:
            yield batch
            batch = []
        batch.append(member)
    if batch:
        yield batch


def padded(inputs: Sequence[Ids], pad_id: int) -> tuple[Ids, Ids]:
    """Inputs padded on the right, and 1 where they have a token: [B, T] each."""
    lengths_B1 = np.array([[len(ids)] for ids in inputs])
    mask_BT = (np.arange(lengths_B1.max()) < lengths_B1).astype(np.int64)
    ids_BT = np.full(mask_BT.shape, pad_id, np.int64)
    ids_BT[mask_BT > 0] = np.concatenate(inputs)
    return ids_BT, mask_BT


@dataclass(frozen=True, slots=True)
class PairArrays:
    """Inputs padded on the right: ids, attention mask and token types (None: all 0), each [B, T]."""

    ids_BT: Ids
    mask_BT: Ids
    types_BT: Ids | None


def pair_arrays(tokenizer: PairTokenizer, pairs: Sequence[Pair]) -> PairArrays:
    """Inputs of one or two texts; tokens of the second have type 1 if the encoder knows types."""
    ids_BT, mask_BT = padded([pair.ids_T for pair in pairs], tokenizer.pad_id)
    if not tokenizer.types:
        return PairArrays(ids_BT, mask_BT, None)
    second_B1 = np.array([[pair.second] for pair in pairs])
    return PairArrays(ids_BT, mask_BT, (np.arange(ids_BT.shape[1]) >= second_B1) * mask_BT)
