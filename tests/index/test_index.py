from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quoth.index import search as index
from quoth.index.search import search_all, search_exactly
from quoth.index.vectors import top
from token_tables import word_table

LEVELS = st.lists(st.sampled_from([-1.0, 0.0, 0.5, 2.0, float("-inf")]), max_size=12)
E1, E2 = np.eye(2, dtype=np.float32)


@settings(deadline=None)
@given(LEVELS, st.integers(1, 15))
def test_top_equals_sorting(values: list[float], k: int) -> None:
    found = top(np.array(values, np.float32), k)
    expected = sorted((-value, row) for row, value in enumerate(values) if value > float("-inf"))[:k]
    assert list(zip((-found.sims_K).tolist(), found.rows_K.tolist(), strict=True)) == expected


def random_tables(rng: np.random.Generator) -> list[Any]:
    """Tables of passages of two words, some deleted, with vectors of few values so that there are ties."""
    tables = []
    for name in "abc"[: rng.integers(1, 4)]:
        passages = ["x y"] * int(rng.integers(1, 5))
        vectors = rng.integers(-2, 3, (2 * len(passages), 2))
        live = rng.random(len(passages)) < 0.7 if rng.random() < 0.7 else None
        tables.append(word_table(passages, vectors, name=name, live=live))
    return tables


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("k", [1, 3, 100])
def test_search_equals_brute_force(seed: int, k: int) -> None:
    tables = random_tables(np.random.default_rng(seed))
    rows: list[list[set[int]]] = []
    for q in (E1, E2):
        scored = [
            (-float(table.vectors.c_ND[row] @ q), part, row)
            for part, table in enumerate(tables)
            for row in range(table.num_keys)
            if table.live_P is None or table.live_P[row // 2]
        ]
        best = sorted(scored)[:k]
        rows.append([{row for _, owner, row in best if owner == part} for part in range(len(tables))])
        alone = search_exactly(tables[0], q[None], k)[0]
        expected = sorted(each for each in scored if each[1] == 0)[:k]
        assert alone.rows_K.tolist() == [row for *_, row in expected]
        assert (-alone.sims_K).tolist() == [score for score, *_ in expected]
    for part, hits in enumerate(search_all(tables, E1, E2, k)):
        assert hits.keys is tables[part]
        assert hits.start_rows.tolist() == sorted(rows[0][part])
        assert hits.end_rows.tolist() == sorted(rows[1][part])


def test_hidden_passages_are_never_found() -> None:
    table = word_table(["x", "y", "z"], [[3, 0], [2, 0], [1, 0]], live=[True, True, False])
    assert table.without([]) is table
    hidden = table.without([100])
    assert search_exactly(hidden, E1[None], 9)[0].rows_K.tolist() == [1]
    assert search_exactly(table, E1[None], 9)[0].rows_K.tolist() == [0, 1]


def test_no_table_no_hit() -> None:
    assert search_all([], E1, E2, 5) == []


def test_blocks_of_rows_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    table = word_table(["x y z"] * 40, rng.integers(-2, 3, (120, 2)), live=rng.random(40) < 0.7)
    q_QD = rng.normal(size=(3, 2)).astype(np.float32)
    whole = search_exactly(table, q_QD, 17)
    monkeypatch.setattr(index, "SIMILARITIES_AT_A_TIME", 3 * 25)
    for mine, theirs in zip(search_exactly(table, q_QD, 17), whole, strict=True):
        np.testing.assert_array_equal(mine.rows_K, theirs.rows_K)
        np.testing.assert_array_equal(mine.sims_K, theirs.sims_K)
