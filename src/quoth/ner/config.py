"""The settings of a tagger, and of its training.

Knows: names, defaults, which values are valid. Does not know: what is done with them.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, MinLen

from quoth.config import ModelConfig
from quoth.errors import InputError
from quoth.fields import Count, Number, Share, ShareBelow1, described
from quoth.training.settings import LoopConfig, Recipe


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class TaggerConfig(ModelConfig):
    """What a tagger needs in addition to its weights."""

    kind: Literal["tagger"] = "tagger"
    labels: Annotated[
        tuple[str, ...], MinLen(1), "The names of the labels in the order of the outputs, such as O, B-PER, I-PER."
    ] = ()
    max_tokens: Annotated[int, Ge(16), "The longest encoder input."] = 256


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class TaggingConfig(LoopConfig):
    """How to train a tagger. The number of steps follows from `epochs` and the documents."""

    epochs: Annotated[Count, "Number of passes over the documents."] = 8
    max_sentences: Annotated[
        Count,
        "Maximum number of consecutive sentences in an input, so that the model sees single sentences as well as "
        "passages.",
    ] = 4
    lowercase: Annotated[Share, "Share of the inputs lowercased, as people type questions."] = 0.15
    lora_rank: Number = 32
    max_tokens: Annotated[int, Ge(16), "The longest encoder input."] = 256
    bf16: bool = True
    dropout: ShareBelow1 = 0.1

    def check(self) -> None:
        if self.lora_rank < 1:
            raise InputError(f"lora_rank is {self.lora_rank}; it must be 1 or more: a tagger is an adapter")


RECIPES = {"tagger": Recipe("quoth.ner.recipe:prepare", "quoth-mini-base", TaggingConfig(), distributed=False)}
