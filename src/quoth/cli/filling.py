"""The options of `fill` on the command line, made from `FillOptions` for every command that fills blanks or asks.

Knows how an option is spelled there, and which options each kind of model takes. Does not know what they do.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, get_type_hints

import typer

from quoth.cli.groups import Command, takes_group
from quoth.cli.models import kind
from quoth.cli.options import Combine, Dense, PassageCount, given, num_passages, within
from quoth.errors import InputError
from quoth.fields import fields_of
from quoth.predictors.options import FillOptions

_FLAGS = {"k": ("--k", "--neighbours"), "banned_tokens": ("--ban",), "whole_words": ("--any-token",)}
"""Options whose flag is not their name in Python."""
_NAMES = {"k": "neighbours", "banned_tokens": "ban", "whole_words": "any_token"}
"""The names of their parameters in a command."""
SCORING = "How phrases are searched and scored"
_OWN = ("combine", "hybrid", "read", "min_probability")
_OPTIONS = [name for name in fields_of(FillOptions) if name not in ("top_k", "distinct")]


def _declared() -> dict[str, tuple[Any, Any]]:
    """By the name of a command's parameter: how typer declares it, and its default."""
    hints = get_type_hints(FillOptions) | {"combine": Combine | None, "banned_tokens": list[str] | None}
    declared: dict[str, tuple[Any, Any]] = {}
    for each in (fields_of(FillOptions)[name] for name in _OPTIONS):
        flags = _FLAGS.get(each.name, (f"--{each.name.replace('_', '-')}",))
        meaning = each.meaning + (" Default: the model's own." if each.name in _OWN else "")
        name, default = _NAMES.get(each.name, each.name), each.default
        shown: dict[str, Any] = {"rich_help_panel": SCORING}
        option: Any = typer.Option(*flags, help=meaning, callback=within(each.kind, each.default), **shown)
        match each.name:
            case "passages":
                declared |= {"passages": (PassageCount, None), "dense": (Dense, False)}
                continue
            case "banned_tokens":
                meaning = "No answer may contain this word's tokens. May be repeated."
                option = typer.Option(*flags, metavar="TOKEN", help=meaning, **shown)
                default = None
            case "whole_words":
                meaning = "A model that answers with one token may answer with a part of a word."
                option = typer.Option(*flags, help=meaning, **shown)
                default = False
            case "combine":
                option = typer.Option(*flags, metavar="RULE", help=meaning, **shown)
                default = None
        declared[name] = (Annotated[hints[each.name], option], default)
    return declared


_DECLARED = _declared()


@dataclass(frozen=True, slots=True)
class Filling:
    """The values that a command got for these options, by the names of its parameters."""

    told: Mapping[str, Any]

    def options(self) -> FillOptions:
        """Their record. Raises InputError if two exclude each other or a value is out of bounds."""
        own = self.told
        values = {name: own[_NAMES.get(name, name)] for name in _OPTIONS}
        values["passages"] = num_passages(own["passages"], own["dense"], own["hybrid"] or 0.0)
        values["combine"] = own["combine"] and own["combine"].value
        values["banned_tokens"] = tuple(own["ban"] or ())
        values["whole_words"] = not own["any_token"]
        return FillOptions(**values)

    def keywords(self) -> dict[str, Any]:
        """Their keyword arguments of `NPM.fill`, without the number of answers. Raises the errors of `options`."""
        own = self.options().keywords()
        return {name: value for name, value in own.items() if name not in ("top_k", "distinct")}


def takes_fill_options(**declared: Any) -> Callable[[Command], Command]:
    """Gives a command the options of FillOptions in place of its parameter `filling`, a `Filling`.

    `declared` are other declarations of some of them, for a command whose flag or help differs.
    """
    options = {name: (declared.get(name, hint), default) for name, (hint, default) in _DECLARED.items()}
    return lambda command: takes_group(command, "filling", options, Filling)


def fill_arguments(context: typer.Context, model: str, filling: Filling, *, asks: bool = False) -> dict[str, Any]:
    """The keyword arguments of `fill`, or of `ask`, for a model of any kind.

    Raises InputError for an option that this kind of model does not take.
    """
    of = kind(model)
    if of == "npm":
        return filling.keywords()
    taken = {"passages", "dense"} | ({"min_probability"} if of in ("reader", "realm") and asks else set())
    for parameter in context.command.params:
        name = parameter.name or ""
        source = getattr(context.get_parameter_source(name), "name", None)
        if name in {*_DECLARED, "template"} - taken and source == "COMMANDLINE":
            raise InputError(
                f"{parameter.opts[0]} is not an option of {model} (kind {of}); leave it out, or use an NPM: "
                "--model quoth-mini"
            )
    names = ("passages", "min_probability") if "min_probability" in taken else ("passages",)
    by_towers = "dense" if of == "realm" and asks and filling.told["dense"] else None
    return given(mode=by_towers, **{name: filling.told[name] for name in names})
