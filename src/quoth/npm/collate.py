"""A training batch: what the encoder reads, and where in it the queries, keys and positives are.

Knows: passages as token ids, masks, positions. Does not know: encoders and losses.

Shape suffixes that differ from the project's: K tokens of the batch that are keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quoth.errors import InputError
from quoth.npm.batches import TokenizedDocuments
from quoth.npm.config import TrainConfig
from quoth.npm.masking import MaskedSpans, MaskingOptions, mask_spans, mask_tokens
from quoth.text.tokenizer import MAX_TITLE_TOKENS, TextTokenizer


@dataclass(frozen=True, slots=True)
class Batch:
    """One step's encoder inputs, and where in them to look.

    `keys_K2`, `masks_M2`: input and position of each key, and of each hidden span's first mask. Keys with
    the same label as the query (`masked_out_K == masked_out_M`) are excluded from its negatives; the label is the
    passage, or the span. Positives are pairs of a span and the keys where it starts and ends elsewhere.
    `hidden_X2`, `hidden_X`: input and position of each mask that has a token to predict, and the token.
    `without_spans`: passages in which nothing could be masked.
    """

    inputs: list[NDArray[np.int64]]
    num_tokens: int
    keys_K2: NDArray[np.int64]
    masked_out_K: NDArray[np.int64]
    masks_M2: NDArray[np.int64]
    masked_out_M: NDArray[np.int64]
    positive_query: NDArray[np.int64]
    positive_start: NDArray[np.int64]
    positive_end: NDArray[np.int64]
    hidden_X2: NDArray[np.int64]
    hidden_X: NDArray[np.int64]
    without_spans: int


def make_batch(
    data: TokenizedDocuments,
    passages: list[int],
    tokenizer: TextTokenizer,
    config: TrainConfig,
    rng: np.random.Generator,
) -> Batch:
    """Mask the given passages and lay out what the encoder reads."""
    bodies = [data.ids[data.offsets[p] : data.offsets[p + 1]] for p in passages]
    titles = [data.titles[data.title_offsets[p] : data.title_offsets[p + 1]] for p in passages]
    flags_N = np.concatenate([data.flags[data.offsets[p] : data.offsets[p + 1]] for p in passages])
    sequence_N = np.repeat(np.arange(len(bodies)), [len(body) for body in bodies])
    masker = mask_spans if config.masking == "spans" else mask_tokens
    options = MaskingOptions(
        mask_ratio=config.mask_ratio,
        max_repeats=config.max_repeats,
        group=config.masked_together,
        whole_words=config.positives == "words",
    )
    ids_N = np.concatenate(bodies).astype(np.int64)
    spans = masker(ids_N, sequence_N, flags_N, rng, options)

    twice, every_token = config.contrast_with == "clean", config.contrast_with == "nothing"
    inputs, masked_N2 = _inputs(titles, bodies, spans, sequence_N, tokenizer, every_token)
    span_N = _span_of_each(spans, len(sequence_N))
    keys_N2, shown_N = masked_N2, span_N < 0
    if twice:
        clean, keys_N2 = _inputs(titles, bodies, None, sequence_N, tokenizer)
        inputs, masked_N2, shown_N = clean + inputs, masked_N2 + np.array([len(clean), 0]), np.ones_like(shown_N)
    label_N = sequence_N if config.negatives == "other_passages" else span_N
    key_of_N = np.cumsum(shown_N) - 1
    if every_token:
        hidden_X2, row_X = masked_N2[span_N >= 0], np.flatnonzero(span_N >= 0)
    else:
        hidden_X2, row_X = _ends(spans, masked_N2, tokenizer)
    start = spans.positive_start
    end = start + spans.length_M[spans.positive_query] - 1
    both = shown_N[start] & shown_N[end]
    return Batch(
        inputs=inputs,
        num_tokens=len(sequence_N),
        keys_K2=keys_N2[shown_N],
        masked_out_K=label_N[shown_N],
        masks_M2=masked_N2[spans.start_M],
        masked_out_M=label_N[spans.start_M],
        positive_query=spans.positive_query[both],
        positive_start=key_of_N[start[both]],
        positive_end=key_of_N[end[both]],
        hidden_X2=hidden_X2,
        hidden_X=ids_N[row_X],
        without_spans=len(bodies) - len(np.unique(sequence_N[spans.start_M])),
    )


def _inputs(
    titles: Sequence[NDArray[np.int32]],
    bodies: Sequence[NDArray[np.int32]],
    spans: MaskedSpans | None,
    sequence_N: NDArray[np.int64],
    tokenizer: TextTokenizer,
    every_token: bool = False,
) -> tuple[list[NDArray[np.int64]], NDArray[np.int64]]:
    """What the encoder reads of each passage, with its spans hidden if there are any; input and position of each
    token: [N, 2]."""
    inputs, at, first_row = list[NDArray[np.int64]](), list[NDArray[np.int64]](), 0
    for b, (title, body) in enumerate(zip(titles, bodies, strict=True)):
        mine = np.zeros(0, np.int64) if spans is None else np.flatnonzero(sequence_N[spans.start_M] == b)
        start_M, length_M = (mine, mine) if spans is None else (spans.start_M[mine] - first_row, spans.length_M[mine])
        ids, at_T = hide(body, start_M, length_M, tokenizer, every_token)
        inputs.append(tokenizer.framed(title, ids))
        at.append(len(tokenizer.before) + len(title) + at_T)
        first_row += len(body)
    return inputs, np.stack([sequence_N, np.concatenate(at)], axis=1)


def _span_of_each(spans: MaskedSpans, num_tokens: int) -> NDArray[np.int64]:
    """The number of the hidden span that each token belongs to, -1 for those that are shown: [N]."""
    span_N = np.full(num_tokens, -1)
    for number, (start, length) in enumerate(zip(spans.start_M, spans.length_M, strict=True)):
        span_N[start : start + length] = number
    return span_N


def _ends(
    spans: MaskedSpans, masked_N2: NDArray[np.int64], tokenizer: TextTokenizer
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The places of each span's masks, and the rows of the tokens that they stand for: its first, and its last."""
    masks = tokenizer.num_masks
    place_MX2 = masked_N2[spans.start_M][:, None] + np.array([[0, number] for number in range(masks)])
    row_MX = np.stack([spans.start_M, spans.start_M + spans.length_M - 1], axis=1)[:, :masks]
    return place_MX2.reshape(-1, 2), row_MX.ravel()


