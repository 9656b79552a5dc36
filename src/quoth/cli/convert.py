"""The command that converts published models: convert.

Knows the options. Does not know what a checkpoint contains.
"""

from pathlib import Path
from typing import Annotated

import typer

from quoth.cli.models import quiet_libraries
from quoth.cli.output import note

app = typer.Typer()


@app.command(rich_help_panel="Train and measure")
def convert(
    checkpoints: Annotated[
        list[str],
        typer.Argument(metavar="CHECKPOINTS", help="Folders or hub ids of published REALM checkpoints."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="New folder for the model.")],
) -> None:
    """Convert published REALM checkpoints into a model.

    The other commands take its folder as --model. An open-QA checkpoint answers questions, best together with the
    embedder that made the passage vectors it was trained with. An embedder and an encoder fill blanks. Weights are read
    from safetensors, or from pickles that contain only tensors.

    \b
    Example:
      quoth convert google/realm-orqa-nq-openqa google/realm-cc-news-pretrained-embedder -o realm-nq
      quoth convert google/realm-cc-news-pretrained-embedder google/realm-cc-news-pretrained-encoder -o realm-news
    """
    quiet_libraries()
    from quoth.models.conversion import convert as convert_checkpoints

    for fact in convert_checkpoints(checkpoints, output):
        note(fact)
    note(f"the model is in {output}")
