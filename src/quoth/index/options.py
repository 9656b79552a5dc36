"""The options of loading, searching and embedding that all models share.

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
    "How passages are found: by words (bm25), passage vectors (dense), or both (hybrid); auto: both if every corpus "
    "has such vectors (`quoth embed --keys passages`), else words."
)
"""What `mode` of `fill` and `ask` means."""
Fusion = Literal["rrf", "sum"]
Storage = Literal["sq8", "sq4", "fp16", "fp32"]


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions(Checked):
    """How a model is loaded. Raises InputError."""

    device: Annotated[str | None, '"cpu", "cuda", "cuda:1" or "mps". Default: the best available.'] = None
    dtype: Annotated[
        str | None,
        'Number format of the encoder: "fp32", "bf16", "fp16", "int8" or "auto" (int8 or bf16 where the processor '
        'multiplies it faster, else fp32). Default: the value of QUOTH_DTYPE, or "auto".',
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
        "words, and also by passage vectors (quoth-realm's) if every corpus has them, both scores scaled from 0 to 1 "
        "and added.",
    ] = "auto"


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class AnySearchOptions(_Found):
    """The options of a search by words, with one model, or with all of them. Raises InputError."""

    mode: Annotated[
        AnyMode,
        "By words, by vectors, by the entities named, or by all of these; auto: by words, and also by passage vectors "
        "if every corpus has them.",
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
        "Large segments are searched by compressed codes that find this share of a query's nearest keys; 1 compares "
        "every vector. Default: that of the last run, or 0.97.",
    ] = None