def hide(
    body: NDArray[np.int32],
    start_M: NDArray[np.int64],
    length_M: NDArray[np.int64],
    tokenizer: TextTokenizer,
    every_token: bool,
) -> tuple[list[int], NDArray[np.int64]]:
    """Replace each span by the model's masks, or `every_token` of it by one: the new ids, and where each token went (a
    hidden one: to its own mask, or the span's first)."""
    ids: list[int] = []
    at_T = np.empty(len(body), np.int64)
    done = 0
    for start, length in [*zip(start_M.tolist(), length_M.tolist(), strict=True), (len(body), 0)]:
        at_T[done:start] = len(ids) + np.arange(start - done)
        ids.extend(body[done:start].tolist())
        if length:
            at_T[start : start + length] = len(ids) + (np.arange(length) if every_token else 0)
            ids.extend([tokenizer.mask_id] * (length if every_token else tokenizer.num_masks))
        done = start + length
    return ids, at_T


def check_room(positions: int, tokenizer: TextTokenizer, config: TrainConfig) -> None:
    """A hidden token becomes `num_masks` masks, so a masked body can be longer than the body."""
    framing = len(tokenizer.before) + len(tokenizer.after) + MAX_TITLE_TOKENS + 2
    growth = 1 + config.mask_ratio * (tokenizer.num_masks - 1)
    if framing + int(config.max_passage_tokens * growth) > positions:
        room = int((positions - framing) / growth)
        raise InputError(f"max_passage_tokens is {config.max_passage_tokens}; this encoder takes at most {room}")
