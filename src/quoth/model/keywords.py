"""The options of the models' methods, as type checkers and editors read them.

Knows names and types. Does not know meanings, bounds or defaults. Generated from the records of options by
`scripts/cli_help.py`: change these, and run `make docs`.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Literal, TypedDict


class LoadKeywords(TypedDict, total=False):
    device: str | None
    dtype: str | None
    base: str | Path | None


class FillKeywords(TypedDict, total=False):
    top_k: int
    k: int
    passages: int | Literal["default", "all"] | None
    mode: Literal["auto", "bm25", "dense", "hybrid"]
    combine: Literal["sum", "joint", "softmax_sum"] | None
    temperature: float
    length_exponent: float
    banned_tokens: Collection[str]
    ban_query: bool
    ban_stop_words: bool
    max_phrase_tokens: int
    whole_words: bool
    passage_share: float | None
    read: int | None
    min_probability: float | None
    precision: float | None
    distinct: bool
    max_evidence: int


class AskKeywords(TypedDict, total=False):
    top_k: int
    k: int
    passages: int | Literal["default", "all"] | None
    mode: Literal["auto", "bm25", "dense", "hybrid"]
    combine: Literal["sum", "joint", "softmax_sum"] | None
    temperature: float
    length_exponent: float
    banned_tokens: Collection[str]
    ban_query: bool
    ban_stop_words: bool
    max_phrase_tokens: int
    whole_words: bool
    passage_share: float | None
    read: int
    min_probability: float | None
    precision: float | None
    distinct: bool
    max_evidence: int
    template: str | None


class ReaderFillKeywords(TypedDict, total=False):
    top_k: int
    passages: int | None
    mode: Literal["auto", "bm25", "dense", "hybrid"]


class ReaderAskKeywords(TypedDict, total=False):
    top_k: int
    passages: int | None
    mode: Literal["auto", "bm25", "dense", "hybrid"]
    min_probability: float | None
    precision: float | None


class REALMFillKeywords(TypedDict, total=False):
    top_k: int
    passages: int | None
    combine: Literal["softmax", "marginal"] | None
    null_document: bool | None


class REALMAskKeywords(TypedDict, total=False):
    top_k: int
    passages: int | None
    combine: Literal["softmax", "marginal"] | None
    null_document: bool
    mode: Literal["auto", "dense", "hybrid"] | None
    min_probability: float | None
    precision: float | None
