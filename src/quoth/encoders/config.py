"""The settings of a token encoder.

Knows: names, defaults, which values are valid. Does not know: what is done with them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge

from quoth.config import ModelConfig
from quoth.fields import Positive


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenConfig(ModelConfig):
    """What turns tokens into comparable vectors.

    `similarity_scale` s of sim(q, c) = s q·c; None stands for 1/sqrt(D), the published NPM's. With `normalize`
    vectors have length 1, so that sim is s times the cosine. `num_masks` mask tokens stand for one blank: two for
    phrases, one for single tokens. `max_tokens` bounds an encoder input.
    """

    similarity_scale: Positive | None = None
    normalize: bool = False
    num_masks: Literal[1, 2] = 2
    max_tokens: Annotated[int, Ge(16)] = 256
