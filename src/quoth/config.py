"""Settings that are saved next to what they describe.

Knows: how a settings record becomes JSON and back, refusing what it does not know.
Does not know: what the settings mean.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, Self, get_args

from quoth.errors import InputError, nearest


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


Combine = Literal["sum", "joint", "softmax_sum"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NPMDefaults(Config):
    """What an NPM takes where a caller says nothing; the meanings are those of `FillOptions`.

    `template` makes a blank of a question, `classify_template` of a text to label; `passages` None is every token, and
    a number is raised to `read` where a reader reads. `not_found_below` is as a reader's.
    """

    template: str = "Q: {question}\nA: [MASK]."
    classify_template: str = "{text} It was [MASK]."
    passages: int | None = 3
    combine: Combine = "joint"
    hybrid: float = 0.0
    read: int = 0
    min_probability: float = 0.0
    not_found_below: float = 0.0

    def __post_init__(self) -> None:
        _check_template("template", self.template, "question")
        _check_template("classify_template", self.classify_template, "text")
        _check_count("passages", self.passages)
        _check_probability("min_probability", self.min_probability)
        _check_probability("not_found_below", self.not_found_below)
        if self.combine not in get_args(Combine):
            raise InputError(f"combine {self.combine!r}; use one of {', '.join(get_args(Combine))}")
        if not (_is_number(self.hybrid) and 0 <= self.hybrid < 1):
            raise InputError(f"hybrid {self.hybrid!r}; it must be a number of at least 0 and below 1")
        if not isinstance(self.read, int) or isinstance(self.read, bool) or self.read < 0:
            raise InputError(f"read {self.read!r}; it must be a whole number of at least 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderDefaults(Config):
    """What a reader uses unless a caller says otherwise: how many passages it reads, the chance of being right below
    which an answer is unsure, and the one that the best answer must have, or else the passages do not say."""

    passages: int = 20
    min_probability: float = 0.0
    not_found_below: float = 0.0

    def __post_init__(self) -> None:
        _check_count("passages", self.passages, or_none=False)
        _check_probability("min_probability", self.min_probability)
        _check_probability("not_found_below", self.not_found_below)


@dataclass(frozen=True, slots=True, kw_only=True)
class REALMDefaults(Config):
    """What a REALM takes where a caller says nothing: how many passages it reads (None: one less than
    `num_candidates`), how their answers come together, and by what a question's passages are found."""

    passages: int | None = None
    combine: Literal["softmax", "marginal"] = "softmax"
    mode: Literal["dense", "hybrid"] = "dense"

    def __post_init__(self) -> None:
        _check_count("passages", self.passages)
        if self.combine not in ("softmax", "marginal"):
            raise InputError(f"combine {self.combine!r}; it must be softmax or marginal")
        if self.mode not in ("dense", "hybrid"):
            raise InputError(f"mode {self.mode!r}; it must be dense or hybrid")


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
    similarity_scale: float | None = None
    normalize: bool = False
    num_masks: int = 2
    max_tokens: int = 256
    reader: str = ""
    read_weights: tuple[float, float, float] = (1.0, 1.0, 0.0)
    calibration: tuple[float, float, float] | None = None
    defaults: NPMDefaults = field(default_factory=NPMDefaults)

    def __post_init__(self) -> None:
        _check_calibration(self)
        _read_defaults(self, NPMDefaults)
        object.__setattr__(self, "read_weights", tuple(self.read_weights))
        if len(self.read_weights) != 3 or not all(map(_is_number, self.read_weights)):
            raise InputError(f"read_weights {self.read_weights!r}; it must be three numbers")
        if self.defaults.read and not self.reader:
            raise InputError(f"defaults: read {self.defaults.read} without a reader; set it to 0, or name a reader")
        if self.num_masks not in (1, 2):
            raise InputError(f"num_masks {self.num_masks}; it must be 2 (phrases) or 1 (single tokens)")
        if self.similarity_scale is not None and not (_is_number(self.similarity_scale) and self.similarity_scale > 0):
            raise InputError(f"similarity_scale {self.similarity_scale!r}; it must be a number above 0, or null")
        if not isinstance(self.max_tokens, int) or self.max_tokens < 16:
            raise InputError(f"max_tokens {self.max_tokens!r}; it must be a whole number of at least 16")
        if not isinstance(self.normalize, bool):
            raise InputError(f"normalize {self.normalize!r}; it must be true or false")


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
    dimensions: int = 128
    layer_norm_eps: float | None = 1e-3
    normalize: bool = False
    similarity_scale: float = 1.0
    separate_towers: bool = False
    token_types: bool = True
    query_tokens: int = 64
    passage_tokens: int = 288
    reader_tokens: int = 320
    reader_titles: bool = False
    num_candidates: int = 8
    span_width: int = 10
    span_hidden: int = 256
    reader_layer_norm_eps: float = 1e-3
    add_relevance: bool = True
    reader: str = ""
    defaults: REALMDefaults = field(default_factory=REALMDefaults)

    def __post_init__(self) -> None:
        _read_defaults(self, REALMDefaults)
        if self.pooling not in ("cls", "mean"):
            raise InputError(f"pooling {self.pooling!r}; it must be cls or mean")
        _check_least(self, _REALM_LEAST)
        for name in ("pooler", "normalize", "separate_towers", "token_types", "reader_titles", "add_relevance"):
            if not isinstance(value := getattr(self, name), bool):
                raise InputError(f"{name} {value!r}; it must be true or false")
        for name in ("similarity_scale", "reader_layer_norm_eps"):
            if not (_is_number(value := getattr(self, name)) and value > 0):
                raise InputError(f"{name} {value!r}; it must be a number above 0")
        if self.reader_tokens < self.query_tokens + 16:
            raise InputError(
                f"reader_tokens {self.reader_tokens} with query_tokens {self.query_tokens}; the reader takes a "
                "question and a passage: it must be at least 16 more than query_tokens"
            )
        if self.layer_norm_eps is not None and not (_is_number(self.layer_norm_eps) and self.layer_norm_eps > 0):
            raise InputError(f"layer_norm_eps {self.layer_norm_eps!r}; it must be a number above 0, or null")


