"""The settings of a REALM, and of its pre-training and fine-tuning.

Knows: names, defaults, which values are valid. Does not know: what is done with them.
"""

from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from annotated_types import Ge

from quoth.config import Config, ModelConfig
from quoth.errors import InputError
from quoth.fields import Count, Number, Positive, Share, ShareBelow1, Such, described
from quoth.reader.config import ReadOptions
from quoth.training.settings import LoopConfig, MeasuredConfig, Recipe

Combine = Literal["softmax", "marginal"]


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class REALMDefaults(Config):
    """The defaults of a REALM."""

    passages: Annotated[Count | None, "Number of passages to read; None: one less than `num_candidates`."] = None
    combine: Annotated[Combine, "How answers from several passages are combined."] = "softmax"
    mode: Annotated[Literal["dense", "hybrid"], "How a question's passages are found."] = "dense"


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class REALMFillOptions(ReadOptions):
    """The options of `REALM.fill`. Raises InputError."""

    combine: Annotated[
        Combine | None,
        'How spans of several passages are combined. "softmax": one softmax over all spans (the released code), '
        'plus the passage\'s relevance if the model adds it. "marginal": p(y|z,x) p(z|x), each normalised separately '
        "(eq. 1); the only choice of `fill` for a model with its own reader.",
    ] = None
    null_document: Annotated[
        bool | None,
        'Whether z in eq. 1 may also be the null document, an empty passage without an answer; only with "marginal". '
        "Default: in `fill`, as in the paper, but not in `ask`, as in its fine-tuning.",
    ] = None


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class REALMAskOptions(REALMFillOptions):
    """The options of `REALM.ask`. Raises InputError."""

    null_document: bool = False
    mode: Annotated[
        Literal["auto", "dense", "hybrid"] | None,
        'How passages are found. "dense": by the towers, as in the paper. "hybrid": also by BM25, both scores '
        "scaled from 0 to 1 and added; for a model with the reader of a `Reader`, which weighs a passage by that sum. "
        '"auto": same as the default. Default: "dense" with "marginal", or else the model\'s.',
    ] = None
    min_probability: Annotated[Share | None, Such(0.5), "As in `Reader.ask`, for a calibrated probability."] = None
    precision: Annotated[
        ShareBelow1 | None, Such(0.9), "As in `Reader.ask`, for a calibrated probability; none by default."
    ] = None

    def resolved(self, defaults: REALMDefaults) -> "REALMAskOptions":
        """These options with the model's defaults filled in. Raises InputError for an invalid combination."""
        combine = self.combine or defaults.combine
        mode = self.mode if self.mode not in ("auto", None) else "dense" if combine == "marginal" else defaults.mode
        if mode == "hybrid" and combine == "marginal":
            raise InputError(
                "mode is 'hybrid' and combine 'marginal'; the marginal needs the towers' p(z|x): use mode='dense'"
            )
        for name in ("min_probability", "precision") if combine == "marginal" else ():
            if getattr(self, name) is not None:
                raise InputError(f"{name} is given and combine is 'marginal', which is not calibrated; leave one out")
        return replace(self, combine=combine, mode=mode)


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class REALMConfig(ModelConfig):
    """What a REALM needs in addition to its weights; lengths in tokens, special ones included.

    A passage's vector is its encoder's state by `pooling`, followed by the optional pooler, projection, LayerNorm, and
    scaling to length 1.
    """

    options: ClassVar[tuple[Any, ...]] = (REALMFillOptions, REALMAskOptions)
    kind: Literal["realm"] = "realm"
    pooling: Annotated[
        Literal["cls", "mean"], "The state that becomes the vector: that of [CLS], or the mean of all."
    ] = "cls"
    pooler: Annotated[bool, "Whether a dense layer with tanh follows, as in the published encoders."] = False
    dimensions: Annotated[Number, "Size of the projection; 0: none."] = 128
    layer_norm_eps: Annotated[
        Positive | None,
        "Epsilon of the LayerNorm: 1e-3 in the original, 1e-12 in the Hugging Face port; None: no LayerNorm.",
    ] = 1e-3
    normalize: Annotated[bool, "Whether vectors have length 1."] = False
    similarity_scale: Annotated[Positive, "Relevance is the dot product of passage and query times this."] = 1.0
    separate_towers: Annotated[bool, "Whether queries have a separate encoder."] = False
    token_types: Annotated[bool, "Whether token-type ids mark the second text of an input."] = True
    query_tokens: Annotated[int, Ge(8), "Maximum length of a question."] = 64
    passage_tokens: Annotated[int, Ge(16), "Maximum length of a passage as a key."] = 288
    reader_tokens: Annotated[int, Ge(24), "Maximum length of a question with a passage."] = 320
    reader_titles: Annotated[bool, "Whether the reader sees the title before the text."] = False
    num_candidates: Annotated[int, Ge(2), "Number of passages read, including the null document."] = 8
    span_width: Annotated[Count, "Maximum length of an answer."] = 10
    span_hidden: Annotated[Count, "Hidden size of the span's MLP."] = 256
    reader_layer_norm_eps: Annotated[Positive, "Epsilon of the reader's LayerNorm."] = 1e-3
    add_relevance: Annotated[bool, "Whether a passage's relevance is added to its spans' scores."] = True
    reader: Annotated[str, "A reader, by name or folder, that replaces the model's own."] = ""
    defaults: REALMDefaults = field(default_factory=REALMDefaults)

    @property
    def question_room(self) -> int:
        """Tokens read of a question, without special ones."""
        return self.query_tokens - 2

    def num_read(self, passages: int | None) -> int:
        """The number of passages to read; by default `num_candidates` without the null document."""
        count = self.defaults.passages if passages is None else passages
        return self.num_candidates - 1 if count is None else count

    def check(self) -> None:
        if self.reader_tokens < self.query_tokens + 16:
            raise InputError(
                f"reader_tokens {self.reader_tokens} with query_tokens {self.query_tokens}; the reader takes a "
                "question and a passage: it must be at least 16 more than query_tokens"
            )

    def own_base(self, folder: Path | None) -> str:
        return "" if folder is None or self.base else str(folder / "passages")


