"""The command `quoth convert`: published checkpoints, or two models' parts, become a model folder.

Knows the options. Does not know what a checkpoint contains.
"""

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.main import get_command

from quoth.cli.models import quiet_libraries
from quoth.cli.output import note
from quoth.cli.records import flow_help
from quoth.errors import InputError

app = typer.Typer(add_completion=False)


@app.command()
def convert(
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="New folder for the model.")],
    checkpoints: Annotated[
        list[str] | None,
        typer.Argument(metavar="CHECKPOINTS", help="Folders or hub ids of published REALM checkpoints."),
    ] = None,
    encoder: Annotated[
        str | None, typer.Option("--encoder", metavar="MODEL", help="Mix models: take the reader of this one.")
    ] = None,
    retriever: Annotated[
        str | None, typer.Option("--retriever", metavar="MODEL", help="Mix models: take the towers of this one.")
    ] = None,
) -> None:
    """Convert published REALM checkpoints, or mix two models.

    The other commands take the folder as --model. An open-QA checkpoint answers questions, best with the embedder whose
    passage vectors it was trained with. An embedder and an encoder fill blanks. Weights are read from safetensors, or
    from pickles that contain only tensors.

    \b
    Example:
      quoth convert google/realm-orqa-nq-openqa \\
        google/realm-cc-news-pretrained-embedder -o realm-nq
      quoth convert google/realm-cc-news-pretrained-embedder \\
        google/realm-cc-news-pretrained-encoder -o realm-news
      quoth convert --encoder pretrained --retriever quoth-realm-base \\
        -o retriever-reset
    """
    quiet_libraries()
    if encoder and retriever and not checkpoints:
        from quoth_eval.convert import mix

        mix(encoder, retriever, output)
    elif checkpoints and not (encoder or retriever):
        from quoth_eval.convert import convert as convert_checkpoints

        for fact in convert_checkpoints(checkpoints, output):
            note(fact)
    else:
        raise InputError("name checkpoints to convert, or both --encoder and --retriever to mix")
    note(f"the model is in {output}")


flow_help(app)
convert_plugged: Any = get_command(app)
convert_plugged.rich_help_panel = "Train and measure"
