"""scripts/average_adapters.py: sums of updates, and their nearest of a rank, against NumPy on whole matrices."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file

from quoth.encoders.encoder import adapter_parts

SCRIPT = Path(__file__).parents[2] / "scripts" / "average_adapters.py"
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
    parts = adapter_parts(folder, load_file)
    return {place: scale * (b.double().numpy() @ a.double().numpy()) for place, scale, b, a in parts}


@pytest.mark.parametrize("rank", [2, 5])
def test_updates_are_summed_and_rounded_to_a_rank(tmp_path: Path, script: Callable[..., str], rank: int) -> None:
    one, other = saved(tmp_path / "one", 3, 6, 1), saved(tmp_path / "other", 2, 2, 2)
    out = tmp_path / "out"
    script(SCRIPT, f"{one}:0.75", f"{other}:-0.5", "-o", out, "--rank", rank)
    first, second, made = (updates(folder) for folder in (one, other, out))
    for place in PLACES:
        left, values, right = np.linalg.svd(0.75 * first[place] - 0.5 * second[place])
        nearest = left[:, :rank] * values[:rank] @ right[:rank]
        assert np.abs(made[place] - nearest).max() < 2e-3 * values[0]  # half precision
    assert json.loads((out / "quoth.json").read_text())["base"] == "of 1"
