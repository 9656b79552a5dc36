"""The commands that serve corpora: serve, over HTTP with a page; mcp, to assistants.

Knows: the options, and which model serves what. Does not know: how requests are answered, nor the tools.
"""

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from typer.main import get_command

from quoth.cli.models import ENTITIES, load, load_predictor, load_reader, load_searcher, open_corpora, system
from quoth.cli.options import FILES, Model, Ray, Setup, Vectors, pairs, read_at, repeated
from quoth.cli.output import counting, note, results, url_of
from quoth.cli.plugged import clusters
from quoth.cli.records import flow_help, takes_setup
from quoth.errors import InputError, nearest
from quoth.memory import bytes_named

if TYPE_CHECKING:
    from quoth_serve.library import Library
    from quoth_serve.limits import Limits
    from quoth_serve.security import Access

app = typer.Typer()
TOKEN = "QUOTH_TOKEN"
EXAMPLES = (
    "Who wrote The Tale of Genji?",
    "The head of the Greek government is the prime minister, ___.",
    "The Tale of Genji was written by ___, a lady of the court in ___.",
    "Who invented the telephone?",
)
ANYWHERE = ("0.0.0.0", "::", "")

Directories = Annotated[
    list[str] | None,
    typer.Argument(metavar="DIR", help="Corpora made by quoth index, or their URLs (s3://, gs://, …); with --ray one."),
]
Demo = Annotated[bool, typer.Option("--demo", help="Serve the bundled atlas, in its 2016 and its 2026 edition.")]
Host = Annotated[str, typer.Option("--host", help="0.0.0.0 admits other machines.")]
Port = Annotated[int, typer.Option("--port", metavar="PORT", min=0, max=65535, help="0 takes any free port.")]
AllowHost = Annotated[
    list[str] | None,
    repeated("--allow-host", "NAME", "Also accept this host name, as behind a proxy."),
]
TokenFile = Annotated[
    Path | None,
    typer.Option("--token-file", help=f"File with the token that requests must send (or set {TOKEN})."),
]
Writable = Annotated[
    bool, typer.Option("--writable", help="Let requests with the token add, replace and delete documents.")
]
ReaderModel = Annotated[
    str, typer.Option("--reader", help="The model that answers questions: a reader, a REALM or an NPM.")
]
SearchModels = Annotated[
    list[str] | None,
    repeated("--search", "MODEL", "A model that searches by vectors: quoth-zero-ner, quoth-realm."),
]
LimitPairs = Annotated[
    list[str] | None,
    repeated(
        "--limit",
        "NAME=NUMBER",
        "Change a limit. Requests: body=1MB, text=20000 (characters), texts=64, neighbours=65536, passages=256, "
        "answers=1000; replies: reply=1000000 (characters), file=100MB (whose pages are shown); work: concurrency=2 "
        "(batches), batch=16 (texts), queue=256 (requests), timeout=60 (seconds).",
    ),
]
LogText = Annotated[
    bool, typer.Option("--log-text", help="Also log the texts of requests; by default only their times are logged.")
]
Shards = Annotated[
    int | None,
    typer.Option("--shards", help="With --ray: number of shards, by segments. Default: the number of machines."),
]
Replicas = Annotated[int, typer.Option("--replicas", help="With --ray: number of replicas per shard.")]
MaxReplicas = Annotated[
    int | None, typer.Option("--max-replicas", help="With --ray: scale up to this number of replicas under load.")
]
Fronts = Annotated[
    int,
    typer.Option("--fronts", help="With --ray: processes that accept requests, read passages and query the shards."),
]
Cpus = Annotated[float, typer.Option("--cpus", help="With --ray: CPUs per replica.")]


