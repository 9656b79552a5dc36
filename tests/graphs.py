"""The graphs of an encoder for ONNX Runtime, as `recipes/encoder_graph.py` writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from quoth.hub import GRAPH_FORMATS, graph_file
from script_modules import script_module


def graph_script() -> Any:
    """The script; a test that needs it is skipped where onnx is not installed."""
    pytest.importorskip("onnx", reason="onnx is not installed")
    return script_module("encoder_graph")


def write_graphs(folder: Path, cut: int | None = None) -> Path:
    """Write the graphs of a folder's encoder beside it, whole or in two parts."""
    script = graph_script()
    config = script.BertConfig.read(folder)
    for dtype in GRAPH_FORMATS:
        for layers in [None] if cut is None else [(0, cut), (cut, config.num_hidden_layers)]:
            model = script.model_of(config, dtype, layers)
            graph_file(folder, dtype, layers).write_bytes(model.SerializeToString())
    return folder
