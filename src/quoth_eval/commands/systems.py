"""How a system is spelled on the command line: `quoth-mini,combine=sum`, `mlm:DIR,masks=3`.

Knows: names, options, which system can do which task. Does not know: tasks' files, or how anything is measured.
"""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from quoth.cli.models import quiet_libraries, system
from quoth.cli.options import Setup
from quoth.errors import InputError

if TYPE_CHECKING:
    from quoth_eval.tasks import Prepared

SHARE = "corpus"
"""The option of a system that searches a share of the documents."""


def parse_system(spec: str, prepared: "Prepared | None" = None) -> tuple[str, dict[str, Any]]:
    """`quoth-mini,combine=sum,passages=20` as the model's name and its options. Raises InputError, also if a system of
    this kind cannot do the task."""
    from quoth_eval.families import check_calibration, check_options, family_of

    name, options = _spelled(spec)
    if prepared is not None and not _can_do(name, prepared):
        raise InputError(f"{spec} cannot do {prepared.task.name}; leave it out, or ask it other tasks")
    if SHARE in options:
        from quoth_eval.samples import check_share

        check_share(options[SHARE])
        if prepared is not None and prepared.hides:
            raise InputError(
                f"--system {spec}: {prepared.task.name} hides passages of the whole corpus; leave out {SHARE}"
            )
    own = {key: value for key, value in options.items() if key != SHARE}
    if family := family_of(name):
        check_options(spec, family, None if prepared is None else prepared.form, own)
    elif options and _fills_blanks(name):
        from quoth.answers.options import FillOptions
        from quoth_eval.tasks import CLOSED_OPTIONS, LABELLED, ORACLE

        known = FillOptions.__dataclass_fields__
        more = (*CLOSED_OPTIONS, ORACLE) if prepared is None else prepared.options
        if unknown := [key for key in own if key not in (*known, *more)]:
            valid = ", ".join((*known, *more, *(() if prepared is not None and prepared.hides else (SHARE,))))
            raise InputError(f"--system {spec}: no option {unknown[0]!r}; use one of {valid}")
        check_calibration(spec, options.get("calibration", "none"))
        if (k := options.get(LABELLED, 1)) is True or not isinstance(k, int) or k < 1:
            raise InputError(f"--system {spec}: {LABELLED} is {k!r}; it must be a number of texts, 1 or more")
        FillOptions(**{key: value for key, value in options.items() if key in known})
    return name, options


def _spelled(spec: str) -> tuple[str, dict[str, Any]]:
    name, *parts = spec.split(",")
    options: dict[str, Any] = {}
    for part in parts:
        key, equals, value = part.partition("=")
        if not equals:
            raise InputError(f"--system {spec}: {part!r} is not OPTION=VALUE; for example quoth-mini,combine=sum")
        try:
            options[key] = json.loads(value)
        except ValueError:
            options[key] = value
    return name, options


def other_filler(spec: str, setup: Setup) -> tuple[dict[str, Any], Callable[..., Any]] | None:
    """The options of another library's model that fills blanks, and a function that loads it whatever it is given; None
    if `spec` names no such model. Raises InputError."""
    from quoth_eval.families import BLANKS, check_options, family_of, open_family

    if (family := family_of(spec)) is None:
        return None
    name, options = _spelled(spec)
    check_options(spec, family, BLANKS, options)

    def opened(*_: object) -> Any:
        quiet_libraries()
        return open_family(name, (), setup.device, setup.dtype)

    return options, opened


def _can_do(name: str, prepared: "Prepared") -> bool:
    """Whether a system of this name can do a task; not if it is another task's baseline."""
    from quoth_eval.families import family_of
    from quoth_eval.tasks import BASELINES

    if family := family_of(name):
        return prepared.form in family.options
    return name not in BASELINES and (not prepared.closed or _fills_blanks(name))


def _fills_blanks(name: str) -> bool:
    """Whether a model takes the options of `NPM.fill`."""
    from quoth.answers.options import FillOptions

    record = system(name).records()
    return record is not None and issubclass(record, FillOptions)
