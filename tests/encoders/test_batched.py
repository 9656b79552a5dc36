"""The loop of inference: every input's own row, whatever it shares a batch with."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from quoth.encoders.encoder import run_batched
from quoth.encoders.transformer import on_arrays, pad
from quoth.text.tokenizer import BATCH_TOKENS


def test_rows_are_those_of_every_input_alone() -> None:
    rng = np.random.default_rng(0)
    inputs = [rng.integers(1, 99, length) for length in (3, 1000, 1, 17, 1000, 260, 1000, 2)]
    seen: list[tuple[int, int]] = []

    def squares(some: list[np.ndarray]) -> torch.Tensor:
        assert torch.is_inference_mode_enabled()
        ids_BT, _ = pad(some, 0)
        seen.append(tuple(ids_BT.shape))
        return ids_BT.to(torch.float64) ** 2

    rows = dict(run_batched(inputs, list(map(len, inputs)), on_arrays(squares)))
    assert sorted(rows) == list(range(len(inputs)))
    for number, ids in enumerate(inputs):
        assert rows[number].dtype == np.float32
        np.testing.assert_array_equal(rows[number][: len(ids)], ids.astype(np.float32) ** 2)
        assert not rows[number][len(ids) :].any()
    assert all(count == 1 or count * width <= BATCH_TOKENS for count, width in seen)
    assert [width for _, width in seen] == sorted((width for _, width in seen), reverse=True)
    assert not torch.is_inference_mode_enabled()


def test_nothing_runs_without_inputs_and_half_precision_comes_back_exact() -> None:
    assert list(run_batched([], [], lambda some: pytest.fail("ran"))) == []
    [(number, row)] = run_batched([7], [1], on_arrays(lambda some: torch.tensor([[1 / 3]], dtype=torch.bfloat16)))
    assert number == 0
    assert row.tolist() == [0.333984375]
