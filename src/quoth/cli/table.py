"""The command that asks the same questions of every document: table.

Knows the options and how progress and changes are told. Does not know how a table is made.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quoth.cli.models import load_reader
from quoth.cli.options import FILES, CorpusDir, Json, Setup, Where
from quoth.cli.output import duration, note, plural, print_json, progress_bar, results, visible
from quoth.cli.records import takes_setup

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus
    from quoth.tables.cells import Cell
    from quoth.tables.table import Run

app = typer.Typer()
FIRST = 8
"""Cells by which the time of all is told."""


@app.command(rich_help_panel="Ask a corpus")
@takes_setup
def table(
    directory: CorpusDir,
    questions: Annotated[
        Path,
        typer.Argument(
            metavar="QUESTIONS",
            help="A question a line; or .csv or .toml with name, question (several wordings), type and threshold.",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The table: .csv, .xlsx, .html, .jsonl or .parquet."),
    ] = None,
    *,
    where: Where = None,
    by: Annotated[
        str | None,
        typer.Option("--by", metavar="FIELD", help="A row is all documents with the same value of this metadata."),
    ] = None,
    since: Annotated[
        int | None,
        typer.Option(
            "--since", metavar="SNAPSHOT", min=0, help="Show which cells changed since this snapshot of the corpus."
        ),
    ] = None,
    files: Annotated[Path | None, FILES] = None,
    json: Json = False,
    model: Annotated[str, typer.Option("--model", help="The reader: a shipped model or a folder.")] = "quoth-reader",
    setup: Setup,
) -> None:
    """Ask the same questions of every document.

    A row is a document, a column a question; a cell is a quotation with its place, and its value by the column's type:
    text, number, money, date, duration, yes/no, choice of A, B, or list. Where nothing is sure the cell is empty, and
    what came nearest is beside it. Finished rows are kept in FILE.rows: a stopped run goes on, and later only documents
    that are new or changed are asked. With --since the exit code is 1 if a cell changed; --json then prints the
    changes, else the rows.

    \b
    Example:
      quoth table contracts.quoth questions.txt -o contracts.xlsx
      quoth table contracts.quoth questions.toml -o contracts.xlsx --since 3
      quoth table atlas.quoth questions.txt --by country --json
    """
    from quoth.tables.columns import read_columns
    from quoth.tables.files import check_output
    from quoth.tables.table import Run

    columns = read_columns(questions)
    if output is not None:
        check_output(output)
    corpus, before = _opened(directory, where), None
    if since is not None:
        before = _opened(directory, where, since)
    reader = load_reader(model, [corpus], setup)
    with Run(corpus, columns, reader, by=by, output=output, before=before, files=files) as run:
        _fill(run, len(columns))
        run.save()
        changed = _tell(run, output, since, json)
    if changed:
        raise typer.Exit(1)


def _opened(directory: Path, where: str | None, snapshot: int | None = None) -> "Corpus":
    from quoth.corpus.corpus import Corpus
    from quoth.corpus.view import parts

    corpus = Corpus.open(directory, snapshot)
    return corpus if where is None else parts([corpus], where)[0]


def _fill(run: "Run", columns: int) -> None:
    """Asks what is not finished, with a bar; and once the first cells are, says how long all will take."""
    told = False

    def progress(done: int, rows: int, asked: int, seconds: float) -> None:
        nonlocal told
        bar.update(task, completed=done, total=rows)
        if not told and asked * columns >= FIRST and done < rows:
            told, each = True, seconds / (asked * columns)
            left = duration(each * (rows - done) * columns)
            note(f"{plural(rows * columns, 'cell')}, {each:.2f} seconds each: {left} left")

    with progress_bar("asking", "rows", left=True) as bar:
        task = bar.add_task("asking", total=None)
        run.fill(progress)


def _tell(run: "Run", output: Path | None, since: int | None, json: bool) -> int:
    """Prints the changes since a snapshot, or the rows; and how many cells are filled. Returns how many changed."""
    changed = rows = filled = unreadable = 0
    for change in run.changes():
        changed += 1
        if json:
            print_json(change.to_dict())
        else:
            _line(f"{change.document_id} · {change.column}")
            _line(f"  old {_said(change.old)}")
            _line(f"  new {_said(change.new)}")
    for row in run.rows():
        rows, filled = rows + 1, filled + sum(bool(cell.text) for cell in row.cells.values())
        if row.error:
            unreadable += 1
            note(f"cannot be read: {row.error}")
        if since is None and json:
            print_json(row.to_dict())
        elif since is None and output is None:
            _line(row.document_id)
            for name, cell in row.cells.items():
                _line(f"  {name}  {_said(cell)}")
    counts = f"{filled:,} of {plural(rows * len(run.columns), 'cell')} filled"
    counts += f", {plural(unreadable, 'document')} unreadable" if unreadable else ""
    counts += f", {changed:,} changed since snapshot {since}" if since is not None else ""
    told = f"{output}: {counts}" if output is not None else counts
    (note if json else _line)(told)
    return changed


def _said(cell: "Cell") -> str:
    from quoth.tables.told import place_of, shown

    if not cell.text:
        return "–"
    value = shown(cell.value)
    means = f" = {value}" if value and value != cell.text else ""
    return f"{' '.join(cell.text.split())}{means}  {100 * cell.probability:.0f} %, {place_of(cell)}"


def _line(text: str) -> None:
    results().print(visible(text), soft_wrap=True, markup=False, highlight=False)
