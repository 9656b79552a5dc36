"""The command `quoth eval table`.

Knows how a call is spelled, and what is printed. Does not know how cells are asked or judged.
"""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from quoth.cli.models import load_reader
from quoth.cli.options import Json, Setup, within
from quoth.cli.output import counting, print_json, print_tables, results
from quoth.cli.records import takes_setup
from quoth.errors import InputError
from quoth.fields import Count
from quoth.storage import sha256_file

if TYPE_CHECKING:
    from quoth.reader.model import Reader
    from quoth_eval.tables.measure import Counts
    from quoth_eval.tables.pages import Grounding

SETS = Literal["factbook", "deleted", "contracts", "minutes", "invoices", "forms", "pages"]
PARTS = Literal["test", "develop"]
BOTH = Literal["both", "table", "reader"]


@takes_setup
def table(
    name: Annotated[
        str,
        typer.Argument(
            metavar="SET",
            callback=within(SETS, "factbook"),
            help="factbook, deleted, contracts, minutes, invoices, forms, pages.",
        ),
    ],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The World Factbook (JSONL), dev.json, a folder.")],
    part: Annotated[str, typer.Option("--part", callback=within(PARTS, "test"), help="test or develop.")] = "test",
    rows: Annotated[
        int | None, typer.Option("--rows", callback=within(Count | None, 30), help="At most this many rows.")
    ] = None,
    system: Annotated[
        str,
        typer.Option(
            "--system", callback=within(BOTH, "both"), help="table; reader, asked of a row's documents alone; both."
        ),
    ] = "both",
    *,
    keep: Annotated[
        Path | None, typer.Option("--run", metavar="DIR", help="Keep what was asked here; a second call resumes.")
    ] = None,
    json: Json = False,
    model: Annotated[str, typer.Option("--model", help="The reader: a shipped model or a folder.")] = "quoth-reader",
    setup: Setup,
) -> None:
    """Measure tables: how many cells are filled, how many of these rightly, and whether their places are right.

    factbook: 30 countries, 12 questions; a cell is right if the field says it, or it the field. deleted: the same with
    the fields deleted from the texts: a filled cell is wrong, unless it says what the field said, from another place of
    the texts. contracts: 8 agreements, 8 questions, labelled by hand; a cell is right if it is inside of what answers,
    or has all of it. minutes: the folder minutes of rust-lang/lang-team, 12 of these, 6 questions, likewise. invoices:
    the folder tests/compare of invoice2data, 11 invoices, 5 of them in English, 6 questions. forms: ten water analyses
    in the tests of tabula-java (regex_batch_process/input_files at a730125), 8 questions. pages: PDFs made from the
    Factbook. Of the last three also grounding F1 by page and by word, as ExtractBench defines them.

    \b
    Example:
      quoth eval table factbook factbook-2017-03-28.jsonl
      quoth eval table contracts contract_nli.dev.json --system table
      quoth eval table pages factbook-2017-03-28.jsonl --rows 10
    """
    from quoth_eval.systems import fingerprint
    from quoth_eval.tables.measure import counts_table

    if name == "pages" and system == "reader":
        raise InputError("--system reader: pages measure the table alone; leave it out")
    reader = load_reader(model, [], setup)
    inputs = sha256_file(file) if file.is_file() else file.name  # the files of a folder are checked one by one
    made = {"set": name, "part": part, "inputs": inputs, "model": model, "weights": fingerprint(model)}
    with tempfile.TemporaryDirectory(prefix="quoth-table-") as scratch:
        folder = (keep or Path(scratch)) / f"{name}-{part}-{inputs[:8]}"
        folder.mkdir(parents=True, exist_ok=True)
        counts, grounding = _measured(name, file, part, rows, system, reader, folder)
    if json:
        pages = {} if grounding is None else {"grounding": grounding.to_dict()}
        print_json(made | {"cells": [each.to_dict() for each in counts]} | pages)
        return
    print_tables([counts_table(counts), *([] if grounding is None else [grounding.table()])])
    results().print(", ".join(f"{key} {value}" for key, value in made.items()), soft_wrap=True)


def _measured(
    name: str, file: Path, part: str, rows: int | None, system: str, reader: "Reader", folder: Path
) -> "tuple[list[Counts], Grounding | None]":
    from quoth_eval.tables import sets
    from quoth_eval.tables.measure import SYSTEMS, measured
    from quoth_eval.tables.pages import grounded, labelled

    read = {each.__name__: each for each in (sets.contracts, sets.minutes, sets.invoices, sets.forms)}
    given = read.get(name, sets.factbook)(file, part, rows)
    if name == "deleted":
        given = sets.deleted(given, sets.factbook_fields().values())
    with counting("asking", "rows") as progress:
        if name == "pages":
            grounding = grounded(given, sets.factbook_fields(), reader, folder, progress)
            return [grounding.counts], grounding
        systems = [*SYSTEMS] if system == "both" else [system]
        asked = [measured(each, given, reader, folder, progress) for each in systems]
        placed = [labelled(given, *each) for each in asked if given.boxes and each[0].system == "table"]
        return [counts for counts, _ in asked], next(iter(placed), None)
