"""From the tokens a search hit to the phrases that may answer.

Knows: passages, boundaries, and which tokens are the same word. Does not know: vectors and scores.

Shape suffixes: H hits, U tokens in reach of any hit, F far ends in reach of any hit, C candidates, S distinct first
tokens, E distinct last tokens, N tokens of a table, P passages.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quoth.encoders.boundaries import BREAK_BEFORE, MAY_END, MAY_START, SPACE_BEFORE
from quoth.retrieval.columns import looked_up, passage_of
from quoth.retrieval.keys import TokenHits, TokenKeys

Rows = NDArray[np.int64]
Names = NDArray[np.uint64]
Spread = Callable[[Names], Names]
"""From a value of each token in reach to one of each phrase: that of its first token, or that of its last."""

_BASE = np.random.default_rng(20221202).integers(0, 1 << 64, 1, np.uint64)[0] | np.uint64(1)
_INVERSE = np.uint64(pow(int(_BASE), -1, 1 << 64))
_SPACE = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class Candidates:
    """Spans of one table, none twice, in no order: the local rows of their distinct first tokens and of their distinct
    last tokens, which of these each span has, and a 64-bit name of each one's phrase.

    Names are equal for the same words with white space at the same places, however much of it: polynomials of the
    tokens' groups (Karp and Rabin 1987), every token's after the first raised where white space stands before it. So
    two spellings that case folding makes equal but the tokenizer cuts differently (Straße, STRASSE) stay two phrases.
    """

    start_S: Rows
    start_index_C: Rows
    end_E: Rows
    end_index_C: Rows
    key_C: Names

    @property
    def start_C(self) -> Rows:
        """The row of each one's first token."""
        return self.start_S[self.start_index_C]

    @property
    def end_C(self) -> Rows:
        """The row of each one's last token."""
        return self.end_E[self.end_index_C]


def find_candidates(hits: TokenHits, max_phrase_tokens: int, banned_tokens: Collection[int] = ()) -> Candidates:
    """Every legal phrase that starts at a start hit or ends at an end hit (NPM A.1).

    A phrase lies in one live passage, crosses no break, has at most `max_phrase_tokens` tokens, starts and ends where
    a phrase may, and holds no banned token id. One that a start hit and an end hit share counts as the end hit's.
    """
    banned = np.fromiter(banned_tokens, np.int64, len(banned_tokens))
    back = _spans(hits.keys, hits.end_rows, False, max_phrase_tokens, banned)
    ahead = _spans(hits.keys, hits.start_rows, True, max_phrase_tokens, banned, not_far=back.near_H)
    known_H, start_index_H = _places(back.far_F, ahead.near_H)
    start_index_H[~known_H] = len(back.far_F) + np.arange(np.count_nonzero(~known_H))
    return Candidates(
        np.concatenate((back.far_F, ahead.near_H[~known_H])),
        np.concatenate((back.far_C, start_index_H[ahead.near_C])),
        np.concatenate((ahead.far_F, back.near_H)),
        np.concatenate((len(ahead.far_F) + back.near_C, ahead.far_C)),
        np.concatenate((back.key_C, ahead.key_C)),
    )


def live_hits(keys: TokenKeys, hit_rows: Rows, needed_flags: int) -> tuple[Rows, Rows]:
    """The distinct hits that stand in live passages and carry the flags: rows [H] ascending, passages [H]."""
    row_H = hit_rows if (np.diff(hit_rows) > 0).all() else np.unique(hit_rows)
    row_H = row_H[(keys.flags_N[row_H] & needed_flags) == needed_flags]
    passage_H = passage_of(keys.offsets_P1, row_H)
    if keys.live_P is None:
        return row_H, passage_H
    live_H = keys.live_P[passage_H]
    return row_H[live_H], passage_H[live_H]


@dataclass(frozen=True, slots=True)
class _Spans:
    """Legal phrases with a hit at one end: rows of the hits that have some and of the far ends, both ascending; which
    of these each phrase has; and its name."""

    near_H: Rows
    far_F: Rows
    near_C: Rows
    far_C: Rows
    key_C: Names


def _spans(
    keys: TokenKeys, hit_rows: Rows, forward: bool, max_tokens: int, banned: Rows, not_far: Rows | None = None
) -> _Spans:
    """The phrases from hits at their starts (`forward`) or at their ends, but none with its far end in `not_far`."""
    row_H, first_H, stop_H = _windows(keys, hit_rows, forward, max_tokens, banned)
    row_U, until_H = _union(first_H, stop_H)
    group_U, flags_U = looked_up(row_U, keys.group_N, keys.flags_N)
    far_U = (flags_U & (MAY_END if forward else MAY_START)) != 0
    if not_far is not None:
        found, place = _places(row_U, not_far)
        far_U[place[found]] = False
    before_U1 = np.concatenate(([0], np.cumsum(far_U)))
    from_H = before_U1[until_H - (stop_H - first_H)]
    count_H = before_U1[until_H] - from_H
    far_C, place_F, place_H = _ranges(from_H, count_H), np.flatnonzero(far_U), until_H - (stop_H - row_H)

    def near(value_U: Names) -> Names:
        return np.repeat(value_U[place_H], count_H)

    def far(value_U: Names) -> Names:
        return value_U[place_F][far_C]

    key_C = _names(group_U, flags_U, *((near, far) if forward else (far, near)))
    hit = np.flatnonzero(count_H)
    return _Spans(row_H[hit], row_U[place_F], np.repeat(np.arange(len(hit)), count_H[hit]), far_C, key_C)


