"""Other libraries' models as systems: lm:NAME, mlm:NAME, dense:NAME.

Knows: each family's prefix, what it can be asked, and the options it takes. Does not know: how a model answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from quoth.errors import InputError

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus

CLOSED, OPEN, BLANKS = "closed sets", "questions", "blanks"
"""The forms of tasks that a family can be asked."""
CALIBRATIONS = ("none", "pmi", "batch")

Check = Callable[[Any], str | None]
"""What a value must be, if it is not."""


def _number(least: int) -> Check:
    return lambda value: None if type(value) is int and value >= least else f"a number, {least} or more"


def _weight(value: Any) -> str | None:
    return None if type(value) in (int, float) and 0 <= value < math.inf else "a number, 0 or more"


def _name(value: Any) -> str | None:
    return None if isinstance(value, str) and value else "a name, as after dense:"


def _flag(value: Any) -> str | None:
    return None if isinstance(value, bool) else "true or false"


def _template(value: Any) -> str | None:
    asks = isinstance(value, str) and "{question}" in value and "[MASK]" in value
    return None if asks else "a text with {question} and then [MASK]"


def _calibration(value: Any) -> str | None:
    return None if value in CALIBRATIONS else f"one of {', '.join(CALIBRATIONS)}"


@dataclass(frozen=True, slots=True)
class Family:
    """A family of models: by form of task, the options it takes; the class that loads one; and whether it reports
    its progress in encoding the corpora."""

    options: Mapping[str, Mapping[str, Check]]
    loader: str
    encodes: bool = False


FAMILIES: Mapping[str, Family] = {
    "lm": Family(
        {
            CLOSED: {"calibration": _calibration, "sentinel": _flag},
            OPEN: {
                "passages": _number(0),
                "template": _template,
                "max_new_tokens": _number(1),
                "sentinel": _flag,
            },
            BLANKS: {"max_new_tokens": _number(1), "sentinel": _flag},
        },
        "quoth_eval.language_models:LanguageModel",
    ),
    "mlm": Family(
        {CLOSED: {"calibration": _calibration, "masks": _number(1)}, BLANKS: {"masks": _number(1)}},
        "quoth.npm.twin:MaskedModel",
    ),
    "dense": Family({OPEN: {"mu": _weight, "lexical": _name}}, "quoth_eval.entities.dense:DenseSearch", encodes=True),
}
"""By prefix."""


def family_of(name: str) -> Family | None:
    """The family that a system's name names by its prefix; None for any other name. Raises InputError if its prefix is
    unknown, or nothing follows it."""
    prefix, colon, model = name.partition(":")
    if not colon or len(prefix) == 1 or not prefix.isalnum():  # a Windows path is no prefix
        return None
    known = ", ".join(f"{each}:ID_OR_FOLDER" for each in FAMILIES)
    if prefix not in FAMILIES or not model:
        raise InputError(f"system {name!r}: no such kind of model; use {known}, or the name of a Quoth model")
    return FAMILIES[prefix]


def check_options(spec: str, family: Family, form: str | None, options: Mapping[str, Any]) -> None:
    """Raises InputError for an option that the family does not take for this form of task (None: any), or a value it
    cannot be."""
    forms = family.options if form is None else [form]
    checks = {name: check for each in forms for name, check in family.options[each].items()}
    for name, value in options.items():
        if name not in checks:
            told = f"no option {name!r}{f' for {form}' if form else ''}"
            raise InputError(f"--system {spec}: {told}; use one of {', '.join(checks)}")
        if must := checks[name](value):
            raise InputError(f"--system {spec}: {name} is {value!r}; it must be {must}")


def check_calibration(spec: str, value: Any) -> None:
    """Raises InputError for an unknown calibration."""
    if must := _calibration(value):
        raise InputError(f"--system {spec}: calibration is {value!r}; it must be {must}")


def open_family(
    name: str,
    corpora: Sequence[Corpus],
    device: str | None = None,
    dtype: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Any:
    """The model that a name with a prefix names; `progress` takes how many passages it has encoded, and of how many.

    Raises ModelNotFoundError, InputError.
    """
    family = family_of(name)
    if family is None:
        raise InputError(f"system {name!r} has no prefix; use one of {', '.join(FAMILIES)}")
    load = resolve_name(family.loader).from_pretrained
    more = {"progress": progress} if family.encodes else {}
    return load(name.partition(":")[2], corpora, device, dtype, **more)
