"""The settings of an NPM, and of its training.

Knows: names, defaults, which values are valid. Does not know: what is done with them.
"""

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

from annotated_types import Ge, Gt, Le

from quoth.answers.options import FillOptions, NPMDefaults, Temperature
from quoth.encoders.config import TokenConfig
from quoth.errors import InputError
from quoth.fields import Checked, Count, Has, NotNegative, Number, Such, described
from quoth.training.settings import LoopConfig, MeasuredConfig, Recipe


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class AskOptions(FillOptions):
    """The options of `NPM.ask`: those of `fill`, but without a reader by default. Raises InputError."""

    template: Annotated[
        Annotated[str, Has("{question}")] | None,
        Such("{question} [MASK]."),
        "The text made of `{question}`, with one blank.",
    ] = None
    read: Number = 0


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class ClassifyOptions(Checked):
    """The options of `NPM.classify`. Raises InputError."""

    template: Annotated[
        Annotated[str, Has("{text}")] | None,
        Such("{text} It was [MASK]."),
        "The text made of `{text}`, with one blank.",
    ] = None
    temperature: Annotated[Temperature, "Divides similarities: above 1 flattens probabilities."] = 5.0
    passages: Annotated[
        Count | Literal["default", "all"] | None,
        Such(3),
        "Number of BM25's best passages per label, for the text with the label's words; all (or None): every token, "
        "which requires `embed`.",
    ] = "default"


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class NPMConfig(TokenConfig):
    """What a nonparametric masked LM needs in addition to its weights."""

    options: ClassVar[tuple[Any, ...]] = (FillOptions, AskOptions)
    kind: Literal["npm"] = "npm"
    reader: Annotated[str, "A reader to combine with, by name or folder."] = ""
    read_weights: Annotated[
        tuple[float, float, float],
        "Weights in the joint decision: of NPM's log probability (less, the surer the reader is), of the reader's, "
        "and of phrases that repeat the blank's sentence.",
    ] = (1.0, 1.0, 0.0)
    calibration: Annotated[
        tuple[float, ...] | None, "As a reader's: weights that give a joint decision's chance of being right."
    ] = None
    defaults: NPMDefaults = field(default_factory=NPMDefaults)

    def check(self) -> None:
        if self.defaults.read and not self.reader:
            raise InputError(f"defaults: read {self.defaults.read} without a reader; set it to 0, or name a reader")


Grouping = Literal["shuffled", "neighbours", "random"]


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class TrainConfig(MeasuredConfig):
    """How to train NPM and NPM-single.

    A batch consists of groups of passages from one document; phrases to mask must recur in their group, regardless of
    batch size. Documents with fewer passages share a group.
    """

    batch_size: Annotated[int, Ge(2)] = 16
    groups: Annotated[
        Count,
        "Number of parts of a batch contrasted separately, as in the released code, whose negatives come from half "
        "(2) or a quarter (4) of the processes.",
    ] = 1
    masking_group: Annotated[int, Ge(2), "Number of passages searched together for phrases to mask."] = 32
    grouping: Annotated[
        Grouping,
        "Which small documents share a group: any (shuffled), or similar ones by BM25 (neighbours); random mixes all "
        "passages.",
    ] = "shuffled"
    masking: Annotated[Literal["spans", "tokens"], "What to mask: recurring phrases (spans), or single tokens."] = (
        "spans"
    )
    mask_ratio: Annotated[float, Gt(0), Le(0.5), "Share of a passage's tokens to mask."] = 0.15
    max_repeats: Annotated[Count, "Maximum number of times an n-gram is masked in a batch."] = 10
    positives: Annotated[
        Literal["words", "any"],
        "Which occurrences of a masked phrase's tokens in other passages are positives: those at word boundaries "
        "(words) or all (any, the paper); the others are negatives.",
    ] = "words"
    contrast_with: Annotated[
        Literal["clean", "masked", "nothing"],
        "What queries are contrasted with: the tokens of the unmasked passages (clean, the paper), or those still "
        "visible in the masked ones (masked), which encodes each passage once instead of twice; with nothing, it "
        "trains a masked language model, NPM's parametric baseline, with one mask per hidden token.",
    ] = "clean"
    mlm_weight: Annotated[
        NotNegative,
        "Weight of the masked LM loss; a blank's first mask predicts the first token of the hidden phrase, its second "
        "mask the last.",
    ] = 0.0
    negatives: Annotated[
        Literal["other_passages", "all"],
        "The tokens of the batch's other passages, or of all passages except the masked phrase itself.",
    ] = "other_passages"
    splitter: Annotated[
        str,
        "How documents are split into passages; filled cuts when an encoder input is full, so that all text is read.",
    ] = "words:120"
    max_passage_tokens: Annotated[Count, "Number of tokens read per passage."] = 192
    similarity_chunk_size: Annotated[
        Number, "Number of queries whose similarities are in memory at a time; 0: as many as fit into 128 MiB."
    ] = 0
    mini_batch_size: Annotated[
        Number, "Number of encoder inputs per mini-batch of gradient caching; 0: all, without caching."
    ] = 0
    compile: Annotated[
        bool, "Whether to compile the encoder with torch.compile: minutes at first, then up to twice as fast."
    ] = False
    num_documents: Annotated[Number, "Number of documents to train on; 0: all."] = 0
    warm_start: Annotated[str, "A folder with an adapter to start from."] = ""

    def check(self) -> None:
        MeasuredConfig.check(self)  # not by super(), which slots break
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
        if self.compile and self.dropout:  # gradient caching needs the same units dropped in both passes
            raise InputError(f"compile with dropout {self.dropout}: set compile=false, or dropout=0")

    @property
    def num_masks(self) -> Literal[1, 2]:
        """The masks per blank: two for a phrase, one for a token."""
        return 2 if self.masking == "spans" and self.contrast_with != "nothing" else 1

    @property
    def masked_together(self) -> int:
        """Number of passages searched together for phrases to mask."""
        return min(self.masking_group, self.batch_size // self.groups)


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class QueryConfig(LoopConfig):
    """How to tune the queries of an NPM."""

    steps: Count = 120
    batch_size: Count = 32
    learning_rate: NotNegative = 3e-4
    warmup_steps: Number = 12
    k: Annotated[Count, "Number of nearest tokens that propose phrases, per end of a phrase."] = 512
    phrases: Annotated[
        Count, "Maximum number of places to compare an example with: of its answers, and of the phrases found."
    ] = 100

    def check(self) -> None:
        if not self.lora_rank:
            raise InputError("lora_rank is 0; it must be that of the model's own adapter: queries are an adapter too")


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
_MINI_RANK = 160  # of the adapter of quoth-mini
_ADAPT = replace(
    _MINI,
    lora_rank=_MINI_RANK,
    steps=300,
    batch_size=16,
    mini_batch_size=8,
    learning_rate=3e-4,
    checkpoint_every=20,
)
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
    positives="any",
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
    "npm-queries": Recipe(
        "quoth.npm.queries:prepare",
        "quoth-mini",
        QueryConfig(lora_rank=_MINI_RANK),
        retrieves=True,
        distributed=False,
    ),
}