@app.command(rich_help_panel="Ask a corpus")
@takes_setup
def serve(
    directories: Directories = None,
    demo: Demo = False,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    allow_host: AllowHost = None,
    token_file: TokenFile = None,
    writable: Writable = False,
    files: Annotated[Path | None, FILES] = None,
    model: Model = "quoth-mini",
    reader: ReaderModel = "quoth-reader",
    search: SearchModels = None,
    limit: LimitPairs = None,
    vectors: Vectors = None,
    log_text: LogText = False,
    ray: Ray = False,
    shards: Shards = None,
    replicas: Replicas = 1,
    max_replicas: MaxReplicas = None,
    fronts: Fronts = 1,
    cpus: Cpus = 1,
    *,
    setup: Setup,
) -> None:
    """Serve corpora over HTTP, with a web page.

    One process serves the corpora, all as one or each by its name; documents added later are searched at once. It
    computes missing passage vectors in the background; until then passages are found by words. After Ctrl-C or SIGTERM
    it finishes running requests. With --ray, a cluster answers the same requests. With --files, the web page shows an
    answer's PDF page, and serves the files of the corpus's documents.

    \b
    Example:
      quoth serve --demo
      quoth serve reports.quoth --files reports/
      quoth serve wiki.quoth news.quoth --port 8080
      curl localhost:8000/v1/ask -H 'Content-Type: application/json' \\
        -d '{"question": "Who composed Carmen?"}'
      QUOTH_TOKEN=$(openssl rand -hex 16) quoth serve notes.quoth --writable
      quoth serve wiki.quoth --ray --shards 2
    """
    _need_fastapi()
    access = _access(host, allow_host or (), token_file, writable)
    models = Named(model, reader, search or [])
    for each in (model, reader, *models.searches):
        system(each)  # a wrong name is told before anything is loaded
    if ray and vectors:
        raise InputError("--vectors does not work with --ray, which searches by words; leave one out")
    if ray and files:
        raise InputError("--files does not work with --ray, whose machines may not have them; leave one out")
    if files:
        from quoth_sources.files import check_parsers

        check_parsers(["pdf"])
    bounds: dict[str, Any] = {"limits": _limits(limit or []), "access": access, "log_text": log_text, "files": files}
    if ray:
        parts = {"replicas": replicas, "most": max_replicas, "fronts": fronts, "cpus": cpus}
        _on_ray(directories or [], (host, port), models, setup, shards, parts, bounds)
    else:
        _here(directories or [], demo, (host, port), models, setup, bounds, vectors)


class Named(NamedTuple):
    """The names of the models to serve: for blanks and labels, for questions, for searches."""

    fills: str
    asks: str
    searches: Sequence[str]


def _limits(given: list[str]) -> "Limits":
    """Raises InputError for an unknown limit, or one that is not a number."""
    from quoth_serve.limits import Limits

    known, found = {each.name: each.type for each in fields(Limits)}, dict[str, Any]()
    for name, value in pairs(given, "--limit", "timeout=10").items():
        if name not in known:
            raise InputError(f"--limit {name}: use one of {', '.join(known)}{nearest(name, known)}")
        try:
            found[name] = float(value) if name == "timeout" else int(value)
        except ValueError:
            if name not in ("body", "file"):
                raise InputError(f"--limit {name}={value} is not a number; for example --limit {name}=10") from None
            found[name] = bytes_named(value)
    return Limits(**found)


def _need_fastapi() -> None:
    try:
        import fastapi  # noqa: F401
        import prometheus_client  # noqa: F401
        import uvicorn  # noqa: F401
    except ModuleNotFoundError as error:
        remedy = "pip install '.[serve]' in a clone of Quoth"
        raise InputError(f"quoth serve needs {error.name}; install it with: {remedy}") from None


def _access(host: str, others: Sequence[str], token_file: Path | None, writable: bool) -> "Access":
    """The access rules; a note warns if anyone who reaches the machine may ask. Raises InputError."""
    from quoth_serve.security import LOOPBACK, Access

    hosts = () if host in ANYWHERE and not others else {*LOOPBACK, host, f"[{host}]", *others}
    access = Access(_token(token_file), writable, hosts)
    if access.token is None and host not in ("127.0.0.1", "::1", "localhost"):
        note(f"anyone who can reach {host} can read what is served; set {TOKEN} to a secret to require it")
    return access


def _token(file: Path | None) -> str | None:
    """The token from the environment or a file. Raises InputError if both are set, or the file cannot be read."""
    given = os.environ.get(TOKEN, "").strip() or None  # a secret of Kubernetes often ends a line
    if file is None:
        return given
    if given:
        raise InputError(f"--token-file {file} and {TOKEN} are both set; use one of them")
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--token-file {file}: {error}; name a text file") from None


@contextmanager
def _corpora(directories: Sequence[str], demo: bool) -> Iterator[list[Path]]:
    """The folders to serve; the demo's is temporary."""
    if demo:
        from quoth.cli.demo import atlas
        from quoth.corpus.corpus import Corpus

        if directories:
            raise InputError(f"--demo serves the bundled atlas; leave {directories[0]} out, or --demo")
        with tempfile.TemporaryDirectory(prefix="quoth-") as folder:
            corpus = Corpus.create(Path(folder) / "atlas.quoth")
            corpus.add(atlas("2016"))
            corpus.replace(atlas("2026"))
            yield [corpus.path]
    elif directories:
        paths = [read_at(each) for each in directories]
        open_corpora(paths[0], paths[1:])  # what is wrong with one is told before anything is loaded
        yield paths
    else:
        raise InputError("no corpus to serve; name the folders of one or more, or --demo for the bundled atlas")


