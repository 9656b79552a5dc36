"""The command `quoth`: all commands in one program, and error handling.

Knows exit codes: 0 success, 1 failure, 2 user error, 130 interrupted, 141 broken pipe. Imports no model.
"""

import os
import sys
import warnings
from collections.abc import Sequence
from errno import EACCES, EDQUOT, ENOSPC
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from quoth import __version__
from quoth.cli import plugged
from quoth.cli.output import note
from quoth.cli.records import flow_help
from quoth.errors import QuothError, UserError, nearest, needs_torch
from quoth.memory import is_lacking
from quoth.moved import told_moved

INTERRUPTED, UNREAD = 130, 141
NUMBERS = ("k", "n", "c", "num", "number", "count", "limit", "top", "top-k", "topk", "results", "answers")
"""Names of the option for the number of results."""
UsageError: Any = typer.BadParameter.__base__
"""A command line that cannot be parsed; typer exports no name for it."""
PARTS = {
    "corpus": ("index", "add", "replace", "delete", "compact", "list", "verify", "repair", "export"),
    "sync": ("sync",),
    "info": ("info",),
    "embed": ("embed",),
    "demo": ("demo",),
    "query": ("fill", "ask", "classify"),
    "search": ("search",),
    "diff": ("diff",),
    "table": ("table",),
    "highlight": ("highlight",),
    "find": ("find",),
    "check": ("verify-quote", "verify-quotes"),
    "trace": ("trace",),
    "overlap": ("overlap",),
    "train": ("train", "calibrate"),
}
"""The modules of this package with commands, and these commands' names, in help order."""


OLD_FLAGS = {("embed", "--precision"): "--storage"}
OLD_FLAGS |= {(command, "--hybrid"): "--passage-share" for command in ("fill", "ask")}
"""Renamed flags, by command."""


class Commands(TyperGroup):
    """Our commands and plugged-in ones. Entry points are read only when a command is not ours."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*super().list_commands(ctx), *plugged.command_names()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return super().get_command(ctx, cmd_name) or plugged.command(cmd_name)


def _help(context: typer.Context, wanted: bool) -> None:
    if wanted:
        context.get_help()
        raise typer.Exit


def _version(wanted: bool) -> None:
    if wanted:
        print(f"quoth {__version__}")
        raise typer.Exit


def quoth(
    help_: Annotated[bool, typer.Option("--help", "-h", callback=_help, is_eager=True, hidden=True)] = False,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, hidden=True)] = False,
) -> None:
    """Models that quote: every answer is a phrase from your corpus, with its source.

    \b
    Start here:
      quoth demo
      quoth index notes/ -o notes.quoth
      quoth fill notes.quoth "The meeting is on [MASK]."
    """


def program(first: str = "") -> Any:
    """The command line, with all commands or, for speed, only the one named `first`."""
    app = typer.Typer(
        name="quoth",
        cls=Commands,
        no_args_is_help=True,
        rich_markup_mode="rich",
        add_completion=False,
        add_help_option=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(quoth)
    for part in [part for part, names in PARTS.items() if first in names] or PARTS:
        app.registered_commands += import_module(f"quoth.cli.{part}").app.registered_commands
    flow_help(app)
    return get_command(app)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line `arguments` (default: those of this process) and return the exit code."""
    # A stream that was closed (`quoth info A >&-`) becomes one that nobody reads: no other file may get its number.
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115
    if not os.environ.get("COLUMNS", "1").strip("0"):
        del os.environ["COLUMNS"]  # 0, or empty: there would be no column to print in
    warnings.showwarning = lambda message, *_: note(str(message))  # on one line, like every note
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        null = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            os.dup2(null, stream.fileno())  # Python writes what is left when it exits
        return UNREAD
    return code


