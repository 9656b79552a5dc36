import math

import numpy as np
import pytest

from quoth.answers.equations import (
    Sums,
    interpolated,
    joint_score,
    length_weighted,
    log_sum_exp,
    softmax_sum_score,
    sum_score,
)
from quoth.answers.ranking import group_equal, group_score, prune_to_top_groups

A, B = np.log([1.0, 2.0, 4.0]), np.log([3.0, 5.0, 8.0])


def test_sum_is_the_sum_of_both_exponentials() -> None:
    np.testing.assert_allclose(np.exp(sum_score(A, B)), [4, 7, 12])


def test_joint_is_their_product() -> None:
    np.testing.assert_allclose(np.exp(joint_score(A, B)), [3, 10, 32])


def test_softmax_sum_normalises_starts_and_ends_apart() -> None:
    score = softmax_sum_score(A, B, math.log(7), math.log(16))
    np.testing.assert_allclose(np.exp(score), [1 / 7 + 3 / 16, 2 / 7 + 5 / 16, 4 / 7 + 8 / 16])


def test_length_weight_is_a_power_of_the_length() -> None:
    np.testing.assert_allclose(np.exp(length_weighted(A, np.array([1, 2, 3]), 2.0)), [1, 8, 36])
    assert length_weighted(A, np.array([1, 2, 3]), 0.0) is A


def test_interpolation_mixes_all_with_the_favoured_ones() -> None:
    score = np.log([1.0, 2.0, 5.0])
    mixed = interpolated(score, np.array([True, False, True]), 0.25, Sums(everywhere=math.log(8), boosted=math.log(6)))
    np.testing.assert_allclose(np.exp(mixed), [0.75 / 8 + 0.25 / 6, 0.75 * 2 / 8, 0.75 * 5 / 8 + 0.25 * 5 / 6])
    boosted_alone = interpolated(score, np.array([True, False, True]), 1.0, Sums(math.log(8), 0.0, 0.0, math.log(6)))
    np.testing.assert_allclose(np.exp(boosted_alone), [1 / 6, 0, 5 / 6])
    for weight, boosted, inside in ((0.25, [False] * 3, -math.inf), (0.0, [True] * 3, math.log(8))):
        plain = interpolated(score, np.array(boosted), weight, Sums(everywhere=math.log(8), boosted=inside))
        np.testing.assert_allclose(np.exp(plain), [1 / 8, 2 / 8, 5 / 8])


def test_log_sum_exp_of_nothing_is_minus_infinity() -> None:
    assert log_sum_exp(np.zeros(0)) == -np.inf
    assert log_sum_exp(np.array([-np.inf, -np.inf])) == -np.inf
    assert log_sum_exp(np.log([1.0, 2.0, 5.0])) == pytest.approx(math.log(8))


def test_nothing_overflows_or_vanishes() -> None:
    far = np.array([5000.0, -5000.0])
    np.testing.assert_allclose(sum_score(far, far), far + math.log(2))
    groups = group_equal(np.array([7, 9], np.uint64))
    np.testing.assert_allclose(group_score(far, groups), far)
    assert log_sum_exp(far) == 5000.0


def test_groups_hold_their_members_in_order() -> None:
    groups = group_equal(np.array([5, 2**64 - 1, 5, 0, 5], np.uint64))
    assert [groups.members(g).tolist() for g in range(3)] == [[3], [0, 2, 4], [1]]
    assert groups.first_G.tolist() == [3, 0, 1]
    np.testing.assert_allclose(np.exp(group_score(np.log([1.0, 2, 3, 4, 5]), groups)), [4, 9, 2])


def test_keys_that_differ_in_their_lowest_bits_alone_are_two_groups() -> None:
    groups = group_equal(np.array([9, 8, 9], np.uint64))
    assert [groups.members(g).tolist() for g in range(2)] == [[1], [0, 2]]
    assert groups.first_G.tolist() == [1, 0]


def test_no_candidate_makes_no_group() -> None:
    groups = group_equal(np.zeros(0, np.uint64))
    assert len(groups.first_G) == 0
    assert len(group_score(np.zeros(0), groups)) == 0


@pytest.mark.parametrize("spread", [1.0, 50.0, 3000.0])
@pytest.mark.parametrize("names", ["spread over all buckets", "in one bucket", "two in each bucket"])
def test_contenders_are_whole_keys_and_hold_all_that_may_rank(names: str, spread: float) -> None:
    rng = np.random.default_rng(int(spread))
    for _ in range(60):
        name_G = rng.integers(0, 1 << 64, rng.integers(1, 300), np.uint64)
        if names == "in one bucket":
            name_G >>= np.uint64(20)
        elif names == "two in each bucket":
            name_G[1::2] = name_G[: 2 * (len(name_G) // 2) : 2] ^ np.uint64(1)
        key_C = rng.choice(name_G, rng.integers(1, 2000))
        log_score_C = np.round(rng.standard_normal(len(key_C)) * spread, int(rng.integers(0, 9)))
        count, slack = int(rng.choice([1, 2, 5, 1000, 5000])), float(rng.choice([1e-6, 0.5]))
        kept_C = prune_to_top_groups(key_C, log_score_C, count, slack)
        groups = group_equal(key_C)
        score_G = group_score(log_score_C, groups)
        kept = set(key_C[kept_C].tolist())
        assert kept_C.tolist() == [c for c, key in enumerate(key_C.tolist()) if key in kept]
        kth = np.sort(score_G)[-min(count, len(score_G))]
        assert set(key_C[groups.first_G[score_G >= kth - slack]].tolist()) <= kept


def test_few_candidates_contend() -> None:
    rng = np.random.default_rng(3)
    key_C, log_score_C = rng.integers(0, 1 << 64, 50_000, np.uint64), 4 * rng.standard_normal(50_000)
    assert 5 <= len(prune_to_top_groups(key_C, log_score_C, 5, 1e-6)) < 500
    assert len(prune_to_top_groups(key_C[:0], log_score_C[:0], 5, 1e-6)) == 0
