"""What the commands that measure share: options, progress, how a report is printed.

Knows: the options. Does not know: how anything is measured.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quoth.cli.options import repeated
from quoth.cli.output import counting, print_json, print_tables

if TYPE_CHECKING:
    from quoth_eval.report import Report

Limit = Annotated[int | None, typer.Option("--limit", help="Ask at most this many questions, drawn at random.")]
Distractors = Annotated[
    list[str] | None,
    repeated("--distractors", "DOCS", "Documents to search as well, as distractors."),
]
Seed = Annotated[int, typer.Option("--seed", help="Random seed for sampling.")]
Template = Annotated[
    str | None,
    typer.Option("--template", help="NPM's text for a question: {question} and one [MASK]. Default: the model's own."),
]
NoCoverage = Annotated[
    bool, typer.Option("--no-coverage", help="Do not read every passage to count the answerable questions.")
]
RunFolder = Annotated[
    Path | None,
    typer.Option(
        "--run",
        metavar="DIR",
        help="Keep every answer with its evidence in this folder; a second call resumes there. See quoth eval errors.",
    ),
]


def ks_option(default: str) -> Any:
    """How the option --k of recall is declared, with the task's own default."""
    return repeated("--k", "K", "Recall among the best K passages.", default=f"{default}.")


@contextmanager
def measuring(unit: str) -> Iterator[Callable[[str, int, int], None]]:
    """A progress line for what `evaluate` reports."""
    with counting("measuring", unit) as measured:
        yield lambda name, done, total: measured(done, total)


def show_report(report: "Report", json: bool, dimensions: Sequence[str] | None = None, **more: Any) -> None:
    """Print a report: as a table with the groups of these dimensions (None: all), or as JSON with `more`."""
    if json:
        print_json({**report.to_dict(), **more})
    else:
        print_tables(report.tables(dimensions))


def run_folders(paths: Sequence[Path]) -> list[Path]:
    """The runs that are named: each path itself, or the runs in it."""
    from quoth_eval.harness import RUN

    found = [sorted(each.parent for each in path.glob(f"*/{RUN}")) or [path] for path in paths]
    return list(dict.fromkeys(folder for each in found for folder in each))
