"""The options of `fill`: what each one means, its unit, its default and its check, said once.

Knows: names, meanings and bounds; the command line, the HTTP service and the docstrings are built from them. Does not
know: what an option does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from numbers import Integral, Real
from textwrap import wrap
from typing import Any, Literal, get_args

from quoth.config import Combine, NPMDefaults
from quoth.errors import InputError

MOST = 2**31 - 1
LEAST_TEMPERATURE = 1e-6
MOST_LENGTH_EXPONENT = 1000

Check = Callable[[str, Any], None]
Passages = int | Literal["default"] | None
"""A number of passages, the model's default, or None: every token."""


def _check_whole(name: str, value: object) -> None:
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise InputError(f"{name} is {value!r}; it must be a whole number")


def _check_number(name: str, value: object) -> None:
    if not isinstance(value, Real) or isinstance(value, bool):
        raise InputError(f"{name} is {value!r}; it must be a number")


def check_at_least_one(name: str, value: int) -> None:
    """Raises InputError unless `value` is a whole number of 1 or more, and at most `MOST`."""
    _check_whole(name, value)
    if value < 1:
        raise InputError(f"{name} is {value}; it must be 1 or more; try {name}=5")
    if value > MOST:
        raise InputError(f"{name} is {value}; it must be at most {MOST}; try {name}=5")


def check_share(name: str, value: float) -> None:
    """Raises InputError unless the value is a share, from 0 to below 1."""
    _check_number(name, value)
    if not 0 <= value < 1:
        raise InputError(f"{name} is {value}; it must be 0 or more and below 1; try {name}=0.33")


def check_temperature(name: str, value: float) -> None:
    """Raises InputError unless the temperature is finite and so far above 0 that scores are finite too."""
    _check_number(name, value)
    if not LEAST_TEMPERATURE <= value < float("inf"):
        raise InputError(
            f"{name} is {value}; it must be above 0 ({LEAST_TEMPERATURE} or more) and finite; try {name}=1.0"
        )


def check_combine(name: str, value: str, allowed: tuple[str, ...] = get_args(Combine)) -> None:
    """Raises InputError unless `value` is one of `allowed`."""
    if value not in allowed:
        raise InputError(f"{name} is {value!r}; use one of {', '.join(allowed)}")


def check_min_probability(name: str, value: float) -> None:
    """Raises InputError unless the value is a probability."""
    _check_number(name, value)
    if not 0 <= value <= 1:
        raise InputError(f"{name} is {value}; it must be from 0 to 1; try {name}=0.5")


def check_passages(name: str, value: int | str) -> None:
    """Raises InputError unless `value` is a number of passages or the word for the model's own."""
    if not isinstance(value, str):
        _check_whole(name, value)
    if value != "default" and (isinstance(value, str) or value < 1):
        raise InputError(f"{name} is {value!r}; it must be 1 or more, 'default', or None for every token; try {name}=3")


def _check_neighbours(name: str, value: int) -> None:
    _check_whole(name, value)
    if value < 1:
        raise InputError(f"{name} is {value}; it must be 1 or more neighbours; try {name}=4096")


def _check_read(name: str, value: int) -> None:
    _check_whole(name, value)
    if value < 0:
        raise InputError(f"{name} is {value}; it must be 0 (NPM alone) or more passages")


def _check_length_exponent(name: str, value: float) -> None:
    _check_number(name, value)
    if not abs(value) <= MOST_LENGTH_EXPONENT:
        most = MOST_LENGTH_EXPONENT
        raise InputError(f"{name} is {value}; it must be from -{most} to {most}; 0.0 is off")


def _meaning(meaning: str, check: Check | None = None) -> dict[str, Any]:
    return {"meaning": meaning, "check": check}


