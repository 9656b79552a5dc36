"""The commands that measure over corpora and passages: eval openqa, squad, swap, reading.

Knows: the options. Does not know: how anything is measured.
"""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quoth.cli.models import load_predictor, load_searcher, open_corpora, system
from quoth.cli.options import CorpusDir, Json, Model, MoreCorpora, Setup, SkipBad, given
from quoth.cli.output import LeftOut, counting, results
from quoth.cli.records import Command, Filling, fill_arguments, takes_fill_options, takes_group, takes_setup
from quoth_eval.commands.measuring import (
    Distractors,
    Limit,
    NoCoverage,
    RunFolder,
    Seed,
    Template,
    ks_option,
    measuring,
    show_report,
)

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus
    from quoth.datasets.questions import QAExample
    from quoth_eval.system import Searcher

app = typer.Typer()

Ks = Annotated[list[int] | None, ks_option("1, 5 and 20")]
AskedModel = Annotated[
    str | None, typer.Option("--model", help="Name, folder or hub id of a model to ask in addition to BM25.")
]
Passages = Annotated[
    int | None,
    typer.Option("--passages", help="Number of passages the model reads. Default: the model's, and 5 for the oracle."),
]
Neighbours = Annotated[int, typer.Option("--neighbours", help="Number of nearest tokens that NPM searches for.")]
Abstain = Annotated[
    bool,
    typer.Option(
        "--abstain",
        help="Also measure whether the model knows when it is right: risk, coverage, calibration, evidence removed.",
    ),
]


@dataclass(frozen=True, slots=True)
class Asking:
    """Which questions are asked, of which model, and what is measured."""

    limit: int | None
    seed: int
    k: list[int] | None
    model: str | None
    abstain: bool
    template: str | None
    run: Path | None

    def settings(self, coverage: bool, oracle: int | None) -> dict[str, Any]:
        """The keyword arguments of `run_openqa`."""
        more = {"deleted": self.abstain or None, "folder": self.run, "coverage": coverage, "oracle": oracle}
        return given(ks=self.k, limit=self.limit, seed=self.seed, **more)

    def options(self, context: typer.Context, filling: Filling) -> dict[str, Any]:
        """The options of the model's `ask`; empty if only BM25 is measured."""
        if self.model is None:
            return {}
        return fill_arguments(context, self.model, filling, asks=True) | given(template=self.template)


def takes_asking(command: Command) -> Command:
    """Gives a command the options of `Asking` instead of its parameter `asking`."""
    declared = {
        "limit": (Limit, None),
        "seed": (Seed, 0),
        "k": (Ks, None),
        "model": (AskedModel, None),
        "abstain": (Abstain, False),
        "template": (Template, None),
        "run": (RunFolder, None),
    }
    return takes_group(command, "asking", declared, lambda given: Asking(**given))


@app.command()
@takes_setup
@takes_fill_options(neighbours=Neighbours, passages=Passages)
@takes_asking
def openqa(
    context: typer.Context,
    directory: CorpusDir,
    questions: Annotated[
        list[str],
        typer.Argument(
            metavar="QUESTIONS",
            help="Files of questions: NQ-open, TriviaQA, WebQuestions, CuratedTREC, EntityQuestions, SQuAD.",
        ),
    ],
    corpus: MoreCorpora = None,
    patterns: Annotated[
        bool, typer.Option("--patterns", help="Answers in JSON are regular expressions, as in CuratedTREC.")
    ] = False,
    skip_bad: SkipBad = False,
    no_coverage: NoCoverage = False,
    *,
    asking: Asking,
    filling: Filling,
    setup: Setup,
    json: Json = False,
) -> None:
    """Ask questions of a corpus: do its passages contain an answer, does the search find one, does the model give it?

    BM25 is always measured. answer@K: one of the best K passages contains an answer; oracle: one of the passages that a
    reader reads does; exact match: the first answer is right (in parentheses: one of the first five is).

    \b
    Example:
      quoth eval openqa wiki.quoth nq.test.tsv --model quoth-mini --limit 500
    """
    from quoth.datasets.questions import read_questions

    options = asking.options(context, filling)
    left_out = LeftOut()
    asked = read_questions(*questions, patterns=patterns, skip_bad=skip_bad, on_bad=left_out)
    left_out.report()
    settings = asking.settings(not no_coverage, filling.told["passages"])
    _measure(asked, open_corpora(directory, corpus), asking.model, setup, json, settings | options)


@app.command()
@takes_setup
@takes_fill_options(neighbours=Neighbours, passages=Passages)
@takes_asking
def squad(
    context: typer.Context,
    questions: Annotated[Path, typer.Argument(metavar="SQUAD", help="A file of SQuAD 1.1 (JSON).")],
    distractors: Distractors = None,
    num_distractors: Annotated[
        int | None,
        typer.Option("--num-distractors", help="Number of their passages to add, drawn at random. Default: all."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="DIR", help="Keep the corpus in this new folder.")
    ] = None,
    embed: Annotated[
        bool, typer.Option("--embed", help="Embed the corpus first (for a model that searches by vectors).")
    ] = False,
    *,
    asking: Asking,
    filling: Filling,
    setup: Setup,
    json: Json = False,
) -> None:
    """Ask SQuAD's questions without their paragraphs: does the search find the paragraph, or another with the answer?

    Each paragraph is one passage; --distractors adds passages of other pages (documents with the title of one of
    SQuAD's articles are left out). A corpus kept with -o can be measured again with quoth eval openqa.

    \b
    Example:
      quoth eval squad dev-v1.1.json --distractors wiki.jsonl \\
        --num-distractors 10000
    """
    from quoth.datasets.questions import read_squad
    from quoth_eval.squad import squad_corpus

    options = asking.options(context, filling)
    read = read_squad(questions)
    settings = asking.settings(False, filling.told["passages"])
    with tempfile.TemporaryDirectory(prefix="quoth-squad-") as folder:
        path = output or Path(folder) / "squad.quoth"
        with counting("indexing", "paragraphs") as indexed:
            corpus = squad_corpus(path, read.paragraphs, distractors or (), num_distractors, asking.seed, indexed)
        _measure(read.questions, [corpus], asking.model, setup, json, settings | options, embed)


