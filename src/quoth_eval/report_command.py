"""The command `quoth report`: finished runs on one page.

Knows: the options. Does not know: what is shown.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quoth.cli.models import load
from quoth.cli.options import Setup
from quoth.cli.output import note, results
from quoth.cli.records import takes_setup
from quoth.errors import InputError
from quoth_eval.charts import NEEDS_MATPLOTLIB, drawable

if TYPE_CHECKING:
    from quoth_eval.pages import Section
    from quoth_eval.report import Report

app = typer.Typer(add_completion=False)
TITLE = "Measured by Quoth"
RUNS = "Folders written by --run, or folders of such folders."
REMEDIES = {
    ".md": "--markdown takes no file but prints the page; write it with: --markdown > {0}",
    ".html": "name the page to write with: -o {0}",
}
"""What to do instead of passing such a file as a run."""


@app.command()
@takes_setup
def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUNS...", help=RUNS)],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="HTML", help="Write the page to this file.")
    ] = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the page as Markdown, without its pictures unless --pictures.")
    ] = False,
    pictures: Annotated[
        Path | None, typer.Option("--pictures", metavar="DIR", help="Write the pictures to this folder, as SVG.")
    ] = None,
    title: Annotated[str, typer.Option("--title", help="The page's title.")] = TITLE,
    pieces: Annotated[
        str | None,
        typer.Option(
            "--pieces", metavar="MODEL", help="Also group examples by the number of MODEL's word pieces in the answer."
        ),
    ] = None,
    *,
    setup: Setup,
) -> None:
    """Show finished runs on one page, with pictures.

    The page has tables, differences, the papers' figures and wrong answers, in one file that needs no network. An
    option varied by several systems of a run becomes a curve.

    \b
    Example:
      quoth eval nq kamel --data tasks --corpus wiki.quoth \\
        --sweep passages=1,3,10,30 --run runs
      quoth report runs -o report.html
    """
    from quoth_eval.pages import as_markdown, write_pictures
    from quoth_eval.summary import summary

    if output is None and pictures is None and not markdown:
        where = "name a file with -o report.html, a folder with --pictures, or print it with --markdown"
        raise InputError(f"nowhere to write; {where}")
    if pictures is not None and pictures.is_file():
        raise InputError(f"--pictures {pictures}: a file; name a folder")
    for each in runs:
        if each.suffix in REMEDIES and not each.is_dir():
            raise InputError(f"{each} is not a run: {REMEDIES[each.suffix].format(each)}")
    sections = summary(_reports(runs, pieces, setup))
    if output is not None:
        _write(output, title, sections)
    if pictures is not None:
        if not drawable():
            raise InputError(f"--pictures {pictures}: {NEEDS_MATPLOTLIB}")
        note(f"wrote {write_pictures(sections, pictures)} pictures to {pictures}")
    if markdown:
        folder = "" if pictures is None else pictures.as_posix()
        results().print(as_markdown(title, sections, folder), soft_wrap=True, end="")


def write(runs: list[Path], output: Path) -> None:
    """Write the page about runs to a file."""
    from quoth_eval.summary import summary

    _write(output, TITLE, summary(_reports(runs, None, Setup())))


def _write(output: Path, title: str, sections: "list[Section]") -> None:
    from quoth_eval.pages import as_html

    output.write_text(as_html(title, sections), encoding="utf-8")
    note(f"wrote {output}" if drawable() else f"wrote {output} without its pictures: {NEEDS_MATPLOTLIB}")


def _reports(runs: list[Path], pieces: str | None, setup: Setup) -> "dict[str, Report]":
    """The runs' reports by their names on the page: the task's, and the folder's if it has another name or another run
    has the same task."""
    from quoth_eval.harness import read_run, run_folders
    from quoth_eval.summary import by_word_pieces

    folders = run_folders(runs)
    reports = {folder: read_run(folder) for folder in folders}
    if pieces is not None:
        count = load(pieces, [], setup).num_tokens
        reports = {folder: by_word_pieces(each, count) for folder, each in reports.items()}
    tasks = [each.task for each in reports.values()]
    return {
        each.task if tasks.count(each.task) == 1 and folder.name == each.task else f"{each.task} ({folder})": each
        for folder, each in reports.items()
    }
