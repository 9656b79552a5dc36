"""From the tokens a search hit to the phrases that may answer.

Knows: passages, boundaries, and how tokens are spelt. Does not know: vectors and scores.

Shape suffixes that differ from the project's: H hits, U tokens in reach of any hit, F far ends in reach of any
hit, S distinct first tokens, E distinct last tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quoth.arrays import Rows
from quoth.index.key_table import looked_up, passage_of
from quoth.text.boundaries import BREAK_BEFORE, LENGTH_MASK, MAY_END, MAY_START, SPACE_BEFORE, SPELLING_BASE

if TYPE_CHECKING:
    from quoth.index.key_table import KeyHits, KeyTable

Names = NDArray[np.uint64]
Spread = Callable[[NDArray[Any]], NDArray[Any]]
"""From a value of each token in reach to one of each phrase: that of its first token, or that of its last."""

SPARE_PIECES = 20
"""A phrase has at most this many tokens more than the limit, which counts only the first token of each word."""

# Everything is modulo 2^64, which is what uint64 arithmetic does by itself: arrays wrap around without a warning. The
# lower 8 bits of a group count as its length and are cleared before groups are added up, so names differ in 56 bits:
# the chance that any two of a million different phrases share a name is about 1 in 140,000.
_INVERSE = pow(SPELLING_BASE, -1, 1 << 64)
_POWERS = np.array([pow(SPELLING_BASE, n, 1 << 64) for n in range(LENGTH_MASK + 1)], np.uint64)
_INVERSES = np.array([pow(_INVERSE, n, 1 << 64) for n in range(LENGTH_MASK + 1)], np.uint64)
_LENGTH = np.uint64(LENGTH_MASK)
_SPACE = np.uint64(0x9E3779B97F4A7C15) & ~_LENGTH


@dataclass(frozen=True, slots=True)
class Candidates:
    """Spans of one table, none twice, in no order: the local rows of their distinct first tokens and of their distinct
    last tokens, which of these each span has, and a 64-bit name of each one's phrase.

    Names are equal for the same text, white space at the same places however much of it: polynomials of the tokens'
    groups (Karp and Rabin 1987), each group at the place that the lengths of those before it add up to (`spelling`),
    and raised if white space comes before it and it is not the phrase's first. So a text has one name however it is cut
    into tokens. If groups are of whole tokens (`surface_group`), spellings that are equal ignoring case but cut
    differently (Straße, STRASSE) stay two phrases.
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


@dataclass(frozen=True, slots=True)
class _Limits:
    """What a phrase may be: its most tokens that count, ids it never contains, names of words that name nothing."""

    max_tokens: int
    banned: Rows
    stop_words: Names


def find_candidates(
    hits: KeyHits,
    max_phrase_tokens: int,
    banned_tokens: Collection[int] = (),
    stop_words: Collection[int] = (),
) -> Candidates:
    """Every legal phrase that starts at a start hit or ends at an end hit (NPM A.1).

    A phrase lies in one live passage, crosses no break, starts and ends where a phrase may, and contains no banned
    token id. It has at most `max_phrase_tokens` tokens, counting only the first token of each word, and at most
    `SPARE_PIECES` more in all. A phrase of nothing but words in `stop_words` (groups) is left out. A phrase from a
    start hit to an end hit counts once, as the end hit's.
    """
    limits = _Limits(
        max_phrase_tokens,
        np.fromiter(banned_tokens, np.int64),
        np.sort(np.fromiter(stop_words, np.uint64) & ~_LENGTH),
    )
    # Two sweeps: back from the end hits, then ahead from the start hits, without the ends that the first sweep started
    # from. So each span comes out once, and no span is compared with another (with scoring 13 ms for 4,096 + 4,096
    # hits, 604 ms in plain Python: docs/benchmarks.md).
    back = _spans(hits.keys, hits.end_rows, False, limits)
    ahead = _spans(hits.keys, hits.start_rows, True, limits, not_far=back.near_H)
    known_H, start_index_H = _places(back.far_F, ahead.near_H)
    start_index_H[~known_H] = len(back.far_F) + np.arange(np.count_nonzero(~known_H))
    return Candidates(
        np.concatenate((back.far_F, ahead.near_H[~known_H])),
        np.concatenate((back.far_C, start_index_H[ahead.near_C])),
        np.concatenate((ahead.far_F, back.near_H)),
        np.concatenate((len(ahead.far_F) + back.near_C, ahead.far_C)),
        np.concatenate((back.key_C, ahead.key_C)),
    )


def live_hits(keys: KeyTable, hit_rows: Rows, needed_flags: int) -> tuple[Rows, Rows]:
    """The distinct hits in live passages that carry the flags: rows [H] ascending, passages [H]."""
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

    def only(self, kept_C: NDArray[np.bool_]) -> _Spans:
        """Some of the phrases, and the rows that these have."""
        (near_H, near_C), (far_F, far_C) = (
            _used(rows, index_C[kept_C]) for rows, index_C in ((self.near_H, self.near_C), (self.far_F, self.far_C))
        )
        return _Spans(near_H, far_F, near_C, far_C, self.key_C[kept_C])


