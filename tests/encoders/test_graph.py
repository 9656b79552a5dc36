"""Encoders in ONNX Runtime: the same numbers as PyTorch's, and when they are chosen."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from errno import EMFILE
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file as load_arrays
from safetensors.torch import load_file, save_file

import quoth
from graphs import graph_script, write_graphs
from quoth.encoders import graph
from quoth.encoders.bert import round_linears
from quoth.encoders.encoder import fingerprint_of, shipped_fingerprint
from quoth.encoders.graph import GraphEncoder, graph_formats, open_encoder
from quoth.encoders.rounding import names_of, whole
from quoth.encoders.transformer import Transformer
from quoth.errors import InputError, ModelNotFoundError
from quoth.hub import GRAPH_FORMATS, EncoderSource, graph_file, locate
from quoth.realm.config import REALMConfig
from quoth.text.tokenizer import FastTokenizer, PairArrays
from tiny import tiny_bert

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny BERT with its graphs."""
    return write_graphs(tiny_bert(tmp_path_factory.mktemp("graph") / "base"))


@pytest.fixture(scope="module")
def adapter(folder: Path) -> Path:
    """A LoRA adapter to it, of two layers."""
    rng, place = torch.Generator().manual_seed(0), folder.parent / "adapter"
    place.mkdir()
    weights = {}
    for name, rows, columns in (("attention.self.value", 32, 32), ("output.dense", 32, 64)):
        for part, shape in (("A", (4, columns)), ("B", (rows, 4))):
            key = f"base_model.model.encoder.layer.1.{name}.lora_{part}.weight"
            weights[key] = torch.randn(shape, generator=rng).half() / 4
    save_file(weights, place / "adapter_model.safetensors")
    (place / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": 4, "lora_alpha": 8}))
    return place


def arrays() -> PairArrays:
    rng = np.random.default_rng(0)
    mask_BT = (np.arange(24) < np.array([[24], [17], [1]])).astype(np.int64)
    return PairArrays(rng.integers(5, 90, (3, 24)) * mask_BT, mask_BT, (np.arange(24) > 6) * mask_BT)


def both(source: EncoderSource, dtype: str) -> tuple[GraphEncoder, Transformer]:
    ours, theirs = open_encoder(source, dtype=dtype), Transformer.load(source, dtype="fp32")
    assert isinstance(ours, GraphEncoder)
    if dtype == "int8":
        round_linears(theirs.model)
    assert (ours.dimensions, ours.max_tokens, ours.pad_id) == (theirs.dimensions, theirs.max_tokens, theirs.pad_id)
    return ours, theirs


@pytest.mark.parametrize("adapted", [False, True])
def test_states_are_those_of_pytorch(folder: Path, adapter: Path, adapted: bool) -> None:
    source, batch = EncoderSource(str(folder), adapter if adapted else None), arrays()
    ours, theirs = both(source, "fp32")
    seen = batch.mask_BT > 0
    added_BTD = np.random.default_rng(1).normal(size=(*seen.shape, ours.dimensions)).astype(np.float32)
    for types in (batch.types_BT, None):
        for added in (added_BTD, None):
            given = PairArrays(batch.ids_BT, batch.mask_BT, types)
            found, wanted = ours.states(given, added), theirs.states(given, added)
            np.testing.assert_allclose(found[seen], wanted[seen], atol=2e-5)
    assert ours.fingerprint == theirs.fingerprint


def test_states_in_8_bits_are_those_of_pytorchs_8_bits(folder: Path, adapter: Path) -> None:
    batch, source = arrays(), EncoderSource(str(folder), adapter)
    ours, theirs = both(source, "int8")
    seen = batch.mask_BT > 0
    found, rounded = ours.states(batch)[seen], theirs.states(batch)[seen]
    whole = Transformer.load(source, dtype="fp32").states(batch)[seen]
    assert np.median(np.abs(found - rounded)) < 1e-5
    assert np.abs(found - rounded).max() < 0.2  # where a value is rounded the other way
    assert np.median(np.abs(found - whole)) > 1e-3  # in fp32 they are others


def test_every_input_is_encoded_as_if_it_were_alone(folder: Path) -> None:
    encoder = open_encoder(EncoderSource(str(folder)), dtype="fp32")
    inputs = [np.arange(length) % 90 + 5 for length in (3, 40, 1, 17, 200)]
    for ids, states_TD in zip(inputs, encoder.encode(inputs), strict=True):
        assert states_TD.shape == (len(ids), 32)
        np.testing.assert_allclose(states_TD, encoder.encode([ids])[0], atol=1e-5)


def test_weights_that_are_stored_in_8_bits_are_taken_as_they_are(folder: Path, tmp_path: Path) -> None:
    from quoth.reader.weights import save_encoder

    stored = load_file(folder / "model.safetensors")
    save_encoder(tmp_path / "rounded", stored, folder)
    for dtype in GRAPH_FORMATS:
        ours, theirs = both(EncoderSource(str(tmp_path / "rounded")), dtype)
        found, wanted = ours.states(arrays()), theirs.states(arrays())
        assert np.median(np.abs(found - wanted)[arrays().mask_BT > 0]) < 1e-5
        assert ours.fingerprint == theirs.fingerprint


@pytest.mark.parametrize(
    ("device", "dtype", "variable", "chosen"),
    [
        (None, None, "", ["int8", "fp32"]),
        ("cpu", "auto", "fp32", ["int8", "fp32"]),
        (None, "int8", "fp32", ["int8"]),
        (None, None, "int8", ["int8"]),
        (None, None, "fp32", ["fp32"]),
        (None, "bf16", "", []),
        ("cuda", None, "", []),
        ("cuda", "int8", "", []),
    ],
)
def test_when_it_is_chosen(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    device: str | None,
    dtype: str | None,
    variable: str,
    chosen: list[str],
) -> None:
    monkeypatch.setenv("QUOTH_DTYPE", variable)
    monkeypatch.setattr(graph, "_GPU_DRIVERS", ())
    monkeypatch.setattr(graph, "_has_amx", lambda: False)
    assert list(graph_formats(str(folder), device, dtype)) == chosen
    assert not graph_formats("elsewhere", device, dtype)


def test_what_this_machine_has_decides(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QUOTH_DTYPE")
    monkeypatch.setattr(graph, "_work_is_long", False)
    monkeypatch.setattr(graph, "_GPU_DRIVERS", (str(folder),))  # exists
    assert not graph_formats(str(folder), None, None)
    assert graph_formats(str(folder), "cpu", "int8") == ["int8"]
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "torch", None)
        assert graph_formats(str(folder), None, "fp32") == ["fp32"]  # a GPU is of no use then
    monkeypatch.setattr(graph, "_has_amx", lambda: True)
    assert not graph_formats(str(folder), "cpu", None)  # PyTorch is there already, and faster
    monkeypatch.delitem(sys.modules, "torch")
    assert graph_formats(str(folder), "cpu", None)


def test_where_sums_of_8_bits_are_not_exact_other_formats_are_used(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph, "_has_amx", lambda: False)
    source = EncoderSource(str(folder))
    exact = GraphEncoder.exact.fget
    assert exact is not None
    monkeypatch.setattr(GraphEncoder, "exact", property(lambda self: self.dtype == "fp32" and exact(self)))
    found = open_encoder(source, device="cpu", dtype="auto")
    assert isinstance(found, GraphEncoder)
    assert found.dtype == "fp32"
    assert isinstance(open_encoder(source, device="cpu", dtype="int8"), Transformer)


def test_an_adapter_in_bf16_is_read(folder: Path, adapter: Path, tmp_path: Path) -> None:
    half = shutil.copytree(adapter, tmp_path / "half")
    weights = {name: each.bfloat16() for name, each in load_file(adapter / "adapter_model.safetensors").items()}
    save_file(weights, half / "adapter_model.safetensors")
    source = EncoderSource(str(folder), half)
    # NumPy has no bf16 where nothing brought it; then PyTorch reads it.
    found, wanted = open_encoder(source, dtype="fp32").states(arrays()), Transformer.load(source).states(arrays())
    np.testing.assert_allclose(found[arrays().mask_BT > 0], wanted[arrays().mask_BT > 0], atol=2e-5)


def test_pytorch_encodes_without_onnx_runtime(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)  # not installed
    assert isinstance(open_encoder(EncoderSource(str(folder)), dtype="fp32"), Transformer)


def test_what_is_damaged_is_named(folder: Path, adapter: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opens = Path.open

    def refused(path: Path, *given: Any, **options: Any) -> Any:
        if path.parent == broken and path.name == torn:
            raise OSError(EMFILE, os.strerror(EMFILE), str(path))
        return opens(path, *given, **options)

    broken = shutil.copytree(folder, tmp_path / "m")
    graph_file(broken, "fp32").write_bytes(b"torn")
    with pytest.raises(ModelNotFoundError, match=r"fp32.onnx does not fit the weights beside it \(.*; fetch it again"):
        open_encoder(EncoderSource(str(broken)), dtype="fp32")
    (broken / "model.safetensors").write_bytes(b"torn")
    with pytest.raises(ModelNotFoundError, match=r"model.safetensors is damaged \(.*; fetch it again"):
        open_encoder(EncoderSource(str(broken)), dtype="fp32")
    monkeypatch.setattr(Path, "open", refused)  # no file could be opened at that moment
    for torn in ("model.safetensors", "fp32.onnx"):
        with pytest.raises(OSError, match=f"Too many open files: .*{torn}"):
            open_encoder(EncoderSource(str(broken)), dtype="fp32")
        shutil.copy(folder / "model.safetensors", broken)
    monkeypatch.undo()
    other = shutil.copytree(adapter, tmp_path / "other")
    weights = load_file(adapter / "adapter_model.safetensors")
    for name, wrong in (("layer.1", "layer.9"), ("output.dense", "intermediate.dense")):
        save_file(
            {key.replace(name, wrong): each for key, each in weights.items()}, other / "adapter_model.safetensors"
        )
        with pytest.raises(InputError, match=r"does not fit its base at encoder.layer.*; name the base it was trained"):
            open_encoder(EncoderSource(str(folder), other), dtype="fp32")


@pytest.mark.parametrize(
    ("name", "layers"), [("base-mini", None), ("reader", None), ("reader", (0, 8)), ("reader", (8, 12))]
)
def test_the_shipped_graphs_are_what_the_script_writes(name: str, layers: tuple[int, int] | None) -> None:
    script = graph_script()
    shipped = REPOSITORY / "adapters" / name
    for dtype in GRAPH_FORMATS:
        made = script.model_of(script.BertConfig.read(shipped), dtype, layers)
        assert graph_file(shipped, dtype, layers).read_bytes() == made.SerializeToString()


PROGRAM = """
import sys, quoth; sys.modules['torch'] = None
corpus = quoth.Corpus.open(sys.argv[1])
reader = quoth.load('quoth-reader', corpus)
print(reader.ask('Who composed Carmen?')[0].text)
print(quoth.load('quoth-reader-small', corpus).ask('Who composed Carmen?')[0].text)
for name in ('quoth-mini', 'quoth-mini-single', 'quoth-mini-base', 'quoth-zero-ner', 'quoth-realm'):
    quoth.load(name, corpus).embed()
npm = quoth.load('quoth-mini', corpus)
print(npm.fill('Carmen is an opera by [MASK].')[0].text, '|', npm.fill('An opera by [MASK].', passages=None)[0].text)
print(quoth.load('quoth-mini-single', corpus).fill('Carmen is an [MASK] by Bizet.', passages=None)[0].text)
print(quoth.load('quoth-realm', corpus).ask('Who composed Carmen?')[0].text)
print(quoth.load('quoth-zero-ner', corpus).search('What did Georges Bizet write?')[0].passage.title)
print(quoth.Tagger.load().spans(['Carmen was heard in Paris.'])[0][-1].label)
print(reader.search('operas', mode='hybrid')[0].passage.title)
"""


def test_the_shipped_base_is_known_by_its_files(tmp_path: Path) -> None:
    folder = Path(locate("quoth-realm", REALMConfig).base)
    stored, tokenizer = load_arrays(folder / "model.safetensors"), FastTokenizer(folder)
    weights = ((name, whole(stored, name)) for name in sorted(names_of(stored)))
    assert shipped_fingerprint(folder) == fingerprint_of(weights, tokenizer, None)
    copy = shutil.copytree(folder, tmp_path / "copy")
    assert shipped_fingerprint(copy) == shipped_fingerprint(folder)
    (copy / "tokenizer_config.json").write_text('{"mask_token": "[UNK]"}')
    assert shipped_fingerprint(copy) is None


def test_no_shipped_model_needs_torch(tmp_path: Path) -> None:
    """In the default number format; in fp32 the graphs answer in every other test."""
    corpus = quoth.Corpus.create(tmp_path / "c.quoth")
    corpus.add(
        [quoth.Document("carmen", "Carmen", "Carmen is an opera by Georges Bizet, first heard in Paris in 1875.")]
    )
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(corpus.path)],
        env={**os.environ, "QUOTH_DTYPE": "auto"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    bizet = "Georges Bizet"
    assert done.stdout.splitlines() == [bizet, bizet, f"{bizet} | {bizet}", "opera", bizet, "Carmen", "LOC", "Carmen"]


def without_torch(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A command where neither PyTorch nor what trains with it is installed."""
    program = (
        "import sys; sys.modules.update(dict.fromkeys(['torch', 'transformers', 'peft']))\n"
        "from quoth.cli.main import main; sys.exit(main())"
    )
    return subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=120)


def test_what_is_damaged_is_named_without_torch_too(folder: Path, tmp_path: Path) -> None:
    broken = shutil.copytree(folder, tmp_path / "m")
    (broken / "model.safetensors").write_bytes(b"torn")
    (tmp_path / "notes.txt").write_text("Carmen is an opera by Georges Bizet.")
    corpus = str(tmp_path / "c.quoth")
    assert without_torch("index", str(tmp_path / "notes.txt"), "-o", corpus).returncode == 0
    done = without_torch("embed", corpus, "--model", str(broken))
    assert done.returncode == 2
    assert "model.safetensors is damaged" in done.stderr
    assert "PyTorch" not in done.stderr


def test_what_needs_torch_says_so(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("Carmen is an opera by Georges Bizet.")
    (tmp_path / "tiny").mkdir()
    tiny_bert(tmp_path / "tiny")
    corpus = str(tmp_path / "c.quoth")
    assert without_torch("index", str(tmp_path / "notes.txt"), "-o", corpus).returncode == 0
    remedy = "is not installed: pip install 'quoth[torch]' (in a clone: make torch)"
    for what, arguments in (
        ("recipe adapt", ["train", "adapt", str(tmp_path / "notes.txt"), "-o", str(tmp_path / "out")]),
        ("quoth-reader on device auto in dtype bf16", ["ask", corpus, "--dtype", "bf16", "Who?"]),
        ("tiny on device auto in dtype fp32", ["embed", corpus, "--model", str(tmp_path / "tiny")]),
        (
            "base-mini on device cuda in dtype fp32",
            ["fill", corpus, "--model", "quoth-mini-single", "--device", "cuda", "[MASK]"],
        ),
    ):
        done = without_torch(*arguments)
        assert done.returncode == 2, done.stderr
        assert what in done.stderr
        assert done.stderr.strip().endswith(remedy)


@pytest.mark.parametrize("amx", [False, True])
def test_long_work_prefers_pytorch_where_that_is_faster(amx: bool) -> None:
    program = f"""
import sys
from quoth.encoders import graph
from quoth.hub import locate
from quoth.npm.config import NPMConfig
graph._has_amx = lambda: {amx}
base = locate("quoth-mini", NPMConfig).base
print(graph.graph_formats(base, "cpu", "auto") == graph.GRAPH_FORMATS)
graph.prefer_pytorch()
print(not graph.graph_formats(base, "cpu", "auto"), "torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", str(amx), "False"]
