"""The command `quoth reproduce`: a paper's table or figure by its name.

Knows: the options, and what the list says. Does not know: what the tables are, or how they are run.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.main import get_command

from quoth.cli.options import Setup, repeated
from quoth.cli.output import results
from quoth.cli.records import flow_help, takes_setup
from quoth.errors import InputError
from quoth_eval.command import Seed, check_call

app = typer.Typer(add_completion=False)
Table = Annotated[
    str | None, typer.Argument(metavar="TABLE", help="A table or figure, such as npm-table-8; --list shows all.")
]
Listed = Annotated[
    bool, typer.Option("--list", help="List every table and figure, its requirements, and whether they are met.")
]
Data = Annotated[
    Path | None, typer.Option("--data", metavar="DIR", help="Folder of the tasks' files: DIR/lama/TREx/P17.jsonl, …")
]
Output = Annotated[
    Path | None,
    typer.Option(
        "-o", "--output", metavar="DIR", help="Folder for the page and all answers; the same call again resumes."
    ),
]
SearchedCorpora = Annotated[
    list[str] | None,
    repeated(
        "--corpus",
        "NAME=PATH",
        "What to search: wiki, reviews, old (an earlier edition of wiki). A corpus, or documents, which are indexed "
        "in the output with the vectors needed. PATH alone is wiki.",
    ),
]
Models = Annotated[
    list[str] | None,
    repeated(
        "--model",
        "MODEL",
        "Use this model, by name, folder or hub id, instead of the shipped ones of its kind; lm:ID_OR_FOLDER is added.",
    ),
]
Limit = Annotated[
    int | None,
    typer.Option(
        "--limit",
        help=(
            "Use at most this many examples per task, and a tenth as many per relation or language (0: all); 30 takes "
            "minutes. Default: the table's."
        ),
    ),
]


@app.command()
@takes_setup
def reproduce(
    table: Table = None,
    listed: Listed = False,
    data: Data = None,
    output: Output = None,
    corpus: SearchedCorpora = None,
    model: Models = None,
    limit: Limit = None,
    seed: Seed = 0,
    *,
    setup: Setup,
) -> None:
    """Measure a table or figure of the three papers.

    The papers are those on NPM, REALM and Zero-NeR. Writes a Markdown page with our numbers and the published ones, the
    differences, and the inputs. A table consists of commands (quoth index, embed, eval), which the page lists. If only
    part of a table's data is there, that part is measured. See docs/reproduce.md.

    \b
    Example:
      quoth reproduce --list --data tasks
      quoth reproduce npm-table-8 --data tasks -o npm8 --limit 30
      quoth reproduce realm-table-1 --data tasks -o realm1 \\
        --corpus wiki.jsonl --model my-realm
    """
    from quoth_eval.papers import find_item
    from quoth_eval.reproduce import Call
    from quoth_eval.reproduce import reproduce as run

    check_call(data, limit)
    named = _named(corpus or [])
    if listed or table is None:
        if not listed:
            raise InputError("no table; name one, such as npm-table-8, or see them all with --list")
        _list(data, named)
        return
    item = find_item(table)
    if output is None and not item.cannot:
        raise InputError(f"nowhere to write; name a folder with -o, such as -o {table}")
    page = run(
        item,
        Call(
            output=output or Path(),
            data=data,
            corpora=named,
            models=tuple(model or ()),
            limit=limit,
            seed=seed,
            setup=tuple(
                str(word) for option, value in setup._asdict().items() if value for word in (f"--{option}", value)
            ),
        ),
    )
    results().print(page.read_text(encoding="utf-8"), soft_wrap=True, end="")


def _named(given: list[str]) -> dict[str, Path]:
    """The corpora by name. Raises InputError for an unknown name, and for a path that is not there."""
    from quoth_eval.papers import CORPORA

    found = dict[str, Path]()
    for each in given:
        name, equals, path = each.partition("=")
        name, path = (name, path) if equals and name in CORPORA else ("wiki", each)
        if not Path(path).exists():
            known = ", ".join(f"{name}=PATH" for name in CORPORA)
            raise InputError(f"--corpus {each}: no such corpus or documents; use {known}")
        found[name] = Path(path)
    return found


def _list(data: Path | None, corpora: Mapping[str, Path]) -> None:
    from quoth_eval.papers import items
    from quoth_eval.reproduce import captioned, needs

    for item in items():
        lacking = [why for part in item.parts for why in part.lacks(data, corpora).values()]
        whole = sum(len(part.tasks) for part in item.parts)
        lines = [f"{item.id}: {captioned(item)}"]
        if item.cannot:
            lines.append(f"  cannot be run here: {item.cannot}")
        else:
            there = f"{whole - len(lacking)} of {whole} tasks can be asked" if lacking else "all is there"
            lines += [f"  needs: {needs(item)}", f"  takes: {item.time}; no GPU", f"  {there}"]
            lines += [f"  missing: {why}" for why in dict.fromkeys(lacking)]
        results().print("\n".join(lines), soft_wrap=True)


flow_help(app)
reproduce_plugged: Any = get_command(app)
reproduce_plugged.rich_help_panel = "Train and measure"
