"""Chains of documents in which like follows like."""

from __future__ import annotations

import numpy as np
import pytest

from quoth.npm import batches
from quoth.npm.batches import TokenizedDocuments, _walk, chain_of_neighbours

TOPICS, PER_TOPIC = 6, 7


@pytest.fixture
def data() -> TokenizedDocuments:
    """42 documents of two passages; the d-th is number 3 d, on topic d % 6."""
    rng = np.random.default_rng(0)
    passages = []
    for d in range(TOPICS * PER_TOPIC):
        topic = 100 + 30 * (d % TOPICS) + rng.integers(0, 30, (2, 12))
        passages.append(np.concatenate([topic, rng.integers(0, 100, (2, 8))], axis=1))
    ids = np.concatenate([body.ravel() for body in passages]).astype(np.int32)
    document = np.repeat(np.arange(len(passages), dtype=np.int32) * 3, 2)
    nothing = np.zeros(0, np.int32)
    return TokenizedDocuments(
        ids, ids.astype(np.uint8), np.arange(len(document) + 1) * 20, nothing, nothing, document, nothing
    )


def test_like_follows_like(data: TokenizedDocuments, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "PART", 10)
    told: list[int] = []
    chain = chain_of_neighbours(data, told.append)
    assert sorted(chain.tolist()) == sorted(set(data.document.tolist()))
    topics = chain // 3 % TOPICS
    assert np.mean(topics[1:] == topics[:-1]) > 0.8
    assert told == list(range(1, TOPICS * PER_TOPIC + 1))


def test_a_walk_by_hand() -> None:
    assert _walk(np.array([[0, 2], [3, 0], [0, 1], [1, -1]], np.int32)) == [0, 2, 1, 3]
    assert _walk(np.array([[-1], [0], [-1]], np.int32)) == [0, 1, 2]
    assert _walk(np.zeros((0, 2), np.int32)) == []
