"""The commands that measure search by entities: eval entities, links.

Knows the options, and in which ways a model is asked. Does not know how anything is measured.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quoth.cli.models import Setup, load_entities, load_searcher, open_corpora, quiet_libraries
from quoth.cli.openqa import Limit, Seed
from quoth.cli.options import Base, CorpusDir, Device, Dtype, Json, MoreCorpora
from quoth.cli.output import counting, print_json, results
from quoth.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quoth.corpus.corpus import Corpus
    from quoth.evaluation.searches import Search
    from quoth.models.zero_ner import ZeroNER

app = typer.Typer()

EntityModel = Annotated[
    str | None, typer.Option("--model", help="A model that searches by entities, to be asked as well as BM25.")
]
Beside = Annotated[
    list[str] | None,
    typer.Option(
        "--beside",
        metavar="MODEL",
        help="Ask this model too, by its vectors of tokens (late interaction) or passages. Repeatable.",
    ),
]
Dense = Annotated[
    list[str] | None,
    typer.Option(
        "--dense",
        metavar="NAME",
        help="Ask contriever or dpr too, another such encoder, or PASSAGES+QUESTIONS. Encodes every passage first.",
    ),
]
Anserini = Annotated[
    bool, typer.Option("--anserini", help="Ask BM25 with k1 = 0.9 and b = 0.4 too (pip install 'quoth[eval]').")
]


@app.command()
def entities(
    directory: CorpusDir,
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILES...", help="Files of EntityQuestions, one a relation, such as P17.test.json."),
    ],
    corpus: MoreCorpora = None,
    templates: Annotated[
        Path | None,
        typer.Option(
            "--templates", metavar="FILE", help="The set's relation_query_templates.json: where entities are."
        ),
    ] = None,
    covered: Annotated[
        bool, typer.Option("--covered", help="Ask only what a passage answers that names the entity too.")
    ] = False,
    single_key: Annotated[
        bool, typer.Option("--single-key", help="What if --model had one key a passage? Of the covered questions.")
    ] = False,
    hybrid: Annotated[bool, typer.Option("--hybrid", help="Ask --model together with BM25 too.")] = False,
    picture: Annotated[
        Path | None,
        typer.Option("--picture", metavar="PNG", help="Draw covered questions and --model's keys (UMAP; quoth[eval])."),
    ] = None,
    idf: Annotated[bool, typer.Option("--idf", help="Tell rare entities from common ones; wants --templates.")] = False,
    limit: Annotated[
        int | None, typer.Option("--limit", help="Ask only so many questions of each relation, drawn at random.")
    ] = None,
    seed: Seed = 0,
    k: Annotated[
        list[int] | None,
        typer.Option(
            "--k", metavar="K", help="Recall among the best K passages. May be repeated. Default: 20 and 100."
        ),
    ] = None,
    no_coverage: Annotated[
        bool, typer.Option("--no-coverage", help="Do not read every passage to count what can be answered at all.")
    ] = False,
    model: EntityModel = None,
    beside: Beside = None,
    dense: Dense = None,
    anserini: Anserini = False,
    base: Base = None,
    device: Device = None,
    dtype: Dtype = None,
    json: Json = False,
) -> None:
    """Ask EntityQuestions of a corpus: is a passage found that holds an answer?

    BM25 is always measured. A question is answerable if some passage holds an answer, covered if that passage, or its
    title, names the entity too. dpr: an answer's tokens stand in the passage's text; string: its characters. With
    --templates, --model is asked twice: as it recognises the entity, and told which it is.

    \b
    Example:
      quoth eval entities wiki.quoth test/*.json --templates relation_query_templates.json --model quoth-zero-ner
    """
    from quoth.corpus.words import indexed_text
    from quoth.datasets.question_templates import QuestionTemplates
    from quoth.evaluation.entity_analysis import count_terms, idf_buckets, idf_records, idf_table
    from quoth.evaluation.entity_keys import covered_questions, single_keys
    from quoth.evaluation.entity_picture import check_installed, picture_of
    from quoth.evaluation.entity_questions import KS, run_entity_questions, table
    from quoth.evaluation.metrics import markdown, percent
    from quoth.evaluation.searches import by_entity, by_text, by_vectors

    read = QuestionTemplates.read(templates) if templates else None
    for name, given in (("idf", idf), ("covered", covered), ("single-key", single_key), ("picture", picture)):
        if given and read is None:
            raise InputError(f"--{name} wants to know each question's entity; give --templates FILE")
    for name, given in (("single-key", single_key), ("hybrid", hybrid), ("picture", picture)):
        if given and model is None:
            raise InputError(f"--{name} is about a model that searches by entities; give --model NAME")
        if given and name != "hybrid" and no_coverage and not covered:
            raise InputError(f"--{name} is about covered questions; leave --no-coverage out")
    if picture:
        check_installed()
    corpora = open_corpora(directory, corpus)
    setup = Setup(base, device, dtype)
    systems = _others(corpora, anserini, dense, beside, setup)
    loaded: ZeroNER | None = None
    if model is not None:
        loaded = load_entities(model, corpora, setup)
        systems[model] = by_text(loaded)
        if read is not None:
            systems[f"{model}, told the entity"] = by_entity(loaded)
        if hybrid:
            systems[f"{model} with bm25"] = by_vectors(loaded, "hybrid")
    with counting("measuring", "done") as measured:
        report = run_entity_questions(
            files,
            corpora,
            systems,
            read,
            ks=k or KS,
            limit=limit,
            seed=seed,
            coverage=not no_coverage,
            covered_only=covered,
            progress=lambda name, done, total: measured(done, total),
        )
    names = [each.name for each in report.questions] if idf else []
    texts = (indexed_text(passage.title, passage.text) for each in corpora for passage in each.passages())
    buckets = idf_buckets(report, count_terms(texts, names)) if idf else []
    found = covered_questions(report, loaded) if loaded and (single_key or picture) else None
    kept = single_keys(found, report.ks, seed) if found and single_key else {}
    if found and picture:
        picture_of(picture, found, seed=seed)
    if json:
        more = {"idf": idf_records(report, buckets)} if idf else {}
        print_json(report.to_dict() | more | ({"single_key": kept} if kept else {}))
        return
    results().print(table(report), soft_wrap=True, end="")
    if idf:
        results().print("\n" + idf_table(report, buckets), soft_wrap=True, end="")
    if kept:
        rows = [[name, *(percent(share) for share in shares.values())] for name, shares in kept.items()]
        heads = ["keys of a passage", *(f"covered@{k}" for k in report.ks)]
        results().print("\n" + markdown(heads, rows), soft_wrap=True, end="")


@app.command()
def links(
    directory: CorpusDir,
    limit: Limit = None,
    seed: Seed = 0,
    k: Annotated[
        list[int] | None,
        typer.Option("--k", metavar="K", help="Recall among the best K. May be repeated. Default: 1, 5 and 20."),
    ] = None,
    model: EntityModel = None,
    beside: Beside = None,
    dense: Dense = None,
    anserini: Anserini = False,
    base: Base = None,
    device: Device = None,
    dtype: Dtype = None,
    json: Json = False,
) -> None:
    """Given a name in its sentence, find other documents' passages about what it links to.

    The corpus is of documents with "links": [[start, end, target], …], characters of the text and a page's title.
    Right is a passage with another link to the target, or of the target's own page. BM25 is asked with the sentence and
    with the name alone, --model with the sentence and where the name stands in it.

    \b
    Example:
      quoth index featured_linked.jsonl -o linked.quoth
      quoth eval links linked.quoth --limit 1000
    """
    from quoth.evaluation.links import run_links, table
    from quoth.evaluation.openqa import KS
    from quoth.evaluation.searches import by_entity

    (corpus,) = corpora = open_corpora(directory)
    setup = Setup(base, device, dtype)
    systems = _others(corpora, anserini, dense, beside, setup)
    if model is not None:
        systems[model] = by_entity(load_entities(model, corpora, setup))
    with counting("measuring", "done") as measured:
        report = run_links(
            corpus,
            systems,
            ks=k or KS,
            limit=limit,
            seed=seed,
            progress=lambda name, done, total: measured(done, total),
        )
    if json:
        print_json(report.to_dict())
    else:
        results().print(table(report), soft_wrap=True, end="")


def _others(
    corpora: "Sequence[Corpus]",
    anserini: bool,
    dense: list[str] | None,
    beside: list[str] | None,
    setup: Setup,
) -> "dict[str, Search]":
    """The systems that are asked with the whole text."""
    from quoth.evaluation.dense_baselines import DenseBaseline, DenseSearch
    from quoth.evaluation.searches import AnseriniBM25, by_text, by_vectors

    found = {"bm25, anserini": by_text(AnseriniBM25(corpora))} if anserini else {}
    for name, baseline in [(name, DenseBaseline.named(name)) for name in dense or ()]:
        quiet_libraries()
        with counting(f"encoding, {name}", "passages") as encoded:
            found[name] = by_text(DenseSearch(baseline, corpora, setup.device, setup.dtype, encoded))
    for name in beside or ():
        loaded = load_searcher(name, corpora, setup)
        found[f"{name}, {loaded.keys}"] = by_vectors(loaded)
    return found