def _used(rows: Rows, index_C: Rows) -> tuple[Rows, Rows]:
    """The rows that are named by their numbers, and the numbers of these among them."""
    used = np.bincount(index_C, minlength=len(rows)) > 0
    return rows[used], (np.cumsum(used) - 1)[index_C]


def _spans(keys: KeyTable, hit_rows: Rows, forward: bool, limits: _Limits, not_far: Rows | None = None) -> _Spans:
    """The phrases from hits at their starts (`forward`) or at their ends, but none with its far end in `not_far`."""
    row_H, first_H, stop_H = _windows(keys, hit_rows, forward, limits)
    # Windows of neighbouring hits overlap, so each row in reach is looked up once, and a window is a range of these
    # rows.
    row_U, until_H = _union(first_H, stop_H)
    group_U, flags_U = looked_up(row_U, keys.group_N, keys.flags_N)
    far_U = (flags_U & (MAY_END if forward else MAY_START)) != 0
    if not_far is not None:
        found, place = _places(row_U, not_far)
        far_U[place[found]] = False
    # Counting far ends up to each row makes the far ends of a window a range too: no loop over hits.
    before_U1 = np.concatenate(([0], np.cumsum(far_U)))
    from_H = before_U1[until_H - (stop_H - first_H)]
    count_H = before_U1[until_H] - from_H
    far_C, place_F, place_H = _ranges(from_H, count_H), np.flatnonzero(far_U), until_H - (stop_H - row_H)

    def near(value_U: NDArray[Any]) -> NDArray[Any]:
        return np.repeat(value_U[place_H], count_H)

    def far(value_U: NDArray[Any]) -> NDArray[Any]:
        return value_U[place_F][far_C]

    of_first, of_last = (near, far) if forward else (far, near)
    spelt = _Spelt.of(group_U, flags_U)
    key_C = spelt.names(of_first, of_last)
    hit = np.flatnonzero(count_H)
    spans = _Spans(row_H[hit], row_U[place_F], np.repeat(np.arange(len(hit)), count_H[hit]), far_C, key_C)
    if not len(limits.stop_words):
        return spans
    # A phrase is kept if a word that is not a stop word begins in it: a difference of two counts.
    naming_U = spelt.naming(flags_U, limits.stop_words)
    until_U = np.cumsum(naming_U)
    return spans.only(of_last(until_U) > of_first(until_U - naming_U))


def _windows(keys: KeyTable, hit_rows: Rows, forward: bool, limits: _Limits) -> tuple[Rows, Rows, Rows]:
    """Usable hits, and the rows from `first_H` to before `stop_H` that each may share a phrase with: all ascending."""
    row_H, passage_H = live_hits(keys, hit_rows, MAY_START if forward else MAY_END)
    longest = limits.max_tokens + SPARE_PIECES
    first_H: Rows
    stop_H: Rows
    if forward:
        first_H, stop_H = row_H, np.minimum(row_H + longest, keys.offsets_P1[passage_H + 1])
    else:
        first_H, stop_H = np.maximum(row_H - longest + 1, keys.offsets_P1[passage_H]), row_H + 1
    # So far a window is as wide as any phrase can be. Flags narrow it by words and breaks; token ids are read last, and
    # only if some are banned.
    row_U, until_H = _union(first_H, stop_H)
    flags_U = keys.flags_N[row_U]
    at_H: Rows = until_H - (stop_H - row_H)
    reach_H = _reach(flags_U, at_H, forward, limits.max_tokens)
    if forward:
        stop_H = np.minimum(stop_H, row_H + reach_H)
    else:
        first_H = np.maximum(first_H, row_H + 1 - reach_H)
    first_H, stop_H = _between_breaks(row_U, flags_U, row_H, first_H, stop_H)
    if len(limits.banned):
        first_H, stop_H = _between_banned(keys, row_H, first_H, stop_H, limits.banned)
    some_H = first_H < stop_H
    return row_H[some_H], first_H[some_H], stop_H[some_H]


def _reach(flags_U: NDArray[np.uint8], at_H: Rows, forward: bool, max_tokens: int) -> Rows:
    """How many tokens from each place on (or back) have `max_tokens` among them that count: all but those of a word
    after its first.

    Whether a token without edge continues a word, or is a mark by itself, depends on the last edge before it. A phrase
    begins with an edge, so what comes before it changes no phrase's count.
    """
    edge_U = flags_U & (MAY_START | MAY_END)
    last_U = np.maximum.accumulate(np.where(edge_U != 0, np.arange(len(edge_U)), 0))
    within_U = (edge_U == MAY_END) | ((edge_U == 0) & (edge_U[last_U] == MAY_START))
    before_U1 = np.concatenate(([0], np.cumsum(~within_U)))
    if forward:
        return np.searchsorted(before_U1, before_U1[at_H] + max_tokens, side="right") - 1 - at_H
    return at_H + 1 - np.searchsorted(before_U1, before_U1[at_H + 1] - max_tokens)


