"""The settings of a token encoder, and the number format of all.

Knows: names, defaults, which values are valid. Does not know: what is done with them.
"""

import os
from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge

from quoth.config import ModelConfig
from quoth.fields import Positive, described


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class TokenConfig(ModelConfig):
    """What turns tokens into comparable vectors."""

    similarity_scale: Annotated[
        Positive | None, "s of sim(q, c) = s q·c; None stands for 1/sqrt(D), the published NPM's."
    ] = None
    normalize: Annotated[bool, "Whether vectors have length 1, so that sim is s times the cosine."] = False
    num_masks: Annotated[
        Literal[1, 2], "Number of mask tokens that stand for a blank: 2 for phrases, 1 for single tokens."
    ] = 2
    max_tokens: Annotated[int, Ge(16), "The longest encoder input."] = 256
    titles: Annotated[bool, "Whether a passage's title is read before its text."] = True


def wanted_dtype(name: str | None) -> str:
    """The name of a number format; for None what QUOTH_DTYPE names, or "auto"."""
    return name or os.environ.get("QUOTH_DTYPE") or "auto"
