"""A reader in ONNX Runtime: the same odds as in PyTorch."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file
from test_span_reader import QUERY, TEXT, make_reader, passage

from graphs import write_graphs
from quoth.answers.evidence import Source
from quoth.arrays import Floats
from quoth.encoders.bert import round_linears
from quoth.encoders.graph import GraphEncoder
from quoth.errors import InputError, ModelNotFoundError
from quoth.hub import locate
from quoth.reader.config import NEVER, ReaderConfig
from quoth.reader.network import SpanReaderModel
from quoth.reader.runtime import GraphReader, open_reader
from quoth.reader.spans import SpanModel, SpanReader
from quoth.reader.weights import load_reader, save_reader
from quoth.text.tokenizer import PairArrays

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny reader that is stored whole, with its graph."""
    parent = tmp_path_factory.mktemp("runtime")
    tiny = make_reader(parent / "base")
    assert isinstance(tiny.model, SpanReaderModel)
    save_reader(parent / "m", tiny.model, parent / "base", tiny.config.to_dict() | {"base": "nobody/nothing"})
    return write_graphs(parent / "m")


def in_pytorch(folder: Path) -> SpanReader:
    return SpanReader(*load_reader(locate(str(folder), ReaderConfig)))


def odds(model: SpanModel, batch: PairArrays, legal_BTW: NDArray[np.bool_]) -> Floats:
    return model.odds(model.states(batch), batch.mask_BT, legal_BTW)


def test_odds_are_those_of_the_same_weights_in_pytorch(folder: Path) -> None:
    ours, theirs = open_reader(str(folder), dtype="int8").model, in_pytorch(folder).model
    assert isinstance(ours, GraphReader)
    assert isinstance(theirs, SpanReaderModel)
    rng = np.random.default_rng(0)
    mask_BT = (np.arange(24) < np.array([[24], [17], [1]])).astype(np.int64)
    batch = PairArrays(rng.integers(5, 90, (3, 24)) * mask_BT, mask_BT, (np.arange(24) > 6) * mask_BT)
    width = ours.config.span_width
    legal_BTW = (rng.random((3, 24, width)) < 0.5) & (np.arange(24) + width <= 24)[:, None]
    whole = odds(theirs, batch, legal_BTW)
    round_linears(theirs.encoder)
    rounded, found = odds(theirs, batch, legal_BTW), odds(ours, batch, legal_BTW)
    assert ((found == np.float32(NEVER)) == ~legal_BTW).all()
    seen_BTW = legal_BTW & (mask_BT > 0)[:, :, None]
    assert seen_BTW.sum() > 50
    assert np.median(np.abs(found - rounded)[seen_BTW]) < 1e-5
    assert np.abs(found - rounded)[seen_BTW].max() < 0.02  # where a value is rounded the other way
    assert np.median(np.abs(found - whole)[seen_BTW]) > 1e-3  # in fp32 they are others


def test_spans_are_those_of_pytorch(folder: Path) -> None:
    ours, theirs = open_reader(str(folder), dtype="int8"), in_pytorch(folder)
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


def test_a_reader_that_is_stored_as_differences_is_the_same_network(folder: Path, tmp_path: Path) -> None:
    settings = ReaderConfig.from_dict(json.loads((folder / "quoth.json").read_text()) | {"base": str(folder)})
    before, trained = (SpanReaderModel(in_pytorch(folder).model.encoder, settings) for _ in range(2))
    trained.load_state_dict(in_pytorch(folder).model.state_dict())
    trained.encoder = in_pytorch(folder).model.encoder
    with torch.no_grad():
        for number, weight in enumerate(trained.parameters()):
            weight += 0.01 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(number))
        words = trained.encoder.get_input_embeddings().weight
        words.copy_(before.encoder.get_input_embeddings().weight)  # which no training changes
    save_reader(tmp_path / "m", trained, before, settings.to_dict())
    ours, theirs = open_reader(str(tmp_path / "m"), dtype="fp32").model, in_pytorch(tmp_path / "m").model
    assert isinstance(ours, GraphReader)
    mask_BT = (np.arange(24) < np.array([[24], [9]])).astype(np.int64)
    batch = PairArrays(np.random.default_rng(0).integers(5, 90, (2, 24)) * mask_BT, mask_BT, None)
    legal_BTW = np.repeat(mask_BT[:, :, None] > 0, settings.span_width, 2)
    legal_BTW &= (np.arange(24)[:, None] + np.arange(settings.span_width) < 24)[None]
    np.testing.assert_allclose(odds(ours, batch, legal_BTW), odds(theirs, batch, legal_BTW), rtol=1e-4, atol=1e-4)
    stored = load_file(tmp_path / "m" / "reader.safetensors")
    del stored["encoder.encoder.layer.1.output.LayerNorm.bias"]
    save_file(stored, tmp_path / "m" / "reader.safetensors")
    with pytest.raises(ModelNotFoundError, match=r"lacks encoder.encoder.layer.1.output.LayerNorm.bias of"):
        open_reader(str(tmp_path / "m"), dtype="fp32")


