"""Option records on the command line: a command names one parameter, and gets an option per field.

Knows: signatures as typer reads them, the spelling of options, and which options each kind of model takes. Does not
know: what they do.
"""

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import typer

from quoth.answers.options import FillOptions, TopK
from quoth.cli.models import system
from quoth.cli.options import Base, Device, NumberFormat, Setup, checked, given, within
from quoth.cli.output import note
from quoth.errors import InputError
from quoth.fields import checked as field_checked
from quoth.fields import fields_of, told
from quoth.moved import told_moved

Command = Callable[..., None]
Given = Mapping[str, Any]
"""A command's values for a group of options, by parameter name."""
Declared = Mapping[str, tuple[Any, Any]]
"""The typer declaration and the default of an option, by parameter name."""
SCORING = "How phrases are searched and scored"
COMMON = ("top_k", "passages", "mode", "min_probability", "precision")
"""The fields of FillOptions in `--help`, which every shipped model takes; `--help-all` shows the others."""
RARE: dict[str, Any] = {"rich_help_panel": SCORING, "hidden": True}
NAMES = {"k": "neighbours", "banned_tokens": "ban", "whole_words": "any_token"}
"""Fields of FillOptions whose command-line parameter has another name."""


def _check_passages(name: str, value: str) -> None:
    """Raises InputError unless it is a number of passages, or all."""
    field_checked(name, _passages(value), TopK | Literal["all"], 3)


def _passages(value: str) -> int | str:
    return int(value) if value.lstrip("-").isdecimal() else value


_SHOWN: dict[str, dict[str, Any]] = {
    "k": {"flags": ("--k", "--neighbours")},
    "passages": {
        "help": "Number of best passages to read or search; all: every token in the corpus (NPM; requires quoth "
        "embed). Default: the model's own (quoth-mini 3; quoth-reader and quoth-realm 12).",
        "metavar": "NUMBER",
        "callback": checked(_check_passages),
    },
    "banned_tokens": {
        "flags": ("--ban",),
        "metavar": "TOKEN",
        "help": "Exclude answers with this word's tokens. May be repeated.",
    },
    "whole_words": {
        "flags": ("--any-token",),
        "help": "Let a single-token model answer with part of a word.",
    },
    "combine": {"metavar": "RULE"},
}
"""Help texts that differ from those of Python."""


def option(record: Any, name: str, **shown: Any) -> tuple[Any, Any]:
    """The typer declaration of a record's field, with check and meaning; and its default."""
    field, hint = fields_of(record)[name], get_type_hints(record)[name]
    inner = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    kind, default, open_ = inner[0], field.default, NoneType in inner
    kind = str if name == "passages" else kind
    if get_origin(kind) is not None and default == ():  # a list of texts
        kind, default, open_ = list[str], None, True
    meaning = told(field, "the model's own") if field.default is None else field.meaning
    check = None if kind in (bool, list[str]) else within(field.kind, field.default)
    shown = {"help": meaning, "callback": check, **_SHOWN.get(name, {}), **shown}
    declared = typer.Option(*shown.pop("flags", [f"--{name.replace('_', '-')}"]), **shown)
    return Annotated[kind | None if open_ else kind, declared], None if default == "default" else default


_OLD_DENSE = typer.Option("--dense", **RARE, help="The old name of --passages all; of --mode dense for other models.")
DENSE_SEARCH = {"dense": (Annotated[bool, _OLD_DENSE], False)}
PASSAGES = {"passages": option(FillOptions, "passages"), **DENSE_SEARCH}
_FILLING = {name: option(FillOptions, name) for name in COMMON} | DENSE_SEARCH
_FILLING |= {
    NAMES.get(name, name): option(FillOptions, name, **RARE)
    for name in fields_of(FillOptions)
    if name not in (*_FILLING, "distinct")
}
_FILLING["any_token"] = (_FILLING["any_token"][0], False)  # the contrary of whole words


