"""Settings that are saved beside what they describe.

Knows: how a settings record becomes JSON and back, refusing what it does not know.
Does not know: what the settings mean.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, Self

from quoth.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Base of all settings records."""

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Raises InputError on a key that this record does not have."""
        known = [field.name for field in fields(cls)]
        own = next((field.default for field in fields(cls) if field.name == "kind"), None)
        if own is not None and (kind := values.get("kind", own)) != own:
            raise InputError(f"model kind {kind!r}; allowed here is {own!r}")
        for key in values:
            if key not in known:
                raise InputError(f"unknown setting {key!r}; allowed are {', '.join(known)}")
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class NPMConfig(Config):
    """What a nonparametric masked LM needs beside its weights.

    `similarity_scale` s of sim(q, c) = s q·c; None stands for 1/sqrt(D), the published NPM's. With `normalize`
    vectors have length 1, so that sim is s times the cosine. `num_masks` mask tokens stand for one blank: two for
    phrases, one for single tokens. `max_tokens` bounds an encoder input.
    """

    kind: Literal["npm"] = "npm"
    base: str = ""
    revision: str | None = None
    similarity_scale: float | None = None
    normalize: bool = False
    num_masks: int = 2
    max_tokens: int = 256

    def __post_init__(self) -> None:
        if self.kind != "npm":
            raise InputError(f"model kind {self.kind!r}; allowed here is 'npm'")
        if self.num_masks not in (1, 2):
            raise InputError(f"num_masks {self.num_masks}; allowed are 2 (phrases) and 1 (single tokens)")
        if self.similarity_scale is not None and not (_is_number(self.similarity_scale) and self.similarity_scale > 0):
            raise InputError(f"similarity_scale {self.similarity_scale!r}; allowed are numbers above 0, and null")
        if not isinstance(self.max_tokens, int) or self.max_tokens < 16:
            raise InputError(f"max_tokens {self.max_tokens!r}; allowed are whole numbers from 16 on")
        if not isinstance(self.normalize, bool):
            raise InputError(f"normalize {self.normalize!r}; allowed are true and false")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggerConfig(Config):
    """What a tagger needs beside its weights: its base, what its labels are called in the order of its outputs, and
    the longest encoder input."""

    kind: Literal["tagger"] = "tagger"
    base: str = ""
    revision: str | None = None
    labels: tuple[str, ...] = ()
    max_tokens: int = 256

    def __post_init__(self) -> None:
        labels: object = self.labels
        if not isinstance(labels, (list, tuple)) or not all(isinstance(each, str) for each in labels) or not labels:
            raise InputError(f"labels {labels!r}; allowed is a list of names such as O, B-PER, I-PER")
        if not isinstance(self.max_tokens, int) or self.max_tokens < 16:
            raise InputError(f"max_tokens {self.max_tokens!r}; allowed are whole numbers from 16 on")
        object.__setattr__(self, "labels", tuple(labels))


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
