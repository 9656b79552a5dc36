"""The command that trains: train.

Knows recipes by name. Does not know what training is.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quoth.cli.options import Base, SkipBad, pairs
from quoth.cli.output import LeftOut, counting, follow_training, note
from quoth.errors import InputError

if TYPE_CHECKING:
    from quoth.training.settings import TrainConfig

app = typer.Typer()
RECIPES = (
    "npm-mini-cpu, npm-single-mini-cpu, npm-mini-gpu, npm-single-mini-gpu, npm-large, adapt, reader, tagger, "
    "realm-ict, realm-pretrain, realm-qa, realm-pretrain-paper, realm-qa-paper"
)
READER, TAGGER, PRETRAIN = "reader", "tagger", "realm-pretrain"


@app.command(rich_help_panel="Train and measure")
def train(
    recipe: Annotated[str, typer.Argument(metavar="RECIPE", help=f"A recipe's name: {RECIPES}.")],
    docs: Annotated[
        list[str],
        typer.Argument(
            metavar="DOCS...",
            help="Files or folders of documents; for reader, files of questions with their passages (FILE:SHARE takes "
            "a share of one in each epoch); CoNLL files for tagger, files of questions for realm-qa.",
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for the model.")],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a setting of the recipe. May be repeated."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", help="Start from this model in place of the recipe's: name, folder or hub id."),
    ] = None,
    corpus: Annotated[
        Path | None,
        typer.Option(
            "--corpus",
            metavar="DIR",
            help="realm-pretrain: learn from the texts of DOCS with passages of this corpus, made by quoth index. "
            "Default: with those of DOCS.",
        ),
    ] = None,
    skip_bad: SkipBad = False,
    base: Base = None,
) -> None:
    """Train a model by a recipe. The same command resumes where it was stopped.

    \b
    Example:
      quoth train adapt notes/ -o mine --set steps=200
      quoth fill notes.quoth --model mine "The meeting is on [MASK]."
      quoth train reader my_questions.jsonl -o my-reader && quoth ask notes.quoth --model my-reader "Who is ill?"
      quoth train tagger wikigold.conll.txt:train wnut17train.conll -o my-tagger
      quoth train realm-pretrain wiki.jsonl -o pretrained && quoth embed wiki.quoth --model pretrained
      quoth train realm-pretrain news.jsonl --corpus wiki.quoth -o pretrained
      quoth train realm-qa nq.tsv -o mine --model pretrained --set corpus=wiki.quoth
    """
    overrides = pairs(settings or [], "--set", "steps=200")
    if recipe not in RECIPES.split(", "):
        raise InputError(f"recipe {recipe!r}; allowed are {RECIPES}")
    if corpus is not None and not recipe.startswith(PRETRAIN):
        raise InputError(f"--corpus is for the recipe {PRETRAIN}; leave it out (realm-qa takes --set corpus=DIR)")
    if skip_bad and recipe != READER:
        raise InputError(f"--skip-bad is for the recipe {READER}; leave it out")
    if recipe == READER:
        _train_reader(docs, output, overrides, model, skip_bad, base)
        return
    if recipe == TAGGER:
        _train_tagger(docs, output, overrides, model, base)
        return
    if recipe.startswith("realm"):
        _train_realm(recipe, docs, output, overrides, model, base, corpus)
        return
    from quoth.training.recipes import run_recipe

    def evaluate(folder: Path, config: "TrainConfig") -> float:
        return _exact_match(folder, config, base)

    with counting("tokenizing", "documents") as tokenizing, follow_training() as progress:
        run_recipe(
            recipe,
            docs,
            output,
            overrides,
            model=model,
            base=str(base) if base else None,
            progress=progress,
            tokenizing=tokenizing,
            evaluate=evaluate,
        )
    if os.environ.get("RANK", "0") == "0":
        note(f"the model is in {output}")


def _train_reader(
    files: list[str], output: Path, overrides: dict[str, str], model: str | None, skip_bad: bool, base: Path | None
) -> None:
    from quoth.training.reader_recipe import run_reader_recipe

    left_out = LeftOut()
    with counting("reading", "examples") as reading, follow_training() as progress:
        run_reader_recipe(
            files,
            output,
            overrides,
            model=model or "quoth-reader",
            base=str(base) if base else None,
            progress=progress,
            reading=reading,
            on_bad=left_out if skip_bad else None,
        )
    left_out.report()
    note(f"the reader is in {output}")


def _train_tagger(
    files: list[str], output: Path, overrides: dict[str, str], model: str | None, base: Path | None
) -> None:
    from quoth.training.tagging import train_tagger

    with follow_training() as progress:
        start = model or "quoth-mini-base"
        train_tagger(files, output, overrides, model=start, base=str(base) if base else None, progress=progress)
    note(f"the tagger is in {output}")


def _train_realm(
    recipe: str,
    docs: list[str],
    output: Path,
    overrides: dict[str, str],
    model: str | None,
    base: Path | None,
    corpus: Path | None,
) -> None:
    from quoth.training.realm_recipes import run_realm_recipe

    with counting("reading", "texts") as reading, follow_training() as progress:
        run_realm_recipe(
            recipe,
            docs,
            output,
            overrides,
            model=model,
            base=str(base) if base else None,
            progress=progress,
            reading=reading,
            corpus=corpus,
        )
    if os.environ.get("RANK", "0") == "0":
        note(f"the model is in {output}")


def _exact_match(model: Path, config: "TrainConfig", base: Path | None) -> float:
    """Held-out cloze of the model in a folder, searching BM25's passages."""
    from quoth.evaluation.metrics import percent
    from quoth.evaluation.run import run_cloze

    blanks = config.evaluate_blanks
    report = run_cloze([config.evaluate_on], model=str(model), base=base, count=blanks, systems=["model"])
    score = report.systems[0].score()
    note(f"held-out cloze: {percent(score.exact_match)} % exact of {score.num_blanks} blanks" if score else "no blanks")
    return score.exact_match if score else 0.0