def takes(name: str, declared: Declared, build: Callable[[dict[str, Any]], Any] = dict) -> Callable[[Command], Command]:
    """Replaces a command's parameter of that name by these options, from whose values `build` makes its value."""

    def taking(command: Command) -> Command:
        parameters = []
        for parameter in inspect.signature(command, eval_str=True).parameters.values():
            own = {parameter.name: (parameter.annotation, parameter.default)}
            parameters += [
                inspect.Parameter(each, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)
                for each, (hint, default) in (declared if parameter.name == name else own).items()
            ]

        @wraps(command)
        def run(**options: Any) -> None:
            group = build({each: options.pop(each) for each in declared})
            command(**{name: group}, **options)

        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        return run

    return taking


def _help_all(context: typer.Context, wanted: bool) -> None:
    if wanted:
        for parameter in context.command.params:
            parameter.hidden = False  # type: ignore[attr-defined]
        context.get_help()
        raise typer.Exit


HelpAll = Annotated[
    bool, typer.Option("--help-all", callback=_help_all, is_eager=True, help="Show every option, and exit.")
]
takes_setup = takes(
    "setup",
    {"base": (Base, None), "device": (Device, None), "dtype": (NumberFormat, None)},
    lambda given: Setup(**given),
)
"""How to load a model."""
takes_fill_options = takes("filling", _FILLING)
"""The options of `fill`."""


def num_passages(given: Given) -> int | str:
    """`passages` of `NPM.fill`: a number, "all", or "default". Raises InputError on a conflict with other options."""
    passages, share = given["passages"], given.get("passage_share")
    if given["dense"]:
        if passages is not None:
            raise InputError(f"--dense searches every token, --passages {passages} only some; give only one of them")
        note(told_moved("--dense", "--passages all"))
        passages = "all"
    if passages == "all" and share:
        raise InputError(f"--passage-share {share} searches every token already; leave --passages all out")
    return "default" if passages is None else _passages(passages)


def num_read(given: Given) -> int | None:
    """`passages` of a model that reads them. Raises InputError for "all"."""
    value: int | None = given["passages"] and field_checked("--passages", _passages(given["passages"]), TopK, 3)
    return value


def record_of(model: str, *, asks: bool = False) -> Any:
    """The options record of a model's `fill` or `ask`; one that answers nothing is rejected on loading."""
    return system(model).records(asks=asks) or FillOptions


def fill_arguments(context: typer.Context, model: str, filling: Given, *, asks: bool = False) -> dict[str, Any]:
    """The keyword arguments of `fill` or `ask` for a model of any kind.

    Raises InputError for an option its kind does not take, and for two that exclude each other.
    """
    record = record_of(model, asks=asks)
    if issubclass(record, FillOptions):
        names = {name: NAMES.get(name, name) for name in fields_of(FillOptions)}
        own = {name: filling[parameter] for name, parameter in names.items() if parameter in filling}
        own |= {"banned_tokens": tuple(filling["ban"] or ()), "whole_words": not filling["any_token"]}
        keywords = FillOptions(**own | {"passages": num_passages(filling)}).keywords()
        return {name: value for name, value in keywords.items() if name != "distinct"}
    taken = [name for name in fields_of(record) if name in filling and name != "combine"]
    for parameter in context.command.params:
        name = parameter.name or ""
        source = getattr(context.get_parameter_source(name), "name", None)
        if name in {*_FILLING, "template"} - {*taken, "dense"} and source == "COMMANDLINE":
            raise InputError(
                f"{parameter.opts[0]} is not an option of {model} (kind {system(model).kind}); leave it out, or use an "
                "NPM: --model quoth-mini"
            )
    own = {name: filling[name] for name in taken}
    own["passages"] = num_read(own)
    if filling["dense"] and "mode" in own:
        if own["mode"] not in ("auto", "dense"):
            raise InputError(
                f"--dense finds passages by vectors alone, --mode {own['mode']} does not; give one of them"
            )
        note(told_moved("--dense", "--mode dense"))
        own["mode"] = "dense"
    return given(**own)


def flow_help(app: typer.Typer) -> None:
    """Make the help of an app's commands paragraphs of one line each, which the terminal wraps; a block marked \\b
    keeps its lines."""
    for command in app.registered_commands:
        paragraphs = inspect.cleandoc(getattr(command.callback, "__doc__", None) or "").split("\n\n")
        command.help = "\n\n".join(part if part[:1] == "\b" else " ".join(part.split()) for part in paragraphs)
