"""Which checkpoints make a model together, in which files, and what is refused.

What a converted model computes is in test_conversion.py.
"""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import huggingface_hub
import pytest
import torch
from huggingface_hub.errors import LocalEntryNotFoundError
from safetensors.torch import load_file, save_file
from torch import Tensor

from quoth import REALM
from quoth.cli.main import main
from quoth.errors import InputError, ModelNotFoundError
from quoth_eval.convert import convert

GOLDEN = Path(__file__).parents[1] / "golden" / "realm"


def variant(tmp_path: Path, name: str, change: Any = None, **settings: Any) -> str:
    """A copy of a checkpoint with its weights and settings changed."""
    folder = tmp_path / name
    shutil.copytree(GOLDEN / name, folder)
    weights = load_file(folder / "model.safetensors")
    if change is not None:
        change(weights)
    save_file(weights, folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps({**config, **settings}), encoding="utf-8")
    return str(folder)


def contents(folder: Path) -> dict[str, bytes]:
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize("zipped", [True, False])
def test_pickled_tensors_are_read_in_both_of_torchs_formats(openqa: Path, tmp_path: Path, zipped: bool) -> None:
    folders = [tmp_path / "openqa", tmp_path / "embedder"]
    for folder in folders:
        shutil.copytree(GOLDEN / folder.name, folder)
        weights = load_file(folder / "model.safetensors")
        torch.save(weights, folder / "pytorch_model.bin", _use_new_zipfile_serialization=zipped)
        (folder / "model.safetensors").unlink()
    convert([str(folder) for folder in folders], tmp_path / "model")
    assert contents(tmp_path / "model") == contents(openqa)


def test_the_scorer_is_the_embedder_and_the_reader_the_open_qa_models(
    pretrained: Path, openqa: Path, tmp_path: Path
) -> None:
    convert([str(GOLDEN / "encoder"), str(GOLDEN / "scorer")], tmp_path / "scored")
    assert contents(tmp_path / "scored") == contents(pretrained)
    convert([str(GOLDEN / "reader"), str(GOLDEN / "embedder")], tmp_path / "read")
    for file in ("reader/model.safetensors", "passages/model.safetensors"):
        assert (tmp_path / "read" / file).read_bytes() == (openqa / file).read_bytes()
    assert not (tmp_path / "read" / "queries").exists()


def test_a_scorer_with_two_embedders_keeps_both(tmp_path: Path) -> None:
    def turned(weights: dict[str, Tensor]) -> None:
        weights["query_embedder.cls.dense.bias"] += 1

    convert([variant(tmp_path, "scorer", turned), str(GOLDEN / "encoder")], tmp_path / "model")
    model = REALM.from_pretrained(tmp_path / "model")
    assert model.config.separate_towers
    passage, query = (tower.projection for tower in (model.encoder.passage_tower, model.encoder.query_tower))
    assert passage is not None
    assert query is not None
    torch.testing.assert_close(query.bias, passage.bias + 1)


def test_an_encoder_brings_no_span_reader_and_that_is_said(pretrained: Path, tmp_path: Path) -> None:
    checkpoints = [str(GOLDEN / "embedder"), str(GOLDEN / "encoder")]
    (note,) = convert(checkpoints, tmp_path / "again")
    assert "no span reader yet" in note
    assert contents(tmp_path / "again") == contents(pretrained)


def test_a_hub_id_is_fetched(pretrained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda name, **_: str(GOLDEN / name.rpartition("-")[2]))
    convert([f"google/realm-cc-news-pretrained-{part}" for part in ("embedder", "encoder")], tmp_path / "model")
    assert contents(tmp_path / "model") == contents(pretrained)


# Refusals


def test_offline_the_remedy_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offline = Mock(side_effect=LocalEntryNotFoundError("offline, and nothing in the cache"))
    monkeypatch.setattr(huggingface_hub, "snapshot_download", offline)
    with pytest.raises(ModelNotFoundError, match=r"'google/realm-orqa-nq-openqa' .* name its folder$"):
        convert(["google/realm-orqa-nq-openqa"], tmp_path / "model")


@pytest.mark.parametrize(
    "names", [["encoder"], ["embedder"], ["reader", "encoder", "embedder"], ["embedder", "scorer", "encoder"], []]
)
def test_what_makes_no_model_is_refused(tmp_path: Path, names: list[str]) -> None:
    with pytest.raises(InputError, match=r"cannot be made a model; name one open-QA checkpoint"):
        convert([str(GOLDEN / name) for name in names], tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_other_models_are_refused(tmp_path: Path) -> None:
    for settings in ({"model_type": "bert"}, {"architectures": ["BertModel"]}):
        folder = variant(tmp_path / str(len(list(tmp_path.iterdir()))), "openqa", **settings)
        with pytest.raises(InputError, match="not a published REALM; use one of RealmEmbedder, "):
            convert([folder], tmp_path / "model")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelNotFoundError, match=r"has no config\.json"):
        convert([str(tmp_path / "empty")], tmp_path / "model")
    with pytest.raises(InputError, match="hidden_act 'relu'; use one of gelu, "):
        convert([variant(tmp_path / "relu", "openqa", hidden_act="relu")], tmp_path / "model")


