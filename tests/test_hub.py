import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import constants

from quoth import hub
from quoth.config import ModelConfig
from quoth.errors import InputError, ModelNotFoundError
from quoth.hub import (
    MINILM,
    MPNET,
    EncoderSource,
    ModelSource,
    check_name,
    kind_of,
    locate,
    shipped,
    shipped_settings,
)
from quoth.npm.config import NPMConfig
from quoth.reader.config import ReaderConfig
from quoth.realm.config import REALMConfig
from quoth.registry import SYSTEMS, model_config, named
from quoth.storage import sha256_file
from quoth.zero_ner.config import ZeroNERConfig
from tiny import tiny_bert


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def standing_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The tiny model takes the bases' place: its weights are the ones that a named folder must have."""
    for base in (MINILM, MPNET):
        monkeypatch.setitem(hub.BASES, base, (sha256_file(folder / "model.safetensors"),))
    return folder


def test_the_default_base_is_the_shipped_one_or_its_like() -> None:
    shipped_base = Path(locate("quoth-mini", NPMConfig).base)
    assert shipped_base == Path(hub.__file__).parents[2] / "adapters" / "base-mini"
    assert sha256_file(shipped_base / "model.safetensors") in hub.BASES[MINILM]
    named = locate("quoth-mini-base", NPMConfig, str(shipped_base))
    assert (named.base, named.config.base) == (str(shipped_base), MINILM)
    assert locate("quoth-mini-base", NPMConfig) == named


def test_an_installation_without_weights_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "__file__", str(tmp_path / "src" / "quoth" / "hub.py"))
    for name in ("quoth-mini-base", "quoth-mini"):
        with pytest.raises(ModelNotFoundError, match=r"adapter '(base|npm)-mini' is missing .*; reinstall quoth$"):
            locate(name, NPMConfig)


def test_other_weights_are_refused(standing_in: Path, tmp_path: Path) -> None:
    shutil.copytree(standing_in, tmp_path / "other")
    file = tmp_path / "other" / "model.safetensors"
    file.write_bytes(file.read_bytes() + b" ")
    with pytest.raises(ModelNotFoundError, match=r"model.safetensors' has sha256 .*, not that of .*; leave out --base"):
        locate("quoth-mini", NPMConfig, str(tmp_path / "other"))
    with pytest.raises(ModelNotFoundError, match=rf"has sha256 .*, not that of {MPNET} .*; name one of {MPNET}"):
        locate("quoth-base", NPMConfig, str(tmp_path / "other"))
    with pytest.raises(ModelNotFoundError, match=r"has no model.safetensors"):
        locate("quoth-mini", NPMConfig, str(tmp_path / "nowhere"))


def test_training_may_start_from_any_base(standing_in: Path, tmp_path: Path) -> None:
    other = tiny_bert(tmp_path / "other", seed=1)
    assert locate("quoth-mini-base", NPMConfig, str(standing_in)).config.base == MINILM
    for name, kind in (("quoth-mini-base", NPMConfig), ("quoth-reader-base", ReaderConfig)):
        source = locate(name, kind, str(other))
        assert (source.base, source.config.base, source.folder) == (str(other), str(other.resolve()), None)
    config = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps(config | {"_name_or_path": "someone/else"}))
    realm = locate("quoth-realm-base", REALMConfig, str(other))
    assert (realm.config.base, realm.reader) == ("someone/else", None)
    (other / "config.json").write_text(json.dumps(config | {"_name_or_path": MPNET}))
    assert locate("quoth-mini-base", NPMConfig, str(other)).config.base == str(other.resolve())  # it was changed
    with pytest.raises(ModelNotFoundError, match=r"nowhere' has no config.json; name the folder of a base encoder"):
        locate("quoth-mini-base", NPMConfig, str(tmp_path / "nowhere"))


def test_shipped_names(standing_in: Path) -> None:
    for name in SYSTEMS["npm"].shipped:
        source = locate(name, NPMConfig, str(standing_in))
        assert source.config.normalize
        assert source.config.similarity_scale == 20.0
        assert (source.adapter is None) == (name == "quoth-mini-base")
    assert locate("quoth-mini-single", NPMConfig, str(standing_in)).config.num_masks == 1


def test_a_base_that_is_not_shipped_is_on_the_hub_or_in_a_folder(standing_in: Path) -> None:
    assert locate("quoth-base", NPMConfig).base == MPNET
    assert locate("quoth-base", NPMConfig, str(standing_in)).base == str(standing_in)


