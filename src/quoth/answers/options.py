"""The options of `fill`: meaning, unit, default and bounds of each, declared once.

Knows: names, meanings and bounds; the command line, the HTTP service and the docstrings are built from them. Does not
know: what an option does.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from annotated_types import Ge, Le

from quoth.config import Config
from quoth.errors import InputError
from quoth.fields import MOST, Count, Has, Number, Share, ShareBelow1, Such, check_fields, described, fields_of
from quoth.index.options import FOUND_BY, Mode

Combine = Literal["sum", "joint", "softmax_sum"]
Thresholds = tuple[tuple[float, float], ...]
"""Shares of right answers, ascending, and the `min_probability` that reached each."""


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class NPMDefaults(Config):
    """The defaults of an NPM."""

    template: Annotated[str, Has("{question}"), "What makes a blank of a question."] = "Q: {question}\nA: [MASK]."
    classify_template: Annotated[str, Has("{text}"), "What makes a blank of a text to label."] = "{text} It was [MASK]."
    passages: Annotated[
        Count | None,
        "Number of best passages to search, at least as many as a reader reads; None: every token.",
    ] = 3
    combine: Annotated[Combine, "As in `FillOptions`."] = "joint"
    passage_share: Annotated[ShareBelow1, "As in `FillOptions`."] = 0.0
    read: Annotated[Number, "As in `FillOptions`."] = 0
    min_probability: Annotated[Share, "As in `FillOptions`."] = 0.0
    not_found_below: Annotated[Share, "Chance of being right below which even the best answer counts as not found."] = (
        0.0
    )
    thresholds: Annotated[Thresholds, "As in `ReaderDefaults`."] = ()


TopK = Annotated[Count, Le(MOST)]
Temperature = Annotated[float, Ge(1e-6)]
"""Far enough above 0 to keep scores finite."""


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class FillOptions:
    """The options of `NPM.fill`.

    None, and "default" for `passages`, mean the model's own default (`defaults` in its `quoth.json`); `resolved` fills
    them in. Raises InputError on a value out of bounds.
    """

    top_k: Annotated[TopK, "Number of answers."] = 5
    k: Annotated[Count, "Number of nearest tokens to retrieve, per end of a phrase."] = 4096
    passages: Annotated[
        Count | Literal["default", "all"] | None,
        Such(3),
        "Number of best passages to search; all (or None): every token, which requires `embed`.",
    ] = "default"
    mode: Annotated[Mode, FOUND_BY] = "auto"
    combine: Annotated[
        Combine | None,
        "How a phrase's two ends combine into its score: sum (NPM, section 3.1), joint (its appendix A.1), "
        "softmax_sum (its released code).",
    ] = None
    temperature: Annotated[
        Temperature, "Divides similarities: above 1 flattens probabilities, below 1 sharpens them."
    ] = 1.0
    length_exponent: Annotated[
        float, Ge(-1000), Le(1000), "A score is multiplied by the phrase's length in tokens to this power."
    ] = 0.0
    banned_tokens: Annotated[Collection[str], "Words whose tokens may not occur in an answer."] = ()
    ban_query: Annotated[
        bool,
        "Exclude answers that contain a token of the text itself. For some questions this rules out every right "
        "answer: 10.4 % of NQ-open, 18.6 % of WebQuestions, 5.4 % of TriviaQA. It compares tokens: a cased model may "
        "still answer with another casing of the text's words.",
    ] = False
    ban_stop_words: Annotated[bool, "Exclude answers of English stop words alone (the, of it)."] = False
    max_phrase_tokens: Annotated[
        TopK, "Maximum length of a phrase proposed by NPM, in tokens; a word counts as one."
    ] = 10
    whole_words: Annotated[bool, "Answer with whole words; False (any token) is for single-token models."] = True
    passage_share: Annotated[
        ShareBelow1 | None,
        Such(0.33),
        "Search every token, and reserve this share of the probability for the best passages; 0.33 works well.",
    ] = None
    read: Annotated[
        Number | None,
        "Let the reader read this many of the best passages and decide, with NPM where it is unsure; 0: NPM alone, as "
        "in the paper.",
    ] = None
    min_probability: Annotated[
        Share | None,
        Such(0.5),
        "An answer with a smaller chance of being right gets the `status` unsure, or not_found (the passages read do "
        "not say) if even the best one is below the model's `not_found_below`; only with a reader.",
    ] = None
    precision: Annotated[
        ShareBelow1 | None,
        Such(0.9),
        "Target precision, instead of `min_probability`: answer only when at least this share was right on the "
        "calibration questions; none by default.",
    ] = None
    distinct: Annotated[bool, "Of phrases whose best places overlap, list only the best."] = True
    max_evidence: Annotated[
        TopK, "Number of places listed per answer, largest shares first; the others still count."
    ] = 10

    def __post_init__(self) -> None:
        check_fields(self)
        object.__setattr__(self, "banned_tokens", tuple(self.banned_tokens))
        if self.passages == "all":
            object.__setattr__(self, "passages", None)

    def resolved(self, defaults: NPMDefaults) -> "ResolvedOptions":
        """These options with the model's defaults filled in."""
        own = {name: getattr(self, name) for name in fields_of(FillOptions)}
        own |= {"min_probability": answered_from(self, defaults)}
        own |= {name: getattr(defaults, name) for name in OPEN if own[name] is None}
        if self.passages == "default":
            own["passages"] = defaults.passages
        return ResolvedOptions(**own)

    def keywords(self) -> dict[str, Any]:
        """The keyword arguments of `fill`, without those that keep the model's default."""
        values = {name: getattr(self, name) for name in fields_of(FillOptions)}
        left = {name for name in (*OPEN, "precision") if values[name] is None}
        left |= {"passages"} if self.passages == "default" else set()
        return {name: value for name, value in values.items() if name not in left}


OPEN = ("combine", "passage_share", "read", "min_probability")
"""Options whose None stands for the model's default."""


def answered_from(options: Any, defaults: Any) -> float:
    """The minimum probability of an answer: the caller's, that of the caller's `precision`, or the model's. Raises
    InputError if both are passed, or the model cannot promise that precision."""
    least, wanted = options.min_probability, options.precision
    if wanted is None:
        return float(defaults.min_probability if least is None else least)
    if least is not None:
        raise InputError(f"precision is {wanted} and min_probability {least}; give only one of them")
    for share, threshold in defaults.thresholds:
        if share >= wanted:
            return float(threshold)
    most = max((share for share, _ in defaults.thresholds), default=None)
    can = "promises none" if most is None else f"can promise at most {most}"
    raise InputError(
        f"precision is {wanted}; the model {can}, by the questions that it was fitted on: fit it on more of yours with "
        "`quoth calibrate`, or give min_probability"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedOptions(FillOptions):
    """FillOptions with every default filled in, and banned words as the model's tokens.

    `combine` names the equation: `sum` (NPM §3.1), `joint` (A.1, A.4), `softmax_sum` (released code). Phrases that
    contain a token id of `banned_ids`, or consist of `stop_words` alone (groups), are dropped before normalising over
    candidates. Raises InputError.
    """

    passages: Count | None = 3
    combine: Combine = "joint"
    passage_share: ShareBelow1 = 0.0
    read: Number = 0
    min_probability: Share = 0.0
    banned_ids: frozenset[int] = frozenset()
    stop_words: frozenset[int] = frozenset()

    @property
    def everywhere(self) -> bool:
        """Whether every token is searched, not just the best passages."""
        return self.passages is None or self.passage_share > 0
