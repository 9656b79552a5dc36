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
"""The error for a reader's file that cannot be read."""
BRANCH = "branch"
"""Prefix of the weight names of evidence's own layers."""
NEVER = -1e30
"""The score of anything that is not a span. Finite, so that a softmax over nothing else has a gradient of 0, not
NaN."""


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderDefaults(Config):
    """The defaults of a reader."""

    passages: Annotated[Count, "Number of passages to read."] = 20
    min_probability: Annotated[Share, "Chance of being right below which an answer is unsure."] = 0.0
    unit_probability: Annotated[Share | None, "The same for a unit of a text, by default; None: `min_probability`."] = (
        None
    )
    fitted_on: Annotated[
        tuple[int, ...], "Numbers of answers that the thresholds were fitted on: phrases, and units of texts."
    ] = ()
    not_found_below: Annotated[Share, "Chance of being right below which even the best answer counts as not found."] = (
        0.0
    )
    thresholds: Annotated[
        Thresholds, "Shares of right answers, ascending, and the `min_probability` that reached each."
    ] = ()


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions(Checked):
    """How many answers, from how many passages. Raises InputError."""

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
        'An answer with a smaller chance of being right gets the `status` "unsure", or "not_found" if even the '
        "best one is below the model's `not_found_below`.",
    ] = None
    precision: Annotated[
        ShareBelow1 | None,
        Such(0.9),
        "Target precision, instead of `min_probability`: answer only when at least this share was right on the "
        "calibration questions; none by default.",
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
        "A span's score: the sum of a start and an end logit (ends), or an MLP over both ends' states (mlp, as in "
        "ORQA).",
    ] = "ends"
    query_tokens: Annotated[int, Ge(8), "Maximum length of a query: a question, or a text around its blank."] = 96
    title_tokens: Annotated[Number, "Maximum length of a title."] = 24
    max_tokens: Annotated[int, Ge(32), "Maximum length of an input."] = 384
    overlap: Annotated[Count, "Number of tokens shared by two windows."] = 96
    span_width: Annotated[Count, "Maximum length of an answer."] = 20
    span_hidden: Annotated[Count, "Hidden size of the MLP."] = 256
    prior: Annotated[
        NotNegative,
        "Weight, in an answer's log odds, of the log of its passage's search score as a share of the best one's.",
    ] = 0.0
    unread_bound: Annotated[
        float | None,
        "Stop margin: assumed log odds of all answers in an unread passage, without its prior; reading stops once "
        "they cannot change the best answer. None: all are read.",
    ] = None
    evidence: Annotated[
        bool, "Whether the network also scores a passage's relevance and, token by token, its evidence."
    ] = False
    evidence_layers: Annotated[
        Number, "Number of upper layers used by relevance and evidence alone; spans share the others."
    ] = 0
    enough_relevance: Annotated[
        float | None,
        "Relevance of a passage at which reading a question's passages, in search order, stops; None: all are read.",
    ] = None
    marked_passages: Annotated[
        Count | None,
        "Number of a question's passages, by highest relevance, in which spans are marked; None: all.",
    ] = None
    unit_weights: Annotated[
        tuple[float, ...],
        "Weights in the score of a piece of a passage: of the log of its evidence, the passage's relevance, its "
        "relevance in the search, the log of the share of spans in the piece.",
    ] = (1.0, 0.5, 2.0, 1.0)
    calibration: Annotated[
        tuple[float, ...] | None,
        "Weights that turn an answer's features (1, the log odds of its share, its score, the relevance of its "
        "passage, its shortness, how few the passages are) into its chance of being right; omitted ones are 0. None: "
        "the share is reported.",
    ] = None
    sentence_calibration: Annotated[
        tuple[float, ...] | None, "As `calibration`, for a sentence's share: the chance that it answers a question."
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

    epochs: Annotated[Positive, "Number of passes over the examples."] = 3.0
    batch_size: Count = 32
    learning_rate: NotNegative = 2e-4
    warmup_ratio: Annotated[Share, "Share of the steps during which the learning rate rises."] = 0.06
    lora_rank: Number = 0
    num_negatives: Annotated[
        Number,
        "Maximum number of negative passages read with an example: found for it by BM25, without its answer.",
    ] = 2
    negative_share: Annotated[Share, "Probability that an example is read with such passages."] = 0.25
    unanswerable: Annotated[Share, "Probability that such a passage replaces the example's own."] = 0.1
    head: Annotated[Literal["ends", "mlp"], "The head of a new reader: ends or mlp."] = "ends"
    span_width: Annotated[Count, "Maximum length of a new reader's answers."] = 20
    evidence: Annotated[
        bool,
        "Whether a reader with evidence keeps it: the layers below stay as they are; spans and evidence are learned "
        "together. False, or with dropout: all layers are trained, to mark spans alone.",
    ] = True
    padded_tokens: Annotated[int, Ge(64), "Maximum number of tokens encoded together, padding included."] = 4096
    teacher: Annotated[
        str,
        "Name or folder of a larger reader to distil from besides the right answers; its vocabulary must be the same.",
    ] = ""
    teacher_weight: Annotated[Share, "Weight of the teacher's answers; the right ones get the rest."] = 0.5
    temperature: Annotated[
        Positive, "Divides both readers' log odds before comparison; above 1, unlikely answers count more."
    ] = 1.5

    def check(self) -> None:
        if self.lora_rank:
            raise InputError(f"lora_rank is {self.lora_rank}; it must be 0: all of a reader's weights are trained")


RECIPES = {
    "reader": Recipe(
        "quoth.reader.recipe:prepare", "quoth-reader", ReaderTrainConfig(), distributed=False, skips_bad=True
    )
}
