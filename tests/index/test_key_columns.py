"""Token columns in six bytes: what is written is read back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from quoth.index.key_table import KeyColumns, open_columns, save_columns

NAMES = ("ids_N", "group_N", "flags_N", "start_N", "end_N")


def random_columns(rng: np.random.Generator, far: int) -> KeyColumns:
    counts = rng.integers(0, 6, rng.integers(0, 8))
    total = int(counts.sum())
    origin_P = np.sort(rng.integers(0, 1 << 40, len(counts)))
    start_N = np.repeat(origin_P, counts) + rng.integers(0, far, total)
    return KeyColumns(
        ids_N=rng.integers(0, 50, total).astype(np.int32),
        group_N=rng.integers(0, 1 << 64, 40, np.uint64)[rng.integers(0, 40, total)],
        flags_N=rng.integers(0, 8, total).astype(np.uint8),
        start_N=start_N,
        end_N=start_N + rng.integers(0, 300, total),
        offsets_P1=np.cumsum([0, *counts]),
        origin_P=origin_P,
    )


@pytest.mark.parametrize("far", [1000, 1 << 20])
@pytest.mark.parametrize("seed", range(5))
def test_what_is_written_is_read_back(tmp_path: Path, seed: int, far: int) -> None:
    rng = np.random.default_rng(seed)
    pieces = [random_columns(rng, far) for _ in range(rng.integers(1, 5))]
    save_columns(tmp_path, lambda: pieces)
    opened = open_columns(tmp_path)
    for name in NAMES:
        expected = np.concatenate([getattr(piece, name) for piece in pieces])
        column = getattr(opened, name)
        np.testing.assert_array_equal(column[:], expected)
        assert column[:].dtype == expected.dtype
        assert len(column) == len(expected)
        if len(expected):
            rows = rng.integers(0, len(expected), (3, 4))
            np.testing.assert_array_equal(column[rows], expected[rows])
    counts = np.concatenate([np.diff(piece.offsets_P1) for piece in pieces])
    np.testing.assert_array_equal(np.diff(opened.offsets_P1), counts)
    np.testing.assert_array_equal(opened.origin_P, np.concatenate([piece.origin_P for piece in pieces]))

    chosen = rng.permutation(len(counts))[:4]
    taken = opened.take(chosen)
    for name in NAMES:
        whole, ends = getattr(opened, name)[:], opened.offsets_P1
        expected = np.concatenate([whole[:0], *(whole[ends[p] : ends[p + 1]] for p in chosen)])
        np.testing.assert_array_equal(getattr(taken, name), expected)


def test_a_token_takes_six_bytes(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    pieces = [random_columns(rng, 1000) for _ in range(5)]
    save_columns(tmp_path, lambda: pieces)
    each = sum(np.load(tmp_path / f"{name}.npy").itemsize for name in ("kind", "place"))
    assert each == 6