@dataclass(frozen=True, slots=True, kw_only=True)
class FillOptions:
    """The options of `NPM.fill`.

    None, and "default" for `passages`, mean the model's own default (`defaults` in its `quoth.json`); `resolved` fills
    it in. Raises InputError on a value out of bounds.
    """

    top_k: int = field(default=5, metadata=_meaning("Number of answers.", check_at_least_one))
    k: int = field(
        default=4096,
        metadata=_meaning("Number of nearest tokens to search for, per end of a phrase.", _check_neighbours),
    )
    passages: Passages = field(
        default="default",
        metadata=_meaning(
            "Number of BM25's best passages to search inside; None: every token, which requires `embed`.",
            check_passages,
        ),
    )
    combine: Combine | None = field(
        default=None,
        metadata=_meaning(
            "How the two ends of a phrase make its score: sum (NPM, section 3.1), joint (its appendix A.1), "
            "softmax_sum (its released code).",
            check_combine,
        ),
    )
    temperature: float = field(
        default=1.0,
        metadata=_meaning(
            "Divides similarities: above 1 flattens probabilities, below 1 sharpens them.", check_temperature
        ),
    )
    length_exponent: float = field(
        default=0.0,
        metadata=_meaning("Multiply a score by the phrase's length in tokens to this power.", _check_length_exponent),
    )
    banned_tokens: Collection[str] = field(default=(), metadata=_meaning("Words whose tokens no answer may contain."))
    ban_query: bool = field(
        default=False,
        metadata=_meaning(
            "No answer contains a token of the text itself. This rules out every right answer to some questions: of "
            "10.4 % of NQ-open's, 18.6 % of WebQuestions', 5.4 % of TriviaQA's. It goes by tokens: a cased model may "
            "still answer with another casing of the text's words.",
        ),
    )
    ban_stop_words: bool = field(
        default=False, metadata=_meaning("No answer consists of English stop words alone (the, of it).")
    )
    max_phrase_tokens: int = field(
        default=10,
        metadata=_meaning(
            "The longest phrase that NPM proposes, in tokens; of a word's tokens only the first counts.",
            check_at_least_one,
        ),
    )
    whole_words: bool = field(
        default=True,
        metadata=_meaning("Answer with whole words; False (any token) is for models that answer with one token."),
    )
    hybrid: float | None = field(
        default=None,
        metadata=_meaning(
            "Search every token, and give BM25's best passages this share of the probability beforehand; 0.33 is good.",
            check_share,
        ),
    )
    read: int | None = field(
        default=None,
        metadata=_meaning(
            "Let the reader see this many of BM25's best passages and decide together with NPM; 0: NPM alone, as in "
            "the paper.",
            _check_read,
        ),
    )
    min_probability: float | None = field(
        default=None,
        metadata=_meaning(
            "If a reader gives an answer a smaller chance of being right, its `status` is unsure; or not_found (the "
            "passages that were read do not say), if even the best one is below the model's `not_found_below`.",
            check_min_probability,
        ),
    )
    distinct: bool = field(
        default=True, metadata=_meaning("Of phrases that overlap in their best place, list only the best.")
    )
    max_evidence: int = field(
        default=10,
        metadata=_meaning(
            "Number of places quoted per answer, those with the largest shares; the others still count.",
            check_at_least_one,
        ),
    )

    def __post_init__(self) -> None:
        if isinstance(self.banned_tokens, str):
            raise InputError(f"banned_tokens is the string {self.banned_tokens!r}; write [{self.banned_tokens!r}]")
        object.__setattr__(self, "banned_tokens", tuple(self.banned_tokens))
        check_options(self)

    def resolved(self, defaults: NPMDefaults) -> FillOptions:
        """These options with the model's defaults in place of those that were left open.

        If a reader reads more passages than the model searches by default, all of these are searched.
        """
        names = ("combine", "hybrid", "read", "min_probability")
        own = {name: getattr(defaults, name) for name in names if getattr(self, name) is None}
        if self.passages == "default":
            read = defaults.read if self.read is None else self.read
            own["passages"] = None if defaults.passages is None else max(defaults.passages, read)
        return replace(self, **own)

    @property
    def num_passages(self) -> int | None:
        """`passages` of resolved options."""
        assert self.passages != "default"
        return self.passages

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> FillOptions:
        """The options among a call's arguments, its `locals()`."""
        return cls(**{each.name: arguments[each.name] for each in fields(cls)})

    def keywords(self) -> dict[str, Any]:
        """The keyword arguments of `fill`, without those left to the model."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        open_ones = {name for name in ("combine", "hybrid", "read", "min_probability") if values[name] is None}
        if self.passages == "default":
            open_ones.add("passages")
        return {name: value for name, value in values.items() if name not in open_ones}


MEANINGS: dict[str, str] = {each.name: each.metadata["meaning"] for each in fields(FillOptions)}
"""The meaning of every option, by its name."""
_CHECKS: dict[str, Check | None] = {each.name: each.metadata["check"] for each in fields(FillOptions)}


def check_options(options: Any) -> None:
    """Checks the fields that a record of options has in common with FillOptions. Raises InputError."""
    for each in fields(options):
        check, value = _CHECKS.get(each.name), getattr(options, each.name)
        left_open = value is None and (each.default is None or each.name == "passages")
        if check is not None and not left_open:
            check(each.name, value)


def described(indent: str, **defaults: Any) -> str:
    """The options as lines of a docstring's Args: name, type, meaning, default (the record's, or another given)."""
    lines = []
    spelled = {"passages": 'int | "default" | None', "combine": '"sum" | "joint" | "softmax_sum" | None'}
    for each in fields(FillOptions):
        kind, default = spelled.get(each.name, str(each.type)), defaults.get(each.name, each.default)
        default = "the model's" if default in (None, "default") else repr(default)
        meaning = MEANINGS[each.name]
        line = f"{each.name} ({kind}): {meaning} Default: {default}."
        lines += wrap(line, 112, initial_indent=indent, subsequent_indent=2 * indent)
    return "\n".join(lines).lstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class PhraseOptions:
    """How phrases, or single tokens, are proposed, scored and ranked: the options of `fill` in the model's own terms.

    `combine` names the equation: `sum` (NPM §3.1), `joint` (A.1, A.4), `softmax_sum` (released code). Phrases that
    contain a token id of `banned_tokens`, and those of nothing but `stop_words` (groups), are dropped before anything
    is normalised by candidates. `max_phrase_tokens` counts only the first token of each word (`find_candidates`).
    `hybrid` is the share of the probability that goes to boosted passages beforehand. `max_evidence` places of a phrase
    are quoted. `whole_words` is for single tokens: it leaves out those that are only a part of a word (the paper has
    any token). Raises InputError.
    """

    top_k: int = 5
    combine: Combine = "joint"
    temperature: float = 1.0
    length_exponent: float = 0.0
    banned_tokens: frozenset[int] = field(default_factory=frozenset)
    stop_words: frozenset[int] = field(default_factory=frozenset)
    max_phrase_tokens: int = 10
    hybrid: float = 0.0
    whole_words: bool = True
    max_evidence: int = 10

    def __post_init__(self) -> None:
        check_options(self)

    @property
    def rounds(self) -> int:
        """How often sums over all candidates are asked for: of a and b, then of scores that take those."""
        return int(self.combine == "softmax_sum") + int(self.hybrid > 0)