Salience = Literal["salient", "spans", "word", "tokens"]
ReaderSees = Annotated[
    Literal["model", "titles", "body"],
    "What the reader sees of a passage: its title before its text (titles), its text alone (body, the paper), or as "
    "the model's `reader_titles` says (model).",
]


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class ICTConfig(LoopConfig):
    """The inverse cloze task (ORQA §4): the towers learn which passage a sentence comes from.

    One-sentence passages are skipped.
    """

    keep_sentence: Annotated[Share, "Probability that the sentence stays in its passage."] = 0.1
    splitter: Annotated[str, "How documents are split into passages."] = "words:120"
    exclude: Annotated[str, "A JSONL file of documents never to train on, by id or title."] = ""


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class PretrainConfig(MeasuredConfig):
    """REALM's pre-training: fill masks with the help of retrieved passages."""

    batch_size: Count = 8
    mini_batch_size: Annotated[Number, "Number of examples to read, with their passages, at a time; 0: all."] = 0
    num_candidates: Annotated[int, Ge(2), "Number of passages per example, including the null document."] = 8
    masking: Annotated[
        Salience,
        "What to mask: one named entity or date per example (salient), one random run of words (spans) or word "
        "(word), or 15 % of the tokens (tokens).",
    ] = "salient"
    reader: Annotated[
        str,
        "The `Reader`, by name or folder, that fills the masks with spans of the passages, in place of the model's own "
        "reader. It stays as it is: only the towers learn.",
    ] = ""
    tagger: Annotated[str, "The model that finds entities and dates."] = "quoth-tagger"
    marginal: Annotated[
        Literal["product", "token"],
        "Whether one passage explains all masks of an example (product, the paper), or each mask is marginalised by "
        "itself (token, the released code).",
    ] = "product"
    exclude_self: Annotated[
        Literal["document", "passage"],
        "What not to retrieve for an example: its own passage, or all passages of its document.",
    ] = "document"
    refresh_every: Annotated[
        Count, "Number of steps between re-embeddings of all passages; an index is less than twice as old."
    ] = 500
    asynchronous: Annotated[bool, "Whether a separate process does that, or training waits for it."] = True
    mlm_warmup_steps: Annotated[
        Number,
        "Number of steps in which the reader first learns to fill random masks without passages; required if the base "
        "has no masked LM head.",
    ] = 0
    splitter: Annotated[str, "How documents are split into passages."] = "words:120"
    evaluate_blanks: Count = 200
    reader_sees: ReaderSees = "model"

    def check(self) -> None:
        MeasuredConfig.check(self)
        refused = {
            "masking": (self.masking == "tokens", "salient, spans or word"),
            "mlm_warmup_steps": (self.mlm_warmup_steps > 0, "0"),
            "reader_sees": (self.reader_sees != "model", "model"),
        }
        for name in (name for name, (is_given, _) in refused.items() if self.reader and is_given):
            raise InputError(
                f"{name}={getattr(self, name)!r}, but reader={self.reader!r} fills one blank with a span, as it has "
                f"learned, and does not learn; set {name}={refused[name][1]}"
            )


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class FineTuneConfig(LoopConfig):
    """Fine-tuning for open question answering (REALM §4, after ORQA): the query tower and the reader learn; passage
    vectors stay fixed unless `refresh_every` is given. A passage or span is right if an answer occurs in it.
    """

    batch_size: Count = 1
    mini_batch_size: Annotated[Number, "Number of questions to read at a time; 0: all."] = 0
    retriever_beam_size: Annotated[Count, "Number of nearest passages the retriever learns from."] = 5000
    num_reader_passages: Annotated[Count, "Number of nearest passages the reader learns from."] = 5
    force_positive: Annotated[
        bool,
        "Whether a right passage of the beam replaces the last one read if none of those is right, so that the reader "
        "has something to learn from while the retriever is weak (not in the papers).",
    ] = False
    corpus: Annotated[str, "The folder of the corpus to answer from."] = ""
    refresh_every: Annotated[
        Number,
        "Number of steps between re-embeddings of all passages; then the passage tower learns too, from the beam's "
        "passages: all are encoded at every step, so take a small one (REALM, footnote 3). 0: it stays fixed, as do "
        "the vectors.",
    ] = 0
    asynchronous: Annotated[bool, "Whether a separate process does that, or training waits for it."] = True
    reader_sees: ReaderSees = "model"

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
    reader_sees="body",
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
