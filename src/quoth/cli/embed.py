"""The command that makes a corpus's vectors: embed.

Knows how to say first what it costs, and what to say afterwards. Does not know how vectors are made or stored.
"""

import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quoth.cli.models import Setup, load_entities, load_searcher, ray_model
from quoth.cli.options import Base, CorpusPlace, Device, Dtype, Keys, Precision, Ray
from quoth.cli.output import counting, duration, note, plural, results, rounded_down, size
from quoth.errors import InputError
from quoth.memory import bytes_named, left_of, limit

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus
    from quoth.models.base import CorpusModel
    from quoth.retrieval.tables import Cost

app = typer.Typer()
ASK_FROM_BYTES = 10_000_000_000
ASK_FROM_SECONDS = 1800
DEFAULT_MODELS = {Keys.tokens: "quoth-mini", Keys.passages: "quoth-realm", Keys.entities: "quoth-zero-ner"}


@app.command(rich_help_panel="Make and change a corpus")
def embed(
    directory: CorpusPlace,
    precision: Annotated[
        Precision, typer.Option("--precision", help="Bytes a number: sq8 1, sq4 a half and less exact, fp16 2, fp32 4.")
    ] = Precision.sq8,
    recall: Annotated[
        float | None,
        typer.Option("--recall", help="Share of the nearest keys that search finds (0.97); 1 compares them all."),
    ] = None,
    budget: Annotated[
        float | None, typer.Option("--budget", metavar="GB", help="Refuse to begin where it takes more disk.")
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            "--memory",
            metavar="SIZE",
            help="Hold no more, the model included, however large the corpus (2GB; with --ray: each task).",
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask, whatever it costs.")] = False,
    ray: Ray = False,
    cpus: Annotated[float, typer.Option("--cpus", help="With --ray: CPUs of each task, a segment.")] = 1,
    gpus: Annotated[float, typer.Option("--gpus", help="With --ray: GPUs of each task; 0.5 lets two share one.")] = 0,
    keys: Annotated[
        Keys | None, typer.Option("--keys", help="What gets a vector: tokens (as --model does if left out), or others.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", help="A model's name, folder or hub id; by default the shipped one.")
    ] = None,
    base: Base = None,
    device: Device = None,
    dtype: Dtype = None,
) -> None:
    """Store a vector for every token, so that --dense searches all of them; or for every passage, or every named entity
    and title, by --keys or as --model does. Goes on where it was stopped.

    Says first what that costs, measured on a few passages, and asks where it is much. However large the corpus is, no
    more than --memory is held, unless one passage alone takes more.

    \b
    Example:
      quoth embed wiki.quoth
      quoth fill wiki.quoth --dense "Hagios Demetrios is in [MASK]."
      quoth embed wiki.quoth --keys entities
      quoth search wiki.quoth --mode entity "Where was Nikos Kazantzakis born?"
    """
    from quoth.corpus.corpus import Corpus
    from quoth.retrieval.key_store import MARKERS
    from quoth.scale.place import TEXT, Place

    if memory is not None:
        bytes_named(memory)
    place = Place(directory)
    if place.is_remote and not ray:
        raise InputError(f"{directory} is a URL: add --ray, or copy it into a folder")
    place.fetch(*TEXT, *MARKERS)
    corpus = Corpus.open(place.named)
    model = model or DEFAULT_MODELS[keys or Keys.tokens]
    setup = Setup(base, device, dtype)
    loaded = _load(keys, model, corpus, setup)
    if ray and loaded.keys != Keys.tokens:
        raise InputError(f"--ray embeds tokens; those of {model} are {loaded.keys}: leave it out")
    cost = loaded.embed_cost(precision.value)
    deleted = sum(each.num_passages for each in corpus.segments) - corpus.num_passages
    if cost.passages and 10 * deleted > corpus.num_passages:
        note(f"{plural(deleted, 'deleted passage')} would be embedded too: `quoth compact {directory}` first")
    most = limit(memory)
    _check_cost(corpus.path, cost, budget, yes, most)
    with counting("embedding", "passages") as progress:
        if ray:
            from quoth.scale.ray_build import embed as embed_on_ray

            named = replace(ray_model(model, setup), fingerprint=loaded.fingerprint)
            shortfalls = embed_on_ray(corpus, named, precision.value, recall, progress, cpus, gpus, place, most)
        else:
            shortfalls = loaded.embed(precision=precision.value, recall=recall, progress=progress, memory=left_of(most))
    for short in shortfalls:
        note(
            f"segment {short.segment}: its codes find {rounded_down(short.recall)} of the nearest {loaded.keys}, "
            f"{short.target} was asked for; --recall 1 compares every vector"
        )
    results().print(
        f"{directory}: {plural(corpus.num_passages, 'passage')} embedded ({precision.value})", soft_wrap=True
    )


def _load(keys: Keys | None, model: str, corpus: "Corpus", setup: Setup) -> "CorpusModel":
    """The model that makes these keys. Raises InputError where it makes others."""
    load = load_entities if keys is Keys.entities else load_searcher
    loaded = load(model, [corpus], setup)
    if keys is not None and loaded.keys != keys.value:
        raise InputError(f"--keys {keys.value} with --model {model}, whose keys are {loaded.keys}; leave one out")
    return loaded


def _check_cost(directory: Path, cost: "Cost", budget: float | None, yes: bool, memory: int) -> None:
    """Say what embedding costs; raise, or ask, where that is too much."""
    if not cost.passages:
        return
    each = cost.bytes // max(cost.tokens, 1)
    note(
        f"{plural(cost.passages, 'passage')} to encode, {duration(cost.seconds)}; about {cost.tokens:,} vectors make "
        f"{size(cost.bytes)} on disk ({each} bytes each), at most {size(cost.peak_bytes)} on the way, and at most "
        f"{size(memory)} of memory"
    )
    needed = size(cost.peak_bytes)
    if budget is not None and cost.peak_bytes > budget * 1e9:
        raise InputError(f"--budget {budget} GB is less than {needed}; allow more, or embed a smaller corpus")
    if cost.peak_bytes > (free := shutil.disk_usage(directory).free):
        raise InputError(f"{directory}: {size(free)} are free, {needed} are needed; make room first")
    large = cost.bytes > ASK_FROM_BYTES or cost.seconds > ASK_FROM_SECONDS
    if large and budget is None and not yes and sys.stdin.isatty():
        typer.confirm("quoth: go on?", abort=True, err=True)
