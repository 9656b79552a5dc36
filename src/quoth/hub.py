"""The registry of models: which names there are, of what kind each is, and where its files are.

Knows: shipped and published names, model folders (`quoth.json` with an optional PEFT adapter next to it; a REALM has a
subfolder for each of its encoders), the default base encoder and where it is. Does not know: what an encoder computes.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar

from quoth.config import ModelConfig
from quoth.errors import InputError, ModelNotFoundError, nearest
from quoth.registry import DEFAULT, SYSTEMS, System, model_config, named, system_of
from quoth.registry import MINILM as MINILM
from quoth.registry import MPNET as MPNET
from quoth.storage import read_json, sha256_file

BASES = {
    MINILM: (
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        "935f1c100fbc88aab21a60c53bf3f91260660771c8a576a63cb513088f8a0259",
    ),
    MPNET: ("78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658",),
}
"""The digests of the weights of the shipped models' bases: as their authors published them; the default one's rounded
as well, as it is shipped."""
MINILM_FOLDER = "base-mini"
SETTINGS_FILE = "quoth.json"
HEADS_FILE = "heads.safetensors"
READER_FILE = "reader.safetensors"
WEIGHTS = "model.safetensors"
"""An encoder's, in its folder."""
GRAPH_FORMATS = ("int8", "fp32")
"""The number formats of the graphs that some encoders have next to their weights."""

C = TypeVar("C", bound=ModelConfig)
C_co = TypeVar("C_co", bound=ModelConfig, covariant=True)


@dataclass(frozen=True, slots=True)
class EncoderSource:
    """Where to load one encoder from: the base's folder or hub id and revision, the folder of an adapter to it."""

    base: str
    adapter: Path | None = None
    revision: str | None = None


@dataclass(frozen=True, slots=True)
class ModelSource(Generic[C_co]):
    """Where to load a model from: its settings, its folder (None if it has no weights of its own), the base encoder's
    folder or hub id, and the adapter that the reader of an untrained REALM starts from."""

    name: str
    config: C_co
    folder: Path | None
    base: str
    reader: Path | None = None

    @property
    def adapter(self) -> Path | None:
        """The model's folder if it contains an adapter to the base."""
        adapted = self.folder is not None and (self.folder / "adapter_config.json").is_file()
        return self.folder if adapted else None

    @property
    def is_whole(self) -> bool:
        """Whether the model's folder is that of its base encoder too."""
        return self.folder is not None and self.base == str(self.folder)

    @property
    def encoder(self) -> EncoderSource:
        """The encoder of a model that has only one."""
        return EncoderSource(self.base, self.adapter, self.config.revision)

    @property
    def heads(self) -> Path | None:
        """The file of a REALM's weights that are not an encoder's; None if it is untrained."""
        return None if self.folder is None else self.folder / HEADS_FILE

    def part(self, name: str) -> EncoderSource:
        """One of a REALM's encoders, "passages", "queries" or "reader": whole, an adapter to the base, or the base
        alone.

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


def graph_file(folder: Path, dtype: str, layers: tuple[int, int] | None = None) -> Path:
    """The file of an encoder's graph for ONNX Runtime: of all its layers, or from one up to another."""
    return folder / (f"{dtype}.onnx" if layers is None else f"{dtype}.{layers[0]}-{layers[1]}.onnx")


def shipped() -> list[str]:
    """The names of the shipped models, of all kinds."""
    return [name for row in SYSTEMS.values() for name in row.shipped]


def is_shipped(name: str) -> bool:
    return name in shipped()


def shipped_settings(name: str) -> ModelConfig | None:
    """The settings of a shipped model that has no weights of its own; None for any other name."""
    row = _shipping(name)
    return None if row is None or name in row.trained else model_config({"kind": row.kind, **row.settings[name]})


def _shipping(name: str) -> System | None:
    return next((row for row in SYSTEMS.values() if name in row.shipped), None)


def kind_of(name: str) -> str:
    """The kind of model that a name or folder stands for, a key of `SYSTEMS`. Does not check that the model exists."""
    if row := _shipping(name):
        return row.kind
    if has_settings(name):
        return _settings_of(Path(name)).kind
    return next((row.kind for row in SYSTEMS.values() if row.encoders and _is_encoder(name, row.encoders)), DEFAULT)


def check_name(name: str) -> None:
    """Raises ModelNotFoundError if a name or a folder cannot stand for a model; the hub is not asked."""
    if is_shipped(name) or has_settings(name):
        return
    if Path(name).is_dir():
        if kind_of(name) == DEFAULT:
            _without_settings(Path(name))
        return
    if (hint := nearest(name, shipped())) and "/" not in name:
        raise ModelNotFoundError(f"no model {name!r}{hint} A folder or a hub id may be given too")
    from huggingface_hub.constants import HF_HUB_CACHE, HF_HUB_OFFLINE

    owner, _, repository = name.partition("/")
    asked = repository and "/" not in repository and owner not in ("", ".", "..", "~") and not HF_HUB_OFFLINE
    if not asked and not (Path(HF_HUB_CACHE) / f"models--{name.replace('/', '--')}").is_dir():
        usual = [each for row in SYSTEMS.values() if row.searches for each in row.shipped if each != row.bare]
        hub = "a hub id that is in the Hugging Face cache (HF_HUB_OFFLINE is set)" if HF_HUB_OFFLINE else "a hub id"
        raise ModelNotFoundError(f"no model {name!r}; name {', '.join(usual)}, a folder, or {hub}: OWNER/NAME")


def has_settings(name: str) -> bool:
    """Whether a name is that of a folder with this project's settings."""
    return (Path(name) / SETTINGS_FILE).is_file()


