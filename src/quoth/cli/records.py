"""Records of options on the command line: a command names one parameter, and its command line gets an option per field.

Knows: signatures as typer reads them, how an option is spelled, and which options each kind of model takes. Does not
know: what they do.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from types import NoneType, UnionType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer

from quoth.answers.options import FillOptions
from quoth.cli.models import system
from quoth.cli.options import Base, Dense, Device, NumberFormat, PassageCount, Setup, given, num_passages, within
from quoth.errors import InputError
from quoth.fields import fields_of

Command = Callable[..., None]
Declared = Mapping[str, tuple[Any, Any]]
"""How typer declares an option, and its default, by the name of its parameter."""
SCORING = "How phrases are searched and scored"
NAMES = {"k": "neighbours", "banned_tokens": "ban", "whole_words": "any_token"}
"""Fields whose parameter of a command has another name."""
_FLAGS = {"k": ("--k", "--neighbours"), "banned_tokens": ("--ban",), "whole_words": ("--any-token",)}
_SHOWN: dict[str, dict[str, Any]] = {
    "banned_tokens": {"metavar": "TOKEN", "help": "No answer may contain this word's tokens. May be repeated."},
    "whole_words": {"help": "A model that answers with one token may answer with a part of a word."},
    "combine": {"metavar": "RULE"},
}
"""What the command line says otherwise than Python."""


def option(record: Any, name: str, *flags: str, **shown: Any) -> tuple[Any, Any]:
    """How typer declares a field of a record, with its check and its meaning; and its default."""
    field, hint = fields_of(record)[name], get_type_hints(record)[name]
    inner = get_args(hint) if get_origin(hint) is UnionType else (hint,)
    kind, default, open_ = inner[0], field.default, NoneType in inner
    if get_origin(kind) is not None and default == ():  # a list of texts
        kind, default, open_ = list[str], None, True
    meaning = field.meaning + (" Default: the model's own." if field.default is None else "")
    shown = {"help": meaning, **_SHOWN.get(name, {}), **shown}
    check = None if kind in (bool, list[str]) else within(field.kind, field.default)
    declared = typer.Option(*(flags or (f"--{name.replace('_', '-')}",)), callback=check, **shown)
    return Annotated[kind | None if open_ else kind, declared], default


def _filling() -> dict[str, tuple[Any, Any]]:
    """The options of `fill`, but those that commands have by themselves; `passages` may be all, and `--any-token` is
    the contrary of whole words."""
    declared = {
        NAMES.get(name, name): option(FillOptions, name, *_FLAGS.get(name, ()), rich_help_panel=SCORING)
        for name in fields_of(FillOptions)
        if name not in ("top_k", "distinct")
    }
    own = {"passages": (PassageCount, None), "dense": (Dense, False), "any_token": (declared["any_token"][0], False)}
    names = [each for name in declared for each in (("passages", "dense") if name == "passages" else (name,))]
    return {name: own.get(name) or declared[name] for name in names}


_FILLING = _filling()


@dataclass(frozen=True, slots=True)
class Filling:
    """The values that a command got for these options, by the names of its parameters."""

    told: Mapping[str, Any]

    def options(self) -> FillOptions:
        """Their record. Raises InputError if two exclude each other or a value is out of bounds."""
        own = self.told
        values = {name: own[NAMES.get(name, name)] for name in fields_of(FillOptions) if NAMES.get(name, name) in own}
        values["passages"] = num_passages(own["passages"], own["dense"], own["hybrid"] or 0.0)
        return FillOptions(**values | {"banned_tokens": tuple(own["ban"] or ()), "whole_words": not own["any_token"]})

    def keywords(self) -> dict[str, Any]:
        """Their keyword arguments of `NPM.fill`, without the number of answers. Raises the errors of `options`."""
        own = self.options().keywords()
        return {name: value for name, value in own.items() if name not in ("top_k", "distinct")}


def takes_fill_options(**declared: Any) -> Callable[[Command], Command]:
    """Gives a command the options of FillOptions in place of its parameter `filling`, a `Filling`.

    `declared` are other declarations of some of them, for a command whose flag or help differs.
    """
    options = {name: (declared.get(name, hint), default) for name, (hint, default) in _FILLING.items()}
    return lambda command: takes_group(command, "filling", options, Filling)


def record_of(model: str, *, asks: bool = False) -> Any:
    """The record of a model's options of `fill`, or of `ask`; one that answers nothing is refused when it is loaded."""
    return system(model).records(asks=asks) or FillOptions


def fill_arguments(context: typer.Context, model: str, filling: Filling, *, asks: bool = False) -> dict[str, Any]:
    """The keyword arguments of `fill`, or of `ask`, for a model of any kind.

    Raises InputError for an option that this kind of model does not take.
    """
    record = record_of(model, asks=asks)
    if issubclass(record, FillOptions):
        return filling.keywords()
    taken = [name for name in fields_of(record) if name in filling.told and name != "combine"]
    for parameter in context.command.params:
        name = parameter.name or ""
        source = getattr(context.get_parameter_source(name), "name", None)
        if name in {*_FILLING, "template"} - {*taken, "dense"} and source == "COMMANDLINE":
            raise InputError(
                f"{parameter.opts[0]} is not an option of {model} (kind {system(model).kind}); leave it out, or use an "
                "NPM: --model quoth-mini"
            )
    by_towers = "dense" if "mode" in fields_of(record) and filling.told["dense"] else None
    return given(mode=by_towers, **{name: filling.told[name] for name in taken})


def takes_group(command: Command, name: str, declared: Declared, build: Callable[[dict[str, Any]], Any]) -> Command:
    """`command` with the options `declared` instead of its parameter `name`, whose value `build` makes from theirs."""
    parameters = []
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        if parameter.name == name:
            parameters += [_keyword(each, *declared[each]) for each in declared]
        else:
            parameters.append(_keyword(parameter.name, parameter.annotation, parameter.default))

    @wraps(command)
    def run(**options: Any) -> None:
        group = build({each: options.pop(each) for each in declared})
        command(**{name: group}, **options)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


def takes_setup(command: Command) -> Command:
    """Gives a command the options --base, --device and --dtype instead of its parameter `setup`."""
    declared = {"base": (Base, None), "device": (Device, None), "dtype": (NumberFormat, None)}
    return takes_group(command, "setup", declared, lambda given: Setup(**given))


def flow_help(app: typer.Typer) -> None:
    """Make the help of an app's commands paragraphs of one line each, which the terminal wraps; a block marked \\b
    keeps its lines."""
    for command in app.registered_commands:
        paragraphs = inspect.cleandoc(getattr(command.callback, "__doc__", None) or "").split("\n\n")
        command.help = "\n\n".join(part if part[:1] == "\b" else " ".join(part.split()) for part in paragraphs)


def _keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
