"""The command that asks the same questions of every document: table.

Knows the options and how cost, progress and changes are told. Does not know how a table is made.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quoth.cli.models import load_reader
from quoth.cli.options import FILES, Json, Ray, Setup, Where, read_at
from quoth.cli.output import duration, note, plural, print_json, progress_bar, results, visible
from quoth.cli.plugged import clusters
from quoth.cli.records import takes_setup
from quoth.errors import InputError, UserError

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus
    from quoth.reader.model import Reader
    from quoth.tables.cells import Cell
    from quoth.tables.columns import Column
    from quoth.tables.table import Options, Run

app = typer.Typer()
FIRST = 8
"""Cells by which the time of all is told."""
MANY = 100
"""Cells from which importing PyTorch takes less time than it saves on processors that multiply bf16."""
SHOWN = 20
"""Notes of one kind."""
LONGEST_WAIT = 1e9
"""Seconds; the system's limit is a little higher."""
Place = Annotated[
    str,
    typer.Argument(
        metavar="DIR",
        help="A corpus folder made by quoth index; or its URL (s3://, gs://, …), whose files are copied first.",
    ),
]
Since = Annotated[
    str | None,
    typer.Option(
        "--since",
        metavar="WHEN",
        help="Show which cells changed since this snapshot of the corpus, or the last one by a date (2026-03-01).",
    ),
]
Watch = Annotated[
    float | None,
    typer.Option(
        "--watch", metavar="SECONDS", min=0.1, help="Look for a new snapshot every so many seconds, until Ctrl-C."
    ),
]
Corrections = Annotated[
    Path | None,
    typer.Option(
        "--corrections",
        metavar="FILE",
        help="Cells confirmed or corrected by hand. Default: the output's name with .corrections.json.",
    ),
]


@app.command(rich_help_panel="Ask a corpus")
@takes_setup
def table(
    directory: Place,
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
    since: Since = None,
    watch: Watch = None,
    files: Annotated[Path | None, FILES] = None,
    pictures: Annotated[
        bool, typer.Option("--pictures/--no-pictures", help="In .html, show places in the PDFs of --files as pictures.")
    ] = True,
    marked: Annotated[
        bool,
        typer.Option("--marked", help="Make copies of the PDFs of --files with all places highlighted; link to these."),
    ] = False,
    corrections: Corrections = None,
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="Fit the chances of columns with 30 or more confirmed cells to these.")
    ] = False,
    workers: Annotated[int, typer.Option("--workers", min=1, metavar="N", help="Documents asked at once.")] = 1,
    ray: Ray = False,
    json: Json = False,
    model: Annotated[str, typer.Option("--model", help="The reader: a shipped model or a folder.")] = "quoth-reader",
    setup: Setup,
) -> None:
    """Ask the same questions of every document.

    A row is a document, a column a question; a cell is a quotation with its place, and its value by the column's type:
    text, number, money, date, duration, yes/no, choice of A, B, or list. Where nothing is sure the cell is empty, and
    what came nearest is beside it. Finished rows are kept in FILE.rows: a stopped run goes on, and later only documents
    that are new or changed are asked. With --since the exit code is 1 if a cell changed; --json then prints the
    changes, else the rows. In .html cells are confirmed or corrected by hand; no later run overwrites that.

    \b
    Example:
      quoth table contracts.quoth questions.txt -o contracts.xlsx
      quoth table contracts.quoth questions.toml -o t.html --files contracts/
      quoth table contracts.quoth questions.toml -o t.xlsx --since 2026-03-01
      quoth table atlas.quoth questions.txt --by country --json
    """
    from quoth.tables.columns import read_columns
    from quoth.tables.files import check_output
    from quoth.tables.table import Options

    columns = read_columns(questions)
    if output is not None:
        check_output(output)
    if marked and (files is None or output is None):
        raise InputError(
            "--marked makes copies of PDFs beside the output; name it with -o, and their folder with --files"
        )
    corpus = _opened(folder := read_at(directory), where)
    _prepare(len(columns) * corpus.num_documents, output)
    reader = load_reader(model, [corpus], setup)
    asks = clusters().asking(directory, model, setup) if ray else None
    options = Options(by, output, since, files, corrections, calibrate, pictures, marked, workers, asks)
    changed = _once(corpus, columns, reader, options, json)
    if watch is not None:
        _watch(watch, corpus, lambda: _opened(folder, where), columns, reader, options, json)
    if changed:
        raise typer.Exit(1)


