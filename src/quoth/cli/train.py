"""The commands that make models: train, with its progress display, and calibrate.

Knows the recipes' names and terminals. Does not know how training works.
"""

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quoth.cli.models import load_reader, open_corpus, system
from quoth.cli.options import Base, CorpusDir, Model, Setup, SkipBad, pairs, repeated
from quoth.cli.output import LeftOut, counting, note, progress_bar
from quoth.cli.records import takes_setup
from quoth.errors import InputError
from quoth.training.recipes import RECIPES, chosen, run_recipe

if TYPE_CHECKING:
    from rich.progress import Progress as ProgressBar

    from quoth.training.trainer import Progress

app = typer.Typer()
SECONDS_PER_LINE = 29.0

RecipeName = Annotated[str, typer.Argument(metavar="RECIPE", help=f"One of {', '.join(RECIPES)}.")]
TrainingData = Annotated[
    list[str],
    typer.Argument(
        metavar="DOCS",
        help="Files or folders of documents. For reader: files of questions with their passages (FILE:SHARE takes a "
        "share of a file per epoch). For tagger: CoNLL files. For realm-qa: files of questions. For npm-queries: files "
        "of texts with [MASK] and their answers.",
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
        help=(
            "For realm-pretrain: retrieve passages from this corpus (made by quoth index) instead of DOCS. For "
            "npm-queries: the corpus whose vectors are searched."
        ),
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
    questions. The same command resumes a stopped run; with more steps, it extends a finished one.

    \b
    Example:
      quoth train adapt notes/ -o mine --set steps=200
      quoth fill notes.quoth --model mine "The meeting is on [MASK]."
      quoth train reader my_questions.jsonl -o my-reader
      quoth train tagger wikigold.conll.txt:train wnut17train.conll -o my-tagger
      quoth train npm-queries blanks.jsonl --corpus wiki.quoth -o asks-better
      quoth train realm-pretrain news.jsonl --corpus wiki.quoth -o pretrained
      quoth train realm-qa nq.tsv -o mine --model pretrained \\
        --set corpus=wiki.quoth
    """
    overrides = pairs(settings or [], "--set", "steps=200")
    left_out = LeftOut()
    chosen(recipe, overrides, corpus is not None, skip_bad)
    _check(docs, model)
    with progress_bar("{task.description}", left=True) as bar:
        shown = Display(bar)
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


@app.command(rich_help_panel="Train and measure")
@takes_setup
def calibrate(
    directory: CorpusDir,
    questions: Annotated[
        list[Path], typer.Argument(metavar="QUESTIONS...", help="Files of questions about the corpus, with answers.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for the model.")],
    model: Model = "quoth-reader",
    skip_bad: SkipBad = False,
    *,
    setup: Setup,
) -> None:
    """Calibrate a reader's probabilities on your own questions.

    It asks every question, a fifth of them without the passages that answer them, and fits the chance of being right,
    the thresholds of "unsure" and "not found", and those of --precision to which answers were right. The weights do not
    change. It needs 30 questions; a few hundred are better. Do not use your test questions.

    \b
    Example:
      quoth calibrate notes.quoth questions.jsonl -o my-reader
      quoth ask notes.quoth --model my-reader --precision 0.9 "Who is ill?"
    """
    from quoth.datasets.questions import read_questions
    from quoth.reader.calibration import calibrate as fit
    from quoth.reader.calibration import save_settings

    corpus, left_out = open_corpus(directory), LeftOut()
    asked = read_questions(*questions, skip_bad=skip_bad, on_bad=left_out)
    reader = load_reader(model, [corpus], setup)
    with counting("asking", "questions") as progress:
        found = fit(reader, [(corpus, asked)], progress=lambda count: progress(count, len(asked)))
    save_settings(model, output, found.config)
    left_out.report()
    note(
        f"{found.right} of {found.questions} first answers are right; from {found.config.defaults.min_probability} on "
        f"{found.answered} are given, {found.right_answered} of them right; the model is in {output}"
    )


def _check(docs: list[str], model: str | None) -> None:
    """Raises InputError if a file is not there, and ModelNotFoundError, before torch is imported."""
    for name in docs:
        without_part = name.rpartition(":")[0] or name  # FILE:SHARE, FILE:train
        if name != "-" and "://" not in name and not Path(name).exists() and not Path(without_part).exists():
            raise InputError(f"{name}: no such file or folder; give one that exists")
    if model is not None:
        system(model)


class Display:
    """Progress on standard error: a bar if it is a terminal, and a line for the first step, for scores, and every half
    minute."""

    def __init__(self, bar: "ProgressBar") -> None:
        self._bar, self._task = bar, bar.add_task("loading", total=None)
        self._what, self._said = "", 0.0

    def preparing(self, what: str, done: int, total: int | None) -> None:
        """Show the work before the first step."""
        if self._bar.disable and what != self._what:
            print(what, file=sys.stderr, flush=True)
        self._show(what, what, done, total)

    def step(self, now: "Progress") -> None:
        """Show a step."""
        line = f"step {now.step:,} of {now.steps:,}  loss {now.loss:.3f}  {now.tokens_per_second:,.0f} tokens/s"
        if "score" in now.measures:
            line += f"  held-out score {now.measures['score']:.3f}"
        clock = time.monotonic()
        if not self._said or "score" in now.measures or now.step == now.steps or clock - self._said > SECONDS_PER_LINE:
            self._said = clock
            print(line, file=sys.stderr, flush=True)
        self._show("training", f"training, loss {now.loss:.3f}", now.step, now.steps)

    def _show(self, what: str, label: str, done: int, total: int | None) -> None:
        """Move the bar; a new piece of work restarts its clock."""
        if what != self._what:
            self._what = what
            self._bar.reset(self._task)
        self._bar.update(self._task, completed=done, total=total, description=label)
