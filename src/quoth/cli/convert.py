"""The command that makes models of others: convert.

Knows the options. Does not know what a checkpoint contains.
"""

from pathlib import Path
from typing import Annotated

import typer

from quoth.cli.models import quiet_libraries
from quoth.cli.output import note
from quoth.errors import InputError

app = typer.Typer()


@app.command(rich_help_panel="Train and measure")
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

    The other commands take its folder as --model. An open-QA checkpoint answers questions, best together with the
    embedder that made the passage vectors it was trained with. An embedder and an encoder fill blanks. Weights are read
    from safetensors, or from pickles that contain only tensors.

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
        from quoth.realm.convert import mix

        mix(encoder, retriever, output)
        note(f"the model is in {output}")
        return
    if not checkpoints or encoder or retriever:
        raise InputError("name checkpoints to convert, or both --encoder and --retriever to mix")
    from quoth.realm.convert import convert as convert_checkpoints

    for fact in convert_checkpoints(checkpoints, output):
        note(fact)
    note(f"the model is in {output}")
