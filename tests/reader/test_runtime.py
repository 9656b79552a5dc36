"""A reader in ONNX Runtime: the same arithmetic as PyTorch's 8-bit integers, and when it is chosen."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_span_reader import QUERY, TEXT, make_reader, passage

import quoth
from quoth.encoders.rounding import round_linears
from quoth.errors import InputError, ModelNotFoundError
from quoth.hub import GRAPH_FILE, locate, shipped_folder
from quoth.reader import runtime
from quoth.reader.config import NEVER, ReaderConfig
from quoth.reader.network import SpanReaderModel
from quoth.reader.runtime import GraphModel, by_graph, open_reader
from quoth.reader.weights import save_reader
from quoth.text.tokenizer import PairArrays
from script_modules import script_module

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")


@pytest.fixture(scope="module")
def script() -> Any:
    pytest.importorskip("onnx", reason="onnx is not installed")
    return script_module("reader_graph")


@pytest.fixture(scope="module")
def folder(script: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny reader that is stored whole, with its graph."""
    parent = tmp_path_factory.mktemp("runtime")
    tiny = make_reader(parent / "base")
    assert isinstance(tiny.model, SpanReaderModel)
    save_reader(parent / "m", tiny.model, parent / "base", tiny.config.to_dict() | {"base": "nobody/nothing"})
    (parent / "m" / GRAPH_FILE).write_bytes(script.model_of(script.BertConfig.read(parent / "m")).SerializeToString())
    return parent / "m"


def test_odds_are_those_of_the_same_weights_in_pytorch(folder: Path) -> None:
    ours, theirs = open_reader(str(folder), dtype="int8").model, open_reader(str(folder), dtype="fp32").model
    assert isinstance(ours, GraphModel)
    assert isinstance(theirs, SpanReaderModel)
    rng = np.random.default_rng(0)
    mask_BT = (np.arange(24) < np.array([[24], [17], [1]])).astype(np.int64)
    batch = PairArrays(rng.integers(5, 90, (3, 24)) * mask_BT, mask_BT, (np.arange(24) > 6) * mask_BT)
    width = ours.config.span_width
    legal_BTW = (rng.random((3, 24, width)) < 0.5) & (np.arange(24) + width <= 24)[:, None]
    whole = theirs.odds(batch, legal_BTW)
    round_linears(theirs.encoder)
    rounded, found = theirs.odds(batch, legal_BTW), ours.odds(batch, legal_BTW)
    assert ((found == np.float32(NEVER)) == ~legal_BTW).all()
    seen_BTW = legal_BTW & (mask_BT > 0)[:, :, None]
    assert seen_BTW.sum() > 50
    assert np.median(np.abs(found - rounded)[seen_BTW]) < 1e-5
    assert np.abs(found - rounded)[seen_BTW].max() < 0.02  # where a value is rounded the other way
    assert np.median(np.abs(found - whole)[seen_BTW]) > 1e-3  # in fp32 they are others


def test_spans_are_those_of_pytorch(folder: Path) -> None:
    ours, theirs = open_reader(str(folder), dtype="int8"), open_reader(str(folder), dtype="fp32")
    assert isinstance(theirs.model, SpanReaderModel)
    round_linears(theirs.model.encoder)
    shown = [[passage(text) for text in TEXT], [passage(f"{TEXT[0]} {TEXT[4]}", "A title")]]
    for mine, other in zip(ours.read([QUERY] * 2, shown), theirs.read([QUERY] * 2, shown), strict=True):
        for found, expected in zip(mine, other, strict=True):
            assert found.total == pytest.approx(expected.total, abs=0.1)
            assert (found.start_C[:3].tolist(), found.end_C[:3].tolist()) == (
                expected.start_C[:3].tolist(),
                expected.end_C[:3].tolist(),
            )


