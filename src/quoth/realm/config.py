"""The settings of a REALM, and of its pre-training and fine-tuning.

Knows: names, defaults, which values are valid. Does not know: what is done with them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from annotated_types import Ge

from quoth.config import Config, ModelConfig
from quoth.errors import InputError
from quoth.fields import Count, Number, Positive, Share
from quoth.training.settings import LoopConfig, Recipe, check_evaluation


@dataclass(frozen=True, slots=True, kw_only=True)
class REALMDefaults(Config):
    """What a REALM takes where a caller says nothing: how many passages it reads (None: one less than
    `num_candidates`), how their answers come together, and by what a question's passages are found."""

    passages: Count | None = None
    combine: Literal["softmax", "marginal"] = "softmax"
    mode: Literal["dense", "hybrid"] = "dense"


@dataclass(frozen=True, slots=True, kw_only=True)
class REALMConfig(ModelConfig):
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

    def own_base(self, folder: Path | None) -> str:
        return "" if folder is None or self.base else str(folder / "passages")


Salience = Literal["salient", "spans", "tokens"]


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
        check_evaluation(self.evaluate_on, self.evaluate_every)


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


_ICT = ICTConfig(steps=300, batch_size=32, learning_rate=3e-4, warmup_steps=20, bf16=True)
_PRETRAIN = PretrainConfig(
    steps=300,
    batch_size=8,
    learning_rate=3e-4,
    warmup_steps=20,
    bf16=True,
    exclude_self="passage",
    refresh_every=100,
    splitter="words:60",
)
# Guu et al. 2020, §4.3.
_PRETRAIN_PAPER = PretrainConfig(
    steps=200_000,
    batch_size=512,
    mini_batch_size=8,
    learning_rate=3e-5,
    warmup_steps=10_000,
    lora_rank=0,
    dropout=0.1,
    bf16=True,
    checkpoint_every=500,
)
# A small beam leaves out passages that contain an answer's text by chance. With few questions these outnumber the right
# ones.
_QA = FineTuneConfig(
    steps=500,
    batch_size=8,
    retriever_beam_size=20,
    learning_rate=3e-4,
    warmup_steps=20,
    bf16=True,
    force_positive=True,
)
# ORQA's numbers (Lee et al. 2019, §6.2), which REALM takes over: two epochs over the 79,168 questions of Natural
# Questions, one question per step.
_QA_PAPER = FineTuneConfig(
    steps=158_336,
    batch_size=1,
    retriever_beam_size=5000,
    learning_rate=1e-5,
    warmup_steps=10_000,
    lora_rank=0,
    dropout=0.1,
    checkpoint_every=1_000,
)
_recipe = partial(Recipe, "quoth.realm.recipe:prepare", "quoth-realm-base")
RECIPES = {
    "realm-ict": _recipe(_ICT),
    "realm-pretrain": _recipe(_PRETRAIN, retrieves=True),
    "realm-qa": _recipe(_QA),
    "realm-pretrain-paper": _recipe(_PRETRAIN_PAPER, retrieves=True),
    "realm-qa-paper": _recipe(_QA_PAPER),
}
