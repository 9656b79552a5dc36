"""Rankings made one: values by hand, and against every key looked up in every ranking."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quoth.corpus.bm25 import Ranking
from quoth.index.fusion import FUSIONS, reciprocal_rank, weighted_sum

# Letters stand for places.
WORDS: Any = [(9.0, "a"), (5.0, "b"), (1.0, "c")]
VECTORS: Any = [(0.9, "c"), (0.5, "a")]
PLACES = st.tuples(st.integers(0, 1), st.integers(0, 9))
RANKINGS = st.lists(
    st.dictionaries(PLACES, st.integers(-5, 5).map(float), max_size=8).map(
        lambda scores: sorted(((score, place) for place, score in scores.items()), key=lambda pair: (-pair[0], pair[1]))
    ),
    max_size=4,
)


def weights_of(rankings: list[Ranking]) -> list[float]:
    return [2.0 * i + 0.5 for i in range(len(rankings))]


def in_order(total: dict[tuple[int, int], float]) -> Ranking:
    return sorted(((score, place) for place, score in total.items()), key=lambda pair: (-pair[0], pair[1]))


def test_reciprocal_ranks_by_hand() -> None:
    assert reciprocal_rank([WORDS, VECTORS]) == [(1 / 61 + 1 / 62, "a"), (1 / 63 + 1 / 61, "c"), (1 / 62, "b")]
    weighted = reciprocal_rank([WORDS, VECTORS], [1, 3])
    assert weighted == [(1 / 63 + 3 / 61, "c"), (1 / 61 + 3 / 62, "a"), (1 / 62, "b")]


def test_weighted_sums_by_hand() -> None:
    assert weighted_sum([WORDS, VECTORS]) == [(1.0, "a"), (1.0, "c"), (0.5, "b")]
    assert weighted_sum([WORDS, VECTORS], [1, 3]) == [(3.0, "c"), (1.0, "a"), (0.5, "b")]


def test_where_all_scores_are_equal_each_counts_its_weight() -> None:
    assert weighted_sum([[(7.0, "x")], [(-2.0, "z"), (-2.0, "y")]], [0.5, 2]) == [(2.0, "y"), (2.0, "z"), (0.5, "x")]


@given(RANKINGS)
def test_reciprocal_ranks_equal_a_look_for_every_key(rankings: list[Ranking]) -> None:
    weights = weights_of(rankings)
    ranks = [{place: i for i, (_, place) in enumerate(each, start=1)} for each in rankings]
    wanted = {
        place: sum(w / (60 + held[place]) for w, held in zip(weights, ranks, strict=True) if place in held)
        for place in {place for held in ranks for place in held}
    }
    assert reciprocal_rank(rankings, weights) == in_order(wanted)


@given(RANKINGS)
def test_weighted_sums_equal_a_look_for_every_key(rankings: list[Ranking]) -> None:
    weights = weights_of(rankings)
    wanted: dict[tuple[int, int], float] = {}
    for place in {place for ranking in rankings for _, place in ranking}:
        wanted[place] = 0.0
        for weight, ranking in zip(weights, rankings, strict=True):
            scores = {other: score for score, other in ranking}
            if place in scores:
                spread = max(scores.values()) - min(scores.values())
                wanted[place] += weight * ((scores[place] - min(scores.values())) / spread if spread else 1.0)
    assert weighted_sum(rankings, weights) == in_order(wanted)


@pytest.mark.parametrize("name", FUSIONS)
def test_every_key_is_kept_and_rankings_may_be_empty(name: str) -> None:
    fuse: Any = FUSIONS[name]
    assert fuse([]) == fuse([[], []]) == []
    assert fuse([[], WORDS]) == fuse([WORDS])
    assert fuse([WORDS, [(1.0, "d")]], [1, 0])[-1] == (0.0, "d")


@pytest.mark.parametrize("name", FUSIONS)
def test_only_the_weights_relations_count(name: str) -> None:
    fuse: Any = FUSIONS[name]
    once, thrice = fuse([WORDS, VECTORS], [1, 0.5]), fuse([WORDS, VECTORS], [3, 1.5])
    assert [key for _, key in once] == [key for _, key in thrice]
    assert [3 * score for score, _ in once] == pytest.approx([score for score, _ in thrice])
