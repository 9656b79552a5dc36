"""Scored occurrences, grouped if equal, and the best phrases, in one process or over several shards.

Knows: groups of equal occurrences, which of them can be among the best, ties, and what scores take from other tables'
candidates. Does not know: how a score came about, or what a phrase is quoted from.

Shape suffixes that differ from the project's: M places of a phrase, B buckets of candidates.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from quoth.answers.equations import Sums, interpolated, log_sum_exp
from quoth.arrays import Doubles, Rows

if TYPE_CHECKING:
    from quoth.answers.options import ResolvedOptions
    from quoth.index.key_table import KeyHits, KeyTable

TIE = 1e-6
"""Log scores closer than this are ties: similarities are float32, which cannot tell them apart."""
SLIGHT = 7.0
"""Log scores this far below the best, a thousandth of it, are no rivals."""
_BUCKET_BITS = 12


@dataclass(frozen=True, slots=True)
class Groups:
    """Equal candidates brought together: group g is `order_C[bounds_G1[g]:bounds_G1[g + 1]]`, in ascending order."""

    order_C: NDArray[np.int64]
    bounds_G1: NDArray[np.int64]
    first_G: NDArray[np.int64]

    def members(self, group: int) -> NDArray[np.int64]:
        """The group's candidates, in order of occurrence."""
        return self.order_C[self.bounds_G1[group] : self.bounds_G1[group + 1]]


# Weights are exp(score - top). Near the smallest float64 (2.2e-308) they become subnormal and lose digits, then
# underflow to 0, so that comparing them says nothing. Below this bound `prune_to_top_groups` keeps every candidate:
# slow, but right.
_LEAST_WEIGHT = 1e-290


def prune_to_top_groups(key_C: NDArray[np.uint64], log_score_C: Doubles, count: int, slack: float) -> NDArray[np.int64]:
    """A superset of the candidates that matter: all those of the `count` best-scoring keys, and of every key within
    `slack` of these.

    A key weighs at most as much as all keys that share its upper bits. So only the heaviest such buckets are grouped at
    first; a bucket lighter than the `count`-th best key among them cannot contain a contender.
    """
    top = log_score_C.max(initial=-np.inf)
    # One linear pass replaces sorting all candidates. The keys are hashes, so their upper bits spread them evenly.
    bucket_C = (key_C >> np.uint64(64 - _BUCKET_BITS)).astype(np.int64)
    weight_B = np.bincount(bucket_C, np.exp(log_score_C - top), 1 << _BUCKET_BITS)
    # At least `count` buckets are this heavy, and none of them is empty, so the groups below number at least `count`.
    heavy = np.partition(weight_B, -count)[-count] if count <= len(weight_B) else 0.0
    if heavy < _LEAST_WEIGHT:
        return np.arange(len(key_C))
    weight_C = weight_B[bucket_C]
    heavy_C = np.flatnonzero(weight_C >= heavy)
    score_G = np.sort(group_score(log_score_C[heavy_C], group_equal(key_C[heavy_C])))
    # The second slack covers rounding: bucket weights and group scores add up the same numbers in different orders.
    # A candidate too many costs a little time; one too few would change the answer.
    return np.flatnonzero(weight_C >= np.exp(score_G[-count] - top - 2 * slack))


def group_equal(key_C: NDArray[np.uint64]) -> Groups:
    """Candidates of equal key; `first_G` is each group's first candidate."""
    order_C = _stable_group_order(key_C)
    sorted_C = key_C[order_C]
    starts_G = np.flatnonzero(np.append(True, sorted_C[1:] != sorted_C[:-1])[: len(key_C)])
    return Groups(order_C, np.append(starts_G, len(key_C)), order_C[starts_G])


def _stable_group_order(key_C: NDArray[np.uint64]) -> NDArray[np.int64]:
    """An order that puts equal keys next to each other, in order of occurrence within a key.

    Sorts the keys with their lower bits replaced by their positions, in half the time of argsort. Falls back to argsort
    if two keys differ in those lower bits alone.
    """
    bits = np.uint64(len(key_C).bit_length())
    place = (np.uint64(1) << bits) - np.uint64(1)
    order_C = (np.sort(key_C & ~place | np.arange(len(key_C), dtype=np.uint64)) & place).astype(np.int64)
    sorted_C = key_C[order_C]
    # A million candidates take 20 bits, which leaves 44 of the hash: two keys that agree in these are rare, but their
    # occurrences would be interleaved, and `group_equal` would see one phrase as several.
    different = sorted_C[1:] ^ sorted_C[:-1]
    if ((different != 0) & (different >> bits == 0)).any():
        return np.argsort(key_C, kind="stable")
    return order_C