def _prepare(cells: int, output: Path | None) -> None:
    """Let many cells be read by PyTorch; not those of a table that was begun, of which few may be left."""
    from quoth.encoders.graph import prefer_pytorch
    from quoth.tables.journal import BESIDE

    if cells >= MANY and not (output is not None and output.with_name(output.name + BESIDE).exists()):
        prefer_pytorch()


def _watch(
    seconds: float,
    corpus: "Corpus",
    opened: "Callable[[], Corpus]",
    columns: "list[Column]",
    reader: "Reader",
    options: "Options",
    json: bool,
) -> None:
    """Makes the table again whenever there is a new snapshot, until Ctrl-C; what cannot be done now is told once, and
    done later."""
    told = ""
    while True:
        time.sleep(min(seconds, LONGEST_WAIT))
        try:
            if not corpus.is_current():
                later = opened()  # as long as the one before is open, its snapshot is kept
                _once(later, columns, reader, replace(options, since=corpus.snapshot, calibrate=False), json)
                corpus, told = later, ""
        except BrokenPipeError:  # nobody reads what this prints
            raise
        except (UserError, OSError) as error:
            if str(error) != told:
                note(str(error))
            told = str(error)


def _opened(directory: Path, where: str | None) -> "Corpus":
    from quoth.corpus.corpus import Corpus
    from quoth.corpus.view import parts

    corpus = Corpus.open(directory)
    return corpus if where is None else parts([corpus], where)[0]


def _once(corpus: "Corpus", columns: "list[Column]", reader: "Reader", options: "Options", json: bool) -> int:
    """Makes the table; returns how many cells changed."""
    from quoth.tables.table import Run

    with Run(corpus, columns, reader, options) as run:
        _fill(run, len(columns))
        run.save()
        return _tell(run, json)


def _fill(run: "Run", columns: int) -> None:
    """Says how much is to be asked, and asks it, with a bar; once the first cells are, says how long all will take."""
    told, left = False, run.left()
    if left:
        at_once = f", {run.options.workers} rows at once" if run.options.workers > 1 else ""
        note(f"{plural(left, 'row')} to ask, {plural(left * columns, 'cell')}{at_once}")

    def progress(done: int, rows: int, asked: int, seconds: float) -> None:
        nonlocal told
        bar.update(task, completed=done, total=rows)
        if not told and asked * columns >= FIRST and done < rows:
            told, each = True, seconds / (asked * columns)
            note(f"{each:.2f} seconds a cell: {duration(each * (left - asked) * columns)} left")

    with progress_bar("asking", "rows", left=True) as bar:
        task = bar.add_task("asking", total=None)
        run.fill(progress)


def _tell(run: "Run", json: bool) -> int:
    """Prints the changes since a snapshot, or the rows; and how many cells are filled. Returns how many changed."""
    from quoth.tables.cells import CONFIRMED

    since, output = run.options.since, run.options.output
    changed = rows = filled = unreadable = confirmed = 0
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
        confirmed += sum(cell.status == CONFIRMED for cell in row.cells.values())
        if row.error:
            unreadable += 1
            note(f"cannot be read: {row.error}")
        if since is None and json:
            print_json(row.to_dict())
        elif since is None and output is None:
            _line(row.document_id)
            for name, cell in row.cells.items():
                _line(f"  {name}  {_said(cell)}")
    for line in run.fitted:
        note(line)
    _notes([*run.problems()])
    _notes([f"{name} has no highlighted copy: {why}" for name, why in run.unmarked.items()])
    if run.left_out:
        note(f"{plural(run.left_out, 'picture')} left out, as a page has at most 100 MB of them; use --marked")
    counts = f"{filled:,} of {plural(rows * len(run.columns), 'cell')} filled"
    counts += f", {confirmed:,} confirmed" if confirmed else ""
    counts += f", {plural(unreadable, 'document')} unreadable" if unreadable else ""
    counts += f", {changed:,} changed since {since}" if since is not None else ""
    told = f"{output}: {counts}" if output is not None else counts
    (note if json else _line)(told)
    return changed


def _notes(lines: list[str]) -> None:
    for line in lines[:SHOWN]:
        note(line)
    if len(lines) > SHOWN:
        note(f"… and {len(lines) - SHOWN:,} more")


def _said(cell: "Cell") -> str:
    from quoth.tables.cells import CONFIRMED
    from quoth.tables.told import chance_of, place_of, shown

    if not cell.text:
        return "– confirmed" if cell.status == CONFIRMED else "–"
    value = shown(cell.value)
    means = f" = {value}" if value and value != cell.text else ""
    return f"{' '.join(cell.text.split())}{means}  {chance_of(cell)}, {place_of(cell)}"


def _line(text: str) -> None:
    results().print(visible(text), soft_wrap=True, markup=False, highlight=False)