def test_a_hub_id_is_taken_as_it_is() -> None:
    source = locate("facebook/npm", NPMConfig)
    assert (source.name, source.base, source.adapter) == ("facebook/npm", "facebook/npm", None)
    assert source.config == NPMConfig(base="facebook/npm")
    assert locate("facebook/npm-single", NPMConfig).config.num_masks == 1
    assert locate("someone/else", NPMConfig).config == NPMConfig(base="someone/else")
    assert locate("facebook/npm", NPMConfig, "a folder").base == "a folder"


def test_a_folder_of_a_whole_model(folder: Path, tmp_path: Path) -> None:
    assert locate(str(folder), NPMConfig).base == str(folder)
    shutil.copytree(folder, tmp_path / "model")
    settings = NPMConfig(similarity_scale=3.0, normalize=True, num_masks=1)
    (tmp_path / "model" / "quoth.json").write_text(json.dumps(settings.to_dict()))
    source = locate(str(tmp_path / "model"), NPMConfig)
    assert source.config == settings
    assert source.base == str(tmp_path / "model")


def test_a_folder_of_an_adapter(standing_in: Path, tmp_path: Path) -> None:
    (tmp_path / "quoth.json").write_text(json.dumps(NPMConfig(base=MINILM).to_dict()))
    (tmp_path / "adapter_config.json").write_text("{}")
    source = locate(str(tmp_path), NPMConfig, str(standing_in))
    assert source.adapter == tmp_path
    assert source.base == str(standing_in)


def test_a_folder_as_peft_saves_it_names_its_base(tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text('{"base_model_name_or_path": "roberta-base"}')
    source = locate(str(tmp_path), NPMConfig)
    assert (source.base, source.config.base, source.adapter) == ("roberta-base", "roberta-base", tmp_path)
    assert locate("bert-base-uncased", NPMConfig).base == "bert-base-uncased"


@pytest.mark.parametrize("name", ["quoth-maxi", "/no/such/folder", "./nothing", "a/b/c"])
def test_unknown_names(name: str) -> None:
    with pytest.raises(ModelNotFoundError, match=r"not found; name quoth-mini, .* a folder, or a hub id") as error:
        locate(name, NPMConfig)
    assert repr(name) in str(error.value)


def test_folders_that_hold_no_model(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match=r"has no model; it needs config.json, or an adapter with quoth.json"):
        locate(str(tmp_path), NPMConfig)
    (tmp_path / "quoth.json").write_text('{"scale": 3}')
    with pytest.raises(InputError, match="unknown setting 'scale'; use one of"):
        locate(str(tmp_path), NPMConfig)
    (tmp_path / "quoth.json").write_text("{")
    with pytest.raises(InputError, match=r"quoth.json.*JSON"):
        locate(str(tmp_path), NPMConfig)


# REALM


def test_an_untrained_realm_is_its_base_and_a_reader_that_knows_masks(standing_in: Path) -> None:
    source = locate("quoth-realm-base", REALMConfig, str(standing_in))
    assert (source.name, source.folder, source.heads) == ("quoth-realm-base", None, None)
    assert source.config == shipped_settings("quoth-realm-base")
    assert source.part("passages") == source.part("queries") == EncoderSource(str(standing_in))
    reader = source.part("reader")
    assert (reader.base, reader.adapter) == (str(standing_in), source.reader)
    assert locate("quoth-mini-single", NPMConfig, str(standing_in)).adapter == source.reader


def test_the_parts_of_a_folder(tmp_path: Path) -> None:
    config = REALMConfig(base="someone/bert", revision="abc", separate_towers=True)
    (tmp_path / "quoth.json").write_text(json.dumps(config.to_dict()))
    for name, file in (("passages", "config.json"), ("queries", "adapter_config.json"), ("reader", "other")):
        (tmp_path / name).mkdir()
        (tmp_path / name / file).write_text("{}")
    source = locate(str(tmp_path), REALMConfig)
    assert source == ModelSource(str(tmp_path), config, tmp_path, "someone/bert")
    assert source.heads == tmp_path / "heads.safetensors"
    assert source.part("passages") == EncoderSource(str(tmp_path / "passages"))
    assert source.part("queries") == EncoderSource("someone/bert", tmp_path / "queries", "abc")
    assert source.part("reader") == EncoderSource("someone/bert", None, "abc")
    assert locate(str(tmp_path), REALMConfig, "a folder").part("reader").base == "a folder"
    (tmp_path / "quoth.json").write_text(json.dumps(REALMConfig().to_dict()))
    whole = locate(str(tmp_path), REALMConfig)
    assert whole.part("passages") == EncoderSource(str(tmp_path / "passages"))
    with pytest.raises(ModelNotFoundError, match="queries' has no encoder; fetch or train the model again"):
        whole.part("queries")


def test_kinds_of_models(tmp_path: Path) -> None:
    assert {kind_of(name) for name in (*SYSTEMS["npm"].shipped, "someone/else", str(tmp_path))} == {"npm"}
    assert {kind_of(name) for name in SYSTEMS["realm"].shipped} == {"realm"}
    for config in (NPMConfig(), REALMConfig()):
        (tmp_path / "quoth.json").write_text(json.dumps(config.to_dict()))
        assert kind_of(str(tmp_path)) == config.kind
    (tmp_path / "quoth.json").write_text('{"similarity_scale": 3}')
    assert kind_of(str(tmp_path)) == "npm"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"kind": "poem"}', "model kind 'poem'; use one of npm, reader, tagger, realm"),
        ('{"kind": ["npm"]}', r"model kind \['npm'\]; use one of npm, reader, tagger, realm"),
        ('{"kind": "realm", "num_masks": 2}', "unknown setting 'num_masks'; use one of kind, base"),
        ("[1]", "quoth.json' is not a JSON object of settings; fix it or train again"),
        ("{", "quoth.json' is not JSON"),
    ],
)
def test_settings_that_are_no_models(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "quoth.json").write_text(content)
    for find in (partial(locate, kind=NPMConfig), partial(locate, kind=REALMConfig), kind_of):
        with pytest.raises(InputError, match=message):
            find(str(tmp_path))


