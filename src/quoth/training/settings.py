"""The settings of a training run.

Knows: names, defaults, which values are valid. Does not know: what is done with them.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, get_type_hints

from quoth.config import Config
from quoth.errors import InputError, nearest
from quoth.fields import Count, NotNegative, Number, ShareBelow1, described, fields_of

Settings = TypeVar("Settings", bound=Config)


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class LoopConfig(Config):
    """Settings of every run: steps, AdamW with linear warm-up and decay, checkpoints, logs."""

    steps: Annotated[Count, "Number of steps."] = 600
    batch_size: Annotated[Count, "Number of examples per step."] = 16
    learning_rate: Annotated[NotNegative, "The peak learning rate."] = 1e-3
    weight_decay: Annotated[NotNegative, "AdamW's weight decay."] = 0.01
    warmup_steps: Annotated[Number, "Number of steps during which the learning rate rises, at most half."] = 50
    lora_rank: Annotated[Number, "Rank of the adapter to train; 0 trains all weights."] = 64
    bf16: Annotated[bool, "Whether to compute in bfloat16."] = False
    max_grad_norm: Annotated[NotNegative, "Gradients are clipped to this norm."] = 1.0
    dropout: Annotated[ShareBelow1, "Dropout rate of hidden units and attention weights in the trained parts."] = 0.0
    seed: Annotated[Number, "Seed of all random choices."] = 0
    checkpoint_every: Annotated[Count, "Number of steps between checkpoints."] = 100
    log_every: Annotated[Count, "Number of steps between log lines."] = 10


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredConfig(LoopConfig):
    """A run over documents; some may be excluded, and others used to evaluate the model."""

    exclude: Annotated[str, "A JSONL file of documents never to train on, by id or title."] = ""
    evaluate_on: Annotated[
        str,
        "A file of documents never to train on; blanks in them evaluate the model, and the best one is kept.",
    ] = ""
    evaluate_every: Annotated[Number, "Number of steps between evaluations; 0: none."] = 0
    evaluate_blanks: Annotated[Count, "Number of evaluation blanks (NPM: of each kind)."] = 100

    def check(self) -> None:
        if bool(self.evaluate_on) != bool(self.evaluate_every):
            raise InputError("set evaluate_on (a file of documents) and evaluate_every (a number of steps) together")


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a run is built: the function ("module:name") that builds its task, the model to start from, the settings.

    `retrieves`: the run may retrieve from another corpus than that of its inputs. `distributed`: several processes may
    share it. `skips_bad`: it can skip broken records.
    """

    prepare: str
    model: str
    config: LoopConfig
    retrieves: bool = False
    distributed: bool = True
    skips_bad: bool = False


def with_overrides(config: Settings, overrides: Mapping[str, object]) -> Settings:
    """The settings with some changed; text is parsed as its field's type. Raises InputError on an unknown name or an
    invalid value."""
    kind: Any = type(config)
    known, hints, values = fields_of(kind), get_type_hints(kind), config.to_dict()
    for key, value in overrides.items():
        if key not in known:
            raise InputError(f"unknown setting {key!r}; it must be one of {', '.join(known)}{nearest(key, known)}")
        values[key] = _parsed(str(value), hints[key])
    return type(config).from_dict(values)


def _parsed(text: str, kind: Any) -> Any:
    """A text as a value of this type, or unchanged, for its record to reject."""
    if kind is bool:
        return {"true": True, "false": False}.get(text.lower(), text)
    with suppress(ValueError):
        return kind(text) if kind in (int, float) else text
    return text
