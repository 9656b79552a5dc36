"""Settings that are saved next to what they describe.

Knows: how a settings record becomes JSON and back, refusing what it does not know.
Does not know: what the settings mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Annotated, Any, Literal, Self

from annotated_types import Ge, MinLen

from quoth.errors import InputError, nearest
from quoth.fields import Count, Has, NotNegative, Number, Positive, Share, ShareBelow1, check_fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Base of all settings records."""

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Raises InputError on a key that this record does not have."""
        known = [each.name for each in fields(cls)]
        own = next((each.default for each in fields(cls) if each.name == "kind"), None)
        if own is not None and (kind := values.get("kind", own)) != own:
            raise InputError(f"model kind {kind!r}; it must be {own!r}")
        for key in values:
            if key not in known:
                raise InputError(f"unknown setting {key!r}; use one of {', '.join(known)}{nearest(key, known)}")
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __post_init__(self) -> None:
        check_fields(self)
        self.check()

    def check(self) -> None:
        """Raises InputError if values that are allowed one by one do not go together."""


Combine = Literal["sum", "joint", "softmax_sum"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NPMDefaults(Config):
    """What an NPM takes where a caller says nothing; the meanings are those of `FillOptions`.

    `template` makes a blank of a question, `classify_template` of a text to label; `passages` None is every token, and
    a number is raised to `read` where a reader reads. `not_found_below` is as a reader's.
    """

    template: Annotated[str, Has("{question}")] = "Q: {question}\nA: [MASK]."
    classify_template: Annotated[str, Has("{text}")] = "{text} It was [MASK]."
    passages: Count | None = 3
    combine: Combine = "joint"
    hybrid: ShareBelow1 = 0.0
    read: Number = 0
    min_probability: Share = 0.0
    not_found_below: Share = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderDefaults(Config):
    """What a reader uses unless a caller says otherwise: how many passages it reads, the chance of being right below
    which an answer is unsure, and the one that the best answer must have, or else the passages do not say."""

    passages: Count = 20
    min_probability: Share = 0.0
    not_found_below: Share = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class REALMDefaults(Config):
    """What a REALM takes where a caller says nothing: how many passages it reads (None: one less than
    `num_candidates`), how their answers come together, and by what a question's passages are found."""

    passages: Count | None = None
    combine: Literal["softmax", "marginal"] = "softmax"
    mode: Literal["dense", "hybrid"] = "dense"


@dataclass(frozen=True, slots=True, kw_only=True)
class NPMConfig(Config):
    """What a nonparametric masked LM needs in addition to its weights.

    `similarity_scale` s of sim(q, c) = s q·c; None stands for 1/sqrt(D), the published NPM's. With `normalize`
    vectors have length 1, so that sim is s times the cosine. `num_masks` mask tokens stand for one blank: two for
    phrases, one for single tokens. `max_tokens` bounds an encoder input.

    A model that knows a `reader` by name or folder can let it read, and weighs by `read_weights`: its own log
    probability (the less, the surer the reader is), the reader's, and what repeats the sentence of the blank.
    `calibration` is of what both decide, as a reader's. `defaults` are taken where a caller says nothing.
    """

    kind: Literal["npm"] = "npm"
    base: str = ""
    revision: str | None = None
    similarity_scale: Positive | None = None
    normalize: bool = False
    num_masks: Literal[1, 2] = 2
    max_tokens: Annotated[int, Ge(16)] = 256
    reader: str = ""
    read_weights: tuple[float, float, float] = (1.0, 1.0, 0.0)
    calibration: tuple[float, float, float] | None = None
    defaults: NPMDefaults = field(default_factory=NPMDefaults)

    def check(self) -> None:
        if self.defaults.read and not self.reader:
            raise InputError(f"defaults: read {self.defaults.read} without a reader; set it to 0, or name a reader")