@pytest.mark.parametrize(
    ("device", "dtype", "variable", "chosen"),
    [
        (None, None, "", True),
        ("cpu", "auto", "", True),
        (None, "int8", "fp32", True),
        (None, None, "int8", True),
        (None, None, "fp32", False),
        (None, "bf16", "", False),
        ("cuda", None, "", False),
        ("cuda", "int8", "", False),
    ],
)
def test_when_it_is_chosen(
    folder: Path, monkeypatch: pytest.MonkeyPatch, device: str | None, dtype: str | None, variable: str, chosen: bool
) -> None:
    monkeypatch.setenv("QUOTH_DTYPE", variable)
    monkeypatch.setattr(runtime, "_GPU_DRIVERS", ())
    monkeypatch.setattr(runtime, "_has_amx", lambda: False)
    source = locate(str(folder), ReaderConfig)
    assert by_graph(source, device, dtype) == chosen
    assert not by_graph(replace(source, config=replace(source.config, head="mlp")), device, dtype)
    assert not by_graph(replace(source, base="elsewhere"), device, dtype)


def test_what_this_machine_has_decides(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QUOTH_DTYPE")
    source = locate(str(folder), ReaderConfig)
    monkeypatch.setattr(runtime, "_GPU_DRIVERS", (str(folder),))  # exists
    assert not by_graph(source, None, None)
    assert by_graph(source, "cpu", "int8")
    monkeypatch.setattr(runtime, "_has_amx", lambda: True)
    assert not by_graph(source, "cpu", None)  # PyTorch is there already, and faster
    monkeypatch.delitem(sys.modules, "torch")
    assert by_graph(source, "cpu", None)


def test_pytorch_reads_where_the_graph_cannot(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GraphModel, "exact", False)
    assert isinstance(open_reader(str(folder), dtype="int8").model, SpanReaderModel)
    monkeypatch.undo()
    assert isinstance(open_reader(str(folder), dtype="int8").model, GraphModel)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)  # not installed
    assert isinstance(open_reader(str(folder), dtype="int8").model, SpanReaderModel)


def test_what_is_damaged_is_named(folder: Path, tmp_path: Path) -> None:
    broken = shutil.copytree(folder, tmp_path / "m")
    (broken / GRAPH_FILE).write_bytes(b"torn")
    with pytest.raises(
        ModelNotFoundError, match=r"reader.onnx does not fit the weights beside it \(.*; fetch it again"
    ):
        open_reader(str(broken), dtype="int8")
    shutil.copyfile(folder / GRAPH_FILE, broken / GRAPH_FILE)
    (broken / "reader.safetensors").write_bytes(b"torn")
    with pytest.raises(ModelNotFoundError, match=r"reader.safetensors is missing or damaged"):
        open_reader(str(broken), dtype="int8")
    settings = json.loads((folder / "quoth.json").read_text()) | {"query_tokens": 245}
    shutil.copyfile(folder / "reader.safetensors", broken / "reader.safetensors")
    (broken / "quoth.json").write_text(json.dumps(settings | {"max_tokens": 400}))
    with pytest.raises(InputError, match="which leaves 8 for a passage"):
        open_reader(str(broken), dtype="int8")


def test_a_reader_that_goes_on_training_keeps_its_graph(folder: Path, tmp_path: Path) -> None:
    model = open_reader(str(folder), dtype="fp32").model
    assert isinstance(model, SpanReaderModel)
    save_reader(tmp_path / "again", model, folder, model.config.to_dict())
    assert isinstance(open_reader(str(tmp_path / "again"), dtype="int8").model, GraphModel)


def test_the_shipped_graph_is_what_the_script_writes(script: Any) -> None:
    shipped = shipped_folder("quoth-reader")
    assert (shipped / GRAPH_FILE).read_bytes() == script.model_of(script.BertConfig.read(shipped)).SerializeToString()


def test_asking_needs_no_torch(tmp_path: Path) -> None:
    corpus = quoth.Corpus.create(tmp_path / "c.quoth")
    corpus.add(
        [quoth.Document("carmen", "Carmen", "Carmen is an opera by Georges Bizet, first heard in Paris in 1875.")]
    )
    program = (
        "import sys, quoth; sys.modules['torch'] = None\n"
        f"reader = quoth.load('quoth-reader', {str(tmp_path / 'c.quoth')!r}, device='cpu')\n"
        "print(reader.ask('Who composed Carmen?')[0].text)"
    )
    environment = {**os.environ, "QUOTH_DTYPE": "auto"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=120)
    assert (done.stdout.strip(), done.returncode) == ("Georges Bizet", 0), done.stderr