def group_score(log_score_C: Doubles, groups: Groups) -> Doubles:
    """log Σ exp over the occurrences of each phrase: [G]. NPM §3.1 (phrases), A.3 (tokens), A.4 (labels)."""
    starts_G = groups.bounds_G1[:-1]
    if not len(starts_G):
        return np.zeros(0)
    sorted_C = log_score_C[groups.order_C]
    top_G = np.maximum.reduceat(sorted_C, starts_G)
    sorted_C -= np.repeat(top_G, np.diff(groups.bounds_G1))
    return top_G + np.log(np.add.reduceat(np.exp(sorted_C), starts_G))


def merge_mentions(
    scores: dict[int, float],
    groups: Groups,
    span_of: Callable[[int], tuple[int, int, int]],
    is_whole: Callable[[int], bool],
) -> dict[int, float]:
    """Merge mentions: each text, best first, absorbs the scores of those that name the same thing with more or fewer
    words ("about 340 million", "340 million people"): one span is inside the other and at least half as long. Texts
    that are not whole come last. `span_of` is a candidate's passage, start and end, `is_whole` about a candidate too.

    Scores `SLIGHT` below the best, which are most, stay as they are: they change nothing visible.
    """
    order = sorted(scores, key=lambda g: (-scores[g], groups.first_G[g]))
    heavy = [g for g in order if scores[g] >= scores[order[0]] - SLIGHT]
    heavy.sort(key=lambda g: not is_whole(int(groups.members(g)[0])))
    spans: dict[int, list[tuple[int, int, int]]] = {}
    for g in heavy:
        for n, start, end in map(span_of, groups.members(g).tolist()):
            spans.setdefault(n, []).append((start, end, g))
    merged, left = {g: scores[g] for g in order[len(heavy) :]}, set(heavy)
    for g in heavy:
        if g in left:
            mine = map(span_of, groups.members(g).tolist())
            same = left & {h for n, a, b in mine for start, end, h in spans[n] if _same_mention(a, b, start, end)}
            merged[g] = log_sum_exp(np.array([scores[h] for h in sorted(same)]))
            left -= same
    return merged


def _same_mention(a: int, b: int, start: int, end: int) -> bool:
    inner, outer = sorted((b - a, end - start))
    return min(b, end) - max(a, start) == inner and 2 * inner >= outer


@dataclass(frozen=True, slots=True)
class Occurrences:
    """Scored places in the tables `parts`, in any order: part, first row, last row, log score: [C]."""

    parts: Sequence[KeyTable]
    part_C: NDArray[np.int64]
    start_C: NDArray[np.int64]
    end_C: NDArray[np.int64]
    log_score_C: Doubles

    @property
    def rising_C(self) -> NDArray[np.int64]:
        """Numbers that rise with part, first row and last row: the order of occurrence."""
        bases = np.cumsum([0, *(part.offsets_P1[-1] for part in self.parts)])
        length_C = self.end_C - self.start_C
        rising_C: NDArray[np.int64] = (bases[self.part_C] + self.start_C) * (length_C.max(initial=0) + 1) + length_C
        return rising_C

    def in_order(self, some_C: NDArray[np.int64]) -> NDArray[np.int64]:
        """The chosen ones in the order of occurrence."""
        return some_C[np.argsort(self.take(some_C).rising_C)]

    def take(self, some_C: NDArray[np.int64]) -> Occurrences:
        """The chosen ones alone."""
        part_C, start_C, end_C = self.part_C[some_C], self.start_C[some_C], self.end_C[some_C]
        return Occurrences(self.parts, part_C, start_C, end_C, self.log_score_C[some_C])


@dataclass(frozen=True, slots=True)
class Best:
    """One of the best phrases: its group, the log of its score, and its share of all phrases' scores."""

    group: int
    score: float
    probability: float


def best_groups(groups: Groups, log_score_C: Doubles, total: float, top_k: int) -> list[Best]:
    """The `top_k` groups of highest score, ties by first occurrence; `total` is the log of the sum of all scores."""
    score_G = group_score(log_score_C, groups)
    group_R, score_R = rank(score_G, groups.first_G, top_k)
    return [
        Best(*each) for each in zip(group_R.tolist(), score_R.tolist(), np.exp(score_R - total).tolist(), strict=True)
    ]


