"""The settings of a training run.

Knows: names, defaults, what is allowed. Does not know: what is done with them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from quoth.config import Config
from quoth.errors import InputError

Salience = Literal["salient", "spans", "tokens"]
Grouping = Literal["shuffled", "neighbours", "random"]

_LEAST = {
    "steps": 1,
    "batch_size": 1,
    "groups": 1,
    "masking_group": 2,
    "warmup_steps": 0,
    "lora_rank": 0,
    "max_body_tokens": 1,
    "max_repeats": 1,
    "chunk": 0,
    "sub_batch": 0,
    "seed": 0,
    "checkpoint_every": 1,
    "log_every": 1,
    "num_documents": 0,
    "evaluate_every": 0,
    "evaluate_blanks": 1,
    "refresh_every": 1,
    "alone": 0,
    "num_candidates": 2,
    "beam": 1,
    "read": 1,
    "num_negatives": 0,
    "padded_tokens": 64,
    "max_sentences": 1,
    "max_tokens": 16,
}

_ONE_OF = {
    "masking": ("spans", "tokens"),
    "keys": ("clean", "masked"),
    "mask_out": ("passage", "phrase"),
    "grouping": get_args(Grouping),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopConfig(Config):
    """What every run has: steps, AdamW with a linear warm-up and decay, checkpoints, logs. `lora_rank` 0 stands for
    full fine-tuning. `dropout` is the share of hidden units and attention weights that what is trained drops; the
    gradient is made no longer than `max_grad_norm`."""

    steps: int = 600
    batch_size: int = 16
    learning_rate: float = 1e-3
    weight_decay: float = 0.01
    warmup_steps: int = 50
    lora_rank: int = 64
    bf16: bool = False
    max_grad_norm: float = 1.0
    dropout: float = 0.0
    seed: int = 0
    checkpoint_every: int = 100
    log_every: int = 10

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            if getattr(self, name, least) < least:
                raise InputError(f"{name} is {getattr(self, name)}; allowed is {least} or more")
        for name in ("learning_rate", "weight_decay", "max_grad_norm"):
            if not 0 <= getattr(self, name) < math.inf:
                raise InputError(f"{name} is {getattr(self, name)}; allowed is a finite number, 0 or more")
        if not 0 <= self.dropout < 1:
            raise InputError(f"dropout is {self.dropout}; allowed is a share from 0 to below 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainConfig(LoopConfig):
    """How to train NPM and NPM-single. `warm_start` names a folder with an adapter.

    Documents whose id or title stands in the JSONL file `exclude` are never trained on, nor those of the file
    `evaluate_on`: every `evaluate_every` steps (0: never), `evaluate_blanks` blanks of each kind are asked of them.

    `keys`: queries are contrasted with the tokens of the passages as they are ("clean", as the paper does), or with
    those that the masked passages still show ("masked"), which encodes each passage once instead of twice.
    Negatives are the tokens of other passages of the batch; with `mask_out="phrase"` also those of its own, but for the
    hidden phrase at its place. A batch of several `groups` is contrasted within each of them, as with the released
    code's negatives from half (2) or a quarter (4) of the processes. It is made of groups of `masking_group` passages
    of one document, in which phrases to hide are looked for whatever the size of the batch that is contrasted; shorter
    documents share a group: `grouping` "shuffled" in random order, "neighbours" with those that BM25 finds alike;
    "random" mixes all passages.
    `splitter` cuts documents into passages, of which the first `max_body_tokens` tokens are read; with "filled" they
    are cut where an encoder input is full, so that all text is read.
    `budget` is the share of a passage's tokens to hide, `max_repeats` how often in a batch one n-gram may be hidden.
    `sub_batch` bounds memory: that many encoder inputs are held with their activations at a time (0: all), by
    gradient caching; `chunk` that many queries' similarities (0: as many as fit into 128 MiB).
    """

    groups: int = 1
    masking_group: int = 32
    grouping: Grouping = "shuffled"
    masking: Literal["spans", "tokens"] = "spans"
    budget: float = 0.15
    max_repeats: int = 10
    keys: Literal["clean", "masked"] = "clean"
    mask_out: Literal["passage", "phrase"] = "passage"
    splitter: str = "words:120"
    max_body_tokens: int = 192
    chunk: int = 0
    sub_batch: int = 0
    num_documents: int = 0
    warm_start: str = ""
    exclude: str = ""
    evaluate_on: str = ""
    evaluate_every: int = 0
    evaluate_blanks: int = 100

    def __post_init__(self) -> None:
        LoopConfig.__post_init__(self)
        if self.batch_size < 2:
            raise InputError(f"batch_size is {self.batch_size}; allowed is 2 or more")
        if not 0 < self.budget <= 0.5:
            raise InputError(f"budget is {self.budget}; allowed is a share above 0, up to 0.5")
        _check_together(self.evaluate_on, self.evaluate_every)
        if self.batch_size % self.groups or self.batch_size // self.groups < 2:
            raise InputError(
                f"groups is {self.groups}; allowed is what cuts {self.batch_size} into equal parts above 1"
            )
        if self.batch_size // self.groups % self.masked_together:
            raise InputError(
                f"masking_group is {self.masking_group}; allowed is what cuts the {self.batch_size // self.groups} "
                "passages that are contrasted into equal parts, or all of them"
            )
        _check_one_of(self, _ONE_OF)

    @property
    def masked_together(self) -> int:
        """How many passages are looked through together for phrases to hide."""
        return min(self.masking_group, self.batch_size // self.groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class ICTConfig(LoopConfig):
    """The inverse cloze task (ORQA §4): towers learn which passage a sentence was taken from. With probability
    `keep_sentence` the sentence stays in its passage. Passages of one sentence are left out, and so are documents named
    in the file `exclude`."""

    keep_sentence: float = 0.1
    splitter: str = "words:120"
    exclude: str = ""

    def __post_init__(self) -> None:
        LoopConfig.__post_init__(self)
        if not 0 <= self.keep_sentence <= 1:
            raise InputError(f"keep_sentence is {self.keep_sentence}; allowed is a probability, 0 to 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class PretrainConfig(LoopConfig):
    """REALM's pre-training: fill masks with the help of passages found for them, `num_candidates` an example with the
    null document.

    `masking`: one named entity or date an example ("salient", by the model `tagger`), one random run of words
    ("spans"), or 15 % of the tokens ("tokens"). `marginal`: one passage explains all masks of an example ("product",
    the paper) or each mask its own ("token", the released code). `trivial`: what is never retrieved, the example's own
    "passage" or any of its "document". Every `refresh_every` steps all passages are embedded again, by a process of
    their own (`asynchronous`) or while training waits. In the first `alone` steps the reader learns to fill random
    masks without passages, for a base that brings no masked LM along as the paper's BERT does. Every `evaluate_every`
    steps (0: never) `evaluate_blanks` blanks in the documents of the file `evaluate_on` measure it. `sub_batch` bounds
    memory: that many examples are read with their passages at a time (0: all).
    """

    batch_size: int = 8
    sub_batch: int = 0
    num_candidates: int = 8
    masking: Salience = "salient"
    tagger: str = "quoth-tagger"
    marginal: Literal["product", "token"] = "product"
    trivial: Literal["document", "passage"] = "document"
    refresh_every: int = 500
    asynchronous: bool = True
    alone: int = 0
    splitter: str = "words:120"
    exclude: str = ""
    evaluate_on: str = ""
    evaluate_every: int = 0
    evaluate_blanks: int = 200

    def __post_init__(self) -> None:
        LoopConfig.__post_init__(self)
        _check_together(self.evaluate_on, self.evaluate_every)
        _check_one_of(self, _PRETRAIN_ONE_OF)


@dataclass(frozen=True, slots=True, kw_only=True)
class FineTuneConfig(LoopConfig):
    """Fine-tuning to open question answering (REALM §4, after ORQA): the query tower and the reader learn, passage
    vectors stay.

    The retriever learns from the `beam` nearest passages, the reader from the `read` nearest; a passage or span is
    right where an answer stands. With `help_reader` the last of the passages read is one with an answer where the
    others have none, so that a young retriever leaves the reader something to learn from (not in the papers).
    `sub_batch` bounds memory: that many questions are read at a time (0: all).
    """

    batch_size: int = 1
    sub_batch: int = 0
    beam: int = 5000
    read: int = 5
    help_reader: bool = False
    corpus: str = ""

    def __post_init__(self) -> None:
        LoopConfig.__post_init__(self)
        if self.read > self.beam:
            raise InputError(f"read is {self.read}, beam {self.beam}; allowed is to read of the beam, so up to beam")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderTrainConfig(LoopConfig):
    """How to train a reader on questions and blanks with their passages.

    The steps are those of `epochs` over the examples. With probability `negative_share` an example is read together
    with up to `num_negatives` passages that BM25 finds for it and that do not hold its answer; with probability
    `unanswerable` with such a passage alone. `head` and `span_width` shape a new reader. Inputs of up to
    `padded_tokens` are encoded together.
    """

    epochs: float = 3.0
    batch_size: int = 32
    learning_rate: float = 2e-4
    warmup_share: float = 0.06
    lora_rank: int = 0
    num_negatives: int = 2
    negative_share: float = 0.25
    unanswerable: float = 0.1
    head: Literal["ends", "mlp"] = "ends"
    span_width: int = 20
    padded_tokens: int = 4096

    def __post_init__(self) -> None:
        LoopConfig.__post_init__(self)
        for name in ("negative_share", "unanswerable", "warmup_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"{name} is {getattr(self, name)}; allowed is a share from 0 to 1")
        _check_one_of(self, {"head": ("ends", "mlp")})
        if self.lora_rank:
            raise InputError(f"lora_rank is {self.lora_rank}; a reader is trained whole: allowed is 0")
        if not 0 < self.epochs < math.inf:
            raise InputError(f"epochs is {self.epochs}; allowed is a number above 0")


_PRETRAIN_ONE_OF: dict[str, tuple[str, ...]] = {
    "masking": get_args(Salience),
    "marginal": ("product", "token"),
    "trivial": ("document", "passage"),
}


def _check_one_of(config: Config, choices: Mapping[str, Sequence[str]]) -> None:
    for name, allowed in choices.items():
        if (value := getattr(config, name)) not in allowed:
            raise InputError(f"{name} {value!r}; allowed are {', '.join(allowed)}")


def _check_together(evaluate_on: str, evaluate_every: int) -> None:
    if bool(evaluate_on) != bool(evaluate_every):
        raise InputError("evaluate_on and evaluate_every go together: a file of documents and a number of steps")


def rate_at(step: int, steps: int, peak: float, warmup_steps: int) -> float:
    """The learning rate of step 1 to `steps`: linear warm-up (over half the run at most), then linear decay, to zero
    after the last step."""
    warmup = min(warmup_steps, steps // 2)
    rising = step / max(warmup, 1)
    falling = (steps - step + 1) / (steps - warmup)
    return peak * min(1.0, rising, falling)
