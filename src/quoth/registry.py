"""The kinds of models, and the settings of each.

Knows: which kinds there are. Does not know: what they do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quoth.errors import InputError
from quoth.ner.config import TaggerConfig
from quoth.npm.config import NPMConfig
from quoth.reader.config import ReaderConfig
from quoth.realm.config import REALMConfig
from quoth.zero_ner.config import ZeroNERConfig

ModelConfig = NPMConfig | REALMConfig | ReaderConfig | TaggerConfig | ZeroNERConfig


KINDS: dict[str, type[ModelConfig]] = {
    "npm": NPMConfig,
    "reader": ReaderConfig,
    "realm": REALMConfig,
    "tagger": TaggerConfig,
    "zero-ner": ZeroNERConfig,
}


def model_config(values: Mapping[str, Any]) -> ModelConfig:
    """The settings of a model of any kind. Raises InputError on an unknown kind."""
    kind = values.get("kind", "npm")
    if not isinstance(kind, str) or kind not in KINDS:
        raise InputError(f"model kind {kind!r}; use one of {', '.join(KINDS)}")
    return KINDS[kind].from_dict(values)
