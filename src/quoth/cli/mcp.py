"""The command that serves corpora to assistants: mcp.

Knows: the options, and how the server is reached. Does not know: its tools.
"""

from pathlib import Path
from typing import Annotated

import typer

from quoth.cli.models import load, load_reader, open_corpora, system
from quoth.cli.options import Setup
from quoth.cli.output import note
from quoth.cli.records import takes_setup
from quoth.errors import InputError

app = typer.Typer()


@app.command(rich_help_panel="Ask a corpus")
@takes_setup
def mcp(
    directories: Annotated[list[Path], typer.Argument(metavar="DIR…", help="Corpus folders made by quoth index.")],
    http: Annotated[
        bool,
        typer.Option("--http", help="Serve over streamable HTTP on this machine instead of standard input and output."),
    ] = False,
    port: Annotated[
        int, typer.Option("--port", metavar="PORT", min=0, max=65535, help="With --http: the port.")
    ] = 8000,
    reader: Annotated[str, typer.Option("--reader", help="The model that answers questions.")] = "quoth-reader",
    npm: Annotated[str, typer.Option("--npm", help="The model that fills blanks.")] = "quoth-mini",
    *,
    setup: Setup,
) -> None:
    """Let assistants ask corpora, by the Model Context Protocol.

    The tools are ask, fill, search, read and verify_quote; none of them writes. Documents are resources too,
    quoth://CORPUS/DOCUMENT_ID. Models are loaded when they are first needed, and documents that are added later are
    found at once. Requires pip install '.\\[mcp]' in a clone of Quoth.

    \b
    Example:
      quoth mcp wiki.quoth
      quoth mcp wiki.quoth faq.quoth
      quoth mcp wiki.quoth --http --port 8000
    """
    from quoth.corpus.corpus import listed

    corpora = listed(open_corpora(directories[0], directories[1:]))
    for model in (reader, npm):
        system(model)  # they are loaded later, but a wrong name is told at once
    try:
        from quoth.integrations.mcp import Tools, server
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("mcp", "mcp_types"):
            raise
        raise InputError("quoth mcp requires the package mcp 2: pip install '.[mcp]' in a clone of Quoth") from None
    tools = Tools(
        corpora,
        lambda corpora: load_reader(reader, corpora, setup),
        lambda corpora: load(npm, corpora, setup),
    )
    run = server("+".join(tools.corpora), tools).run
    if http:
        note(f"http://127.0.0.1:{port}/mcp; Ctrl-C stops it")
        run("streamable-http", host="127.0.0.1", port=port)
    else:
        run("stdio")
