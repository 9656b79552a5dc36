"""The commands that measure search by entities: eval entities, links.

Knows: the options, and the ways to ask a model. Does not know: how anything is measured.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quoth.cli.models import load_entities, load_searcher, open_corpora, quiet_libraries
from quoth.cli.options import CorpusDir, Json, MoreCorpora, Setup, repeated
from quoth.cli.output import counting, print_tables
from quoth.cli.records import Command, takes_group, takes_setup
from quoth.errors import InputError
from quoth_eval.commands.measuring import Limit, NoCoverage, RunFolder, Seed, ks_option, measuring, show_report

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from quoth.corpus.corpus import Corpus
    from quoth.zero_ner.model import ZeroNER
    from quoth_eval.entities.questions import Chosen
    from quoth_eval.entities.searches import Search

app = typer.Typer()

EntityModel = Annotated[
    str | None, typer.Option("--model", help="A model that searches by entities, to ask in addition to BM25.")
]
Beside = Annotated[
    list[str] | None,
    repeated("--beside", "MODEL", "Also ask this model, by its vectors of tokens (late interaction) or passages."),
]
Dense = Annotated[
    list[str] | None,
    typer.Option(
        "--dense",
        metavar="NAME",
        help="Also ask contriever, dpr, another such encoder, or PASSAGES+QUESTIONS. Encodes every passage first.",
    ),
]
Anserini = Annotated[
    bool,
    typer.Option(
        "--anserini", help="Also ask BM25 with k1 = 0.9 and b = 0.4 (pip install '.\\[eval]' in a clone of Quoth)."
    ),
]


QuestionFiles = Annotated[
    list[str],
    typer.Argument(metavar="FILES", help="Files of EntityQuestions, one per relation, such as P17.test.json."),
]
Templates = Annotated[
    Path | None,
    typer.Option(
        "--templates", metavar="FILE", help="The dataset's relation_query_templates.json, to find the entities."
    ),
]
Covered = Annotated[
    bool,
    typer.Option(
        "--covered", help="Only ask questions for which some passage contains both the answer and the entity."
    ),
]
SingleKey = Annotated[
    bool,
    typer.Option("--single-key", help="Also report recall with a single key per passage (covered questions only)."),
]
Hybrid = Annotated[bool, typer.Option("--hybrid", help="Also ask --model together with BM25.")]
Picture = Annotated[
    Path | None,
    typer.Option("--picture", metavar="PNG", help="Draw covered questions and --model's keys (UMAP; extra eval)."),
]
Idf = Annotated[
    bool, typer.Option("--idf", help="Also report recall by how rare the entity is (requires --templates).")
]
PerRelation = Annotated[
    int | None, typer.Option("--limit", help="Ask at most this many questions per relation, drawn at random.")
]
Ks = Annotated[list[int] | None, ks_option("20 and 100")]
LinkKs = Annotated[list[int] | None, ks_option("1, 5 and 20")]


@dataclass(frozen=True, slots=True)
class Asked:
    """The model to ask in addition to BM25, the systems to ask with the whole text, and where answers are kept."""

    model: str | None
    beside: list[str] | None
    dense: list[str] | None
    anserini: bool
    run: Path | None

    def load(self, corpora: "Sequence[Corpus]", setup: Setup) -> "dict[str, Search]":
        """Every system, loaded, by its name in the report."""
        from quoth_eval.entities.dense import DenseBaseline, DenseSearch
        from quoth_eval.entities.searches import AnseriniBM25, by_text, by_vectors

        systems = {"bm25, anserini": by_text(AnseriniBM25(corpora))} if self.anserini else {}
        for name, baseline in [(name, DenseBaseline.named(name)) for name in self.dense or ()]:
            quiet_libraries()
            with counting(f"encoding, {name}", "passages") as encoded:
                systems[name] = by_text(DenseSearch(baseline, corpora, setup.device, setup.dtype, encoded))
        for name in self.beside or ():
            loaded = load_searcher(name, corpora, setup)
            systems[f"{name}, {loaded.keys}"] = by_vectors(loaded)
        return systems


def takes_asked(command: Command) -> Command:
    """Gives a command the options of `Asked` instead of its parameter `asked`."""
    declared = {
        "model": (EntityModel, None),
        "beside": (Beside, None),
        "dense": (Dense, None),
        "anserini": (Anserini, False),
        "run": (RunFolder, None),
    }
    return takes_group(command, "asked", declared, lambda given: Asked(**given))


@app.command()
@takes_setup
@takes_asked
def entities(
    directory: CorpusDir,
    files: QuestionFiles,
    corpus: MoreCorpora = None,
    templates: Templates = None,
    covered: Covered = False,
    single_key: SingleKey = False,
    hybrid: Hybrid = False,
    picture: Picture = None,
    idf: Idf = False,
    limit: PerRelation = None,
    seed: Seed = 0,
    k: Ks = None,
    no_coverage: NoCoverage = False,
    *,
    asked: Asked,
    setup: Setup,
    json: Json = False,
) -> None:
    """Ask EntityQuestions of a corpus: does a search find a passage that contains an answer?

    BM25 is always measured. A question is answerable if some passage contains an answer, covered if that passage or its
    title also names the entity. dpr: the passage's text contains an answer's tokens; string: its characters. With
    --templates, --model is asked twice: with the entity it recognises itself, and with the right entity given.

    \b
    Example:
      quoth eval entities wiki.quoth test/*.json --model quoth-zero-ner \\
        --templates relation_query_templates.json
    """
    from quoth.datasets.question_templates import QuestionTemplates
    from quoth_eval.entities.questions import KS, SHOWN, choose_questions, run_entity_questions

    read = QuestionTemplates.read(templates) if templates else None
    wanted = {"idf": idf, "covered": covered, "single-key": single_key, "picture": picture, "hybrid": hybrid}
    model = asked.model
    _check({name for name, given in wanted.items() if given}, read is not None, model, no_coverage and not covered)
    corpora = open_corpora(directory, corpus)
    systems = asked.load(corpora, setup)
    loaded = None if model is None else load_entities(model, corpora, setup)
    if loaded is not None and model is not None:
        systems |= _ways(model, loaded, read is not None, hybrid)
    with measuring("questions") as progress:
        chosen = choose_questions(
            files,
            corpora,
            read,
            limit=limit,
            seed=seed,
            coverage=not no_coverage,
            covered_only=covered,
            progress=progress,
        )
        report = run_entity_questions(chosen, systems, ks=k or KS, rarity=idf, progress=progress, folder=asked.run)
    kept = _keys(chosen, loaded, picture, k or KS) if loaded and (single_key or picture) else {}
    show_report(report, json, SHOWN, **({"single_key": kept} if single_key else {}))
    if single_key and not json:
        _show_keys(kept)


def _check(wanted: set[str], templates: bool, model: str | None, uncovered: bool) -> None:
    """Raises InputError if an option lacks what it requires."""
    for name in ("idf", "covered", "single-key", "picture"):
        if name in wanted and not templates:
            raise InputError(f"--{name} requires each question's entity; give --templates FILE")
    for name in ("single-key", "hybrid", "picture"):
        if name in wanted and model is None:
            raise InputError(f"--{name} requires a model that searches by entities; give --model NAME")
        if name in wanted and name != "hybrid" and uncovered:
            raise InputError(f"--{name} requires the covered questions; leave --no-coverage out")
    if "picture" in wanted:
        from quoth_eval.entities.picture import check_installed

        check_installed()


def _ways(model: str, loaded: "ZeroNER", templates: bool, hybrid: bool) -> "dict[str, Search]":
    """The ways to ask the model."""
    from quoth_eval.entities.searches import by_entity, by_text, by_vectors

    systems = {model: by_text(loaded)}
    if templates:
        systems[f"{model}, told the entity"] = by_entity(loaded)
    if hybrid:
        systems[f"{model} with bm25"] = by_vectors(loaded, "hybrid")
    return systems


def _keys(
    chosen: "Chosen", loaded: "ZeroNER", picture: Path | None, ks: "Sequence[int]"
) -> "dict[str, dict[int, float]]":
    """Recall with one key per passage; draws the picture, if requested."""
    from quoth_eval.entities.keys import covered_questions, single_keys
    from quoth_eval.entities.picture import picture_of

    answered = covered_questions(chosen.questions, chosen.coverage, loaded)
    if picture:
        picture_of(picture, answered, seed=chosen.seed)
    return single_keys(answered, ks, chosen.seed)


def _show_keys(recall: "Mapping[str, Mapping[int, float]]") -> None:
    """Print recall by how many keys of a passage are kept."""
    from quoth_eval.metrics import percent

    rows = [[name, *map(percent, shares.values())] for name, shares in recall.items()]
    heads = ["keys of a passage", *(f"covered@{k}" for k in next(iter(recall.values())))]
    print()
    print_tables([(heads, rows)])


@app.command()
@takes_setup
@takes_asked
def links(
    directory: CorpusDir,
    limit: Limit = None,
    seed: Seed = 0,
    k: LinkKs = None,
    *,
    asked: Asked,
    setup: Setup,
    json: Json = False,
) -> None:
    """Given a linked name in its sentence, find passages of other documents about the same target.

    The corpus must have documents with "links": [\\[start, end, target], …] (characters of the text, title of a
    page). A passage counts as relevant if it links to the same target or comes from the target's page. BM25 is asked
    with the sentence and with the name alone, --model with the sentence and the position of the name.

    \b
    Example:
      quoth index featured_linked.jsonl -o linked.quoth
      quoth eval links linked.quoth --limit 1000
    """
    from quoth_eval.entities.links import run_links
    from quoth_eval.entities.searches import by_entity
    from quoth_eval.openqa import KS

    (corpus,) = corpora = open_corpora(directory)
    systems = asked.load(corpora, setup)
    if asked.model is not None:
        systems[asked.model] = by_entity(load_entities(asked.model, corpora, setup))
    with measuring("mentions") as progress:
        report = run_links(corpus, systems, ks=k or KS, limit=limit, seed=seed, progress=progress, folder=asked.run)
    show_report(report, json)