_REALM_LEAST = {
    "dimensions": 0,
    "query_tokens": 8,
    "passage_tokens": 16,
    "reader_tokens": 24,
    "num_candidates": 2,
    "span_width": 1,
    "span_hidden": 1,
}


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
    query_tokens: int = 96
    title_tokens: int = 24
    max_tokens: int = 384
    overlap: int = 96
    span_width: int = 20
    span_hidden: int = 256
    prior: float = 0.0
    calibration: tuple[float, float, float] | None = None
    defaults: ReaderDefaults = field(default_factory=ReaderDefaults)

    def __post_init__(self) -> None:
        _check_calibration(self)
        _read_defaults(self, ReaderDefaults)
        if self.head not in ("ends", "mlp"):
            raise InputError(f"head {self.head!r}; it must be ends or mlp")
        _check_least(self, _READER_LEAST)
        if self.overlap < self.span_width:
            raise InputError(f"overlap {self.overlap}; it must be at least span_width ({self.span_width})")
        if not (_is_number(self.prior) and self.prior >= 0):
            raise InputError(f"prior {self.prior!r}; it must be a number of at least 0")
        room = self.max_tokens - self.query_tokens - self.title_tokens - 3
        if room <= self.overlap:
            raise InputError(
                f"max_tokens {self.max_tokens} leaves {room} for a passage; "
                f"it must be more than overlap ({self.overlap})"
            )


