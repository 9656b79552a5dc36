"""The options of `fill`, declared once for every command that fills blanks or asks questions.

Knows typer's declarations, and which of them a kind of model takes. Does not know what they do.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from typing import Any, get_type_hints

import typer

from quoth.cli.models import kind
from quoth.cli.options import (
    AnyToken,
    Ban,
    BanQuery,
    BanStopWords,
    Combine,
    CombineOption,
    Dense,
    Hybrid,
    LengthExponent,
    MaxPhraseTokens,
    MinProbability,
    Neighbours,
    PassageCount,
    Read,
    Temperature,
    given,
    num_passages,
)
from quoth.errors import InputError


@dataclass(frozen=True, slots=True)
class FillOptions:
    """What NPM's `fill` and `ask` can be told on the command line, with the defaults that they have in Python."""

    neighbours: Neighbours = 4096
    passages: PassageCount = None
    dense: Dense = False
    hybrid: Hybrid = 0.0
    combine: CombineOption = Combine.joint
    temperature: Temperature = 1.0
    length_exponent: LengthExponent = 0.0
    ban: Ban = None
    ban_query: BanQuery = False
    ban_stop_words: BanStopWords = False
    max_phrase_tokens: MaxPhraseTokens = 10
    any_token: AnyToken = False
    read: Read = None
    min_probability: MinProbability = None

    def arguments(self) -> dict[str, Any]:
        """The keyword arguments of `NPM.fill` and `NPM.ask`. Raises InputError on options that exclude each other."""
        return given(read=self.read, min_probability=self.min_probability) | {
            "k": self.neighbours,
            "passages": num_passages(self.passages, self.dense, self.hybrid),
            "combine": self.combine.value,
            "temperature": self.temperature,
            "length_exponent": self.length_exponent,
            "banned_tokens": tuple(self.ban or ()),
            "ban_query": self.ban_query,
            "ban_stop_words": self.ban_stop_words,
            "max_phrase_tokens": self.max_phrase_tokens,
            "whole_words": not self.any_token,
            "hybrid": self.hybrid,
        }


NAMES = [each.name for each in fields(FillOptions)]


def takes_fill_options(**declared: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a command the options of FillOptions, in the place of its parameter `filling`, which it gets them as.

    `declared` are other declarations of some of them, where a flag or its help differs in that command.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(FillOptions, include_extras=True) | declared
        defaults = FillOptions()
        parameters = []
        for each in inspect.signature(command, eval_str=True).parameters.values():
            shared = NAMES if each.name == "filling" else []
            parameters += [_keyword(name, getattr(defaults, name), hints[name]) for name in shared]
            parameters += [] if shared else [_keyword(each.name, each.default, each.annotation)]

        @wraps(command)
        def run(**options: Any) -> None:
            filling = FillOptions(**{name: options.pop(name) for name in NAMES})
            command(**options, filling=filling)

        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        return run

    return decorate


def _keyword(name: str, default: Any, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def fill_arguments(context: typer.Context, model: str, filling: FillOptions, *, asks: bool = False) -> dict[str, Any]:
    """The keyword arguments of `fill`, or `ask`, of a model of whatever kind.

    Raises InputError where an option is given that this kind of model does not take.
    """
    of = kind(model)
    if of == "npm":
        return filling.arguments()
    taken = {"passages", "dense"} | ({"min_probability"} if of == "reader" and asks else set())
    for parameter in context.command.params:
        name = parameter.name or ""
        source = getattr(context.get_parameter_source(name), "name", None)
        if name in {*NAMES, "template"} - taken and source == "COMMANDLINE":
            raise InputError(
                f"{parameter.opts[0]} is nothing that {model}, a {of}, takes; leave it out, or ask an NPM: "
                "--model quoth-mini"
            )
    return given(passages=filling.passages) | (
        given(min_probability=filling.min_probability) if "min_probability" in taken else {}
    )