def is_luke(name: str) -> bool:
    """Whether a folder contains a LUKE, or a hub id names one."""
    return _is_encoder(name, ("luke", "mluke"))


def _is_encoder(name: str, types: Collection[str]) -> bool:
    """Whether a folder contains an encoder of one of these types, or a hub id has one among its words."""
    folder = Path(name)
    if folder.is_dir():
        try:
            values = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return False
        return isinstance(values, dict) and values.get("model_type") in types
    return not set(types).isdisjoint(name.rpartition("/")[2].lower().split("-"))


def locate(name: str, kind: type[C], base: str | None = None) -> ModelSource[C]:
    """Find a model by shipped name, folder or hub id.

    Args:
        name: The name. A hub id can be an NPM; any encoder's name makes a Zero-NeR, whose base it is.
        kind: The settings record of the kind that is required, such as `NPMConfig`.
        base: Folder of the base encoder. Default: the shipped one, or what the model's settings name.

    Returns:
        Where its files are, and its settings.

    Raises:
        ModelNotFoundError: No such model, or its base is missing; says which names there are.
        InputError: A model of another kind, or broken settings.
    """
    row, folder = system_of(kind), None
    given = shipped_settings(name)
    # A model that is made over others has settings of its own, or it is made over the model of this name.
    if row.over and not ((given or has_settings(name)) and kind_of(name) == row.kind):
        given = named(row.config)(base=name)
    elif given is None:
        given, folder = _settings(name, row)
    if not isinstance(given, kind):
        raise InputError(f"model {name!r} is of kind {given.kind!r}; kind {row.kind!r} is required here")
    reader = shipped_folder(row.reads_with) if row.reads_with and folder is None else None
    if base is not None and name == row.bare and (of := _name_of(Path(base))) != MINILM:
        return ModelSource(name, replace(given, base=of), None, base)
    return ModelSource(name, given, folder, given.own_base(folder) or find_base(given.base, base), reader)


def _name_of(folder: Path) -> str:
    """The hub id of a base's folder, as far as it says, else its path. Raises ModelNotFoundError if it is no model."""
    if not (folder / "config.json").is_file():
        raise ModelNotFoundError(f"{str(folder)!r} has no config.json; name the folder of a base encoder")
    digest = sha256_file(folder / WEIGHTS) if (folder / WEIGHTS).is_file() else ""
    known = next((name for name, digests in BASES.items() if digest in digests), None)
    said = read_json(folder / "config.json").get("_name_or_path")
    return known or str(folder.resolve() if not said or said in BASES else said)


def _settings(name: str, row: System) -> tuple[ModelConfig, Path | None]:
    """The settings of a model that has weights, and its folder if it has one."""
    folder = shipped_folder(name) if is_shipped(name) else Path(name)
    if has_settings(str(folder)):
        return _settings_of(folder), folder
    if row.kind == DEFAULT and folder.is_dir():
        return _without_settings(folder), folder
    if row.kind == DEFAULT and not (folder.is_absolute() or name.startswith((".", "quoth-")) or name.count("/") > 1):
        return model_config({"kind": row.kind, **row.published.get(name, {"base": name})}), None
    known = ", ".join([*row.shipped, row.others])
    raise ModelNotFoundError(f"{row.label} {name!r} not found; name {known}{nearest(name, shipped())}")


def _without_settings(folder: Path) -> ModelConfig:
    """Those of a folder as transformers or PEFT saves it. Raises ModelNotFoundError if it is neither."""
    base = str(folder)
    if not (folder / "config.json").is_file():
        if not (folder / "adapter_config.json").is_file():
            raise ModelNotFoundError(
                f"folder {base!r} has no model; it needs config.json, or an adapter with {SETTINGS_FILE} or "
                "adapter_config.json"
            )
        base = str(read_json(folder / "adapter_config.json").get("base_model_name_or_path") or "")
    return model_config({"kind": DEFAULT, "base": base})


def _settings_of(folder: Path) -> ModelConfig:
    path = folder / SETTINGS_FILE
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{str(path)!r} is not JSON ({error}); fix it or train again") from None
    if not isinstance(values, dict):
        raise InputError(f"{str(path)!r} is not a JSON object of settings; fix it or train again")
    return model_config(values).placed(folder)


def shipped_folder(name: str) -> Path:
    """The folder of a trained model that comes with this package. Raises ModelNotFoundError."""
    adapter = {name: folder for row in SYSTEMS.values() for name, folder in row.trained.items()}[name]
    return _bundled(adapter, SETTINGS_FILE)


def _bundled(name: str, file: str) -> Path:
    """A folder of weights in this package or its checkout, which must have `file`. Raises ModelNotFoundError."""
    for up in (0, 2):
        if ((folder := Path(__file__).parents[up] / "adapters" / name) / file).is_file():
            return folder
    raise ModelNotFoundError(f"adapter {name!r} is missing from this installation; reinstall quoth")


def find_base(wanted: str, folder: str | None) -> str:
    """The folder (or hub id) of a base encoder; a given `folder` comes first. Raises ModelNotFoundError."""
    if folder is None:
        return str(_bundled(MINILM_FOLDER, "config.json")) if wanted == MINILM else wanted
    if digests := BASES.get(wanted):
        if not (weights := Path(folder, WEIGHTS)).is_file():
            raise ModelNotFoundError(f"{str(weights.parent)!r} has no {WEIGHTS}; name a folder of {wanted}")
        if (digest := sha256_file(weights)) not in digests:
            remedy = "leave out --base for the one that Quoth brings" if wanted == MINILM else f"name one of {wanted}"
            raise ModelNotFoundError(
                f"{str(weights)!r} has sha256 {digest[:12]}…, not that of {wanted} ({digests[0][:12]}…); {remedy}"
            )
    return folder
