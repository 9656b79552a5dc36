"""The settings of a reader, and of its training.

Knows: names, defaults, which values are valid. Does not know: what is done with them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from annotated_types import Ge

from quoth.config import Config, ModelConfig
from quoth.errors import InputError
from quoth.fields import Count, NotNegative, Number, Positive, Share
from quoth.training.settings import LoopConfig, Recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderDefaults(Config):
    """What a reader uses unless a caller says otherwise: how many passages it reads, the chance of being right below
    which an answer is unsure, and the one that the best answer must have, or else the passages do not say."""

    passages: Count = 20
    min_probability: Share = 0.0
    not_found_below: Share = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderConfig(ModelConfig):
    """What a reader needs in addition to its weights; lengths in tokens, special ones included.

    A query (a question, or a text around its blank) has up to `query_tokens`, a title `title_tokens`, an input
    `max_tokens`. A longer passage is read in windows that overlap by `overlap`. An answer has up to `span_width`.
    `head`: a span's score is the sum of a start and an end logit ("ends"), or an MLP's of both ends' states ("mlp",
    ORQA's, of size `span_hidden`).

    `prior` times the log of a passage's BM25 score, as a share of the best one's, is added to the log odds of its
    answers. `calibration` are the weights that turn an answer's share and score into its chance of being right (None:
    the share is reported). `defaults` apply unless a caller says otherwise.
    """

    kind: Literal["reader"] = "reader"
    head: Literal["ends", "mlp"] = "ends"
    query_tokens: Annotated[int, Ge(8)] = 96
    title_tokens: Number = 24
    max_tokens: Annotated[int, Ge(32)] = 384
    overlap: Count = 96
    span_width: Count = 20
    span_hidden: Count = 256
    prior: NotNegative = 0.0
    calibration: tuple[float, float, float] | None = None
    defaults: ReaderDefaults = field(default_factory=ReaderDefaults)

    def check(self) -> None:
        if self.overlap < self.span_width:
            raise InputError(f"overlap {self.overlap}; it must be at least span_width ({self.span_width})")
        room = self.max_tokens - self.query_tokens - self.title_tokens - 3
        if room <= self.overlap:
            raise InputError(
                f"max_tokens {self.max_tokens} leaves {room} for a passage; "
                f"it must be more than overlap ({self.overlap})"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderTrainConfig(LoopConfig):
    """How to train a reader on questions and blanks with their passages.

    The number of steps follows from `epochs` and the number of examples; warm-up takes the share `warmup_ratio` of
    them. With probability `negative_share` an example is read together with up to `num_negatives` passages that BM25
    finds for it and that do not contain its answer; with probability `unanswerable` such a passage is read instead of
    its own. `head` and `span_width` shape a new reader. Inputs of up to `padded_tokens` are encoded together.
    """

    epochs: Positive = 3.0
    batch_size: Count = 32
    learning_rate: NotNegative = 2e-4
    warmup_ratio: Share = 0.06
    lora_rank: Number = 0
    num_negatives: Number = 2
    negative_share: Share = 0.25
    unanswerable: Share = 0.1
    head: Literal["ends", "mlp"] = "ends"
    span_width: Count = 20
    padded_tokens: Annotated[int, Ge(64)] = 4096

    def check(self) -> None:
        if self.lora_rank:
            raise InputError(f"lora_rank is {self.lora_rank}; it must be 0, as all of a reader's weights are trained")


RECIPES = {
    "reader": Recipe(
        "quoth.reader.recipe:prepare", "quoth-reader", ReaderTrainConfig(), distributed=False, skips_bad=True
    )
}