class Scored(ABC):
    """Candidates of some tables, whose scores may need sums over other tables' candidates too.

    `key_C` is equal for occurrences of one phrase, `_starts` has the candidates' first rows, table by table.
    """

    key_C: NDArray[np.uint64]
    _hits: Sequence[KeyHits]
    _starts: Sequence[Rows]
    _options: ResolvedOptions

    @abstractmethod
    def _scored(self, known: Sums) -> Occurrences:
        """The candidates with their scores by the equation alone."""

    def sums(self, known: Sums) -> Sums:
        """This part's share of the sums that can be computed from those known."""
        log_score_C = self._scored(known).log_score_C
        return Sums(everywhere=log_sum_exp(log_score_C), boosted=log_sum_exp(log_score_C[self._boosted_C]))

    def occurrences(self, sums: Sums) -> Occurrences:
        """The candidates with their scores; boosted passages count as `passage_share` says."""
        found, weight = self._scored(sums), self._options.passage_share
        if not weight:
            return found
        return replace(found, log_score_C=interpolated(found.log_score_C, self._boosted_C, weight, sums))

    @cached_property
    def _boosted_C(self) -> NDArray[np.bool_]:
        parts = [each.in_boosted(rows) for each, rows in zip(self._hits, self._starts, strict=True)]
        return np.concatenate([np.zeros(0, np.bool_), *parts])


def sums_over(shares: Callable[[Sums], Sequence[Sums]], options: ResolvedOptions) -> Sums:
    """The sums over all parts: every part is asked for its share, again if one sum depends on another."""
    sums = Sums()
    # One pass over a and b, another over the scores that take those; by default none, as `joint` needs no normaliser.
    for _ in range((options.combine == "softmax_sum") + (options.passage_share > 0)):
        sums = Sums.over(shares(sums))
    return sums


@dataclass(frozen=True, slots=True)
class Ranked:
    """The best phrases, best first, and the candidates that they are made of, grouped."""

    best: Sequence[Best]
    groups: Groups
    occurrences: Occurrences


def best_phrases(scored: Scored, options: ResolvedOptions) -> Ranked:
    """The `top_k` phrases of highest score, ties by first occurrence; equal keys are one phrase."""
    occurrences = scored.occurrences(sums_over(lambda known: [scored.sums(known)], options))
    total = log_sum_exp(occurrences.log_score_C)
    # The sum is over all candidates, but only those that may rank are grouped and put in order.
    kept_C = occurrences.in_order(prune_to_top_groups(scored.key_C, occurrences.log_score_C, options.top_k, TIE))
    occurrences, groups = occurrences.take(kept_C), group_equal(scored.key_C[kept_C])
    return Ranked(best_groups(groups, occurrences.log_score_C, total, options.top_k), groups, occurrences)


@dataclass(frozen=True, slots=True)
class Places:
    """A phrase's occurrences with their shares of its probability, largest first, ties by occurrence: [M] each."""

    candidate_M: NDArray[np.int64]
    share_M: Doubles


def places_of(occurrences: Occurrences, groups: Groups, group: int, probability: float) -> Places:
    """The places of one phrase, which share this probability by their scores."""
    member_M = occurrences.in_order(groups.members(group))
    best_M, log_score_M = rank(occurrences.log_score_C[member_M], np.arange(len(member_M)))
    return Places(member_M[best_M], probability * np.exp(log_score_M - log_sum_exp(log_score_M)))


def rank(score_G: Doubles, first_G: NDArray[np.int64], top_k: int | None = None) -> tuple[NDArray[np.int64], Doubles]:
    """The `top_k` (all) highest by score descending: (which, score), both [top_k].

    Ties (`TIE`) share the highest score of the tie and go by `first_G`.
    """
    # Linear instead of sorting all groups. Scores within TIE of the k-th may tie with it and come first by `first_G`,
    # so they stay in until ties are ordered.
    if top_k is not None and top_k < len(score_G):
        kth = np.partition(score_G, len(score_G) - top_k)[len(score_G) - top_k]
        group_R = np.flatnonzero(score_G >= kth - TIE)
    else:
        group_R = np.arange(len(score_G))
    group_R = group_R[np.argsort(-score_G[group_R], kind="stable")]
    leader_R = _tie_leaders(score_G[group_R])
    score_R = score_G[group_R][leader_R]
    return group_R[np.lexsort((first_G[group_R], leader_R))][:top_k], score_R[:top_k]


def _tie_leaders(falling_R: Doubles) -> NDArray[np.int64]:
    """For each of these falling scores, the first one that it ties with: no tie is wider than `TIE`."""
    place_R = np.arange(len(falling_R))
    leads_R = np.diff(falling_R, prepend=np.inf) < -TIE
    # Near ties can chain: a ~ b and b ~ c, though a and c are more than TIE apart. Each turn splits every chain at its
    # first member too far from the leader, until no chain is wider than TIE.
    while True:
        leader_R = np.maximum.accumulate(np.where(leads_R, place_R, 0))
        too_far = np.flatnonzero(falling_R < falling_R[leader_R] - TIE)
        if not len(too_far):
            return leader_R
        leads_R[too_far[np.unique(leader_R[too_far], return_index=True)[1]]] = True
