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
from quoth.retrieval.keys import TokenHits, TokenKeys

Rows = NDArray[np.int64]

_MULTIPLIERS = np.random.default_rng(20221202).integers(0, 1 << 64, 64, np.uint64) | np.uint64(1)
_SPACE = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class Candidates:
    """Spans of one table: local rows of the first and the last token, sorted by (start, end), none twice."""

    start_C: Rows
    end_C: Rows

    @property
    def length_C(self) -> Rows:
        return self.end_C - self.start_C + 1


def find_candidates(hits: TokenHits, max_phrase_tokens: int, banned_tokens: Collection[int] = ()) -> Candidates:
    """Every legal phrase that starts at a start hit or ends at an end hit (NPM A.1).

    A phrase lies in one live passage, has at most `max_phrase_tokens` tokens, starts and ends where a phrase
    may, and holds no banned token id.
    """
    banned = np.fromiter(banned_tokens, np.int64, len(banned_tokens))
    start_f, end_f = _spans(hits.keys, hits.start_rows, True, max_phrase_tokens, banned)
    end_b, start_b = _spans(hits.keys, hits.end_rows, False, max_phrase_tokens, banned)
    start_C, end_C = np.concatenate((start_f, start_b)), np.concatenate((end_f, end_b))
    bits = int((end_C - start_C).max(initial=0)).bit_length()
    code_C = np.sort((start_C << bits) | (end_C - start_C))
    code_C = code_C[np.diff(code_C, prepend=-1) != 0]
    start_C = code_C >> bits
    return Candidates(start_C, start_C + (code_C & ((1 << bits) - 1)))


def live_hits(keys: TokenKeys, hit_rows: Rows, needed_flags: int) -> tuple[Rows, Rows]:
    """The distinct hits that stand in live passages and carry the flags: rows [H] ascending, passages [H]."""
    row_H = np.unique(hit_rows)
    row_H = row_H[(keys.flags_N[row_H] & needed_flags) == needed_flags]
    passage_H = np.searchsorted(keys.offsets_P1, row_H, side="right") - 1
    if keys.live_P is None:
        return row_H, passage_H
    live_H = keys.live_P[passage_H]
    return row_H[live_H], passage_H[live_H]


def _spans(keys: TokenKeys, hit_rows: Rows, forward: bool, max_tokens: int, banned: Rows) -> tuple[Rows, Rows]:
    """Legal phrases with a hit at one end: (near rows, far rows), near the hit, far after it or before it."""
    row_H, passage_H = live_hits(keys, hit_rows, MAY_START if forward else MAY_END)
    first_H, last_H = keys.offsets_P1[passage_H], keys.offsets_P1[passage_H + 1] - 1
    reach_H = last_H - row_H if forward else row_H - first_H
    step_L = np.arange(min(max_tokens, int(reach_H.max(initial=0)) + 1))
    far_HL = row_H[:, None] + (step_L if forward else -step_L)
    np.clip(far_HL, first_H[:, None], last_H[:, None], out=far_HL)
    legal_HL = (keys.flags_N[far_HL] & (MAY_END if forward else MAY_START)) != 0
    legal_HL &= step_L <= reach_H[:, None]
    if len(banned):
        legal_HL &= ~np.logical_or.accumulate(np.isin(keys.ids_N[far_HL], banned), axis=1)
    return np.broadcast_to(row_H[:, None], far_HL.shape)[legal_HL], far_HL[legal_HL]


def phrase_keys(keys: TokenKeys, candidates: Candidates) -> NDArray[np.uint64]:
    """A 64-bit name for each candidate's phrase: [C].

    Equal for the same words with white space at the same places, however much of it. Multilinear hashing over
    the tokens' groups, their length and the SPACE_BEFORE flag of every token after the first. So two spellings
    that case folding makes equal but the tokenizer cuts differently (Straße, STRASSE) stay two phrases.
    """
    length_C = candidates.length_C
    key_C: NDArray[np.uint64] = length_C.astype(np.uint64) * _MULTIPLIERS[-1]
    active = np.arange(len(key_C))
    row, length = candidates.start_C, length_C
    for position in range(int(length_C.max(initial=0))):
        if position:
            longer = length > position
            active, row, length = active[longer], row[longer] + 1, length[longer]
        token = keys.group_N[row]
        if position:
            token = token + ((keys.flags_N[row] & SPACE_BEFORE) != 0) * _SPACE
        key_C[active] += token * _multiplier(position)
    return key_C


def _multiplier(position: int) -> np.uint64:
    """An odd random number for each position, without end."""
    turns, place = divmod(position, len(_MULTIPLIERS) - 1)
    with np.errstate(over="ignore"):
        return np.uint64(_MULTIPLIERS[place] + np.uint64(2 * turns) * _SPACE)
