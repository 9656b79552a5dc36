"""Settings stored next to what they describe.

Knows: how a settings record becomes JSON and back, refusing what it does not know.
Does not know: what the settings mean.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from quoth.errors import InputError, nearest
from quoth.fields import Checked, described
from quoth.moved import name_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(Checked):
    """Base of all settings records."""

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Raises InputError on a key that this record does not have."""
        known = [each.name for each in fields(cls)]
        own = next((each.default for each in fields(cls) if each.name == "kind"), None)
        if own is not None and (kind := values.get("kind", own)) != own:
            raise InputError(f"model kind {kind!r}; it must be {own!r}")
        values = {name_of(key, known): value for key, value in values.items()}
        for key in values:
            if key not in known:
                raise InputError(f"unknown setting {key!r}; use one of {', '.join(known)}{nearest(key, known)}")
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig(Config):
    """Base of the settings of every kind of model, in its `quoth.json`. `options` are the records of `fill` and of
    `ask` of a kind that has these."""

    options: ClassVar[tuple[Any, ...]] = ()
    kind: str
    base: Annotated[str, "The base weights, by name, folder or hub id."] = ""
    revision: Annotated[str | None, "The revision of a base on a hub."] = None

    def own_base(self, folder: Path | None) -> str:
        """The base encoder, if the model's own folder has it; else "", and it is looked up by name."""
        return str(folder) if folder is not None and (folder / "config.json").is_file() else ""

    def placed(self, folder: Path) -> Self:
        """The settings as read from a folder, for a model that may contain other models."""
        return self
