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
    """What finds passages by their entities, with nothing trained for it."""

    kind: Literal["zero-ner"] = "zero-ner"
    base: Annotated[
        str, MinLen(1), "What makes the vectors: a LUKE, or an NPM or another plain encoder, by name, folder or hub id."
    ] = "quoth-mini-base"
    recognizer: Annotated[
        str,
        MinLen(1),
        "What finds entities: a tagger, titles (of the corpus), links (that documents come with) or a file of names.",
    ] = "quoth-tagger"
    pooling: Annotated[
        Literal["mean", "states", "ends"],
        "The vector of an entity of a plain encoder: the mean of its tokens' vectors, as the encoder's settings have "
        "them; of its states, whatever their lengths (states); or the first and the last vector (ends).",
    ] = "mean"
    joint: Annotated[bool, "Whether a LUKE reads the entities of a passage together, or each by itself."] = True
    titles: Annotated[
        Literal["alone", "passage", "none"],
        "How the title is a key: read by itself (alone), before the text (passage), or not at all.",
    ] = "alone"
    ask_with: Annotated[
        Literal["entity", "alone", "question"],
        "What a question asks with: its entity in context, the entity alone, or all of its words.",
    ] = "entity"
    max_tokens: Annotated[int, Ge(16), "The longest encoder input."] = 256

    def own_base(self, folder: Path | None) -> str:
        """`base` as it is: it names another model, which knows its own base."""
        return self.base

    def placed(self, folder: Path) -> Self:
        """With the paths of a base and a list of names that are inside the folder."""
        base, recognizer = (
            str(path) if (path := folder / name).exists() else name for name in (self.base, self.recognizer)
        )
        return replace(self, base=base, recognizer=recognizer)
