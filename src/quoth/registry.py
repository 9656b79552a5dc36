"""The systems: a row for each, of names and plain values, so that reading the table imports nothing.

Knows: which kinds of models there are, where the classes of each are, which models are shipped. Does not know: what a
model does. Everything else that depends on the kind of a model asks its row, or the class that the row names: a new
system is a folder and a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from quoth.config import ModelConfig
from quoth.errors import InputError

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
MPNET = "sentence-transformers/all-mpnet-base-v2"
DEFAULT = "npm"
"""The kind of a model that says nothing of its kind: a hub id, or a folder as other libraries save it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """A kind of model. What is in a module is named "module:name"."""

    kind: str
    label: str  # what messages call it
    others: str = ""  # what else than a shipped name is such a model
    config: str  # the class of its settings, a `ModelConfig`
    model: str  # the class that people call
    answers: bool = False  # it has `fill` and `ask`, with the `options` of its settings
    keys: str = ""  # what has a vector, if it searches by vectors: tokens, passages or entities
    needs_vectors: bool = False  # it cannot do without them
    one_space: bool = False  # its shipped models have the same vectors
    by_passages: str = ""  # what opens the vectors by which all models find passages
    recipes: str = ""  # its `Recipe`s by name
    trained: Mapping[str, str] = field(default_factory=dict)  # shipped weights: the folders in `adapters`
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # shipped without weights of their own
    bare: str = ""  # the one of `settings` that training starts from: any encoder may be its base
    reads_with: str = ""  # the shipped model whose encoder an untrained one reads with
    published: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # settings of hub ids that lack them
    encoders: tuple[str, ...] = ()  # types of encoders that are such a model without any settings
    over: tuple[str, ...] = ()  # kinds from which it is made by their name, as from any encoder

    @property
    def searches(self) -> bool:
        """Whether its models search a corpus, so that `quoth.load` loads them; others are tools."""
        return bool(self.keys) or self.answers

    @property
    def shipped(self) -> Iterator[str]:
        """The names of its shipped models, the usual one first."""
        return iter((*self.trained, *self.settings))

    def records(self, *, asks: bool = False) -> Any:
        """The record of the options of `fill`, or of `ask`; None if it answers nothing."""
        return named(self.config).options[asks] if self.answers else None


_REALM = {
    "base": MINILM,
    "pooling": "mean",
    "dimensions": 0,
    "layer_norm_eps": None,
    "normalize": True,
    "similarity_scale": 20.0,
    "token_types": False,
    "reader_titles": True,
}
_ROWS = (
    System(
        kind="npm",
        label="model",
        config="quoth.npm.config:NPMConfig",
        model="quoth.npm.model:NPM",
        others="a folder, or a hub id such as facebook/npm",
        answers=True,
        keys="tokens",
        recipes="quoth.npm.config:RECIPES",
        trained={"quoth-mini": "npm-mini", "quoth-mini-single": "npm-single-mini", "quoth-base": "npm-base"},
        settings={"quoth-mini-base": {"base": MINILM, "similarity_scale": 20.0, "normalize": True}},
        bare="quoth-mini-base",
        published={
            "facebook/npm": {"base": "facebook/npm"},
            "facebook/npm-single": {"base": "facebook/npm-single", "num_masks": 1},
        },
    ),
    System(
        kind="reader",
        label="reader",
        config="quoth.reader.config:ReaderConfig",
        model="quoth.reader.model:Reader",
        others="or a folder that `quoth train reader` wrote",
        answers=True,
        recipes="quoth.reader.config:RECIPES",
        trained={"quoth-reader": "reader", "quoth-reader-small": "reader-mini"},
        settings={"quoth-reader-base": {"base": MINILM}},
        bare="quoth-reader-base",
    ),
    System(
        kind="tagger",
        label="tagger",
        config="quoth.ner.config:TaggerConfig",
        model="quoth.ner.tagger:Tagger",
        others="a folder or a hub id",
        recipes="quoth.ner.config:RECIPES",
        trained={"quoth-tagger": "tagger-mini"},
    ),
    System(
        kind="realm",
        label="REALM",
        config="quoth.realm.config:REALMConfig",
        model="quoth.realm.model:REALM",
        others="a folder with quoth.json, or a folder that `quoth convert` made from a published REALM",
        answers=True,
        keys="passages",
        needs_vectors=True,
        recipes="quoth.realm.config:RECIPES",
        settings={
            "quoth-realm": {**_REALM, "num_candidates": 13, "reader": "quoth-reader", "defaults": {"mode": "hybrid"}},
            "quoth-realm-base": _REALM,
        },
        bare="quoth-realm-base",
        one_space=True,
        by_passages="quoth.realm.model:passage_retriever",
        reads_with="quoth-mini-single",  # which was trained with masks; the base encoder was not
    ),
    System(
        kind="zero-ner",
        label="Zero-NeR",
        config="quoth.zero_ner.config:ZeroNERConfig",
        model="quoth.zero_ner.model:ZeroNER",
        keys="entities",
        needs_vectors=True,
        settings={"quoth-zero-ner": {}},
        encoders=("luke", "mluke"),
        over=("npm",),
    ),
)
SYSTEMS: dict[str, System] = {row.kind: row for row in _ROWS}


def named(place: str) -> Any:
    """What a row names as "module:name", imported now."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def system_of(config: type[ModelConfig]) -> System:
    """The first system whose settings are of this class, or of one that extends it."""
    return next(row for row in SYSTEMS.values() if issubclass(named(row.config), config))


def model_config(values: Mapping[str, Any]) -> ModelConfig:
    """The settings of a model of any kind. Raises InputError on an unknown kind."""
    kind = values.get("kind", DEFAULT)
    if not isinstance(kind, str) or kind not in SYSTEMS:
        raise InputError(f"model kind {kind!r}; use one of {', '.join(SYSTEMS)}")
    config: type[ModelConfig] = named(SYSTEMS[kind].config)
    return config.from_dict(values)
