"""The command that finds passages: search.

Knows the options, and which model each mode requires. Does not know how passages are ranked.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from quoth.cli.models import (
    DENSE,
    ENTITIES,
    check_embedded,
    keys_of,
    load_entities,
    load_searcher,
    open_corpora,
    quiet_libraries,
    required,
)
from quoth.cli.options import (
    STANDARD_INPUT,
    AsOf,
    CorpusDir,
    Json,
    MoreCorpora,
    Setup,
    Where,
    as_utf8,
    check_query,
    for_each_query,
    pairs,
    repeated,
)
from quoth.cli.output import print_json, read_as, results
from quoth.cli.records import Given, option, takes, takes_setup
from quoth.errors import InputError
from quoth.index.options import AnySearchOptions

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus
    from quoth.records import Hits

app = typer.Typer()
Find = Callable[[str, int], "Hits"]

SEARCHING = {name: option(AnySearchOptions, name) for name in ("k", "mode", "fusion")}
SEARCHING["k"] = option(AnySearchOptions, "k", flags=("-k", "--k"))
EntityWords = Annotated[
    list[str] | None,
    repeated("--entity", "WORDS", "With --mode entity: words of the query."),
]
Weights = Annotated[
    list[str] | None,
    repeated("--weight", "KEYS=NUMBER", "With --mode hybrid: the weight of bm25, tokens, passages or entities (1)."),
]
ShowMatches = Annotated[bool, typer.Option("--show-matches", help="Show which entity of each passage matched.")]
Models = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        help="A shipped model, a folder or a hub id; repeatable with --mode hybrid. Default: quoth-realm; with --mode "
        "entity, quoth-zero-ner.",
    ),
]


@app.command(rich_help_panel="Ask a corpus")
@takes_setup
@takes("options", SEARCHING)
def search(
    directory: CorpusDir,
    query: Annotated[
        str, typer.Argument(metavar="QUERY", callback=as_utf8, help=f"What to look for; {STANDARD_INPUT}")
    ],
    *,
    where: Where = None,
    as_of: AsOf = None,
    json: Json = False,
    options: Given,
    corpus: MoreCorpora = None,
    model: Models = None,
    entity: EntityWords = None,
    weight: Weights = None,
    show_matches: ShowMatches = False,
    setup: Setup,
) -> None:
    """Find the passages that match a query best.

    They match by words, by vectors, by the entities they name, or by all of these. The default is by words, without a
    model, and also by passage vectors if every corpus has them (quoth index --vectors, quoth embed --keys passages).
    The modes dense, entity and hybrid require quoth embed.

    \b
    Example:
      quoth search wiki.quoth "church in Thessaloniki" -k 3
      quoth embed wiki.quoth --keys entities
      quoth search wiki.quoth --mode entity --show-matches \\
        "Where was Nikos Kazantzakis born?"
      quoth search wiki.quoth --mode hybrid --model quoth-zero-ner \\
        "Where was Nikos Kazantzakis born?"
    """
    _check_mode(options["mode"], entity, weight, show_matches)
    corpora = open_corpora(directory, corpus, where, as_of)
    check_query(query, lambda asked: _check_words(asked, entity or ()))
    find = _finder(corpora, options, model or [], setup, entity, _weights(weight))

    def show(_: int, text: str) -> None:
        hits = find(text, options["k"])
        if json:
            for hit in hits:
                kept = {name: value for name, value in hit.to_dict().items() if show_matches or name != "matches"}
                print_json({"query": text} | read_as(hits) | kept)
            return
        from quoth.cli.render import show_hits

        show_hits(results(), text, hits, show_matches)

    for_each_query(query, show)


def _check_mode(mode: str, entity: list[str] | None, weight: list[str] | None, show_matches: bool) -> None:
    """Raises InputError for an option of another mode."""
    for name, values, its_mode in (("entity", entity, "entity"), ("weight", weight, "hybrid")):
        if values and mode != its_mode:
            raise InputError(f"--{name} {values[0]} goes with --mode {its_mode}, not {mode}; leave it out")
    if show_matches and mode not in ("entity", "hybrid"):
        raise InputError(f"--show-matches goes with --mode entity or hybrid, not {mode}; leave it out")


def _check_words(query: str, entities: Sequence[str]) -> None:
    """Raises InputError for a query without words, or without the entity's."""
    if not query.strip():
        raise InputError("the query is empty; give words to look for")
    if entities:
        from quoth.model.calls import place_of

        for each in entities:
            place_of(each, query)


def _finder(
    corpora: "list[Corpus]",
    options: Given,
    models: Sequence[str],
    setup: Setup,
    entities: list[str] | None,
    weights: dict[str, float],
) -> Find:
    """The search of a mode; BM25 loads no model, nor does auto without stored vectors."""
    if len(models) > 1 and options["mode"] != "hybrid":
        raise InputError(f"--model is given {len(models)} times; only --mode hybrid takes several")
    match options["mode"]:
        case "auto":
            from quoth.index.finder import Finder

            quiet_libraries()
            base = None if setup.base is None else str(setup.base)
            return Finder(corpora, setup.device, setup.dtype, base).search
        case "bm25":
            from quoth.corpus.bm25 import bm25

            return lambda query, k: bm25(corpora, query, k)
        case "dense":
            [model] = models or [DENSE]
            check_embedded(corpora, model, keys_of(model))
            loaded = load_searcher(model, corpora, setup)
            return lambda query, k: loaded.search(query, k, "dense")
        case "entity":
            [model] = models or [ENTITIES]
            required("zero-ner", model)
            check_embedded(corpora, model, "entities")
            zero_ner = load_entities(model, corpora, setup)
            return lambda query, k: zero_ner.search(query, k, entities=entities)
        case "hybrid":
            from quoth.model.base import FusedSearch, check_weights

            keys = {name: keys_of(name) for name in models or [DENSE]}
            check_weights(weights, ["bm25", *keys.values()])
            for name, of in keys.items():
                check_embedded(corpora, name, of)
            searchers = [load_searcher(name, corpora, setup) for name in keys]
            return FusedSearch(searchers, options["fusion"], weights).search
    raise AssertionError(options["mode"])


def _weights(items: list[str] | None) -> dict[str, float]:
    given = pairs(items or [], "--weight", "entities=2")
    try:
        return {name: float(value) for name, value in given.items()}
    except ValueError as error:
        raise InputError(f"--weight: {error}; give a number, such as entities=2") from None