def _windows(keys: TokenKeys, hit_rows: Rows, forward: bool, max_tokens: int, banned: Rows) -> tuple[Rows, Rows, Rows]:
    """Usable hits, and the rows from `first_H` to before `stop_H` that each may share a phrase with: all ascending."""
    row_H, passage_H = live_hits(keys, hit_rows, MAY_START if forward else MAY_END)
    if forward:
        first_H, stop_H = row_H, np.minimum(row_H + max_tokens, keys.offsets_P1[passage_H + 1])
    else:
        first_H, stop_H = np.maximum(row_H - max_tokens + 1, keys.offsets_P1[passage_H]), row_H + 1
    first_H, stop_H = _between_breaks(keys, row_H, first_H, stop_H)
    if len(banned):
        first_H, stop_H = _between_banned(keys, row_H, first_H, stop_H, banned)
    some_H = first_H < stop_H
    return row_H[some_H], first_H[some_H], stop_H[some_H]


def _between_breaks(keys: TokenKeys, row_H: Rows, first_H: Rows, stop_H: Rows) -> tuple[Rows, Rows]:
    """The windows from the last token after a break, the hit itself or one before it, to before the next such token."""
    row_U, _ = _union(first_H, stop_H)
    wall = row_U[(keys.flags_N[row_U] & BREAK_BEFORE) != 0]
    from_H = np.append(first_H[:1], wall)[np.searchsorted(wall, row_H, side="right")]
    until_H = np.append(wall, stop_H[-1:])[np.searchsorted(wall, row_H, side="right")]
    return np.maximum(first_H, from_H), np.minimum(stop_H, until_H)


def _between_banned(keys: TokenKeys, row_H: Rows, first_H: Rows, stop_H: Rows, banned: Rows) -> tuple[Rows, Rows]:
    """The windows as far as the next banned token on either side of the hit; empty where the hit is one."""
    row_U, _ = _union(first_H, stop_H)
    wall = row_U[np.isin(keys.ids_N[row_U], banned)]
    after_H = np.append(first_H[:1], wall + 1)[np.searchsorted(wall, row_H, side="right")]
    before_H = np.append(wall, stop_H[-1:])[np.searchsorted(wall, row_H)]
    return np.maximum(first_H, after_H), np.minimum(stop_H, before_H)


def _union(first_H: Rows, stop_H: Rows) -> tuple[Rows, Rows]:
    """The rows of ascending windows, each once and in order: [U]; and how many of them each window ends after: [H].

    So row r of window h stands at place `until_H[h] - (stop_H[h] - r)`.
    """
    fresh_H = np.maximum(first_H, np.concatenate((first_H[:1], stop_H[:-1])))
    count_H = stop_H - fresh_H
    return _ranges(fresh_H, count_H), np.cumsum(count_H)


def _ranges(first_H: Rows, count_H: Rows) -> Rows:
    """`count_H` numbers from `first_H` on, one range after another."""
    until_H = np.cumsum(count_H)
    return np.repeat(first_H + count_H - until_H, count_H) + np.arange(until_H[-1] if len(until_H) else 0)


def _places(sorted_R: Rows, wanted_H: Rows) -> tuple[NDArray[np.bool_], Rows]:
    """Which of these stand among distinct sorted rows, and where."""
    place_H = np.searchsorted(sorted_R, wanted_H)
    if not len(sorted_R):
        return np.zeros(len(wanted_H), np.bool_), place_H
    return sorted_R[np.minimum(place_H, len(sorted_R) - 1)] == wanted_H, place_H


def _names(group_U: Names, flags_U: NDArray[np.uint8], of_first: Spread, of_last: Spread) -> Names:
    """Σ_p t_p B^p over the tokens of each phrase: [C]; t_0 is the group, t_p what later tokens count.

    That is a difference of two sums over all tokens so far, times B^-u for a phrase whose first token's place is u: B
    is odd, so it has an inverse modulo 2^64.
    """
    later_U = group_U + ((flags_U & SPACE_BEFORE) != 0) * _SPACE
    sum_U = np.cumsum(later_U * _powers(_BASE, len(group_U)), dtype=np.uint64)
    inverse_U = _powers(_INVERSE, len(group_U))
    first_U: Names = group_U - sum_U * inverse_U
    return of_first(first_U) + of_first(inverse_U) * of_last(sum_U)


def _powers(base: np.uint64, count: int) -> Names:
    """base, base², …: `count` of them, modulo 2^64."""
    return np.cumprod(np.full(count, base), dtype=np.uint64)
