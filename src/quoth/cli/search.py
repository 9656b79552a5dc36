"""The command that finds passages: search.

Knows the options, and which model each mode requires. Does not know how passages are ranked.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from quoth.answers.options import TopK as AnyTopK
from quoth.cli.models import (
    check_embedded,
    check_finds_entities,
    keys_of,
    load_entities,
    load_searcher,
    open_corpora,
)
from quoth.cli.options import (
    STANDARD_INPUT,
    CorpusDir,
    Json,
    MoreCorpora,
    SearchMode,
    Setup,
    as_utf8,
    check_query,
    for_each_query,
    pairs,
    repeated,
    within,
)
from quoth.cli.output import print_json, results
from quoth.cli.records import takes_setup
from quoth.errors import InputError

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus
    from quoth.records import Hit

app = typer.Typer()
Find = Callable[[str, int], "list[Hit]"]
Fusion = Literal["rrf", "sum"]


NumPassages = Annotated[int, typer.Option("-k", "--k", callback=within(AnyTopK, 10), help="Number of passages.")]
Mode = Annotated[
    SearchMode,
    typer.Option(
        "--mode",
        metavar="MODE",
        help="What to compare: bm25 (words), dense (vectors), entity (names), hybrid (all of them).",
    ),
]
EntityWords = Annotated[
    list[str] | None,
    repeated("--entity", "WORDS", "With --mode entity: words of the query."),
]
FusionRule = Annotated[
    Fusion, typer.Option("--fusion", help="With --mode hybrid: add up reciprocal ranks (rrf), or scores from 0 to 1.")
]
Weights = Annotated[
    list[str] | None,
    repeated("--weight", "KEYS=NUMBER", "With --mode hybrid: how much bm25, tokens, passages or entities count (1)."),
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
def search(
    directory: CorpusDir,
    query: Annotated[
        str, typer.Argument(metavar="QUERY", callback=as_utf8, help=f"What to look for; {STANDARD_INPUT}")
    ],
    k: NumPassages = 10,
    mode: Mode = "bm25",
    entity: EntityWords = None,
    fusion: FusionRule = "rrf",
    weight: Weights = None,
    show_matches: ShowMatches = False,
    corpus: MoreCorpora = None,
    model: Models = None,
    *,
    setup: Setup,
    json: Json = False,
) -> None:
    """Find the passages that match a query best.

    They match by their words (the default; no model is used), by vectors, by the entities they name, or by all of
    these. Every mode but bm25 requires quoth embed.

    \b
    Example:
      quoth search wiki.quoth "church in Thessaloniki" -k 3
      quoth embed wiki.quoth --keys entities
      quoth search wiki.quoth --mode entity --show-matches \\
        "Where was Nikos Kazantzakis born?"
      quoth search wiki.quoth --mode hybrid --model quoth-zero-ner \\
        "Where was Nikos Kazantzakis born?"
    """
    _check_mode(mode, entity, weight, show_matches)
    corpora = open_corpora(directory, corpus)
    check_query(query, lambda asked: _check_words(asked, entity or ()))
    find = _finder(corpora, mode, model or [], setup, entity, fusion, _weights(weight))

    def show(_: int, text: str) -> None:
        hits = find(text, k)
        if json:
            for hit in hits:
                print_json(({"query": text} if query == "-" else {}) | _record(hit, show_matches))
            return
        from quoth.cli.render import show_hits

        show_hits(results(), text, hits, show_matches)

    for_each_query(query, show)


def _check_mode(mode: SearchMode, entity: list[str] | None, weight: list[str] | None, show_matches: bool) -> None:
    """Raises InputError for an option of another mode."""
    for name, values, its_mode in (("entity", entity, "entity"), ("weight", weight, "hybrid")):
        if values and mode != its_mode:
            raise InputError(f"--{name} {values[0]} goes with --mode {its_mode}, not {mode}; leave it out")
    if show_matches and mode not in ("entity", "hybrid"):
        raise InputError(f"--show-matches goes with --mode entity or hybrid, not {mode}; leave it out")


def _check_words(query: str, entities: Sequence[str]) -> None:
    """Raises InputError for a query without words, or without those of an entity."""
    if not query.strip():
        raise InputError("the query is empty; give words to look for")
    if entities:
        from quoth.model.calls import place_of

        for each in entities:
            place_of(each, query)


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
    if len(models) > 1 and mode != "hybrid":
        raise InputError(f"--model is given {len(models)} times; only --mode hybrid takes several")
    model = next(iter(models), None)
    match mode:
        case "bm25":
            from quoth.corpus.bm25 import bm25

            return lambda query, k: bm25(corpora, query, k)
        case "dense":
            check_embedded(corpora, model or "quoth-realm", keys_of(model or "quoth-realm"))
            loaded = load_searcher(model or "quoth-realm", corpora, setup)
            return lambda query, k: loaded.search(query, k, "dense")
        case "entity":
            check_finds_entities(model or "quoth-zero-ner")
            check_embedded(corpora, model or "quoth-zero-ner", "entities")
            zero_ner = load_entities(model or "quoth-zero-ner", corpora, setup)
            return lambda query, k: zero_ner.search(query, k, entities=entities)
        case "hybrid":
            from quoth.model.base import FusedSearch, check_weights

            keys = {name: keys_of(name) for name in models or ["quoth-realm"]}
            check_weights(weights, ["bm25", *keys.values()])
            for name, of in keys.items():
                check_embedded(corpora, name, of)
            searchers = [load_searcher(name, corpora, setup) for name in keys]
            return FusedSearch(searchers, fusion, weights).search


def _weights(items: list[str] | None) -> dict[str, float]:
    given = pairs(items or [], "--weight", "entities=2")
    try:
        return {name: float(value) for name, value in given.items()}
    except ValueError as error:
        raise InputError(f"--weight: {error}; give a number, such as entities=2") from None


def _record(hit: "Hit", show_matches: bool) -> dict[str, Any]:
    """A hit as JSON, with the keys that matched only if `show_matches`."""
    return {name: value for name, value in hit.to_dict().items() if show_matches or name != "matches"}
