"""Products of 8-bit integers equal what the same rounding gives in float64, and are near the unrounded ones."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from quoth.encoders.bert import RoundedLinear, round_linears


def test_a_layer_multiplies_what_is_rounded() -> None:
    draw = np.random.default_rng(0)
    x, weight, bias = (draw.normal(size=shape).astype(np.float32) for shape in ((2, 3, 40), (24, 40), (24,)))
    x[0, 1], weight[3] = 0, 0

    def rounded_rows(rows: np.ndarray) -> np.ndarray:
        scale = np.maximum(np.abs(rows.astype(np.float64)).max(-1, keepdims=True), 1e-12) / 127
        return np.round(rows / scale) * scale

    layer = RoundedLinear(torch.from_numpy(weight), torch.from_numpy(bias))
    found = layer(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(found, rounded_rows(x) @ rounded_rows(weight).T + bias, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(layer.weight.numpy(), rounded_rows(weight), rtol=1e-6, atol=1e-9)
    exact = x.astype(np.float64) @ weight.T
    assert np.abs(found - bias - exact).mean() < 0.02 * np.abs(exact).mean()


def test_every_linear_layer_is_replaced_and_nothing_else() -> None:
    model = nn.Sequential(nn.Linear(8, 4, bias=False), nn.LayerNorm(4), nn.Sequential(nn.Linear(4, 2)))
    x = torch.randn(5, 8, generator=torch.Generator().manual_seed(0))
    before = model(x)
    round_linears(model)
    assert [type(each).__name__ for each in model.modules()] == [
        "Sequential", "RoundedLinear", "LayerNorm", "Sequential", "RoundedLinear",
    ]  # fmt: skip
    assert torch.allclose(model(x), before, atol=0.05)
