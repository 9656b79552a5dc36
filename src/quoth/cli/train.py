"""The command that trains, train, and what it shows of a run.

Knows the recipes' names and terminals. Does not know what training is.
"""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quoth.cli.models import system
from quoth.cli.options import Base, SkipBad, pairs, repeated
from quoth.cli.output import LeftOut, note
from quoth.errors import InputError, nearest
from quoth.training.recipes import RECIPES, run_recipe

if TYPE_CHECKING:
    from quoth.training.trainer import Progress

app = typer.Typer()
NAMES = ", ".join(RECIPES)
SECONDS_PER_LINE = 29.0


RecipeName = Annotated[str, typer.Argument(metavar="RECIPE", help=f"One of {NAMES}.")]
TrainingData = Annotated[
    list[str],
    typer.Argument(
        metavar="DOCS",
        help="Files or folders of documents. For reader: files of questions with their passages (FILE:SHARE takes a "
        "share of a file per epoch). For tagger: CoNLL files. For realm-qa: files of questions.",
    ),
]
Settings = Annotated[
    list[str] | None,
    repeated("--set", "KEY=VALUE", "Change a setting of the recipe."),
]
StartModel = Annotated[
    str | None,
    typer.Option("--model", help="Model to start from: a shipped one, a folder or a hub id. Default: the recipe's."),
]
PassageCorpus = Annotated[
    Path | None,
    typer.Option(
        "--corpus",
        metavar="DIR",
        help="For realm-pretrain: retrieve passages from this corpus (made by quoth index) instead of DOCS.",
    ),
]


@app.command(rich_help_panel="Train and measure")
def train(
    recipe: RecipeName,
    docs: TrainingData,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for the model.")],
    settings: Settings = None,
    model: StartModel = None,
    corpus: PassageCorpus = None,
    skip_bad: SkipBad = False,
    base: Base = None,
) -> None:
    """Train a model with a recipe.

    The recipe adapt adapts the shipped model to your own texts; the recipe reader trains the shipped reader on your own
    questions. The same command resumes a stopped run; with more steps it extends a finished one.

    \b
    Example:
      quoth train adapt notes/ -o mine --set steps=200
      quoth fill notes.quoth --model mine "The meeting is on [MASK]."
      quoth train reader my_questions.jsonl -o my-reader
      quoth train tagger wikigold.conll.txt:train wnut17train.conll -o my-tagger
      quoth train realm-pretrain news.jsonl --corpus wiki.quoth -o pretrained
      quoth train realm-qa nq.tsv -o mine --model pretrained \\
        --set corpus=wiki.quoth
    """
    overrides = pairs(settings or [], "--set", "steps=200")
    left_out = LeftOut()
    _check_recipe(recipe, corpus is not None, skip_bad)
    _check_inputs(docs, model)
    with display() as shown:
        run_recipe(
            recipe,
            docs,
            output,
            overrides,
            model=model,
            corpus=corpus,
            base=str(base) if base else None,
            progress=shown.step,
            preparing=shown.preparing,
            on_bad=left_out if skip_bad else None,
        )
    left_out.report()
    if os.environ.get("RANK", "0") == "0":
        note(f"the model is in {output}")


def _check_recipe(recipe: str, corpus: bool, skip_bad: bool) -> None:
    """Raises InputError on a wrong name, or an option for another recipe."""
    if recipe not in RECIPES:
        raise InputError(f"unknown recipe {recipe!r}; it must be one of {NAMES}{nearest(recipe, RECIPES)}")
    if corpus and not RECIPES[recipe].retrieves:
        raise InputError("--corpus is for the recipe realm-pretrain; leave it out (realm-qa takes --set corpus=DIR)")
    if skip_bad and not RECIPES[recipe].skips_bad:
        raise InputError("--skip-bad is for the recipe reader; leave it out")


def _check_inputs(docs: list[str], model: str | None) -> None:
    """Raises InputError or ModelNotFoundError for what is not there, before torch is imported."""
    for name in docs:
        without_part = name.rpartition(":")[0] or name  # FILE:SHARE, FILE:train
        if name != "-" and "://" not in name and not Path(name).exists() and not Path(without_part).exists():
            raise InputError(f"{name}: no such file or folder; give one that exists")
    if model is not None:
        system(model)


class Display:
    """A run on standard error: a bar if it is a terminal, and a line for the first step, for scores, and per half
    minute."""

    def __init__(self, bar: "Bar | None") -> None:
        self._bar, self._what, self._said = bar, "", 0.0

    def preparing(self, what: str, done: int, total: int | None) -> None:
        """Show the work before the first step."""
        if self._bar is not None:
            self._bar.show(what, done, total)
        elif what != self._what:
            print(what, file=sys.stderr, flush=True)
        self._what = what

    def step(self, now: "Progress") -> None:
        """Show a step."""
        line = f"step {now.step:,} of {now.steps:,}  loss {now.loss:.3f}  {now.tokens_per_second:,.0f} tokens/s"
        if "score" in now.measures:
            line += f"  held-out score {now.measures['score']:.3f}"
        clock = time.monotonic()
        if not self._said or "score" in now.measures or now.step == now.steps or clock - self._said > SECONDS_PER_LINE:
            self._said = clock
            print(line, file=sys.stderr, flush=True)
        if self._bar is not None:
            self._bar.show(f"training, loss {now.loss:.3f}", now.step, now.steps)


class Bar:
    """A progress bar for one piece of work after another."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
        from rich.progress import TimeRemainingColumn as TimeLeft

        columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), MofNCompleteColumn())
        console = Console(stderr=True, highlight=False)
        self.live = Progress(*columns, TimeElapsedColumn(), TimeLeft(), console=console, transient=True)
        self._task = self.live.add_task("loading", total=None)
        self._what = ""

    def show(self, label: str, done: int, total: int | None) -> None:
        """Move the bar; a new piece of work restarts its clock."""
        what = label.partition(",")[0]
        if what != self._what:
            self._what = what
            self.live.remove_task(self._task)
            self._task = self.live.add_task(label, total=total)
        self.live.update(self._task, completed=done, total=total, description=label)


@contextmanager
def display() -> Iterator[Display]:
    """The display of a run while the block runs: with a bar if standard error is a terminal, otherwise in lines."""
    if not sys.stderr.isatty():
        yield Display(None)
        return
    bar = Bar()
    with bar.live:
        yield Display(bar)