def _library(paths: Sequence[Path], named: Named, setup: Setup, demo: bool) -> "Library":
    """The models over the corpora, checked. Raises QuothError."""
    from quoth.corpus.corpus import Corpus
    from quoth.encoders.graph import prefer_pytorch
    from quoth_serve.library import Library, Models

    prefer_pytorch()
    corpora = [Corpus.open(path) for path in paths]
    fills = load(named.fills, corpora, setup)
    asks = fills if named.asks == named.fills else load_predictor(named.asks, corpora, setup)
    searches = [load_searcher(each, corpora, setup) for each in (*named.searches, *([ENTITIES] if demo else ()))]
    from quoth.zero_ner.model import ZeroNER

    for each in searches:
        if demo and isinstance(each, ZeroNER):
            note("embedding the names of the atlas, for the search by entities")
            with counting("embedding", "passages") as embedded:
                each.embed(progress=embedded)
    return Library(Models(fills, asks, searches), list(paths))


def _here(
    directories: Sequence[str],
    demo: bool,
    address: tuple[str, int],
    named: Named,
    setup: Setup,
    bounds: dict[str, Any],
    vectors: bool | None,
) -> None:
    """Serve in this process until it receives a signal to stop."""
    if bounds["access"].writable and (urls := [each for each in directories if "://" in each]):
        raise InputError(f"--writable: {urls[0]} is a URL, of which a copy is served; use quoth add, replace or delete")
    from quoth_serve.running import bound, log_lines, run

    with bound(*address) as listening, _corpora(directories, demo) as paths:
        from quoth_serve.app import create_app

        for path in paths:
            if bounds["access"].writable and path.is_dir() and not os.access(path, os.W_OK):
                raise InputError(
                    f"--writable: {path} cannot be written to; change its permissions, or leave --writable out"
                )
        note("loading the models")
        library = _library(paths, named, setup, demo)
        for each in library.unused():
            note(each)
        served = create_app(library, **bounds, examples=EXAMPLES if demo else ())
        listening.listen()
        if vectors is not False:
            library.embed(even_long=bool(vectors))
        host, port = listening.getsockname()[:2]
        log_lines()
        results().print(url_of(host, port), soft_wrap=True)
        try:
            run(served, listening)
        finally:
            library.close()
    note("stopped")


def _on_ray(
    directories: Sequence[str],
    address: tuple[str, int],
    named: Named,
    setup: Setup,
    shards: int | None,
    parts: dict[str, Any],
    bounds: dict[str, Any],
) -> None:
    """Serve on a cluster until this process receives a signal to stop."""
    if len(directories) != 1:
        raise InputError(f"--ray serves one corpus, but {len(directories)} are named; name one")
    if bounds["access"].writable:
        raise InputError("--writable does not work with --ray; leave one out")
    if named.searches:
        raise InputError(
            f"--search {named.searches[0]} does not work with --ray, which searches by words; leave one out"
        )
    from quoth_serve.app import create_app

    build = partial(create_app, **bounds)
    clusters().serve(directories[0], address, named.fills, named.asks, setup, shards, parts, build)


@app.command(rich_help_panel="Ask a corpus")
@takes_setup
def mcp(
    directories: Annotated[
        list[Path],
        typer.Argument(metavar="DIR…", parser=read_at, help="Corpus folders made by quoth index, or their URLs."),
    ],
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
    """Serve corpora to assistants, by the Model Context Protocol.

    The tools are ask, fill, search, read, verify_quote and check_text; none of them writes. Documents are also
    resources, quoth://CORPUS/DOCUMENT_ID. Models are loaded on first use, and documents added later are found at once.
    Requires pip install '.\\[mcp]' in a clone of Quoth.

    \b
    Example:
      quoth mcp wiki.quoth
      quoth mcp wiki.quoth faq.quoth
      quoth mcp wiki.quoth --http --port 8000
    """

    corpora = open_corpora(directories[0], directories[1:])
    for model in (reader, npm):
        system(model)  # they are loaded later, but a wrong name is told at once
    try:
        from quoth_serve.mcp import Tools, free_port, server
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("mcp", "mcp_types"):
            raise
        raise InputError("quoth mcp requires the package mcp 2: pip install '.[mcp]' in a clone of Quoth") from None
    tools = Tools(corpora, partial(load_reader, reader, setup=setup), partial(load, npm, setup=setup))
    run = server("+".join(tools.corpora), tools).run
    if http:
        port = free_port(port)
        note(f"http://127.0.0.1:{port}/mcp; Ctrl-C stops it")
        run("streamable-http", host="127.0.0.1", port=port)
    else:
        run("stdio")


flow_help(app)
serve_command, mcp_command = (get_command(app).commands[name] for name in ("serve", "mcp"))  # type: ignore[attr-defined]
