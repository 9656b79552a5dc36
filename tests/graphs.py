"""The graphs of an encoder for ONNX Runtime, as `scripts/encoder_graph.py` writes them."""

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


def write_graphs(folder: Path) -> Path:
    """Write the graphs of a folder's encoder beside it."""
    script = graph_script()
    for dtype in GRAPH_FORMATS:
        model = script.model_of(script.BertConfig.read(folder), dtype)
        graph_file(folder, dtype).write_bytes(model.SerializeToString())
    return folder
