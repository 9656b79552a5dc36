"""Weights of a quantised graph: names, rounding, directions."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="onnx is not installed")


@pytest.fixture(scope="module")
def script() -> Any:
    path = Path(__file__).parents[1] / "scripts" / "base_weights.py"
    spec = importlib.util.spec_from_file_location("base_weights", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_weights_come_back_as_they_were_rounded(script: Any, tmp_path: Path) -> None:
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
