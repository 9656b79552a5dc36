"""The commands that measure: eval cloze, lama, ner, senses.

Knows: the options. Does not know: how anything is measured.
"""

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from quoth.cli.models import load, load_predictor, open_corpora, quiet_libraries, system
from quoth.cli.options import Base, Device, Json, Model, Setup, repeated
from quoth.cli.output import print_json, print_tables
from quoth.cli.records import Filling, fill_arguments, takes_fill_options, takes_setup
from quoth.errors import InputError
from quoth_eval.commands.measuring import Distractors, RunFolder, Seed, measuring, show_report
from quoth_eval.commands.systems import other_filler


class Tasks(TyperGroup):
    """The commands, and the names of tasks, which stand for `run` with them."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            from quoth_eval.tasks import expand

            expand(args[:1])
            args = ["run", *args]
        return super().resolve_command(ctx, args)


HELP = """Measure a model on a task.

\b
Example:
  quoth eval openqa wiki.quoth nq.test.tsv --model quoth-reader --limit 500
  quoth eval sst2 mr --data tasks --corpus reviews.quoth
"""
app = typer.Typer(
    name="eval",
    cls=Tasks,
    no_args_is_help=True,
    help=HELP,
    add_completion=False,
)

EmbedAndSearch = Annotated[bool, typer.Option("--dense", help="Embed the documents and search every token.")]
DenseFacts = Annotated[
    bool, typer.Option("--dense", help="Search every token (a --corpus requires `quoth embed` first).")
]


class System(StrEnum):
    """What answers the blanks."""

    model = "model"
    untrained = "untrained"
    frequent = "frequent"
    bm25 = "bm25"


@app.command()
@takes_setup
@takes_fill_options(dense=EmbedAndSearch)
def cloze(
    pages: Annotated[
        list[str], typer.Argument(metavar="PAGES", help="Files or folders that contain the held-out documents.")
    ],
    heldout: Annotated[
        Path | None,
        typer.Option("--heldout", metavar="FILE", help="Use only the documents listed in this JSONL (id, title)."),
    ] = None,
    count: Annotated[int, typer.Option("--count", help="Number of blanks of each kind.")] = 1000,
    limit: Annotated[
        int | None, typer.Option("--limit", help="Ask at most this many blanks of each kind, drawn at random.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Random seed for drawing blanks.")] = 0,
    *,
    filling: Filling,
    system: Annotated[
        list[System] | None,
        typer.Option(
            "--system",
            metavar="SYSTEM",
            help="Ask only this system: model, untrained, frequent or bm25. May be repeated. Default: all.",
        ),
    ] = None,
    model: Model = "quoth-mini",
    run: RunFolder = None,
    setup: Setup,
    json: Json = False,
) -> None:
    """Fill blanks drawn from documents the model has not seen, and count the exact matches.

    Half of the blanks are spans drawn as in training, half are names, terms and numbers. Each phrase also occurs in
    another passage of these documents; its own passage is not searched.

    \b
    Example:
      quoth eval cloze wiki.jsonl --heldout heldout_pages.jsonl
    """
    from quoth_eval.run import SYSTEMS, run_cloze

    chosen = [each.value for each in system] if system else SYSTEMS
    options, opened = filling.keywords(), lambda name, corpus: load(name, [corpus], setup)
    if other := other_filler(model, setup):
        (options, opened), chosen = other, [name for name in chosen if name != System.untrained]
    with measuring("blanks") as progress:
        report = run_cloze(
            pages,
            heldout,
            model,
            count=count,
            seed=seed,
            limit=limit,
            systems=chosen,
            progress=progress,
            load=opened,
            folder=run,
            **options,
        )
    show_report(report, json)


Facts = Annotated[list[str], typer.Argument(metavar="FACTS", help="LAMA's files of T-REx or Google-RE (JSONL).")]
Templates = Annotated[
    Path | None, typer.Option("--templates", metavar="FILE", help="LAMA's relations.jsonl; required for T-REx.")
]
Searched = Annotated[
    list[Path] | None,
    repeated("--corpus", "DIR", "Search this corpus instead of the facts' evidence."),
]
PerRelation = Annotated[
    int | None, typer.Option("--limit", help="Ask at most this many facts per relation, drawn at random.")
]
PerGroup = Annotated[
    int | None,
    typer.Option(
        "--per-group", help="Of these, at most this many per number of tokens (1, 2, 3, 4 and more), at random."
    ),
]
UnhelpfulNames = Annotated[
    bool,
    typer.Option(
        "--unhelpful-names", help="Leave out facts whose subject contains the answer: LAMA-UHN's first filter."
    ),
]


OnlyListed = Annotated[
    Path | None,
    typer.Option(
        "--only",
        metavar="LIST",
        help="Ask only the facts of this file or folder (JSONL with predicate_id, sub_label, obj_label), such as T-REx "
        "Hard.",
    ),
]


@app.command()
@takes_setup
@takes_fill_options(dense=DenseFacts)
def lama(
    context: typer.Context,
    facts: Facts,
    templates: Templates = None,
    corpus: Searched = None,
    distractors: Distractors = None,
    limit: PerRelation = None,
    per_group: PerGroup = None,
    seed: Seed = 0,
    *,
    filling: Filling,
    unhelpful_names: UnhelpfulNames = False,
    only: OnlyListed = None,
    model: Model = "quoth-mini",
    run: RunFolder = None,
    setup: Setup,
    json: Json = False,
) -> None:
    """Ask for facts with templates, and count the exact matches by the answer's number of tokens and by relation.

    Tokens are those of the model. Case, articles and punctuation of an answer do not matter. Without --corpus the
    facts' own evidence is searched, in which every answer occurs; --distractors adds other documents to it.

    \b
    Example:
      quoth eval lama Google_RE/place_of_birth_test.jsonl --limit 200
      quoth eval lama TREx/*.jsonl --templates relations.jsonl \\
        --corpus wiki.quoth --per-group 1000 --read 0
    """
    from quoth_eval.lama import listed, read_facts, read_templates, run_lama, unhelpful

    if other := other_filler(model, setup):
        options, opened = other
    elif not (row := system(model)).options or row.needs_vectors:
        raise InputError(f"model {model!r} is a {row.kind}; name an NPM (quoth-mini) or a reader (quoth-reader)")
    else:
        options, opened = fill_arguments(context, model, filling), partial(load_predictor, setup=setup)
    corpora = open_corpora(corpus[0], corpus[1:]) if corpus else []
    read = read_facts(facts)
    if only is not None:
        read = listed(read, only)
    with measuring("facts") as progress:
        report = run_lama(
            unhelpful(read) if unhelpful_names else read,
            read_templates(templates),
            model,
            opened,
            corpora=corpora,
            distractors=distractors or (),
            per_relation=limit,
            per_group=per_group,
            seed=seed,
            progress=progress,
            folder=run,
            **options,
        )
    show_report(report, json)


@app.command()
def ner(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILES", help="CoNLL files, or part of a file's documents: FILE:train, FILE:dev, FILE:test."
        ),
    ],
    model: Annotated[
        str, typer.Option("--model", help="A tagger's name or folder, or a Hugging Face token classifier.")
    ] = "quoth-tagger",
    base: Base = None,
    device: Device = None,
    limit: Annotated[int | None, typer.Option("--limit", help="Tag this many sentences, drawn at random.")] = None,
    seed: Seed = 0,
    run: RunFolder = None,
    json: Json = False,
) -> None:
    """Tag the sentences of CoNLL files and count the names found, with and without their class, and by class.

    Both ends of a name must be right. F1, precision and recall are over all names, their intervals over sentences.
    Dates found by rule are left out; WNUT 2017's classes are mapped to PER, LOC, ORG and MISC.

    \b
    Example:
      quoth eval ner wikigold.conll.txt:test
    """
    from quoth.hub import check_name
    from quoth.ner.tagger import Tagger
    from quoth_eval.harness import evaluate, lazily
    from quoth_eval.ner import ner_task, tags

    check_name(model)
    quiet_libraries()
    with measuring("sentences") as progress:
        systems = {model: lazily(lambda: tags(Tagger.load(model, device, base=base)))}
        report = evaluate(ner_task(files, limit, seed), systems, run, progress)
    if json:
        print_json(report.to_dict())
    else:
        print_tables([report.measure_table()])


@app.command()
@takes_setup
def senses(
    pairs: Annotated[Path, typer.Argument(metavar="PAIRS", help="An MCL-WiC file (JSONL).")],
    model: Model = "quoth-mini",
    run: RunFolder = None,
    *,
    setup: Setup,
    json: Json = False,
) -> None:
    """Compare a word's vectors in two texts: are they similar if it means the same, and dissimilar if not?

    Half of the pairs serve to choose a threshold on the cosine; the other half is measured.

    \b
    Example:
      quoth eval senses mcl_wic/dev.jsonl.xz --model quoth-mini-base
    """
    from quoth_eval.senses import read_pairs, run_senses

    read = read_pairs(pairs)
    with measuring("pairs") as progress:
        report = run_senses(read, load(model, [], setup).encoder, model, progress, run)
    show_report(report, json)
