"""Rankings made one: values by hand, against every key looked up in every ranking, and weights that cannot be used."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quoth.errors import InputError
from quoth.index.fusion import FUSIONS, reciprocal_rank, weighted_sum

Ranking = list[tuple[float, tuple[int, int]]]

WORDS = [(9.0, "a"), (5.0, "b"), (1.0, "c")]
VECTORS = [(0.9, "c"), (0.5, "a")]
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
    assert reciprocal_rank([WORDS, VECTORS], [1, 3], constant=0) == [(1 / 3 + 3, "c"), (2.5, "a"), (0.5, "b")]


def test_weighted_sums_by_hand() -> None:
    assert weighted_sum([WORDS, VECTORS]) == [(1.0, "a"), (1.0, "c"), (0.5, "b")]
    assert weighted_sum([WORDS, VECTORS], [1, 3]) == [(3.0, "c"), (1.0, "a"), (0.5, "b")]


def test_where_all_scores_are_equal_each_counts_its_weight() -> None:
    assert weighted_sum([[(7.0, "x")], [(-2.0, "z"), (-2.0, "y")]], [0.5, 2]) == [(2.0, "y"), (2.0, "z"), (0.5, "x")]


@given(RANKINGS)
def test_reciprocal_ranks_are_those_of_the_inline_loop_to_the_last_bit(rankings: list[Ranking]) -> None:
    fused: dict[tuple[int, int], float] = {}
    for found in rankings:
        for rank, (_, place) in enumerate(found, start=1):
            fused[place] = fused.get(place, 0.0) + 1 / (60 + rank)
    assert reciprocal_rank(rankings) == in_order(fused)


@given(RANKINGS)
def test_reciprocal_ranks_equal_a_look_for_every_key(rankings: list[Ranking]) -> None:
    weights = weights_of(rankings)
    ranks = [{place: i for i, (_, place) in enumerate(each, start=1)} for each in rankings]
    wanted = {
        place: sum(w / (7 + held[place]) for w, held in zip(weights, ranks, strict=True) if place in held)
        for place in {place for held in ranks for place in held}
    }
    assert reciprocal_rank(rankings, weights if rankings else None, constant=7) == in_order(wanted)


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
    assert weighted_sum(rankings, weights if rankings else None) == in_order(wanted)


@pytest.mark.parametrize("name", FUSIONS)
def test_every_key_is_kept_and_rankings_may_be_empty(name: str) -> None:
    fuse = FUSIONS[name]
    assert fuse([]) == fuse([[], []]) == []
    assert fuse([[], WORDS]) == fuse([WORDS])
    assert fuse([WORDS, [(1.0, "d")]], [1, 0])[-1] == (0.0, "d")


@pytest.mark.parametrize("name", FUSIONS)
def test_only_the_weights_relations_count(name: str) -> None:
    fuse = FUSIONS[name]
    once, thrice = fuse([WORDS, VECTORS], [1, 0.5]), fuse([WORDS, VECTORS], [3, 1.5])
    assert [key for _, key in once] == [key for _, key in thrice]
    assert [3 * score for score, _ in once] == pytest.approx([score for score, _ in thrice])


@pytest.mark.parametrize("name", FUSIONS)
@pytest.mark.parametrize(
    ("weights", "complaint"),
    [
        ([1], "1 weights for 2 rankings; give one for each"),
        ([1, 2, 3], "3 weights for 2 rankings"),
        ([1, -1], r"weights are \[1, -1\]; they must be 0 or more, and at least one above 0"),
        ([0, 0], r"weights are \[0, 0\]; they must be 0 or more"),
        ([1, math.nan], r"weights are \[1, nan\]; they must be 0 or more"),
        ([1, math.inf], r"weights are \[1, inf\]; they must be 0 or more"),
    ],
)
def test_weights_that_cannot_be_used_are_refused(name: str, weights: list[float], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        FUSIONS[name]([WORDS, VECTORS], weights)


def test_no_ranking_with_a_weight_and_a_negative_constant_are_refused() -> None:
    with pytest.raises(InputError, match=r"weights are \[\]; they must be 0 or more"):
        weighted_sum([], [])
    with pytest.raises(InputError, match="constant is -1; it must be 0 or more, such as 60"):
        reciprocal_rank([WORDS], constant=-1)
