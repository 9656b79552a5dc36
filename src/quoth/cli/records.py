"""Records of options on the command line: a command names one parameter, and its command line gets an option per field.

Knows: signatures as typer reads them, how an option is spelled, and which options each kind of model takes. Does not
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
from quoth.cli.options import Base, Device, NumberFormat, Setup, given, within
from quoth.errors import InputError
from quoth.fields import fields_of

Command = Callable[..., None]
Given = Mapping[str, Any]
"""The values that a command got for a group of options, by the names of its parameters."""
Declared = Mapping[str, tuple[Any, Any]]
"""How typer declares an option, and its default, by the name of its parameter."""
SCORING = "How phrases are searched and scored"
COMMON = ("top_k", "passages", "mode", "min_probability", "precision")
"""The fields of FillOptions that `--help` shows, as every shipped model takes them; `--help-all` shows the others."""
RARE: dict[str, Any] = {"rich_help_panel": SCORING, "hidden": True}
NAMES = {"k": "neighbours", "banned_tokens": "ban", "whole_words": "any_token"}
"""Fields of FillOptions whose parameter of a command has another name."""
_SHOWN: dict[str, dict[str, Any]] = {
    "k": {"flags": ("--k", "--neighbours")},
    "passages": {
        "help": "Number of the best passages to search inside. Default: the model's own (quoth-mini 3; quoth-reader "
        "and quoth-realm 20).",
        "callback": within(TopK, 3),  # the words for every token are --dense
    },
    "banned_tokens": {
        "flags": ("--ban",),
        "metavar": "TOKEN",
        "help": "No answer may contain this word's tokens. May be repeated.",
    },
    "whole_words": {
        "flags": ("--any-token",),
        "help": "A model that answers with one token may answer with a part of a word.",
    },
    "combine": {"metavar": "RULE"},
}
"""What the command line says otherwise than Python."""


def option(record: Any, name: str, **shown: Any) -> tuple[Any, Any]:
    """How typer declares a field of a record, with its check and its meaning; and its default."""
    field, hint = fields_of(record)[name], get_type_hints(record)[name]
    inner = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    kind, default, open_ = inner[0], field.default, NoneType in inner
    if get_origin(kind) is not None and default == ():  # a list of texts
        kind, default, open_ = list[str], None, True
    meaning = field.meaning + (" Default: the model's own." if field.default is None else "")
    check = None if kind in (bool, list[str]) else within(field.kind, field.default)
    shown = {"help": meaning, "callback": check, **_SHOWN.get(name, {}), **shown}
    declared = typer.Option(*shown.pop("flags", [f"--{name.replace('_', '-')}"]), **shown)
    return Annotated[kind | None if open_ else kind, declared], None if default == "default" else default


DENSE_SEARCH = {
    "dense": (
        Annotated[
            bool,
            typer.Option(
                "--dense",
                **RARE,
                help="Search every token in the corpus (requires quoth embed); with a reader or a REALM: find "
                "passages by vectors alone.",
            ),
        ],
        False,
    ),
}
PASSAGES = {"passages": option(FillOptions, "passages"), **DENSE_SEARCH}
_FILLING = {name: option(FillOptions, name) for name in COMMON} | DENSE_SEARCH
_FILLING |= {
    NAMES.get(name, name): option(FillOptions, name, **RARE)
    for name in fields_of(FillOptions)
    if name not in (*_FILLING, "distinct")
}
_FILLING["any_token"] = (_FILLING["any_token"][0], False)  # the contrary of whole words


def takes(name: str, declared: Declared, build: Callable[[dict[str, Any]], Any] = dict) -> Callable[[Command], Command]:
    """Gives a command these options in place of its parameter of that name, whose value `build` makes from theirs."""

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


def num_passages(given: Given) -> int | Literal["default"] | None:
    """`passages` of `NPM.fill`, from `--passages`, `--dense` and `--hybrid`: a number, None for every token, or the
    model's default. Raises InputError if they exclude one another."""
    passages, dense, hybrid = (given.get(name) for name in ("passages", "dense", "hybrid"))
    if dense and hybrid:
        raise InputError(f"--hybrid {hybrid} searches every token already; leave --dense out")
    if dense and passages is not None:
        raise InputError(f"--dense searches every token, --passages {passages} only some; give only one of them")
    return None if dense else "default" if passages is None else passages


def record_of(model: str, *, asks: bool = False) -> Any:
    """The record of a model's options of `fill`, or of `ask`; one that answers nothing is refused when it is loaded."""
    return system(model).records(asks=asks) or FillOptions


def fill_arguments(context: typer.Context, model: str, told: Given, *, asks: bool = False) -> dict[str, Any]:
    """The keyword arguments of `fill`, or of `ask`, for a model of any kind.

    Raises InputError for an option that this kind of model does not take, and for two that exclude each other.
    """
    record = record_of(model, asks=asks)
    if issubclass(record, FillOptions):
        own = {name: told[NAMES.get(name, name)] for name in fields_of(FillOptions) if NAMES.get(name, name) in told}
        own |= {"banned_tokens": tuple(told["ban"] or ()), "whole_words": not told["any_token"]}
        keywords = FillOptions(**own | {"passages": num_passages(told)}).keywords()
        return {name: value for name, value in keywords.items() if name != "distinct"}
    taken = [name for name in fields_of(record) if name in told and name != "combine"]
    for parameter in context.command.params:
        name = parameter.name or ""
        source = getattr(context.get_parameter_source(name), "name", None)
        if name in {*_FILLING, "template"} - {*taken, "dense"} and source == "COMMANDLINE":
            raise InputError(
                f"{parameter.opts[0]} is not an option of {model} (kind {system(model).kind}); leave it out, or use an "
                "NPM: --model quoth-mini"
            )
    own = {name: told[name] for name in taken}
    if told["dense"] and "mode" in own:
        if own["mode"] not in ("auto", "dense"):
            raise InputError(
                f"--dense finds passages by vectors alone, --mode {own['mode']} does not; give one of them"
            )
        own["mode"] = "dense"
    return given(**own)


def flow_help(app: typer.Typer) -> None:
    """Make the help of an app's commands paragraphs of one line each, which the terminal wraps; a block marked \\b
    keeps its lines."""
    for command in app.registered_commands:
        paragraphs = inspect.cleandoc(getattr(command.callback, "__doc__", None) or "").split("\n\n")
        command.help = "\n\n".join(part if part[:1] == "\b" else " ".join(part.split()) for part in paragraphs)
