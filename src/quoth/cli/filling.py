"""The options of `fill` on the command line, made of `FillOptions` for every command that fills blanks or asks.

Knows how an option is spelled there, and which of them a kind of model takes. Does not know what they do.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import wraps
from typing import Annotated, Any, get_type_hints

import typer

from quoth.cli.models import kind
from quoth.cli.options import Combine, Dense, PassageCount, given, num_passages
from quoth.errors import InputError
from quoth.predictors.options import MEANINGS, FillOptions

_FLAGS = {"k": ("--k", "--neighbours"), "banned_tokens": ("--ban",), "whole_words": ("--any-token",)}
"""Options that are not spelled as in Python."""
_NAMES = {"k": "neighbours", "banned_tokens": "ban", "whole_words": "any_token"}
"""What the commands call them."""
_OWN = ("combine", "hybrid", "read", "min_probability")
_OPTIONS = [each for each in fields(FillOptions) if each.name not in ("top_k", "distinct")]


def _declared() -> dict[str, tuple[Any, Any]]:
    """By the name of a command's parameter, how typer declares it, and its default."""
    hints = get_type_hints(FillOptions) | {"combine": Combine | None, "banned_tokens": list[str] | None}
    found: dict[str, tuple[Any, Any]] = {}
    for each in _OPTIONS:
        flags = _FLAGS.get(each.name, (f"--{each.name.replace('_', '-')}",))
        meaning = MEANINGS[each.name] + (" Default: the model's own." if each.name in _OWN else "")
        name, default = _NAMES.get(each.name, each.name), each.default
        option: Any = typer.Option(*flags, help=meaning)
        match each.name:
            case "passages":
                found |= {"passages": (PassageCount, None), "dense": (Dense, False)}
                continue
            case "banned_tokens":
                option = typer.Option(*flags, metavar="TOKEN", help="Not in an answer. May be repeated.")
                default = None
            case "whole_words":
                option = typer.Option(
                    *flags, help="A model that answers with one token may answer with a part of a word."
                )
                default = False
            case "combine":
                default = None
        found[name] = (Annotated[hints[each.name], option], default)
    return found


_DECLARED = _declared()


@dataclass(frozen=True, slots=True)
class Filling:
    """What a command was told of these options, by the names of its parameters."""

    told: Mapping[str, Any]

    def options(self) -> FillOptions:
        """The record of them. Raises InputError on options that exclude each other, or out of bounds."""
        told = self.told
        values = {each.name: told[_NAMES.get(each.name, each.name)] for each in _OPTIONS}
        values["passages"] = num_passages(told["passages"], told["dense"], told["hybrid"] or 0.0)
        values["combine"] = told["combine"] and told["combine"].value
        values["banned_tokens"] = tuple(told["ban"] or ())
        values["whole_words"] = not told["any_token"]
        return FillOptions(**values)

    def keywords(self) -> dict[str, Any]:
        """The keyword arguments of `NPM.fill` that they are, but for the number of answers. Raises as `options`."""
        own = self.options().keywords()
        return {name: value for name, value in own.items() if name not in ("top_k", "distinct")}


def takes_fill_options(**declared: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a command the options of FillOptions, in the place of its parameter `filling`, which it gets them as.

    `declared` are other declarations of some of them, where a flag or its help differs in that command.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        parameters = []
        for each in inspect.signature(command, eval_str=True).parameters.values():
            if each.name == "filling":
                parameters += [
                    _keyword(name, default, declared.get(name, hint)) for name, (hint, default) in _DECLARED.items()
                ]
            else:
                parameters.append(_keyword(each.name, each.default, each.annotation))

        @wraps(command)
        def run(**options: Any) -> None:
            command(filling=Filling({name: options.pop(name) for name in _DECLARED}), **options)

        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        return run

    return decorate


def _keyword(name: str, default: Any, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def fill_arguments(context: typer.Context, model: str, filling: Filling, *, asks: bool = False) -> dict[str, Any]:
    """The keyword arguments of `fill`, or `ask`, of a model of whatever kind.

    Raises InputError where an option is given that this kind of model does not take.
    """
    of = kind(model)
    if of == "npm":
        return filling.keywords()
    taken = {"passages", "dense"} | ({"min_probability"} if of == "reader" and asks else set())
    for parameter in context.command.params:
        name = parameter.name or ""
        source = getattr(context.get_parameter_source(name), "name", None)
        if name in {*_DECLARED, "template"} - taken and source == "COMMANDLINE":
            raise InputError(
                f"{parameter.opts[0]} is nothing that {model}, a {of}, takes; leave it out, or ask an NPM: "
                "--model quoth-mini"
            )
    names = ("passages", "min_probability") if "min_probability" in taken else ("passages",)
    return given(**{name: filling.told[name] for name in names})
