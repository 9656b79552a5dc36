"""The settings of a model that finds passages by their entities.

Knows: names, defaults, which values are valid. Does not know: what is done with them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal, Self

from annotated_types import Ge, MinLen

from quoth.config import ModelConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroNERConfig(ModelConfig):
    """What finds passages by their entities, with nothing trained for it.

    `base` makes the vectors: a LUKE, or an NPM or another plain encoder by name, folder or hub id, of which an entity
    is the mean of its tokens' vectors or the first and the last of them (`pooling` "mean", "ends"). Entities are those
    of the `recognizer`: a tagger, "titles" (of the corpus), "links" (that documents come with) or a file of names. A
    LUKE reads the entities of a passage together (`joint`) or each by itself. The title is a key, read by itself
    (`titles` "alone") or before the text ("passage"), or none. A question asks with its entity in context, with the
    entity alone, or with all of its words (`ask_with`).
    """

    kind: Literal["zero-ner"] = "zero-ner"
    base: Annotated[str, MinLen(1)] = "quoth-mini-base"
    recognizer: Annotated[str, MinLen(1)] = "quoth-tagger"
    pooling: Literal["mean", "ends"] = "mean"
    joint: bool = True
    titles: Literal["alone", "passage", "none"] = "alone"
    ask_with: Literal["entity", "alone", "question"] = "entity"
    max_tokens: Annotated[int, Ge(16)] = 256

    def own_base(self, folder: Path | None) -> str:
        """`base` as it is: it names another model, which knows its own base."""
        return self.base

    def placed(self, folder: Path) -> Self:
        """With the paths of a base and a list of names that are inside the folder."""
        base, recognizer = (
            str(path) if (path := folder / name).exists() else name for name in (self.base, self.recognizer)
        )
        return replace(self, base=base, recognizer=recognizer)
