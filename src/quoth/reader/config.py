"""The settings of a reader, and of its training.

Knows: names, defaults, which values are valid. Does not know: what is done with them.
"""

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from annotated_types import Ge

from quoth.answers.options import Thresholds, TopK
from quoth.config import Config, ModelConfig
from quoth.errors import InputError
from quoth.fields import Checked, Count, NotNegative, Number, Positive, Share, ShareBelow1, Such, described
from quoth.index.options import FOUND_BY, Mode
from quoth.training.settings import LoopConfig, Recipe

UNREADABLE = "is missing or damaged", "fetch or train it again"
"""What is said of a reader's file that cannot be read."""
BRANCH = "branch"
"""What the names of the weights of evidence's own layers begin with."""
NEVER = -1e30
"""The score of anything that is not a span. Finite, so that a softmax over nothing else has a gradient of 0, not
NaN."""


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderDefaults(Config):
    """What a reader uses unless a caller says otherwise."""

    passages: Annotated[Count, "Number of passages to read."] = 20
    min_probability: Annotated[Share, "Chance of being right below which an answer is unsure."] = 0.0
    unit_probability: Annotated[
        Share | None, "The same of a unit of a text, if nobody says otherwise; None: `min_probability`."
    ] = None
    not_found_below: Annotated[
        Share, "Chance of being right that the best answer must have, or else the passages do not say."
    ] = 0.0
    thresholds: Annotated[
        Thresholds, "Shares of right answers, ascending, and the `min_probability` by which each was reached."
    ] = ()


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions(Checked):
    """How many answers, and of how many passages. Raises InputError."""

    top_k: Annotated[TopK, "Number of answers."] = 5
    passages: Annotated[Count | None, Such(20), "Number of passages to read."] = None


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderFillOptions(ReadOptions):
    """The options of `Reader.fill`. Raises InputError."""

    mode: Annotated[Mode, FOUND_BY] = "auto"


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderAskOptions(ReaderFillOptions):
    """The options of `Reader.ask`. Raises InputError."""

    min_probability: Annotated[
        Share | None,
        Such(0.5),
        'An answer with a smaller chance of being right is "unsure" (`status`), or "not_found" if even the best one is '
        "below the model's `not_found_below`.",
    ] = None
    precision: Annotated[
        ShareBelow1 | None,
        Such(0.9),
        "Target precision, instead of `min_probability`: the share of the answers given that is to be right, by the "
        "questions that the model was fitted on; none by default.",
    ] = None


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderConfig(ModelConfig):
    """What a reader needs in addition to its weights; lengths in tokens, special ones included.

    A longer passage is read in windows.
    """

    options: ClassVar[tuple[Any, ...]] = (ReaderFillOptions, ReaderAskOptions)
    kind: Literal["reader"] = "reader"
    head: Annotated[
        Literal["ends", "mlp"],
        "A span's score: the sum of a start and an end logit (ends), or an MLP's of both ends' states (mlp, ORQA's).",
    ] = "ends"
    query_tokens: Annotated[int, Ge(8), "Length of a query, at most: a question, or a text around its blank."] = 96
    title_tokens: Annotated[Number, "Length of a title, at most."] = 24
    max_tokens: Annotated[int, Ge(32), "Length of an input, at most."] = 384
    overlap: Annotated[Count, "Number of tokens that two windows have in common."] = 96
    span_width: Annotated[Count, "Length of an answer, at most."] = 20
    span_hidden: Annotated[Count, "Hidden size of the MLP."] = 256
    prior: Annotated[
        NotNegative,
        "How much the log of a passage's score in the search, as a share of the best one's, adds to the log odds of "
        "its answers.",
    ] = 0.0
    unread_bound: Annotated[
        float | None,
        "Log odds that all that an unread passage says is taken to have, without its prior: no more passages are read "
        "once that much cannot change the best answer; None: all are read.",
    ] = None
    evidence: Annotated[
        bool, "Whether the network scores the relevance of a passage and the evidence in it too, token by token."
    ] = False
    evidence_layers: Annotated[
        Number, "How many of the upper layers relevance and evidence have for themselves; spans share the others."
    ] = 0
    enough_relevance: Annotated[
        float | None,
        "Relevance of a passage after which no more of a question's are read, which come in the order of the search; "
        "None: all are read.",
    ] = None
    marked_passages: Annotated[
        Count | None,
        "Number of a question's passages in which spans are marked: those of the highest relevance; None: all.",
    ] = None
    unit_weights: Annotated[
        tuple[float, ...],
        "How much adds to the score of a piece of a passage: the log of its evidence, the passage's relevance, the "
        "passage's relevance in the search, the log of the share of spans in the piece.",
    ] = (1.0, 0.5, 2.0, 1.0)
    calibration: Annotated[
        tuple[float, ...] | None,
        "Weights of an answer's features (1, the log odds of its share, its score, the relevance of its passage, its "
        "shortness, how few the passages are) that give its chance of being right; those left out are 0. None: the "
        "share is reported.",
    ] = None
    sentence_calibration: Annotated[
        tuple[float, ...] | None, "As `calibration`, of a sentence's share: the chance that it answers a question."
    ] = None
    defaults: ReaderDefaults = field(default_factory=ReaderDefaults)

    def check(self) -> None:
        if self.evidence_layers and not self.evidence:
            raise InputError(f"evidence_layers {self.evidence_layers} without evidence; it must be 0")
        if self.overlap < self.span_width:
            raise InputError(f"overlap {self.overlap}; it must be at least span_width ({self.span_width})")
        room = self.max_tokens - self.query_tokens - self.title_tokens - 3
        if room <= self.overlap:
            raise InputError(
                f"max_tokens {self.max_tokens} leaves {room} for a passage; "
                f"it must be more than overlap ({self.overlap})"
            )


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderTrainConfig(LoopConfig):
    """How to train a reader on questions and blanks with their passages.

    The number of steps follows from `epochs` and the number of examples.
    """

    epochs: Annotated[Positive, "Number of times that every example is read."] = 3.0
    batch_size: Count = 32
    learning_rate: NotNegative = 2e-4
    warmup_ratio: Annotated[Share, "Share of the steps in which the learning rate rises."] = 0.06
    lora_rank: Number = 0
    num_negatives: Annotated[
        Number,
        "Number of passages, at most, that are read along with an example: those that BM25 finds for it and that do "
        "not contain its answer.",
    ] = 2
    negative_share: Annotated[Share, "Probability that an example is read together with such passages."] = 0.25
    unanswerable: Annotated[Share, "Probability that such a passage is read instead of the example's own."] = 0.1
    head: Annotated[Literal["ends", "mlp"], "The head of a new reader: ends or mlp."] = "ends"
    span_width: Annotated[Count, "Length of a new reader's answers, at most."] = 20
    padded_tokens: Annotated[int, Ge(64), "Number of tokens, at most, that are encoded together, padding included."] = (
        4096
    )
    teacher: Annotated[
        str,
        "Name or folder of a larger reader to learn from beside the right answers; its vocabulary must be the same.",
    ] = ""
    teacher_weight: Annotated[Share, "Weight of the teacher's answers; the right ones have the rest."] = 0.5
    temperature: Annotated[
        Positive, "Divides both readers' log odds before they are compared; above 1, unlikely answers count more."
    ] = 1.5

    def check(self) -> None:
        if self.lora_rank:
            raise InputError(f"lora_rank is {self.lora_rank}; it must be 0, as all of a reader's weights are trained")


RECIPES = {
    "reader": Recipe(
        "quoth.reader.recipe:prepare", "quoth-reader", ReaderTrainConfig(), distributed=False, skips_bad=True
    )
}