def _between_breaks(
    row_U: Rows, flags_U: NDArray[np.uint8], row_H: Rows, first_H: Rows, stop_H: Rows
) -> tuple[Rows, Rows]:
    """The windows from the last token after a break, the hit itself or one before it, to before the next such token."""
    wall = row_U[(flags_U & BREAK_BEFORE) != 0]
    from_H = np.append(first_H[:1], wall)[np.searchsorted(wall, row_H, side="right")]
    until_H = np.append(wall, stop_H[-1:])[np.searchsorted(wall, row_H, side="right")]
    return np.maximum(first_H, from_H), np.minimum(stop_H, until_H)


def _between_banned(keys: KeyTable, row_H: Rows, first_H: Rows, stop_H: Rows, banned: Rows) -> tuple[Rows, Rows]:
    """The windows as far as the next banned token on either side of the hit; empty if the hit is one."""
    row_U, _ = _union(first_H, stop_H)
    wall = row_U[np.isin(keys.ids_N[row_U], banned)]
    after_H = np.append(first_H[:1], wall + 1)[np.searchsorted(wall, row_H, side="right")]
    before_H = np.append(wall, stop_H[-1:])[np.searchsorted(wall, row_H)]
    return np.maximum(first_H, after_H), np.minimum(stop_H, before_H)


def _union(first_H: Rows, stop_H: Rows) -> tuple[Rows, Rows]:
    """The rows of ascending windows, each once and in order: [U]; and how many of them each window ends after: [H].

    So row r of window h is at place `until_H[h] - (stop_H[h] - r)`.
    """
    # Starts and stops both ascend, so a window adds exactly the rows after the stop of the one before it.
    fresh_H = np.maximum(first_H, np.concatenate((first_H[:1], stop_H[:-1])))
    count_H = stop_H - fresh_H
    return _ranges(fresh_H, count_H), np.cumsum(count_H)


def _ranges(first_H: Rows, count_H: Rows) -> Rows:
    """`count_H` numbers from `first_H` on, one range after another."""
    until_H = np.cumsum(count_H)
    return np.repeat(first_H + count_H - until_H, count_H) + np.arange(until_H[-1] if len(until_H) else 0)


def _places(sorted_R: NDArray[Any], wanted_H: NDArray[Any]) -> tuple[NDArray[np.bool_], Rows]:
    """Which of these are among distinct sorted rows, and at which index."""
    place_H = np.searchsorted(sorted_R, wanted_H)
    if not len(sorted_R):
        return np.zeros(len(wanted_H), np.bool_), place_H
    return sorted_R[np.minimum(place_H, len(sorted_R) - 1)] == wanted_H, place_H


@dataclass(frozen=True, slots=True)
class _Spelt:
    """What names of phrases are made of: the name of (u, v) is `first_U[u] + inverse_U[u] * sum_U[v]`."""

    first_U: Names
    inverse_U: Names
    sum_U: Names

    @classmethod
    def of(cls, group_U: Names, flags_U: NDArray[np.uint8]) -> _Spelt:
        """Σ_u t_u B^p over a phrase's tokens: t_u is the group without its length, raised if white space comes before
        it and it is not the first, p the sum of the lengths from the first token to before it.

        That is a difference of two sums over all tokens so far, times B^-p for a phrase whose first token's place is
        p: B is odd, so it has an inverse modulo 2^64.
        """
        length_U = (group_U & _LENGTH).astype(np.intp)
        value_U = group_U & ~_LENGTH
        later_U = value_U + ((flags_U & SPACE_BEFORE) != 0) * _SPACE
        sum_U = np.cumsum(later_U * _power_of_place(_POWERS, length_U), dtype=np.uint64)
        inverse_U = _power_of_place(_INVERSES, length_U)
        # The sum up to and including u is taken off, and u's value put back without the mark for white space before it.
        return cls(value_U - sum_U * inverse_U, inverse_U, sum_U)

    def names(self, of_first: Spread, of_last: Spread) -> Names:
        """The phrases' names: [C]."""
        named_C: Names = of_first(self.first_U) + of_first(self.inverse_U) * of_last(self.sum_U)
        return named_C

    def naming(self, flags_U: NDArray[np.uint8], stop_words: Names) -> NDArray[np.bool_]:
        """Which tokens begin a word whose name is none of these: [U]."""
        last = np.flatnonzero((flags_U & MAY_END) != 0)
        naming_U: NDArray[np.bool_] = (flags_U & MAY_START) != 0
        if len(last):
            last_U = last[np.minimum(np.searchsorted(last, np.arange(len(flags_U))), len(last) - 1)]
            word_U = self.first_U + self.inverse_U * self.sum_U[last_U]
            naming_U &= ~_places(stop_words, word_U)[0]
        return naming_U


def _power_of_place(powers: Names, length_U: Rows) -> Names:
    """The power of each place, which is the sum of the lengths before it, modulo 2^64."""
    # A running product: places go up to all characters in reach, too many for a table of powers.
    power_U = np.ones(len(length_U), np.uint64)
    np.cumprod(powers[length_U[:-1]], out=power_U[1:])
    return power_U
