"""The options of loading, of searching and of embedding, which models share.

Knows: names, defaults, which values are valid. Does not know: what is done with them.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from annotated_types import Ge, Le

from quoth.fields import MOST, Checked, Count, Such, described

Mode = Literal["auto", "bm25", "dense", "hybrid"]
AnyMode = Literal["auto", "bm25", "dense", "entity", "hybrid"]
"""Of several models, by kinds of keys."""
FOUND_BY = (
    "How the passages to read are found: by words (bm25), vectors of passages (dense), or both (hybrid); auto: both "
    "if every corpus has such vectors (`quoth embed --keys passages`), or else words."
)
"""What `mode` of `fill` and `ask` means."""
Fusion = Literal["rrf", "sum"]
Storage = Literal["sq8", "sq4", "fp16", "fp32"]


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions(Checked):
    """How a model is loaded. Raises InputError."""

    device: Annotated[str | None, '"cpu", "cuda", "cuda:1" or "mps". Default: the best there is.'] = None
    dtype: Annotated[
        str | None,
        'Number format of the encoder: "fp32", "bf16", "fp16", "int8" or "auto", which is int8 or bf16 on a processor '
        'that multiplies it faster, else fp32. Default: what QUOTH_DTYPE names, or "auto".',
    ] = None
    base: Annotated[str | Path | None, "Folder of the base encoder. Default: the shipped one."] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found(Checked):
    k: Annotated[Annotated[Count, Le(MOST)], "Number of passages."] = 10


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions(_Found):
    """The options of `search` of a model. Raises InputError."""

    mode: Annotated[
        Mode,
        "By words, by this model's vectors (requires `embed`), or by both, with reciprocal rank fusion; auto: by "
        "words, and by the vectors of passages (quoth-realm's) too if every corpus has them, both scores scaled from 0 "
        "to 1 and added.",
    ] = "auto"


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class AnySearchOptions(_Found):
    """The options of a search by words or with one of several models, or with all of them. Raises InputError."""

    mode: Annotated[
        AnyMode,
        "By words, by vectors, by the entities named, or by all of these; auto: by words, and by vectors of passages "
        "too if every corpus has them.",
    ] = "auto"
    fusion: Annotated[Fusion, "With mode hybrid: add up reciprocal ranks (rrf), or scores from 0 to 1 (sum)."] = "rrf"


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedOptions(Checked):
    """The options of `embed` of a model. Raises InputError."""

    storage: Annotated[
        Storage, "Storage per vector component: sq8 (1 byte), sq4 (half a byte, less exact), fp16 or fp32."
    ] = "sq8"
    recall: Annotated[
        Annotated[float, Ge(0.5), Le(1)] | None,
        Such(0.97),
        "Large segments are searched by compressed codes, which find this share of a query's nearest keys; 1 compares "
        "every vector. Default: that of the last run, or 0.97.",
    ] = None
