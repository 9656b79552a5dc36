"""The order of examples: every one once per epoch, batches of similar length, nothing lost."""

import numpy as np

from quoth.training.epochs import by_length, turns


def test_every_example_comes_once_per_epoch_wherever_a_run_resumes() -> None:
    orders = [np.array([2, 0, 1]), np.array([1, 2, 0]), np.array([0, 1, 2])]
    assert list(turns(0, 7, 3, orders.__getitem__)) == [2, 0, 1, 1, 2, 0, 0]
    assert list(turns(2, 5, 3, orders.__getitem__)) == [1, 1, 2]
    assert list(turns(4, 4, 3, orders.__getitem__)) == []


def test_batches_have_similar_lengths_and_equal_ones_keep_their_order() -> None:
    order = np.array([4, 0, 3, 1, 2])
    [batches] = by_length(order, [7, 5, 7, 5, 1], 2)
    assert [batch.tolist() for batch in batches] == [[2, 0], [1, 4], [3]]


def test_only_examples_that_are_near_in_the_order_share_a_batch() -> None:
    order = np.random.default_rng(0).permutation(100)
    pools = list(by_length(order, np.arange(100).tolist(), 2))
    assert [sum(map(len, batches)) for batches in pools] == [64, 36]
    assert {*np.concatenate(pools[0]).tolist()} == {*order[:64].tolist()}
    assert sorted(np.concatenate([batch for pool in pools for batch in pool]).tolist()) == list(range(100))
