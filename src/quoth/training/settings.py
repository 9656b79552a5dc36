"""The settings of a training run.

Knows: names, defaults, which values are valid. Does not know: what is done with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, get_type_hints

from quoth.config import Config
from quoth.errors import InputError, nearest
from quoth.fields import Count, NotNegative, Number, ShareBelow1

Settings = TypeVar("Settings", bound=Config)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopConfig(Config):
    """What every run has: steps, AdamW with a linear warm-up and decay, checkpoints, logs.

    `lora_rank` 0 trains all weights. `dropout` is the share of hidden units and attention weights that are dropped in
    the trained parts. A gradient longer than `max_grad_norm` is scaled down to that length.
    """

    steps: Count = 600
    batch_size: Count = 16
    learning_rate: NotNegative = 1e-3
    weight_decay: NotNegative = 0.01
    warmup_steps: Number = 50
    lora_rank: Number = 64
    bf16: bool = False
    max_grad_norm: NotNegative = 1.0
    dropout: ShareBelow1 = 0.0
    seed: Number = 0
    checkpoint_every: Count = 100
    log_every: Count = 10


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a run is made: the function ("module:name") that makes its task, the model to start from, the settings.

    `retrieves`: the run may retrieve from another corpus than that of its inputs. `distributed`: several processes may
    share the run. `skips_bad`: it can leave out broken records.
    """

    prepare: str
    model: str
    config: LoopConfig
    retrieves: bool = False
    distributed: bool = True
    skips_bad: bool = False


def check_evaluation(evaluate_on: str, evaluate_every: int) -> None:
    if bool(evaluate_on) != bool(evaluate_every):
        raise InputError("set evaluate_on (a file of documents) and evaluate_every (a number of steps) together")


def with_overrides(config: Settings, overrides: Mapping[str, object]) -> Settings:
    """The settings with some changed; text is read as the type of its field. Raises InputError on an unknown name or a
    value that does not fit."""
    types = get_type_hints(type(config))
    values = config.to_dict()
    for key, value in overrides.items():
        if key not in types:
            raise InputError(f"unknown setting {key!r}; it must be one of {', '.join(types)}{nearest(key, types)}")
        values[key] = _parsed(key, str(value), types[key])
    return type(config).from_dict(values)


def _parsed(key: str, text: str, kind: Any) -> Any:
    if kind is bool:
        if text.lower() not in ("true", "false"):
            raise InputError(f"{key} is {text!r}; it must be true or false")
        return text.lower() == "true"
    if kind not in (int, float):
        return text
    try:
        return kind(text)
    except ValueError:
        numbers = "a whole number" if kind is int else "a number"
        raise InputError(f"{key} is {text!r}; it must be {numbers}") from None


def linear_schedule(step: int, steps: int, peak: float, warmup_steps: int) -> float:
    """The learning rate of step 1 to `steps`: linear warm-up, over at most half of the run, then linear decay to zero
    after the last step."""
    warmup = min(warmup_steps, steps // 2)
    rising = step / max(warmup, 1)
    falling = (steps - step + 1) / (steps - warmup)
    return peak * min(1.0, rising, falling)
