"""The command that makes a corpus's vectors: embed.

Knows how to report the cost beforehand and the result afterwards. Does not know how vectors are made or stored.
"""

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quoth.cli.find import make_indexes
from quoth.cli.models import DENSE, ENTITIES, load_entities, load_searcher, quiet_libraries
from quoth.cli.options import CorpusPlace, Keys, Ray, Setup
from quoth.cli.output import counting, duration, note, plural, results, rounded_down, size, visible
from quoth.cli.plugged import clusters
from quoth.cli.records import Given, option, takes, takes_setup
from quoth.errors import InputError, QuothError
from quoth.index.options import EmbedOptions
from quoth.memory import bytes_named, left_of, limit

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus
    from quoth.index.costs import Cost
    from quoth.model.base import CorpusModel

app = typer.Typer()
ASK_FROM_BYTES = 1_000_000_000
ASK_FROM_SECONDS = 120
SLOWER = 1.5
"""Encoding may take this many times as long as its sample: texts vary, and vectors are stored and compressed."""
DEFAULT_MODELS: dict[Keys, str] = {"tokens": "quoth-mini", "passages": DENSE, "entities": ENTITIES}

STORING = {
    "storage": option(EmbedOptions, "storage", metavar="FORMAT"),
    "recall": option(EmbedOptions, "recall"),
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
        "--keys",
        metavar="KEYS",
        help="What to embed: tokens, passages or entities; exact: make the exact index, which has no vectors. Default: "
        "whatever --model uses.",
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

    By default every token gets one, for --passages all. With --keys (or a --model with such keys), every passage gets
    one, by which quoth ask, fill and search find passages by meaning too, or every named entity and title.

    Estimates time and disk use from a sample first. At a terminal, asks for confirmation if they may exceed 2 minutes
    or 1 GB, unless --yes or --budget is given; if standard input is not a terminal, it starts without asking. A stopped
    run resumes: at most 256 passages are encoded again. Uses no more than --memory, however large the corpus is, unless
    a single passage needs more.

    \b
    Example:
      quoth embed wiki.quoth
      quoth fill wiki.quoth --passages all "Hagios Demetrios is in [MASK]."
      quoth embed wiki.quoth --keys entities
      quoth search wiki.quoth --mode entity "Where was Nikos Kazantzakis born?"
      quoth embed wiki.quoth --keys exact
    """
    if keys == "exact":
        return _make_exact(directory, model, ray)
    if memory is not None:
        bytes_named(memory)  # a bad amount is refused before the model is loaded
    from quoth.encoders.graph import prefer_pytorch

    prefer_pytorch()
    storage = options["storage"]
    corpus = _open(directory, ray)
    model = model or DEFAULT_MODELS[keys or "tokens"]
    loaded = _load(keys, model, corpus, setup)
    if ray and loaded.keys != "tokens":
        raise InputError(f"--ray embeds tokens, but the keys of {model} are {loaded.keys}; leave --ray out")
    most = limit(memory)
    _check_cost(corpus, loaded.embed_cost(storage), budget, yes, most)
    with counting("embedding", "passages") as progress:
        if ray:
            work = {"progress": progress, "cpus": cpus, "gpus": gpus, "memory": most}
            shortfalls = clusters().embed(corpus, directory, model, loaded, setup, **options, **work)
        else:
            shortfalls = loaded.embed(**options, progress=progress, memory=left_of(most))
    for short in shortfalls:
        note(
            f"segment {short.segment}: its codes find {rounded_down(short.recall)} of the nearest {loaded.keys}, "
            f"not {short.target}; --recall 1 compares every vector"
        )
    passages = plural(corpus.num_passages, "passage")
    results().print(f"{directory}: {passages} embedded ({storage})", soft_wrap=True)


def _make_exact(directory: str, model: str | None, ray: bool) -> None:
    """The exact index, by which find, trace and verify-quotes look for texts. Raises InputError for other options."""
    if ray or model is not None:
        raise InputError("--keys exact needs no model and no cluster; leave --model and --ray out")
    corpus = _open(directory, ray=False)
    made = make_indexes([corpus], required=True)
    told = plural(len(corpus.segments), "segment")
    results().print(f"{directory}: exact index of {told}, {made} of them made now", soft_wrap=True)


def make_vectors(corpus: "Corpus", wanted: bool | None) -> None:
    """The vectors of passages that lack one, by which `ask`, `fill` and `search` find them by meaning too.

    If they are `wanted`, their cost is told first, without a question. If nobody said whether they are, they are made
    if that is soon done, and what prevents it is told but no error: the texts can be asked by their words.
    """
    from quoth.index.finder import FEW, Finder, without_vectors

    if wanted is False or not (missing := without_vectors(corpus)):
        return
    quiet_libraries()
    if missing > FEW:
        from quoth.encoders.graph import prefer_pytorch

        prefer_pytorch()
    finder = Finder([corpus])
    try:
        if wanted:
            _check_cost(corpus, finder.embed_cost(), budget=None, yes=True, memory=limit(None))
        elif seconds := finder.seconds_if_long():
            return tell_late([corpus], duration(seconds))
        with counting("embedding", "passages") as progress:
            finder.embed(progress)
    except (QuothError, OSError) as error:
        if wanted:
            raise
        note(f"no vectors were made: {error}")
        tell_late([corpus])


def tell_late(corpora: Sequence["Corpus"], takes: str = "", place: str = "") -> None:
    """Say so if so many passages have no vectors that passages are found by words alone. `takes` is how long making
    them does; `place` is that of a corpus whose folder is a copy."""
    from quoth.index.finder import num_late, without_vectors

    if late := num_late(corpora):
        places = [visible(place or str(each.path)) for each in corpora if without_vectors(each)]
        commands = " and ".join(f"`quoth embed {each} --keys passages`" for each in places)
        made = f"make{'s' * (len(places) == 1)} them{f' ({takes})' * bool(takes)}"
        note(
            f"{plural(late, 'passage')} of {' and '.join(places)} without vectors: until {commands} {made}, passages "
            "are found by words alone"
        )


def _open(directory: str, ray: bool) -> "Corpus":
    """The corpus of a folder, or of a URL. Raises InputError for a URL without --ray."""
    from quoth.corpus.corpus import Corpus

    if "://" in directory and not ray:
        raise InputError(f"{directory} is a URL; add --ray, or copy the corpus to a local folder")
    corpus: Corpus = clusters().corpus_at(directory) if ray else Corpus.open(Path(directory))
    return corpus


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
        raise InputError(f"--budget {budget} GB is less than {needed}; allow more, or use --storage sq4")
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