def test_pytorch_reads_where_the_graph_cannot(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GraphEncoder, "exact", False)
    assert isinstance(open_reader(str(folder), dtype="int8").model, SpanReaderModel)
    monkeypatch.undo()
    assert isinstance(open_reader(str(folder), dtype="int8").model, GraphReader)


def test_what_is_damaged_is_named(folder: Path, tmp_path: Path) -> None:
    broken = shutil.copytree(folder, tmp_path / "m")
    (broken / "reader.safetensors").write_bytes(b"torn")
    with pytest.raises(ModelNotFoundError, match=r"reader.safetensors is missing or damaged"):
        open_reader(str(broken), dtype="int8")
    settings = json.loads((folder / "quoth.json").read_text()) | {"query_tokens": 245}
    shutil.copyfile(folder / "reader.safetensors", broken / "reader.safetensors")
    (broken / "quoth.json").write_text(json.dumps(settings | {"max_tokens": 400}))
    with pytest.raises(InputError, match="which leaves 8 for a passage"):
        open_reader(str(broken), dtype="int8")


@pytest.mark.parametrize("dtype", ["fp32", "int8"])
def test_evidence_has_upper_layers_for_itself(folder: Path, tmp_path: Path, dtype: str) -> None:
    tiny = make_reader(tmp_path / "base", evidence=True, evidence_layers=1)
    assert isinstance(tiny.model, SpanReaderModel)
    with torch.no_grad():
        for number, weight in enumerate(tiny.model.branch.parameters()):
            weight += 0.05 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(number))
    save_reader(tmp_path / "m", tiny.model, tmp_path / "base", tiny.config.to_dict() | {"base": "nobody/nothing"})
    write_graphs(tmp_path / "m")
    assert isinstance(open_reader(str(tmp_path / "m"), dtype=dtype).model, SpanReaderModel), "no graph of parts"
    write_graphs(tmp_path / "m", cut=1)
    ours, theirs = open_reader(str(tmp_path / "m"), dtype=dtype), in_pytorch(tmp_path / "m")
    assert isinstance(ours.model, GraphReader)
    assert isinstance(theirs.model, SpanReaderModel)
    save_reader(tmp_path / "again", theirs.model, tmp_path / "m", theirs.config.to_dict())
    assert isinstance(open_reader(str(tmp_path / "again"), dtype=dtype).model, GraphReader), "goes on training"
    if dtype == "int8":
        for layers in theirs.model.layers:
            round_linears(layers)
    for most in (None, 2):
        for each in (ours, theirs):
            each.config = replace(each.config, marked_passages=most)
        [mine], [other] = (
            each.read_enough(["who is it"], [[Source(passage(text), "c") for text in TEXT]]) for each in (ours, theirs)
        )
        for found, expected in zip(mine, other, strict=True):
            assert found.total == pytest.approx(expected.total, abs=1e-4 if dtype == "fp32" else 0.1)
            assert found.relevance == pytest.approx(expected.relevance, abs=1e-4 if dtype == "fp32" else 0.1)
            assert found.marks is not None
            assert expected.marks is not None
            np.testing.assert_allclose(found.marks[1], expected.marks[1], atol=1e-4 if dtype == "fp32" else 0.1)


def test_a_reader_that_goes_on_training_keeps_its_graph(folder: Path, tmp_path: Path) -> None:
    model = in_pytorch(folder).model
    assert isinstance(model, SpanReaderModel)
    save_reader(tmp_path / "again", model, folder, model.config.to_dict())
    assert isinstance(open_reader(str(tmp_path / "again"), dtype="int8").model, GraphReader)
