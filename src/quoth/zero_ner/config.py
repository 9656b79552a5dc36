"""The settings of a model that finds passages by their entities.

Knows: names, defaults, which values are valid. Does not know: what is done with them.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal, Self

from annotated_types import Ge, MinLen

from quoth.config import ModelConfig
from quoth.fields import described


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroNERConfig(ModelConfig):
    """The settings of a Zero-NeR, which finds passages by their entities without training."""

    kind: Literal["zero-ner"] = "zero-ner"
    base: Annotated[
        str, MinLen(1), "The encoder: a LUKE, an NPM or another plain encoder, by name, folder or hub id."
    ] = "quoth-mini-base"
    recognizer: Annotated[
        str,
        MinLen(1),
        "How entities are found: by a tagger, titles (the corpus's), links (in the documents) or a file of names.",
    ] = "quoth-tagger"
    pooling: Annotated[
        Literal["mean", "states", "ends"],
        "The vector of an entity with a plain encoder: the mean of its tokens' vectors, by the encoder's settings; of "
        "its unnormalised states (states); or the first and the last vector (ends).",
    ] = "mean"
    joint: Annotated[bool, "Whether a LUKE reads a passage's entities together, or one at a time."] = True
    titles: Annotated[
        Literal["alone", "passage", "none"],
        "How the title becomes a key: read by itself (alone), before the text (passage), or not at all.",
    ] = "alone"
    ask_with: Annotated[
        Literal["entity", "alone", "question"],
        "The vector of a question: its entity in context, the entity alone, or all of its words.",
    ] = "entity"
    max_tokens: Annotated[int, Ge(16), "The longest encoder input."] = 256

    def own_base(self, folder: Path | None) -> str:
        """`base` unchanged: it names another model, which knows its own base."""
        return self.base

    def placed(self, folder: Path) -> Self:
        """The settings with full paths for a base and a list of names inside the folder."""
        base, recognizer = (
            str(path) if (path := folder / name).exists() else name for name in (self.base, self.recognizer)
        )
        return replace(self, base=base, recognizer=recognizer)
