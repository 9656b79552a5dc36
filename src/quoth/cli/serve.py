"""The command that serves a corpus over HTTP.

Knows what to ask Ray for, and waits until it is stopped. Does not know how requests are answered.
"""

import signal
from typing import Annotated

import typer

from quoth.cli.models import Setup, ray_model
from quoth.cli.options import Base, CorpusPlace, Device, Dtype, Model, Ray
from quoth.cli.output import note, plural, results
from quoth.errors import InputError
from quoth.memory import bytes_named

app = typer.Typer()


@app.command(rich_help_panel="Ask a corpus")
def serve(
    directory: CorpusPlace,
    ray: Ray = False,
    shards: Annotated[
        int | None,
        typer.Option("--shards", help="Cut the corpus into so many, by segments; as many as there are machines."),
    ] = None,
    replicas: Annotated[int, typer.Option("--replicas", help="So many of each shard.")] = 1,
    cpus: Annotated[float, typer.Option("--cpus", help="CPUs of each replica.")] = 1,
    host: Annotated[str, typer.Option("--host", help="0.0.0.0 lets other machines ask.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port")] = 8000,
    max_body: Annotated[
        str, typer.Option("--max-body", metavar="SIZE", help="Refuse requests whose body is larger (413).")
    ] = "1MB",
    max_text: Annotated[int, typer.Option("--max-text", help="Refuse texts of more characters (422).")] = 20_000,
    max_texts: Annotated[int, typer.Option("--max-texts", help="Refuse more texts in one request (422).")] = 64,
    model: Model = "quoth-mini",
    base: Base = None,
    device: Device = None,
    dtype: Dtype = None,
) -> None:
    """Answer requests over HTTP, on a Ray cluster.

    Ctrl-C stops it. Each shard searches its own segments; the answers are those of one process. A shard that dies is
    replaced, and requests wait for it. What is added to the corpus later is served after a new start.

    \b
    Example:
      quoth serve wiki.quoth --ray --shards 2
      curl localhost:8000/fill -H 'Content-Type: application/json' -d '{"text": "Hagios Demetrios is in [MASK]."}'
    """
    if not ray:
        raise InputError("quoth serve runs on Ray only: add --ray (pip install 'quoth[ray]')")
    from quoth.scale.cluster import connect, machines
    from quoth.scale.remote import TEXT, RemoteFolder

    body = bytes_named(max_body)
    given = connect()
    from quoth.corpus.corpus import Corpus
    from quoth.scale.http import Limits
    from quoth.scale.ray_serve import application, start, stop

    limits = Limits(body, max_text, max_texts)
    place = RemoteFolder(directory)
    place.fetch(*TEXT)
    segments = len(Corpus.open(place.path).segments)
    shards = min(machines(), max(segments, 1)) if shards is None else shards
    if shards * replicas * cpus > given:
        raise InputError(
            f"{shards} shards of {replicas} replicas of {cpus:g} CPUs are more than the cluster's {given} CPUs; "
            "take fewer, or --cpus 0.5"
        )
    served = application(place, ray_model(model, Setup(base, device, dtype)), shards, replicas, cpus, limits)
    note(f"starting {plural(shards, 'shard')}")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    start(served, host, port)
    try:
        results().print(f"http://{host}:{port}: /fill, /ask, /search, /health", soft_wrap=True)
        signal.pause()
    finally:
        stop()