_READER_LEAST = {
    "query_tokens": 8,
    "title_tokens": 0,
    "max_tokens": 32,
    "overlap": 1,
    "span_width": 1,
    "span_hidden": 1,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggerConfig(Config):
    """What a tagger needs in addition to its weights: its base, the names of its labels in the order of its outputs,
    and the longest encoder input."""

    kind: Literal["tagger"] = "tagger"
    base: str = ""
    revision: str | None = None
    labels: tuple[str, ...] = ()
    max_tokens: int = 256

    def __post_init__(self) -> None:
        labels: object = self.labels
        if not isinstance(labels, (list, tuple)) or not all(isinstance(each, str) for each in labels) or not labels:
            raise InputError(f"labels {labels!r}; it must be a list of names such as O, B-PER, I-PER")
        if not isinstance(self.max_tokens, int) or self.max_tokens < 16:
            raise InputError(f"max_tokens {self.max_tokens!r}; it must be a whole number of at least 16")
        object.__setattr__(self, "labels", tuple(labels))


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
    base: str = "quoth-mini-base"
    revision: str | None = None
    recognizer: str = "quoth-tagger"
    pooling: Literal["mean", "ends"] = "mean"
    joint: bool = True
    titles: Literal["alone", "passage", "none"] = "alone"
    ask_with: Literal["entity", "alone", "question"] = "entity"
    max_tokens: int = 256

    def __post_init__(self) -> None:
        for name, allowed in _ZERO_NER_CHOICES.items():
            if (value := getattr(self, name)) not in allowed:
                raise InputError(f"{name} {value!r}; use one of {', '.join(allowed)}")
        for name in ("base", "recognizer"):
            if not isinstance(value := getattr(self, name), str) or not value:
                raise InputError(f"{name} {value!r}; it must be a name or a folder")
        if not isinstance(self.joint, bool):
            raise InputError(f"joint {self.joint!r}; it must be true or false")
        if not isinstance(self.max_tokens, int) or self.max_tokens < 16:
            raise InputError(f"max_tokens {self.max_tokens!r}; it must be a whole number of at least 16")


_ZERO_NER_CHOICES = {
    "pooling": ("mean", "ends"),
    "titles": ("alone", "passage", "none"),
    "ask_with": ("entity", "alone", "question"),
}

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


def _check_least(config: Config, counts: Mapping[str, int]) -> None:
    """Raises InputError unless these fields are whole numbers of at least this much."""
    for name, least in counts.items():
        value = getattr(config, name)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise InputError(f"{name} {value!r}; it must be a whole number of at least {least}")


def _check_calibration(config: NPMConfig | ReaderConfig) -> None:
    given = config.calibration
    if given is not None:
        object.__setattr__(config, "calibration", tuple(given))
        if len(given) != 3 or not all(map(_is_number, given)):
            raise InputError(f"calibration {given!r}; it must be three numbers, or null")


def _read_defaults(config: Config, kind: type[Config]) -> None:
    """Makes a record of what JSON has as an object. Raises InputError."""
    given: object = getattr(config, "defaults")  # noqa: B009
    if isinstance(given, kind):
        return
    if not isinstance(given, Mapping):
        raise InputError(f"defaults {given!r}; it must be an object such as {{}}")
    try:
        object.__setattr__(config, "defaults", kind.from_dict(given))
    except InputError as error:
        raise InputError(f"defaults: {error}") from None


def _check_template(name: str, value: object, word: str) -> None:
    if not isinstance(value, str) or f"{{{word}}}" not in value:
        raise InputError(f"{name} {value!r}; it must be a text with {{{word}}}")


def _check_count(name: str, value: object, or_none: bool = True) -> None:
    if value is None and or_none:
        return
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InputError(f"{name} {value!r}; it must be a whole number of at least 1")


def _check_probability(name: str, value: object) -> None:
    if not (_is_number(value) and 0 <= value <= 1):  # type: ignore[operator]
        raise InputError(f"{name} {value!r}; it must be a number from 0 to 1")


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