def _run(arguments: Sequence[str] | None) -> int:
    """The exit code, after reporting the command's error, if any. Raises BrokenPipeError on a closed pipe."""
    try:
        given = _current(sys.argv[1:] if arguments is None else arguments)
        with needs_torch("this"):
            code = program(*given[:1]).main(args=given, prog_name="quoth", standalone_mode=False)
    except UsageError as error:
        if type(error).__name__ != "NoArgsIsHelpError":  # that one has printed the help
            note(_misuse(error))
        return 2
    except typer.Abort:
        note("stopped; nothing was changed")
        return 1
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):  # what rich and typer make of it
            raise stop.__context__ from None
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except QuothError as error:
        for line in (str(error), *getattr(error, "__notes__", ())):
            note(line)
        return 2 if isinstance(error, UserError) else 1
    except (MemoryError, OSError, RuntimeError, ImportError) as error:
        if is_lacking(error):
            note("not enough memory; raise the limit (ulimit -v), or give smaller documents or fewer at a time")
            return 1
        if not isinstance(error, OSError):
            raise
        note(_reason(error))
        return 2 if isinstance(error, PermissionError) else 1
    except KeyboardInterrupt:
        code = INTERRUPTED
    if code == INTERRUPTED:
        note("interrupted; everything committed so far is kept")
    return code or 0


def _current(arguments: Sequence[str]) -> list[str]:
    """A command line with current flags, and a note for each old one."""
    command, *rest = arguments or [""]
    for at, word in enumerate(rest):
        old, equals, value = word.partition("=")
        if (new := OLD_FLAGS.get((command, old))) is not None:
            note(told_moved(old, new))
            rest[at] = f"{new}{equals}{value}"
    return [command, *rest] if arguments else []


def _misuse(error: Any) -> str:
    """The error in a command line, the nearest valid word, and where to read more."""
    what = error.format_message().rstrip(".").replace("Value error, ", "")
    what = _out_of_bounds(error) or what[:1].lower() + what[1:]
    if type(error).__name__ == "NoSuchOption":
        what = f"no option {error.option_name}{_meant(error.option_name, error.ctx)}"
    elif type(error).__name__ == "MissingParameter" and (first := _no_corpus(error)):
        what = f"{first!r} is not a corpus, which comes first: {error.ctx.command_path} DIR {error.param.metavar}"
    elif "extra argument" in what:
        what += ": a text with spaces must be in quotes"
    read_on = f"see `{error.ctx.command_path if error.ctx else 'quoth'} --help`"
    return f"{what} {read_on.capitalize()}" if what.endswith("?") else f"{what}; {read_on}"


def _no_corpus(error: Any) -> str:
    """The argument in place of a corpus, if the one after it is missing; else ""."""
    first = error.ctx.params.get("directory") if error.ctx else None
    is_text = error.param is not None and error.param.param_type_name == "argument"
    return str(first) if is_text and first and Path(first).suffix != ".quoth" and not Path(first).exists() else ""


def _out_of_bounds(error: Any) -> str:
    """The option, its value and what it must be, if the value does not parse as the right kind of number; else ""."""
    # The library that reads values says more in its own error than in the one that reaches us.
    found: list[dict[str, Any]] = getattr(error.__context__, "errors", list)()
    if not found or not found[0]["msg"].startswith("Input should be "):
        return ""
    bound = found[0]["msg"].partition(",")[0].removeprefix("Input should be ")
    bound = {"a valid integer": "a whole number", "a valid number": "a number"}.get(bound, bound)
    return f"{max(error.param.opts, key=len)} is {found[0]['input']!r}; it must be {bound}"


def _meant(option: str, context: Any) -> str:
    """ "; did you mean …?" with the command's options of similar spelling or meaning; "" if there is none."""
    flags = [flag for each in context.command.params for flag in each.opts if flag.startswith("-")]
    word = option.lstrip("-").replace("_", "-").lower()
    numbered = ("--top-k", "-k", f"--{word}", "--count", "--limit") if word in NUMBERS else ()
    if found := [flag for flag in numbered if flag in flags]:
        return f"; did you mean {found[0]}?"
    if len(word) > 1:
        return nearest(f"--{word}", flags)
    alike = ["--model"] if word == "m" and "--model" in flags else [each for each in flags if each[2:3] == word]
    return f"; did you mean {' or '.join(alike)}?" if 0 < len(alike) < 4 else ""


def _reason(error: OSError) -> str:
    """The file, the system's message, and the remedy if there is just one."""
    if error.strerror is None:
        return f"{type(error).__name__}: {error}"
    space = "; free some space and run the command again"
    remedies = {EACCES: "; change its permissions", ENOSPC: space, EDQUOT: space}
    remedy = remedies.get(error.errno or 0, "")
    return f"{error.filename}: {error.strerror}{remedy}" if error.filename else f"{error.strerror}{remedy}"