@pytest.mark.parametrize(
    ("checkpoint", "name"),
    [
        ("openqa", "generator.bias"),
        ("openqa", "embedder.realm.decoder.bias"),
        ("openqa", "reader.realm.encoder.layer.7.output.dense.weight"),
        ("openqa", "embedder.cls.dense.scale"),
    ],
)
def test_unknown_weights_are_named(tmp_path: Path, checkpoint: str, name: str) -> None:
    folder = variant(tmp_path, checkpoint, lambda weights: weights.update({name: torch.zeros(3)}))
    with pytest.raises(InputError, match=rf"no RealmForOpenQA has a weight '{name}'"):
        convert([folder], tmp_path / "model")


@pytest.mark.parametrize(
    "name",
    [
        "embedder.cls.dense.weight",
        "embedder.realm.pooler.dense.bias",
        "reader.realm.embeddings.LayerNorm.weight",
        "reader.qa_outputs.dense_output.bias",
        "reader.cls.predictions.bias",
    ],
)
def test_missing_weights_are_named(tmp_path: Path, name: str) -> None:
    short = variant(tmp_path / "short", "openqa", lambda weights: weights.update({name: weights[name][:-1].clone()}))
    with pytest.raises(ModelNotFoundError, match=rf"{name} is of shape \[.*\], its config.json requires \["):
        convert([short], tmp_path / "model")
    with pytest.raises(ModelNotFoundError, match=f"{name} is missing"):
        convert([variant(tmp_path / "none", "openqa", lambda weights: weights.pop(name))], tmp_path / "model")


def test_weights_that_are_not_there_or_damaged(tmp_path: Path) -> None:
    folder = Path(variant(tmp_path, "openqa"))
    (folder / "model.safetensors").write_bytes(b"nonsense")
    with pytest.raises(ModelNotFoundError, match=r"model\.safetensors is damaged"):
        convert([str(folder)], tmp_path / "model")
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelNotFoundError, match=r"has no model\.safetensors and no pytorch_model\.bin"):
        convert([str(folder)], tmp_path / "model")


class Trap:
    """Pickled, it writes a file when it is loaded."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.write_text, (self.file, "sprung")


def test_pickles_of_more_than_tensors_are_refused_and_never_run(tmp_path: Path) -> None:
    folder = Path(variant(tmp_path, "openqa"))
    (folder / "model.safetensors").unlink()
    file, sprung = folder / "pytorch_model.bin", tmp_path / "sprung"
    saved = (
        lambda: torch.save({"weight": Trap(sprung)}, file),
        lambda: file.write_bytes(pickle.dumps(Trap(sprung))),
        lambda: torch.save({"step": 3}, file),
        lambda: torch.save([torch.zeros(2)], file),
        lambda: file.write_bytes(b""),
        lambda: file.write_bytes(b"nonsense"),
    )
    for save in saved:
        save()
        with pytest.raises(InputError, match=r"pytorch_model\.bin is damaged or holds more than tensors"):
            convert([str(folder)], tmp_path / "model")
    assert not sprung.exists()


def test_a_tokenizer_is_wanted_that_fits(tmp_path: Path) -> None:
    folder = Path(variant(tmp_path, "openqa"))
    vocabulary = (folder / "vocab.txt").read_text(encoding="utf-8")
    (folder / "vocab.txt").write_text(vocabulary + "one\nmore\n", encoding="utf-8")
    with pytest.raises(ModelNotFoundError, match=r"the tokenizer has 57 tokens, .* knows 55"):
        convert([str(folder)], tmp_path / "model")
    (folder / "vocab.txt").unlink()
    with pytest.raises(ModelNotFoundError, match=r"has no tokenizer\.json and no vocab\.txt"):
        convert([str(folder)], tmp_path / "model")


# The command line


def test_the_command(tmp_path: Path, openqa: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checkpoints = [str(GOLDEN / "openqa"), str(GOLDEN / "embedder")]
    assert main(["convert", *checkpoints, "-o", str(tmp_path / "model")]) == 0
    assert contents(tmp_path / "model") == contents(openqa)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "run quoth embed on your corpus" in captured.err
    assert captured.err.endswith(f"the model is in {tmp_path / 'model'}\n")
    assert main(["convert", *checkpoints, "-o", str(tmp_path / "model")]) == 2
    assert capsys.readouterr().err == f"quoth: {tmp_path / 'model'} is there already; name a new folder\n"
    assert main(["convert", str(GOLDEN / "embedder"), "-o", str(tmp_path / "other")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
