"""The command that trains: train.

Knows recipes by name. Does not know what training is.
"""

from pathlib import Path
from typing import Annotated

import typer

from quoth.cli.options import Base, pairs
from quoth.cli.output import counting, follow_training, note

app = typer.Typer()


@app.command(rich_help_panel="Train and measure")
def train(
    recipe: Annotated[str, typer.Argument(metavar="RECIPE", help="A recipe's name, such as npm-mini-cpu.")],
    docs: Annotated[list[str], typer.Argument(metavar="DOCS...", help="Files or folders of documents.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for the model.")],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a setting of the recipe. May be repeated."),
    ] = None,
    base: Base = None,
) -> None:
    """Train a model by a recipe. The same command goes on where it was stopped.

    \b
    Example:
      quoth train npm-mini-cpu wiki.jsonl -o adapters/mine --set steps=200
      quoth fill wiki.quoth --model adapters/mine "Hagios Demetrios is in [MASK]."
    """
    overrides = pairs(settings or [], "--set", "steps=200")
    from quoth.training.recipes import run_recipe

    with counting("tokenizing", "documents") as tokenizing, follow_training() as progress:
        run_recipe(
            recipe,
            docs,
            output,
            overrides,
            base=str(base) if base else None,
            progress=lambda now: progress(now.step, now.steps, now.loss, now.tokens_per_second),
            tokenizing=tokenizing,
        )
    note(f"the model is in {output}")
