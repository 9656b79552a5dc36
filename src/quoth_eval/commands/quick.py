"""The command `eval quick`: a small sample of every task, each by its own command.

Knows: which commands there are, and where their files are in a folder of data. Does not know: how anything is measured.
"""

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from quoth.cli.options import Model
from quoth.cli.output import note
from quoth.errors import InputError, UserError
from quoth_eval.commands.measuring import RunFolder

app = typer.Typer()
Step = tuple[str, Sequence[str]]
"""The name of a run, and the arguments of `quoth eval`."""


@app.command()
def quick(
    context: typer.Context,
    data: Annotated[Path, typer.Option("--data", metavar="DIR", help="Folder of the tasks' files; see docs.")],
    corpus: Annotated[list[Path], typer.Option("--corpus", metavar="DIR", help="Search this corpus. May be repeated.")],
    old: Annotated[
        Path | None, typer.Option("--old", metavar="DIR", help="An earlier edition of the first corpus, for eval swap.")
    ] = None,
    pages: Annotated[
        Path | None, typer.Option("--pages", metavar="DOCS", help="Documents no model has seen, for eval cloze.")
    ] = None,
    limit: Annotated[
        int,
        typer.Option("--limit", help="Examples per task; of each relation, language or kind, a tenth of this number."),
    ] = 30,
    model: Model = "quoth-mini",
    reader: Annotated[str, typer.Option("--reader", help="The reader to ask as well.")] = "quoth-reader",
    run: RunFolder = None,
) -> None:
    """Measure a small sample of every task, to see that everything works.

    It runs the other commands of `quoth eval` and shows each of them. A command whose files are missing is left out,
    and so are the closed sets if a corpus is not embedded (`quoth embed`). --run keeps all answers and a page,
    report.html. The samples are too small to say which of two systems is better.

    \b
    Example:
      quoth eval quick --data tasks --corpus wiki.quoth --run runs/quick
    """
    if limit < 1:
        raise InputError(f"--limit {limit}; it must be 1 or more")
    if not data.is_dir():
        raise InputError(f"--data {data}: no such folder; name the folder of the tasks' files")
    report = [] if run is None else [["report", str(run), "-o", str(run / "report.html")]]
    steps = [*_steps(data, corpus, limit, model, reader), *_own(corpus[0], old, pages, limit, model)]
    for arguments in [*(_kept(step, run) for step in steps), *report]:
        note(shlex.join(["quoth", *arguments]))
        try:
            code = context.find_root().command.main(args=arguments, prog_name="quoth", standalone_mode=False)
        except UserError as error:
            note(f"left out: {error}")
            continue
        if code:
            raise typer.Exit(code)


def _kept(step: Step, run: Path | None) -> list[str]:
    name, arguments = step
    return ["eval", *arguments, *(() if run is None else ("--run", str(run / name)))]


def _steps(data: Path, corpora: Sequence[Path], limit: int, model: str, reader: str) -> Iterator[Step]:
    """The commands that read files of `data`, of those files that are there."""
    searched = [word for corpus in corpora for word in ("--corpus", str(corpus))]
    named = ["--data", str(data), *searched, "--limit", str(limit)]
    few = ["--limit", str(_few(limit))]
    yield "", ["run", "open", *named, "--system", model, "--system", reader, "--system", "bm25"]
    yield "", ["run", "closed", *named, "--system", model, "--system", "majority"]
    yield "", ["run", "translation", *searched, *few, "--max-phrase-tokens", "20", "--system", model]
    for name, pattern in (("google-re", "Google_RE"), ("t-rex", "TREx")):
        if files := _files(data, f"lama/{pattern}/*.jsonl*"):
            templates = ["--templates", str(data / "lama" / "relations.jsonl")] if name == "t-rex" else []
            yield name, ["lama", *files, *templates, *few, "--model", model]
    for file in _files(data, "squad/*.json*"):
        yield "reading", ["reading", file, "--limit", str(limit), "--model", reader]
        yield "squad", ["squad", file, "--limit", str(limit), "--model", reader]
    if files := _files(data, "entityquestions/test/*.json*"):
        yield "entities", ["entities", str(corpora[0]), *files, *few, "--no-coverage"]
    for file in _files(data, "ner/*.conll*"):
        yield "ner", ["ner", f"{file}:test", "--limit", str(limit)]
    for file in _files(data, "mcl_wic/*.jsonl*"):
        yield "senses", ["senses", file, "--model", model]


def _own(corpus: Path, old: Path | None, pages: Path | None, limit: int, model: str) -> Iterator[Step]:
    """The commands that need corpora or documents alone."""
    if old is not None:
        both = ["--limit", str(limit), "--unchanged", str(limit)]
        yield "swap", ["swap", str(old), str(corpus), *both, "--model", model]
    if pages is not None:
        yield "cloze", ["cloze", str(pages), "--limit", str(limit), "--model", model]


def _few(limit: int) -> int:
    return max(1, limit // 10)


def _files(data: Path, pattern: str) -> list[str]:
    return [str(path) for path in sorted(data.glob(pattern))]
