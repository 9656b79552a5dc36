"""The settings of an NPM, and of its training.

Knows: names, defaults, which values are valid. Does not know: what is done with them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Le

from quoth.answers.options import NPMDefaults
from quoth.encoders.config import TokenConfig
from quoth.errors import InputError
from quoth.fields import Count, NotNegative, Number
from quoth.training.settings import LoopConfig, Recipe, check_evaluation


@dataclass(frozen=True, slots=True, kw_only=True)
class NPMConfig(TokenConfig):
    """What a nonparametric masked LM needs in addition to its weights and the settings of its encoder.

    A model that knows a `reader` by name or folder can let it read, and weighs by `read_weights`: its own log
    probability (the less, the surer the reader is), the reader's, and what repeats the sentence of the blank.
    `calibration` is of what both decide, as a reader's. `defaults` are taken where a caller says nothing.
    """

    kind: Literal["npm"] = "npm"
    reader: str = ""
    read_weights: tuple[float, float, float] = (1.0, 1.0, 0.0)
    calibration: tuple[float, float, float] | None = None
    defaults: NPMDefaults = field(default_factory=NPMDefaults)

    def check(self) -> None:
        if self.defaults.read and not self.reader:
            raise InputError(f"defaults: read {self.defaults.read} without a reader; set it to 0, or name a reader")


Grouping = Literal["shuffled", "neighbours", "random"]


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
        check_evaluation(self.evaluate_on, self.evaluate_every)
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


_MINI = TrainConfig(
    steps=3000,
    warmup_steps=50,
    batch_size=32,
    learning_rate=6e-4,
    max_grad_norm=1.0,
    dropout=0.0,
    mask_ratio=0.2,
    max_repeats=3,
    contrast_with="masked",
    bf16=True,
)
_MINI_GPU = replace(_MINI, batch_size=512, mini_batch_size=256, warmup_steps=200)
_ADAPT = replace(_MINI, steps=300, batch_size=16, mini_batch_size=8, learning_rate=3e-4, checkpoint_every=20)
# The paper's own NPM (Min et al. 2022, §4): all of RoBERTa-large, inputs of up to 256 tokens; clip and dropout as in
# the released code.
_NPM_PAPER = TrainConfig(
    steps=100_000,
    warmup_steps=4_000,
    batch_size=512,
    mini_batch_size=32,
    splitter="filled",
    max_passage_tokens=254,
    learning_rate=3e-5,
    weight_decay=0.01,
    max_grad_norm=2.0,
    dropout=0.1,
    lora_rank=0,
    bf16=True,
    checkpoint_every=1_000,
)
_recipe = partial(Recipe, "quoth.npm.recipe:prepare", "quoth-mini-base")
RECIPES = {
    "npm-mini-cpu": _recipe(_MINI),
    "npm-single-mini-cpu": _recipe(replace(_MINI, masking="tokens")),
    "mlm-mini-cpu": _recipe(replace(_MINI, contrast_with="nothing", mlm_weight=1.0)),
    "npm-mini-gpu": _recipe(_MINI_GPU),
    "npm-single-mini-gpu": _recipe(replace(_MINI_GPU, masking="tokens")),
    "npm-large": replace(_recipe(_NPM_PAPER), model="FacebookAI/roberta-large"),
    "adapt": replace(_recipe(_ADAPT), model="quoth-mini"),
}
