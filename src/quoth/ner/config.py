"""The settings of a tagger, and of its training.

Knows: names, defaults, which values are valid. Does not know: what is done with them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, MinLen

from quoth.config import ModelConfig
from quoth.errors import InputError
from quoth.fields import Count, Number, Share, ShareBelow1
from quoth.training.settings import LoopConfig, Recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggerConfig(ModelConfig):
    """What a tagger needs in addition to its weights: its base, the names of its labels in the order of its outputs,
    and the longest encoder input."""

    kind: Literal["tagger"] = "tagger"
    labels: Annotated[tuple[str, ...], MinLen(1)] = ()
    max_tokens: Annotated[int, Ge(16)] = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggingConfig(LoopConfig):
    """How to train a tagger.

    An input has up to `max_sentences` consecutive sentences of a document, so that the model knows single sentences as
    well as passages. The share `lowercase` of the inputs is read in lower case, as people type questions. The number of
    steps follows from `epochs` and the documents.
    """

    epochs: Count = 8
    max_sentences: Count = 4
    lowercase: Share = 0.15
    lora_rank: Number = 32
    max_tokens: Annotated[int, Ge(16)] = 256
    bf16: bool = True
    dropout: ShareBelow1 = 0.1

    def check(self) -> None:
        if self.lora_rank < 1:
            raise InputError(f"lora_rank is {self.lora_rank}; it must be 1 or more, as a tagger is an adapter")


RECIPES = {"tagger": Recipe("quoth.ner.recipe:prepare", "quoth-mini-base", TaggingConfig(), distributed=False)}
