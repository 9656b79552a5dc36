"""The settings of a training run.

Knows: names, defaults, which values are valid. Does not know: what is done with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar, get_type_hints

from annotated_types import Ge, Gt, Le

from quoth.config import Config
from quoth.errors import InputError, nearest
from quoth.fields import Count, NotNegative, Number, Positive, Share, ShareBelow1

Salience = Literal["salient", "spans", "tokens"]
Grouping = Literal["shuffled", "neighbours", "random"]
Settings = TypeVar("Settings", bound=Config)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopConfig(Config):
    """What every run has: steps, AdamW with a linear warm-up and decay, checkpoints, logs.

    `lora_rank` 0 trains all weights. `dropout` is the share of hidden units and attention weights that are dropped in
    the trained parts. A gradient longer than `max_grad_norm` is scaled down to that length.
    """

    steps: Count = 600
    batch_size: Count = 16
    learning_rate: NotNegative = 1e-3
    weight_decay: NotNegative = 0.01
    warmup_steps: Number = 50
    lora_rank: Number = 64
    bf16: bool = False
    max_grad_norm: NotNegative = 1.0
    dropout: ShareBelow1 = 0.0
    seed: Number = 0
    checkpoint_every: Count = 100
    log_every: Count = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainConfig(LoopConfig):
    """How to train NPM and NPM-single. `warm_start` names a folder with an adapter.

    Documents whose id or title occurs in the JSONL file `exclude` are never trained on, nor are those of the file
    `evaluate_on`: every `evaluate_every` steps (0: never) the model fills `evaluate_blanks` blanks of each kind in
    them, and the best model is kept.

    `contrast_with`: queries are contrasted with the tokens of the unmasked passages ("clean", as in the paper), or with
    the tokens that are still visible in the masked passages ("masked"), which encodes each passage once instead of
    twice; with "nothing" the model becomes a masked language model, NPM's parametric twin, and every hidden token has a
    mask of its own. `mlm_weight`: how much of the masked LM's loss is added (0: none); in NPM, a blank's first mask
    predicts the first token of the hidden phrase and its second mask the last. `negatives`: the tokens of the batch's
    "other_passages", or of "all" passages except the masked phrase itself. With several `groups` a batch is contrasted
    within each group, as in the released code, whose negatives come from half (2) or a quarter (4) of the processes. A
    batch consists of groups of `masking_group` passages of one document; phrases to mask must recur in their group,
    whatever the size of the batch. Documents with fewer passages share a group: `grouping` "shuffled" takes them in
    random order, "neighbours" puts those together that BM25 finds similar; "random" mixes all passages. `splitter` cuts
    documents into passages, of which the first `max_passage_tokens` tokens are read; the splitter "filled" cuts a
    document when an encoder input is full, so that all of the text is read. `mask_ratio` is the share of a passage's
    tokens to mask, `max_repeats` how often one n-gram is masked in a batch. `mini_batch_size` bounds memory: this many
    encoder inputs keep their activations at a time (0: all), by gradient caching; `similarity_chunk_size` is the number
    of queries whose similarities are held at a time (0: as many as fit into 128 MiB).
    """

    batch_size: Annotated[int, Ge(2)] = 16
    groups: Count = 1
    masking_group: Annotated[int, Ge(2)] = 32
    grouping: Grouping = "shuffled"
    masking: Literal["spans", "tokens"] = "spans"
    mask_ratio: Annotated[float, Gt(0), Le(0.5)] = 0.15
    max_repeats: Count = 10
    contrast_with: Literal["clean", "masked", "nothing"] = "clean"
    mlm_weight: NotNegative = 0.0
    negatives: Literal["other_passages", "all"] = "other_passages"
    splitter: str = "words:120"
    max_passage_tokens: Count = 192
    similarity_chunk_size: Number = 0
    mini_batch_size: Number = 0
    num_documents: Number = 0
    warm_start: str = ""
    exclude: str = ""
    evaluate_on: str = ""
    evaluate_every: Number = 0
    evaluate_blanks: Count = 100

    def check(self) -> None:
        _check_evaluation(self.evaluate_on, self.evaluate_every)
        if self.contrast_with == "nothing" and not self.mlm_weight:
            raise InputError("contrast_with is 'nothing', so there is nothing to learn; set mlm_weight")
        if self.batch_size % self.groups or self.batch_size // self.groups < 2:
            raise InputError(
                f"`groups` ({self.groups}) must divide `batch_size` ({self.batch_size}) into groups of at least 2"
            )
        if self.batch_size // self.groups % self.masked_together:
            raise InputError(
                f"`masking_group` ({self.masking_group}) must divide the {self.batch_size // self.groups} passages "
                "that are contrasted, or be larger"
            )

    @property
    def num_masks(self) -> Literal[1, 2]:
        """The masks of a blank: two for a phrase, one for a token."""
        return 2 if self.masking == "spans" and self.contrast_with != "nothing" else 1

    @property
    def masked_together(self) -> int:
        """How many passages are searched together for phrases to mask."""
        return min(self.masking_group, self.batch_size // self.groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class ICTConfig(LoopConfig):
    """The inverse cloze task (ORQA §4): the towers learn which passage a sentence was taken from. With probability
    `keep_sentence` the sentence stays in its passage. Passages of one sentence are left out, and so are the documents
    named in the file `exclude`."""

    keep_sentence: Share = 0.1
    splitter: str = "words:120"
    exclude: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PretrainConfig(LoopConfig):
    """REALM's pre-training: fill masks with the help of retrieved passages, `num_candidates` per example including the
    null document.

    `masking`: one named entity or date per example ("salient", by the model `tagger`), one random run of words
    ("spans"), or 15 % of the tokens ("tokens"). `marginal`: one passage explains all masks of an example ("product",
    the paper), or every mask has passages of its own ("token", the released code). `exclude_self`: the example's own
    "passage", or all passages of its "document", are never retrieved for it. Every `refresh_every` steps all passages
    are embedded again, by a process of their own (`asynchronous`) or while training waits. In the first
    `mlm_warmup_steps` steps the reader learns to fill random masks without passages, which a base without a masked LM
    head requires. Every `evaluate_every` steps (0: never) `evaluate_blanks` blanks in the documents of the file
    `evaluate_on` measure the model. `mini_batch_size` bounds memory: this many examples are read with their passages at
    a time (0: all).
    """

    batch_size: Count = 8
    mini_batch_size: Number = 0
    num_candidates: Annotated[int, Ge(2)] = 8
    masking: Salience = "salient"
    tagger: str = "quoth-tagger"
    marginal: Literal["product", "token"] = "product"
    exclude_self: Literal["document", "passage"] = "document"
    refresh_every: Count = 500
    asynchronous: bool = True
    mlm_warmup_steps: Number = 0
    splitter: str = "words:120"
    exclude: str = ""
    evaluate_on: str = ""
    evaluate_every: Number = 0
    evaluate_blanks: Count = 200

    def check(self) -> None:
        _check_evaluation(self.evaluate_on, self.evaluate_every)


@dataclass(frozen=True, slots=True, kw_only=True)
class FineTuneConfig(LoopConfig):
    """Fine-tuning to open question answering (REALM §4, after ORQA): the query tower and the reader learn, the passage
    vectors stay.

    The retriever learns from the `retriever_beam_size` nearest passages, the reader from the `num_reader_passages`
    nearest; a passage or span is right if an answer occurs in it. If none of the passages read is right,
    `force_positive` replaces the last one by a right passage of the beam, so that a young retriever leaves the reader
    something to learn from (not in the papers). `mini_batch_size` bounds memory: this many questions are read at a time
    (0: all).
    """

    batch_size: Count = 1
    mini_batch_size: Number = 0
    retriever_beam_size: Count = 5000
    num_reader_passages: Count = 5
    force_positive: bool = False
    corpus: str = ""

    def check(self) -> None:
        if self.num_reader_passages > self.retriever_beam_size:
            raise InputError(
                f"`num_reader_passages` ({self.num_reader_passages}) must not exceed `retriever_beam_size` "
                f"({self.retriever_beam_size})"
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


def _check_evaluation(evaluate_on: str, evaluate_every: int) -> None:
    if bool(evaluate_on) != bool(evaluate_every):
        raise InputError("set evaluate_on (a file of documents) and evaluate_every (a number of steps) together")


def with_overrides(config: Settings, overrides: Mapping[str, object]) -> Settings:
    """The settings with some changed; text is read as the type of its field. Raises InputError on an unknown name or a
    value that does not fit."""
    types = get_type_hints(type(config))
    values = config.to_dict()
    for key, value in overrides.items():
        if key not in types:
            raise InputError(f"unknown setting {key!r}; it must be one of {', '.join(types)}{nearest(key, types)}")
        values[key] = _parsed(key, str(value), types[key])
    return type(config).from_dict(values)


def _parsed(key: str, text: str, kind: Any) -> Any:
    if kind is bool:
        if text.lower() not in ("true", "false"):
            raise InputError(f"{key} is {text!r}; it must be true or false")
        return text.lower() == "true"
    if kind not in (int, float):
        return text
    try:
        return kind(text)
    except ValueError:
        numbers = "a whole number" if kind is int else "a number"
        raise InputError(f"{key} is {text!r}; it must be {numbers}") from None


def linear_schedule(step: int, steps: int, peak: float, warmup_steps: int) -> float:
    """The learning rate of step 1 to `steps`: linear warm-up, over at most half of the run, then linear decay to zero
    after the last step."""
    warmup = min(warmup_steps, steps // 2)
    rising = step / max(warmup, 1)
    falling = (steps - step + 1) / (steps - warmup)
    return peak * min(1.0, rising, falling)
