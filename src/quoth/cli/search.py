"""The command that finds passages: search.

Knows the options, and which model each mode wants. Does not know how passages are ranked.
"""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quoth.cli.models import Setup, load_entities, load_searcher, open_corpora
from quoth.cli.options import (
    STANDARD_INPUT,
    Base,
    CorpusDir,
    Device,
    Dtype,
    Json,
    MoreCorpora,
    SearchMode,
    for_each_query,
    pairs,
)
from quoth.cli.output import print_json, results
from quoth.errors import InputError

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus
    from quoth.records import Hit

app = typer.Typer()
Find = Callable[[str, int], "list[Hit]"]


class Fusion(StrEnum):
    """How several rankings become one."""

    rrf = "rrf"
    sum = "sum"


@app.command(rich_help_panel="Ask a corpus")
def search(
    directory: CorpusDir,
    query: Annotated[str, typer.Argument(metavar="QUERY", help=f"What to look for; {STANDARD_INPUT}")],
    k: Annotated[int, typer.Option("-k", "--k", help="How many passages.")] = 10,
    mode: Annotated[
        SearchMode, typer.Option("--mode", help="bm25 needs no model; the others require quoth embed.")
    ] = SearchMode.bm25,
    entity: Annotated[
        list[str] | None,
        typer.Option("--entity", metavar="WORDS", help="With --mode entity: words of the query. May be repeated."),
    ] = None,
    fusion: Annotated[
        Fusion, typer.Option("--fusion", help="With --mode hybrid: add up reciprocal ranks, or scores from 0 to 1.")
    ] = Fusion.rrf,
    weight: Annotated[
        list[str] | None,
        typer.Option(
            "--weight", metavar="KEYS=NUMBER", help="With --mode hybrid, of bm25, tokens, passages or entities."
        ),
    ] = None,
    show_matches: Annotated[
        bool, typer.Option("--show-matches", help="Say which entity of each passage matched.")
    ] = False,
    corpus: MoreCorpora = None,
    model: Annotated[
        list[str] | None,
        typer.Option("--model", help="A model's name, folder or hub id; with --mode hybrid several may be given."),
    ] = None,
    base: Base = None,
    device: Device = None,
    dtype: Dtype = None,
    json: Json = False,
) -> None:
    """Find the passages that match a query best.

    They match by its words, by vectors, by the entities it names, or by all of these.

    \b
    Example:
      quoth search wiki.quoth "church in Thessaloniki" -k 3
      quoth embed wiki.quoth --keys entities
      quoth search wiki.quoth --mode entity --show-matches "Where was Nikos Kazantzakis born?"
      quoth search wiki.quoth --mode hybrid --model quoth-zero-ner "Where was Nikos Kazantzakis born?"
    """
    for name, given, wanted in (("entity", entity, SearchMode.entity), ("weight", weight, SearchMode.hybrid)):
        if given and mode is not wanted:
            raise InputError(f"--{name} {given[0]} goes with --mode {wanted.value}, not {mode.value}; leave one out")
    if show_matches and mode not in (SearchMode.entity, SearchMode.hybrid):
        raise InputError(f"--show-matches goes with --mode entity or hybrid, not {mode.value}; leave one out")
    setup = Setup(base, device, dtype)
    find = _finder(open_corpora(directory, corpus), mode, model or [], setup, entity, fusion.value, _weights(weight))

    def show(_: int, each: str) -> None:
        hits = find(each, k)
        if json:
            for hit in hits:
                print_json(({"query": each} if query == "-" else {}) | _record(hit, show_matches))
            return
        from quoth.render import show_hits

        show_hits(results(), each, hits, show_matches)

    for_each_query(query, show)


def _finder(
    corpora: "list[Corpus]",
    mode: SearchMode,
    models: Sequence[str],
    setup: Setup,
    entities: list[str] | None,
    fusion: str,
    weights: dict[str, float],
) -> Find:
    """The search of a mode; BM25 loads no model."""
    if len(models) > 1 and mode is not SearchMode.hybrid:
        raise InputError(f"--model is given {len(models)} times; only --mode hybrid takes several")
    model = next(iter(models), None)
    match mode:
        case SearchMode.bm25:
            from quoth.retrieval.sparse import bm25

            return lambda query, k: bm25(corpora, query, k)
        case SearchMode.dense:
            loaded = load_searcher(model or "quoth-realm", corpora, setup)
            return lambda query, k: loaded.search(query, k, "dense")
        case SearchMode.entity:
            zero_ner = load_entities(model or "quoth-zero-ner", corpora, setup)
            return lambda query, k: zero_ner.search(query, k, entities=entities)
        case SearchMode.hybrid:
            from quoth.models.base import FusedSearch

            each = [load_searcher(name, corpora, setup) for name in models or ["quoth-realm"]]
            return FusedSearch(each, fusion, weights).search


def _weights(items: list[str] | None) -> dict[str, float]:
    found = pairs(items or [], "--weight", "entities=2")
    try:
        return {name: float(value) for name, value in found.items()}
    except ValueError as error:
        raise InputError(f"--weight: {error}; give a number, such as entities=2") from None


def _record(hit: "Hit", show_matches: bool) -> dict[str, Any]:
    """A hit as JSON, with the keys that matched if they are asked for."""
    return {name: value for name, value in hit.to_dict().items() if show_matches or name != "matches"}