@dataclass(frozen=True, slots=True, kw_only=True)
class REALMConfig(Config):
    """What a REALM needs in addition to its weights; lengths in tokens, special ones included.

    A passage's vector is its encoder's [CLS] state, or the `pooling` "mean" of all states; then, each where it is
    asked for: `pooler`, a dense layer with tanh (the published encoders'); a projection to `dimensions` (0: none);
    a LayerNorm of `layer_norm_eps` (None: none; 1e-3 in the original, 1e-12 in the Hugging Face port); length 1
    (`normalize`). The relevance of a passage is `similarity_scale` times the dot product with the query's vector.
    With `separate_towers` queries have an encoder of their own.

    With `token_types` the second text of an input is told by its token type. A question has up to `query_tokens`, a
    passage `passage_tokens` as a key, and `reader_tokens` together with its question, with the title before the text if
    `reader_titles`. `num_candidates` are read, the null document among them.
    Answers have up to `span_width` tokens; with `add_relevance` a passage's relevance is added to its spans' scores.
    A `reader`, by name or folder, reads in the place of the model's own. `defaults` are taken where a caller says
    nothing.
    """

    kind: Literal["realm"] = "realm"
    base: str = ""
    revision: str | None = None
    pooling: Literal["cls", "mean"] = "cls"
    pooler: bool = False
    dimensions: Number = 128
    layer_norm_eps: Positive | None = 1e-3
    normalize: bool = False
    similarity_scale: Positive = 1.0
    separate_towers: bool = False
    token_types: bool = True
    query_tokens: Annotated[int, Ge(8)] = 64
    passage_tokens: Annotated[int, Ge(16)] = 288
    reader_tokens: Annotated[int, Ge(24)] = 320
    reader_titles: bool = False
    num_candidates: Annotated[int, Ge(2)] = 8
    span_width: Count = 10
    span_hidden: Count = 256
    reader_layer_norm_eps: Positive = 1e-3
    add_relevance: bool = True
    reader: str = ""
    defaults: REALMDefaults = field(default_factory=REALMDefaults)

    def check(self) -> None:
        if self.reader_tokens < self.query_tokens + 16:
            raise InputError(
                f"reader_tokens {self.reader_tokens} with query_tokens {self.query_tokens}; the reader takes a "
                "question and a passage: it must be at least 16 more than query_tokens"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderConfig(Config):
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
    base: str = ""
    revision: str | None = None
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
class TaggerConfig(Config):
    """What a tagger needs in addition to its weights: its base, the names of its labels in the order of its outputs,
    and the longest encoder input."""

    kind: Literal["tagger"] = "tagger"
    base: str = ""
    revision: str | None = None
    labels: Annotated[tuple[str, ...], MinLen(1)] = ()
    max_tokens: Annotated[int, Ge(16)] = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroNERConfig(Config):
    """What finds passages by their entities, with nothing trained for it.

    `base` makes the vectors: a LUKE, or an NPM or another plain encoder by name, folder or hub id, of which an entity
    is the mean of its tokens' vectors or the first and the last of them (`pooling` "mean", "ends"). Entities are those
    of the `recognizer`: a tagger, "titles" (of the corpus), "links" (that documents come with) or a file of names. A
    LUKE reads the entities of a passage together (`joint`) or each by itself. The title is a key, read by itself
    (`titles` "alone") or before the text ("passage"), or none. A question asks with its entity in context, with the
    entity alone, or with all of its words (`ask_with`).
    """

    kind: Literal["zero-ner"] = "zero-ner"
    base: Annotated[str, MinLen(1)] = "quoth-mini-base"
    revision: str | None = None
    recognizer: Annotated[str, MinLen(1)] = "quoth-tagger"
    pooling: Literal["mean", "ends"] = "mean"
    joint: bool = True
    titles: Literal["alone", "passage", "none"] = "alone"
    ask_with: Literal["entity", "alone", "question"] = "entity"
    max_tokens: Annotated[int, Ge(16)] = 256


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
