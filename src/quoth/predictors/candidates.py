"""From the tokens a search hit to the phrases that may answer.

Knows: passages, boundaries, and which tokens are the same word. Does not know: vectors and scores.

Shape suffixes: H hits, L positions from a hit, C candidates, N tokens of a table, P passages.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quoth.encoders.boundaries import MAY_END, MAY_START, SPACE_BEFORE
from quoth.retrieval.columns import looked_up, passage_of
from quoth.retrieval.keys import TokenHits, TokenKeys

Rows = NDArray[np.int64]

_BASE = np.random.default_rng(20221202).integers(0, 1 << 64, 1, np.uint64)[0] | np.uint64(1)
_SPACE = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class Candidates:
    """Spans of one table: local rows of the first and the last token, sorted by (start, end), none twice; and a 64-bit
    name of each one's phrase.

    Names are equal for the same words with white space at the same places, however much of it: polynomials of the
    tokens' groups (Karp and Rabin 1987), every token's after the first raised where white space stands before it. So
    two spellings that case folding makes equal but the tokenizer cuts differently (Straße, STRASSE) stay two phrases.
    """

    start_C: Rows
    end_C: Rows
    key_C: NDArray[np.uint64]


def find_candidates(hits: TokenHits, max_phrase_tokens: int, banned_tokens: Collection[int] = ()) -> Candidates:
    """Every legal phrase that starts at a start hit or ends at an end hit (NPM A.1).

    A phrase lies in one live passage, has at most `max_phrase_tokens` tokens, starts and ends where a phrase
    may, and holds no banned token id.
    """
    banned = np.fromiter(banned_tokens, np.int64, len(banned_tokens))
    start_f, end_f, key_f = _spans(hits.keys, hits.start_rows, True, max_phrase_tokens, banned)
    end_b, start_b, key_b = _spans(hits.keys, hits.end_rows, False, max_phrase_tokens, banned)
    start_C, end_C = np.concatenate((start_f, start_b)), np.concatenate((end_f, end_b))
    bits = int((end_C - start_C).max(initial=0)).bit_length()
    code_C, order_C = sorted_with_places((start_C << bits) | (end_C - start_C))
    fresh_C = np.diff(code_C, prepend=-1) != 0
    code_C = code_C[fresh_C]
    start_C = code_C >> bits
    return Candidates(start_C, start_C + (code_C & ((1 << bits) - 1)), np.concatenate((key_f, key_b))[order_C[fresh_C]])


def sorted_with_places(values_C: Rows) -> tuple[Rows, Rows]:
    """Non-negative values in order, and where each stood: np.argsort in half its time, while value and place fit into
    63 bits together."""
    bits = len(values_C).bit_length()
    packed_C = np.sort((values_C << bits) | np.arange(len(values_C)))
    return packed_C >> bits, packed_C & ((1 << bits) - 1)


def live_hits(keys: TokenKeys, hit_rows: Rows, needed_flags: int) -> tuple[Rows, Rows]:
    """The distinct hits that stand in live passages and carry the flags: rows [H] ascending, passages [H]."""
    row_H = np.unique(hit_rows)
    row_H = row_H[(keys.flags_N[row_H] & needed_flags) == needed_flags]
    passage_H = passage_of(keys.offsets_P1, row_H)
    if keys.live_P is None:
        return row_H, passage_H
    live_H = keys.live_P[passage_H]
    return row_H[live_H], passage_H[live_H]


def _spans(
    keys: TokenKeys, hit_rows: Rows, forward: bool, max_tokens: int, banned: Rows
) -> tuple[Rows, Rows, NDArray[np.uint64]]:
    """Legal phrases with a hit at one end: near rows, at the hit; far rows, after it or before it; phrases' names."""
    row_H, passage_H = live_hits(keys, hit_rows, MAY_START if forward else MAY_END)
    first_H, last_H = keys.offsets_P1[passage_H], keys.offsets_P1[passage_H + 1] - 1
    reach_H = last_H - row_H if forward else row_H - first_H
    step_L = np.arange(min(max_tokens, int(reach_H.max(initial=0)) + 1))
    far_HL = row_H[:, None] + (step_L if forward else -step_L)
    np.clip(far_HL, first_H[:, None], last_H[:, None], out=far_HL)
    group_HL, flags_HL = looked_up(far_HL, keys.group_N, keys.flags_N)
    legal_HL = (flags_HL & (MAY_END if forward else MAY_START)) != 0
    legal_HL &= step_L <= reach_H[:, None]
    if len(banned):
        legal_HL &= ~np.logical_or.accumulate(np.isin(keys.ids_N[far_HL], banned), axis=1)
    later_HL = group_HL + ((flags_HL & SPACE_BEFORE) != 0) * _SPACE
    key_HL = _names_onwards(group_HL, later_HL) if forward else _names_backwards(group_HL, later_HL)
    return np.broadcast_to(row_H[:, None], far_HL.shape)[legal_HL], far_HL[legal_HL], key_HL[legal_HL]


def _names_onwards(group_HL: NDArray[np.uint64], later_HL: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Σ_p t_p B^p over the tokens from the first to each: [H, L]; t_0 is the group, t_p what later tokens count."""
    powers_L = np.cumprod(np.full(later_HL.shape[1], _BASE), dtype=np.uint64)
    terms_HL = group_HL.copy()
    terms_HL[:, 1:] = later_HL[:, 1:] * powers_L[:-1]
    return np.cumsum(terms_HL, axis=1, dtype=np.uint64)


def _names_backwards(group_HL: NDArray[np.uint64], later_HL: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The same over the tokens from each to the first, which is the last of the phrase: [H, L]."""
    key_HL = np.empty_like(group_HL)
    rest_H = np.zeros(len(group_HL), np.uint64)
    for step in range(group_HL.shape[1]):
        key_HL[:, step] = group_HL[:, step] + _BASE * rest_H
        rest_H = later_HL[:, step] + _BASE * rest_H
    return key_HL
