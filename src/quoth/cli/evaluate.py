"""The commands that measure: eval cloze.

Knows the options. Does not know how anything is measured.
"""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from quoth.cli.models import load
from quoth.cli.options import Base, Combine, CombineOption, Device, Json, Model, PassageCount, num_passages
from quoth.cli.output import counting, print_json, results

app = typer.Typer(no_args_is_help=True, help="Measure a model on a task.")


class System(StrEnum):
    """What answers the blanks."""

    model = "model"
    untrained = "untrained"
    frequent = "frequent"
    bm25 = "bm25"


@app.command()
def cloze(
    pages: Annotated[
        list[str], typer.Argument(metavar="PAGES...", help="Files or folders that hold the held-out documents.")
    ],
    heldout: Annotated[
        Path | None,
        typer.Option("--heldout", metavar="FILE", help="Use only the documents that this JSONL names (id, title)."),
    ] = None,
    count: Annotated[int, typer.Option("--count", help="Blanks of each kind.")] = 1000,
    limit: Annotated[int | None, typer.Option("--limit", help="Ask only the first blanks of each kind.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Another seed draws other blanks.")] = 0,
    passages: PassageCount = None,
    dense: Annotated[bool, typer.Option("--dense", help="Embed the documents and search every token.")] = False,
    combine: CombineOption = Combine.joint,
    system: Annotated[
        list[System] | None, typer.Option("--system", help="Ask only this one. May be repeated. Default: all.")
    ] = None,
    model: Model = "quoth-mini",
    base: Base = None,
    device: Device = None,
    json: Json = False,
) -> None:
    """Fill blanks drawn from documents the model has not seen, and count the exact matches.

    Half of the blanks are spans as training hides them, half are names, terms and numbers. Each phrase also
    stands in another passage of these documents; its own passage is not searched.

    \b
    Example:
      quoth eval cloze wiki.jsonl --heldout heldout_pages.jsonl
    """
    from quoth.evaluation.run import SYSTEMS, run_cloze, table

    with counting("answering", "blanks") as answered:
        report = run_cloze(
            pages,
            heldout,
            model,
            count=count,
            seed=seed,
            limit=limit,
            passages=num_passages(passages, dense),
            combine=combine.value,
            systems=[each.value for each in system] if system else SYSTEMS,
            progress=lambda name, done, total: answered(done),
            load=lambda name, corpus: load(name, [corpus], base, device),
        )
    if json:
        print_json(report.to_dict())
    else:
        results().print(table(report), soft_wrap=True, end="")