@pytest.mark.parametrize("kind", [named(row.config) for row in SYSTEMS.values()])
def test_a_shipped_name_is_of_one_kind(standing_in: Path, kind: type[ModelConfig]) -> None:
    for name in shipped():
        if kind is ZeroNERConfig and name != "quoth-zero-ner":
            assert locate(name, kind).config == ZeroNERConfig(base=name)
        elif named(SYSTEMS[kind_of(name)].config) is kind:
            source = locate(name, kind, str(standing_in))
            assert (source.name, type(source.config)) == (name, kind)
            assert (source.folder is None) == (shipped_settings(name) is not None)
        else:
            with pytest.raises(
                InputError, match=rf"model '{name}' is of kind '{kind_of(name)}'; kind '.*' is required"
            ):
                locate(name, kind, str(standing_in))


def test_the_settings_of_a_zero_ner_count_even_beside_a_luke(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "luke"}')
    assert locate(str(tmp_path), ZeroNERConfig).config == ZeroNERConfig(base=str(tmp_path))
    (tmp_path / "quoth.json").write_text('{"kind": "zero-ner", "base": "studio-ousia/luke-base", "joint": false}')
    assert locate(str(tmp_path), ZeroNERConfig).config == ZeroNERConfig(base="studio-ousia/luke-base", joint=False)


def test_settings_come_back() -> None:
    for config in (NPMConfig(num_masks=1), REALMConfig(pooling="mean", layer_norm_eps=None, dimensions=0)):
        assert model_config(json.loads(json.dumps(config.to_dict()))) == config


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"pooling": "max"}, "pooling is 'max'; it must be one of cls, mean"),
        ({"dimensions": -1}, "dimensions is -1; it must be 0 or more"),
        ({"span_width": 0}, "span_width is 0; it must be 1 or more"),
        ({"num_candidates": 1}, "num_candidates is 1; it must be 2 or more"),
        ({"passage_tokens": 32.0}, "passage_tokens is 32.0; it must be a whole number, 16 or more"),
        ({"span_hidden": True}, "span_hidden is True; it must be a whole number"),
        ({"normalize": 1}, "normalize is 1; it must be true or false"),
        ({"similarity_scale": 0}, "similarity_scale is 0; it must be above 0"),
        ({"similarity_scale": float("nan")}, "similarity_scale is nan; it must be a finite number, above 0"),
        ({"layer_norm_eps": -1.0}, "layer_norm_eps is -1.0; it must be above 0, or None"),
        ({"query_tokens": 64, "reader_tokens": 79}, "reader_tokens 79 with query_tokens 64; .* 16 more than"),
        ({"kind": "npm"}, "model kind 'npm'; it must be 'realm'"),
    ],
)
def test_settings_of_a_realm_that_cannot_be(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        REALMConfig.from_dict(settings)


def test_a_name_is_checked_without_asking_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    check_name("quoth-realm")
    check_name("someone/model")  # the hub may have it
    for name in ("model", "./model", "/some/model", "some/where/model"):
        with pytest.raises(
            ModelNotFoundError, match=rf"^no model '{name}'; name quoth-mini, .* or a hub id: OWNER/NAME$"
        ):
            check_name(name)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(ModelNotFoundError, match=r"^no model 'someone/model'; .*HF_HUB_OFFLINE is set"):
        check_name("someone/model")
    for cached in ("models--someone--model", "models--model"):
        (tmp_path / cached).mkdir()
    check_name("someone/model")
    check_name("model")
