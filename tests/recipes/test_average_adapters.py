"""recipes/average_adapters.py: sums of updates, and their nearest of a rank, against NumPy on whole matrices."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.numpy import load_file as numpy_load_file
from safetensors.torch import load_file, save_file

from quoth.encoders.encoder import adapter_parts

SCRIPT = Path(__file__).parents[2] / "recipes" / "average_adapters.py"
PLACES = {"encoder.layer.0.q": (12, 8), "encoder.layer.0.dense": (8, 10)}


def saved(folder: Path, rank: int, alpha: int, seed: int) -> Path:
    torch.manual_seed(seed)
    folder.mkdir()
    weights = {}
    for place, (outputs, inputs) in PLACES.items():
        weights[f"base_model.model.{place}.lora_A.weight"] = torch.randn(rank, inputs)
        weights[f"base_model.model.{place}.lora_B.weight"] = torch.randn(outputs, rank)
    save_file(weights, folder / "adapter_model.safetensors")
    settings = {"peft_type": "LORA", "r": rank, "lora_alpha": alpha, "bias": "none"}
    (folder / "adapter_config.json").write_text(json.dumps(settings), encoding="utf-8")
    (folder / "quoth.json").write_text(json.dumps({"kind": "npm", "base": f"of {seed}"}), encoding="utf-8")
    return folder


def updates(folder: Path) -> dict[str, NDArray[np.float64]]:
    updates: dict[str, NDArray[np.float64]] = {}
    for (place, scale, b, a), (_, _, b_OR, a_RI) in zip(
        adapter_parts(folder, load_file), adapter_parts(folder, numpy_load_file), strict=True
    ):
        updates[place] = scale * (b.double().numpy() @ a.double().numpy())
        np.testing.assert_array_equal(b.numpy(), b_OR)
        np.testing.assert_array_equal(a.numpy(), a_RI)
    return updates


@pytest.mark.parametrize(("rank", "option", "error"), [(2, [], 2e-3), (5, [], 2e-3), (5, ["--int8"], 2e-2)])
def test_updates_are_summed_and_rounded_to_a_rank(
    tmp_path: Path, script: Callable[..., str], rank: int, option: list[str], error: float
) -> None:
    one, other = saved(tmp_path / "one", 3, 6, 1), saved(tmp_path / "other", 2, 2, 2)
    out = tmp_path / "out"
    script(SCRIPT, f"{one}:0.75", f"{other}:-0.5", "-o", out, "--rank", rank, *option)
    first, second, made = (updates(folder) for folder in (one, other, out))
    for place in PLACES:
        left, values, right = np.linalg.svd(0.75 * first[place] - 0.5 * second[place])
        nearest = left[:, :rank] * values[:rank] @ right[:rank]
        assert np.abs(made[place] - nearest).max() < error * values[0]
    dtypes = {str(weight.dtype) for weight in load_file(out / "adapter_model.safetensors").values()}
    assert dtypes == ({"torch.int8", "torch.float32"} if option else {"torch.float16"})
    assert json.loads((out / "quoth.json").read_text())["base"] == "of 1"