@app.command()
@takes_setup
@takes_fill_options()
def swap(
    context: typer.Context,
    old: Annotated[Path, typer.Argument(metavar="OLD", help="Folder of a corpus.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="Folder of a later edition: documents with the same ids.")],
    max_words: Annotated[int, typer.Option("--max-words", help="Longest name or number to ask for, in words.")] = 3,
    limit: Limit = None,
    seed: Seed = 0,
    unchanged: Annotated[
        int | None,
        typer.Option(
            "--unchanged", help="Also ask about this many names and numbers that are the same in both, drawn at random."
        ),
    ] = None,
    show: Annotated[int, typer.Option("--show", help="Print this many of the facts whose answer followed.")] = 5,
    *,
    filling: Filling,
    model: Model = "quoth-mini",
    run: RunFolder = None,
    setup: Setup,
    json: Json = False,
) -> None:
    """Replace a corpus by another edition of it: do the answers follow, without any training?

    Asks for names and numbers in which a sentence differs between the editions, once over each edition, and with
    --unchanged for some that are the same. A REALM needs the vectors of both (quoth embed) and fills blanks of one
    word: --max-words 1.

    \b
    Example:
      quoth eval swap wiki2015.quoth wiki2018.quoth --limit 100
    """
    from quoth.corpus.corpus import Corpus
    from quoth_eval.swap import find_changes, find_unchanged, followed, run_swap
    from quoth_eval.task import draw

    before, after = Corpus.open(old), Corpus.open(new)
    asked = draw(list(find_changes(before, after, max_words)), limit, seed)
    if unchanged is not None:
        asked += draw(list(find_unchanged(before, after, max_words)), unchanged, seed)
    options = fill_arguments(context, model, filling)
    fillers: list[Any] = [load_predictor(model, [corpus], setup) for corpus in (before, after)]
    with measuring("sentences") as progress:
        settings = {"seed": seed, "options": options}
        report = run_swap(asked, *fillers, name=model, settings=settings, progress=progress, folder=run, **options)
    show_report(report, json, model=model)
    if not json:
        results().print(followed(report, asked, show, model), soft_wrap=True, end="")


def _asked(model: str, corpora: "list[Corpus]", setup: Setup) -> "Searcher":
    return (load_predictor if system(model).options else load_searcher)(model, corpora, setup)


def _measure(
    questions: "Sequence[QAExample]",
    corpora: "list[Corpus]",
    model: str | None,
    setup: Setup,
    json: bool,
    settings: dict[str, Any],
    embed: bool = False,
) -> None:
    from quoth_eval.openqa import abstention_table, run_openqa

    systems: dict[str, Searcher] = {}
    if embed and model is not None:
        systems[model] = loaded = load_searcher(model, corpora, setup)
        with counting("embedding", "passages") as embedded:
            loaded.embed(progress=embedded)
    elif model is not None:
        systems[model] = _asked(model, corpora, setup)
    with measuring("questions") as progress:
        report = run_openqa(questions, corpora, systems, progress=progress, **settings)
    show_report(report, json)
    if settings.get("deleted") and not json:
        least = {name: _least(system) for name, system in systems.items()}
        results().print("\n" + abstention_table(report, least), soft_wrap=True, end="")


def _least(system: "Searcher") -> float:
    """The least probability at which a model answers."""
    defaults = getattr(getattr(system, "config", None), "defaults", None)
    return float(getattr(defaults, "min_probability", 0.0))


@app.command()
@takes_setup
def reading(
    questions: Annotated[
        list[Path],
        typer.Argument(metavar="QUESTIONS", help="SQuAD's JSON, or JSONL as for `quoth train reader`."),
    ],
    limit: Limit = None,
    seed: Seed = 0,
    model: Model = "quoth-reader",
    skip_bad: SkipBad = False,
    run: RunFolder = None,
    *,
    setup: Setup,
    json: Json = False,
) -> None:
    """Ask each question of its own passage: exact match, F1, and the share of unanswerable questions that are refused.

    \b
    Example:
      quoth eval reading dev-v1.1.json
    """
    from quoth.reader.data import read_examples
    from quoth.reader.weights import open_reader
    from quoth_eval.reading import run_reading
    from quoth_eval.task import draw

    left_out = LeftOut()
    examples = [example for path in questions for example in read_examples(path, skip_bad, left_out)]
    left_out.report()
    asked = draw(examples, limit, seed)
    reader = open_reader(
        model, device=setup.device, dtype=setup.dtype, base=None if setup.base is None else str(setup.base)
    )
    with measuring("questions") as progress:
        report = run_reading(asked, reader, model, progress, run)
    show_report(report, json, model=model)
