"""Groups of options: a command names one parameter, and its command line gets all the options of the group.

Knows: signatures as typer reads them, and the group `setup`. Does not know: what a command does with its options.
"""

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

import typer

from quoth.cli.options import Base, Device, NumberFormat, Setup

Command = Callable[..., None]
Declared = Mapping[str, tuple[Any, Any]]
"""How typer declares an option, and its default, by the name of its parameter."""


def takes_group(command: Command, name: str, declared: Declared, build: Callable[[dict[str, Any]], Any]) -> Command:
    """`command` with the options `declared` instead of its parameter `name`, whose value `build` makes from theirs."""
    parameters = []
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        if parameter.name == name:
            parameters += [_keyword(option, *declared[option]) for option in declared]
        else:
            parameters.append(_keyword(parameter.name, parameter.annotation, parameter.default))

    @wraps(command)
    def run(**options: Any) -> None:
        group = build({option: options.pop(option) for option in declared})
        command(**{name: group}, **options)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


def takes_setup(command: Command) -> Command:
    """Gives a command the options --base, --device and --dtype instead of its parameter `setup`."""
    declared = {"base": (Base, None), "device": (Device, None), "dtype": (NumberFormat, None)}

    def setup(given: dict[str, Any]) -> Setup:
        return Setup(given["base"], given["device"], given["dtype"] and given["dtype"].value)

    return takes_group(command, "setup", declared, setup)


def flow_help(app: typer.Typer) -> None:
    """Make the help of an app's commands paragraphs of one line each, which the terminal wraps; a block marked \\b
    keeps its lines."""
    for command in app.registered_commands:
        paragraphs = inspect.cleandoc(getattr(command.callback, "__doc__", None) or "").split("\n\n")
        command.help = "\n\n".join(part if part[:1] == "\b" else " ".join(part.split()) for part in paragraphs)


def _keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
