"""Write docs/cli.md from the command line's own help; with --check, only say whether it is up to date."""

import re
import sys
from pathlib import Path
from typing import Any

from typer.main import get_command

from quoth.cli.main import app

PAGE = Path(__file__).resolve().parent.parent / "docs" / "cli.md"
HEAD = """# The command line

Results go to standard output, progress and notes to standard error. Exit codes: 0 done, 1 failure, 2 a
mistake that you can mend (one line says how), 130 interrupted; what was committed before stays. This page is
written by `scripts/cli_help.py` from the commands' own help.
"""


def page() -> str:
    """The whole page."""
    root: Any = get_command(app)
    sections = [HEAD, _prose(root.help)]
    for name, command in sorted(root.commands.items()):
        if hasattr(command, "commands"):
            subcommands = sorted(command.commands.items())
            sections += [_section(f"quoth {name} {sub}", each) for sub, each in subcommands]
        else:
            sections.append(_section(f"quoth {name}", command))
    return "\n".join(sections)


def _section(name: str, command: Any) -> str:
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option"]
    usage = " ".join([name, *(_metavar(each) for each in arguments), "[OPTIONS]" if options else ""]).strip()
    rows = [_row(f"`{_metavar(each)}`", each.help or "") for each in arguments]
    rows += [_row(_spelling(each), _option_help(each)) for each in options]
    table = ["| | |", "|---|---|", *rows] if rows else []
    return "\n".join([f"## {name}\n", f"`{usage}`\n", _prose(command.help), *table, ""])


def _prose(text: str) -> str:
    """Help as Markdown: a block marked \\b, from its second line on, is code."""
    paragraphs, *blocks = re.split(r"\n?\x08\n", text)
    shown = [paragraphs.strip(), ""]
    for block in blocks:
        _, *lines = block.strip("\n").splitlines()
        shown += ["```sh", *(line.strip() for line in lines if line.strip()), "```", ""]
    return "\n".join(shown)


def _metavar(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name.upper())


def _spelling(option: Any) -> str:
    names = ", ".join(f"`{name}`" for name in option.opts)
    if option.is_flag:
        return names
    kind = option.type_descriptor.annotation
    choices = "\\|".join(getattr(kind, "__members__", ()))
    return f"{names} {option.metavar or choices or kind.__name__.upper()}"


def _option_help(option: Any) -> str:
    default = option.default
    plain = default not in (None, False, ()) and not callable(default) and option.show_default
    shown = f" Default: `{getattr(default, 'value', default)}`." if plain else ""
    return f"{option.help or ''}{shown}"


def _row(name: str, text: str) -> str:
    escaped = text.replace("|", "\\|")
    return f"| {name} | {escaped} |"


def main() -> int:
    """Write or check the page; the exit code."""
    wanted = page()
    if "--check" not in sys.argv[1:]:
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(wanted, encoding="utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == wanted:
        return 0
    print("docs/cli.md is not what the commands say; write it anew with: make docs", file=sys.stderr)
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
