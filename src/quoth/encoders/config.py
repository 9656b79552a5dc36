"""The settings of a token encoder, the shape of a BERT, and the number format of all.

Knows: names, defaults, which values are valid. Does not know: what is done with them.
"""

import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Literal, Self

from annotated_types import Ge

from quoth.config import ModelConfig
from quoth.fields import Positive, described
from quoth.storage import read_json

MODEL_TYPES = ("bert", "roberta", "xlm-roberta", "mpnet")
GELU = {"gelu": "none", "gelu_new": "tanh", "gelu_pytorch_tanh": "tanh", "gelu_fast": "tanh"}
"""The activations that a `config.json` may name, and torch's `approximate` argument for each."""


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class TokenConfig(ModelConfig):
    """The settings of an encoder of tokens as comparable vectors."""

    similarity_scale: Annotated[
        Positive | None, "s in sim(q, c) = s q·c; None stands for 1/sqrt(D), as in the published NPM."
    ] = None
    normalize: Annotated[bool, "Whether vectors have length 1, so that sim is s times the cosine."] = False
    num_masks: Annotated[Literal[1, 2], "Number of mask tokens per blank: 2 for phrases, 1 for single tokens."] = 2
    max_tokens: Annotated[int, Ge(16), "The longest encoder input."] = 256
    titles: Annotated[bool, "Whether a passage's title is read before its text."] = True

    def scale(self, dimensions: int) -> float:
        """s, for vectors of that size."""
        return self.similarity_scale or dimensions**-0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class BertConfig:
    """The part of `config.json` that shapes the encoder."""

    model_type: str
    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    max_position_embeddings: int
    type_vocab_size: int = 2
    relative_attention_num_buckets: int = 32
    layer_norm_eps: float = 1e-12
    pad_token_id: int = 0
    hidden_act: str = "gelu"
    position_embedding_type: str = "absolute"

    @classmethod
    def read(cls, folder: Path) -> Self | None:
        """The folder's settings, or None if `encoders.bert` does not support its architecture."""
        if not all((folder / name).is_file() for name in ("config.json", "model.safetensors")):
            return None
        values = read_json(folder / "config.json")
        covered = values.get("model_type") in MODEL_TYPES and not values.get("is_decoder")
        known = {field.name: values[field.name] for field in fields(cls) if values.get(field.name) is not None}
        if not covered or known.get("hidden_act", "gelu") not in GELU:
            return None
        return cls(**known) if known.get("position_embedding_type", "absolute") == "absolute" else None


def wanted_dtype(name: str | None) -> str:
    """The name of a number format; for None the value of QUOTH_DTYPE, or "auto"."""
    return name or os.environ.get("QUOTH_DTYPE") or "auto"
