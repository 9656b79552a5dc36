"""The command that makes a corpus's vectors: embed.

Knows how to report the cost beforehand and the result afterwards. Does not know how vectors are made or stored.
"""

import shutil
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from quoth.cli.models import DENSE, ENTITIES, load_entities, load_searcher, ray_model
from quoth.cli.options import CorpusPlace, Keys, Ray, Setup
from quoth.cli.output import counting, duration, note, plural, results, rounded_down, size
from quoth.cli.records import Given, option, takes, takes_setup
from quoth.errors import InputError
from quoth.fields import fields_of
from quoth.index.options import EmbedOptions
from quoth.memory import bytes_named, left_of, limit

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus
    from quoth.index.costs import Cost
    from quoth.model.base import CorpusModel
    from quoth.scale.remote import RemoteFolder

app = typer.Typer()
ASK_FROM_BYTES = 1_000_000_000
ASK_FROM_SECONDS = 120
SLOWER = 1.5
"""Encoding may take this many times as long as its sample: texts vary, and vectors are stored and compressed."""
DEFAULT_MODELS: dict[Keys, str] = {"tokens": "quoth-mini", "passages": DENSE, "entities": ENTITIES}

STORING = {
    "precision": option(EmbedOptions, "precision", metavar="FORMAT"),
    "recall": option(
        EmbedOptions,
        "recall",
        help=f"{fields_of(EmbedOptions)['recall'].meaning} Default: that of the last run, or 0.97.",
    ),
}
Budget = Annotated[
    float | None, typer.Option("--budget", metavar="GB", help="Refuse to start if more disk space is needed.")
]
Memory = Annotated[
    str | None,
    typer.Option(
        "--memory",
        metavar="SIZE",
        help="Use at most this much memory, including the model (2GB; with --ray: per task).",
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation, whatever the cost.")]
CPUs = Annotated[float, typer.Option("--cpus", help="With --ray: CPUs per task (one task per segment).")]
GPUs = Annotated[float, typer.Option("--gpus", help="With --ray: GPUs per task; 0.5 lets two tasks share one.")]
KeyKind = Annotated[
    Keys | None,
    typer.Option(
        "--keys", metavar="KEYS", help="What to embed: tokens, passages or entities. Default: whatever --model uses."
    ),
]
OwnModel = Annotated[
    str | None,
    typer.Option(
        "--model",
        help="A shipped model, a folder or a hub id. Default: quoth-mini for tokens, quoth-realm for passages, "
        "quoth-zero-ner for entities.",
    ),
]


@app.command(rich_help_panel="Make and change a corpus")
@takes_setup
@takes("options", STORING)
def embed(
    directory: CorpusPlace,
    *,
    options: Given,
    budget: Budget = None,
    memory: Memory = None,
    yes: Yes = False,
    ray: Ray = False,
    cpus: CPUs = 1,
    gpus: GPUs = 0,
    keys: KeyKind = None,
    model: OwnModel = None,
    setup: Setup,
) -> None:
    """Store vectors, so that searches cover the whole corpus.

    By default every token gets one, for --dense. With --keys (or a --model with such keys), every passage gets one, by
    which quoth ask, fill and search find passages by meaning too, or every named entity and title.

    Estimates time and disk use from a sample first. At a terminal, asks for confirmation if they may exceed 2 minutes
    or 1 GB, unless --yes or --budget is given; if standard input is not a terminal, it starts without asking. A stopped
    run resumes: at most 256 passages are encoded again. Uses no more than --memory, however large the corpus is, unless
    a single passage needs more.

    \b
    Example:
      quoth embed wiki.quoth
      quoth fill wiki.quoth --dense "Hagios Demetrios is in [MASK]."
      quoth embed wiki.quoth --keys entities
      quoth search wiki.quoth --mode entity "Where was Nikos Kazantzakis born?"
    """
    if memory is not None:
        bytes_named(memory)  # a bad amount is refused before the model is loaded
    from quoth.encoders.graph import prefer_pytorch

    prefer_pytorch()
    precision = options["precision"]
    place, corpus = _open(directory, ray)
    model = model or DEFAULT_MODELS[keys or "tokens"]
    loaded = _load(keys, model, corpus, setup)
    if ray and loaded.keys != "tokens":
        raise InputError(f"--ray embeds tokens, but the keys of {model} are {loaded.keys}; leave --ray out")
    most = limit(memory)
    _check_cost(corpus, loaded.embed_cost(precision), budget, yes, most)
    with counting("embedding", "passages") as progress:
        if ray:
            from quoth.scale.ray_build import embed as embed_on_ray

            named = replace(ray_model(model, setup), fingerprint=loaded.fingerprint)
            shortfalls = embed_on_ray(corpus, named, precision, options["recall"], progress, cpus, gpus, place, most)
        else:
            shortfalls = loaded.embed(**options, progress=progress, memory=left_of(most))
    for short in shortfalls:
        note(
            f"segment {short.segment}: its codes find {rounded_down(short.recall)} of the nearest {loaded.keys}, "
            f"not {short.target}; --recall 1 compares every vector"
        )
    passages = plural(corpus.num_passages, "passage")
    results().print(f"{directory}: {passages} embedded ({precision})", soft_wrap=True)


def embed_passages(corpus: "Corpus") -> None:
    """A vector per passage, by which `ask`, `fill` and `search` find passages by meaning too. Its cost is told first,
    without a question."""
    loaded, most = load_searcher(DEFAULT_MODELS["passages"], [corpus], Setup()), limit(None)
    _check_cost(corpus, loaded.embed_cost(), budget=None, yes=True, memory=most)
    with counting("embedding", "passages") as progress:
        loaded.embed(progress=progress, memory=left_of(most))


def _open(directory: str, ray: bool) -> "tuple[RemoteFolder, Corpus]":
    """The folder or URL of a corpus, and the corpus. Raises InputError for a URL without --ray."""
    from quoth.corpus.corpus import Corpus
    from quoth.index.key_store import MARKERS
    from quoth.scale.remote import TEXT, RemoteFolder

    place = RemoteFolder(directory)
    if place.is_remote and not ray:
        raise InputError(f"{directory} is a URL; add --ray, or copy the corpus to a local folder")
    place.check()
    with place.writing():
        place.update(*TEXT, *MARKERS)  # who else writes there is told before the model is loaded
    return place, Corpus.open(place.named)


def _load(keys: Keys | None, model: str, corpus: "Corpus", setup: Setup) -> "CorpusModel":
    """The model that makes these keys. Raises InputError if it makes others."""
    load = load_entities if keys == "entities" else load_searcher
    loaded = load(model, [corpus], setup)
    if keys is not None and loaded.keys != keys:
        raise InputError(f"--keys {keys} with --model {model}, whose keys are {loaded.keys}; leave one out")
    return loaded


def _check_cost(corpus: "Corpus", cost: "Cost", budget: float | None, yes: bool, memory: int) -> None:
    """Report what embedding costs; refuse, or ask for confirmation, if it is too much."""
    if not cost.passages:
        return
    deleted = sum(segment.num_passages for segment in corpus.segments) - corpus.num_passages
    if 10 * deleted > corpus.num_passages:
        note(f"{plural(deleted, 'deleted passage')} would be embedded too; run `quoth compact {corpus.path}` first")
    per_vector = cost.bytes // max(cost.tokens, 1)
    longest = SLOWER * cost.seconds
    note(
        f"{plural(cost.passages, 'passage')} to encode, {_between(cost.seconds, longest)}; about {cost.tokens:,} "
        f"vectors take {size(cost.bytes)} on disk ({per_vector} bytes each), at most {size(cost.peak_bytes)} while "
        f"embedding, and at most {size(memory)} of memory"
    )
    needed = size(cost.peak_bytes)
    if budget is not None and not cost.peak_bytes <= budget * 1e9:
        raise InputError(f"--budget {budget} GB is less than {needed}; allow more, or use --precision sq4")
    if cost.peak_bytes > (free := shutil.disk_usage(corpus.path).free):
        raise InputError(f"{corpus.path}: {size(free)} free, but {needed} needed; free some disk space first")
    large = cost.bytes > ASK_FROM_BYTES or longest > ASK_FROM_SECONDS
    if large and budget is None and not yes and sys.stdin.isatty():
        typer.confirm("quoth: continue?", abort=True, err=True)


def _between(least: float, most: float) -> str:
    """`3 to 5 minutes`, `3 minutes to 2.5 hours`, `up to 1 minute`, or one of them if both read the same."""
    first, last = duration(least), duration(most)
    if first == last:
        return last
    return f"up to {last}" if first.startswith("under") else f"{first.removesuffix(f' {last.split()[-1]}')} to {last}"
