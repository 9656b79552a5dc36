"""The commands over tasks by name and over finished runs: eval run, errors.

Knows: the options, and how a system is spelled. Does not know: how anything is measured.
"""

import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import StrEnum
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quoth.cli.models import load_predictor, load_searcher, open_corpora, quiet_libraries, system
from quoth.cli.options import Json, Setup, given, repeated
from quoth.cli.output import counting, note, print_json, print_tables, results
from quoth.cli.records import Filling, fill_arguments, takes_fill_options, takes_setup
from quoth.errors import InputError
from quoth_eval.commands.measuring import NoCoverage, RunFolder, Seed, Template, measuring, run_folders, show_report
from quoth_eval.commands.systems import SHARE, parse_system

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus
    from quoth_eval.closed import ClosedOptions
    from quoth_eval.tasks import Prepared

app = typer.Typer()


class Scoring(StrEnum):
    """How the words of labels are scored."""

    all = "all"
    nearest = "nearest"
    released = "released"


TaskNames = Annotated[
    list[str],
    typer.Argument(
        metavar="TASKS",
        help="agn, yahoo, subj, sst2, mr, rt, cr, amazon, rte (together: closed; sentiment), nq, triviaqa, "
        "webquestions, curatedtrec, kamel (together: open), nq-dev (to choose options on), google-re, trex (LAMA; "
        "together: facts), cloze and translation (made from the corpus).",
    ),
]
Data = Annotated[
    Path | None, typer.Option("--data", metavar="DIR", help="Folder of the tasks' files, such as DIR/sst2/test.tsv.")
]
Corpora = Annotated[list[Path] | None, repeated("--corpus", "DIR", "Search this corpus.")]
Systems = Annotated[
    list[str] | None,
    repeated(
        "--system",
        "MODEL[,OPTION=VALUE]",
        "Ask this model, with further options of its own (quoth-mini,combine=sum), or a baseline: bm25 (questions, "
        "cloze), frequent (cloze), majority (closed sets), lm:ID_OR_FOLDER or mlm:ID_OR_FOLDER (any Hugging Face "
        "language model, masked language model), dense:ID_OR_FOLDER (questions: passages by an encoder such as "
        "contriever or dpr; mu=0.5 adds half of BM25's scores, lexical=spar-wiki,mu=0.5 half of those of a model that "
        "imitates BM25). For closed sets: calibration=batch takes away what the model prefers whatever the text, "
        "calibration=pmi a label's score without the text; labelled=32 lets the 32 nearest texts of the set's training "
        "file vote.",
        default="quoth-mini and the baseline.",
    ),
]
ScoringOption = Annotated[
    Scoring,
    typer.Option(
        "--scoring",
        help="Closed sets: sum over all places of a label's words (NPM, app. A.4), over those among the --k "
        "nearest tokens, or as in the released code.",
    ),
]
LabelTemperature = Annotated[float, typer.Option("--label-temperature", help="Closed sets: divides similarities.")]
Sweep = Annotated[
    list[str] | None,
    typer.Option(
        "--sweep",
        metavar="OPTION=VALUES",
        help="Ask every model once per value of one of its options: temperature=0.5,1,2, passages=3,20,null (null: "
        "every token), or corpus=0.05,0.25,1 (that share of the documents, nested samples by --seed). May be repeated.",
    ),
]
Drawn = Annotated[
    int, typer.Option("--limit", help="Ask this many examples, drawn as in NPM's released code (0: all).")
]


@app.command()
@takes_setup
@takes_fill_options()
def run(
    context: typer.Context,
    tasks: TaskNames,
    corpus: Corpora = None,
    data: Data = None,
    system: Systems = None,
    sweep: Sweep = None,
    scoring: ScoringOption = Scoring.all,
    label_temperature: LabelTemperature = 5.0,
    template: Template = None,
    limit: Drawn = 3000,
    seed: Seed = 0,
    no_coverage: NoCoverage = False,
    *,
    filling: Filling,
    keep: RunFolder = None,
    setup: Setup,
    json: Json = False,
) -> None:
    """Measure systems on the papers' tasks by name. `quoth eval sst2 mr` is short for `quoth eval run sst2 mr`.

    Closed sets search every token, which requires `quoth embed`. Each task of a run has its own folder in --run. What
    cannot be asked of a group (a file is missing, no word of a label is in the corpus) is left out, with a note.

    \b
    Example:
      quoth embed reviews.quoth
      quoth eval run sst2 mr cr --data tasks --corpus reviews.quoth
      quoth eval run nq --data tasks --corpus wiki.quoth \\
        --system quoth-mini --system quoth-reader --run runs/nq
      quoth eval run nq --data tasks --corpus wiki.quoth \\
        --sweep corpus=0.05,0.25,1 --run runs/size
      quoth eval run nq --data tasks --corpus wiki.quoth \\
        --system lm:openai-community/gpt2,passages=5
    """
    from quoth_eval.closed import ClosedOptions
    from quoth_eval.families import OPEN, family_of
    from quoth_eval.tasks import Wanted, check_data, expand, prepare

    if limit < 0:
        raise InputError(f"--limit {limit}; it must be 1 or more, or 0 for all")
    common = given(template=template)
    closed = ClosedOptions(scoring=scoring.value, temperature=label_temperature, k=filling.told["neighbours"])
    told = {**filling.keywords(), **common, "scoring": scoring.value, "label_temperature": label_temperature}
    named = expand(tasks)
    if not corpus:
        for name in named:
            check_data(name, data)
        raise InputError("no corpus to search; name one that quoth index made with --corpus")
    wanted = Wanted(data, tuple(open_corpora(corpus[0], corpus[1:])), limit or None, seed, not no_coverage)
    swept = [version for each in sweep or () for version in _swept(each)]
    with tempfile.TemporaryDirectory(prefix="quoth-samples-") as folder:
        opened = cache(partial(_opened, wanted.corpora, setup, seed, Path(folder)))
        # All are read before one is asked, so that a missing file is reported at once.
        every = _prepared(named, tasks, partial(prepare, wanted=wanted, options=told))
        for prepared in every:
            systems: dict[str, Any] = {}
            for spec in _versions(system or ["quoth-mini", *prepared.baselines], swept, prepared.baselines):
                name, own = (spec, {}) if spec in prepared.baselines else parse_system(spec, prepared)
                other = spec in prepared.baselines or family_of(name)
                asked = {} if other else fill_arguments(context, name, filling, asks=prepared.form == OPEN)
                systems[spec] = _system(prepared, name, {**asked, **common, **own}, closed, opened)
            wanted_itself = prepared.task.name in tasks or len(every) == 1
            _measure(prepared, systems, keep, json, wanted_itself)


def _swept(sweep: str) -> list[str]:
    """`temperature=0.5,1` as `temperature=0.5` and `temperature=1`. Raises InputError."""
    option, _, values = sweep.partition("=")
    versions = [f"{option}={value}" for value in dict.fromkeys(values.split(","))]
    if not option or len(versions) < 2 or "" in values.split(","):
        raise InputError(f"--sweep {sweep}: not OPTION=VALUE,VALUE; for example --sweep temperature=0.5,1,2")
    return versions


def _versions(specs: Sequence[str], swept: Sequence[str], baselines: Collection[str]) -> list[str]:
    """Every system but a baseline once for each option and value of `swept`."""
    versions = {spec: [f"{spec},{each}" for each in swept if spec not in baselines] for spec in specs}
    return [each for spec, several in versions.items() for each in several or [spec]]


def _opened(
    corpora: "Sequence[Corpus]", setup: Setup, seed: int, folder: Path, name: str, share: float, embed: bool
) -> Any:
    """A model over a share of every corpus. Samples are made in `folder`, and embedded if the model needs vectors."""
    from quoth_eval.families import family_of, open_family
    from quoth_eval.samples import sample_of

    places = [folder / f"{number}-{share}" / corpus.path.name for number, corpus in enumerate(corpora)]
    searched = [sample_of(corpus, share, at, seed) for corpus, at in zip(corpora, places, strict=True)]
    if family_of(name):
        quiet_libraries()
        with counting(f"loading {name}", "passages") as encoded:
            return open_family(name, searched, setup.device, setup.dtype, encoded)
    if share == 1 or not (embed or system(name).needs_vectors):
        return load_predictor(name, searched, setup)
    model = load_searcher(name, searched, setup)
    with counting(f"embedding {share:.0%}", "passages") as embedded:
        model.embed(progress=embedded)
    return model


def _prepared(names: Sequence[str], told: Collection[str], prepare: "Callable[[str], Prepared]") -> "list[Prepared]":
    """The tasks; one of a group is left out, with a note, if its files are missing. Raises InputError if it was named
    itself, or if none is left."""
    prepared = []
    for name in names:
        try:
            prepared.append(prepare(name))
        except InputError as error:
            if name in told or (name == names[-1] and not prepared):
                raise
            note(f"left out {name}: {error}")
    return prepared


def _system(
    prepared: "Prepared",
    name: str,
    options: Mapping[str, Any],
    closed: "ClosedOptions",
    opened: Callable[[str, float, bool], Any],
) -> Any:
    """A baseline, or a model, which is loaded when it is first asked."""
    from quoth_eval.harness import lazily

    share = options.get(SHARE, 1)
    options = {key: value for key, value in options.items() if key != SHARE}
    every = prepared.closed or options.get("passages", 3) is None or bool(options.get("hybrid"))
    return prepared.baselines.get(name) or lazily(lambda: prepared.system(opened(name, share, every), options, closed))


def _measure(
    prepared: "Prepared", systems: Mapping[str, Any], keep: Path | None, json: bool, wanted_itself: bool
) -> None:
    """Measure and show; what cannot be asked, such as a corpus without any word of a label, is an error if the task was
    named, and left out if its group was."""
    from quoth_eval.harness import evaluate

    name = prepared.task.name
    try:
        with measuring(name) as progress:
            report = evaluate(prepared.task, systems, keep and keep / name, progress)
    except InputError as error:
        if wanted_itself:
            raise
        note(f"left out {name}: {error}")
    else:
        show_report(report, json)


@app.command()
def errors(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUNS", help="Folders that --run has written, or folders of such folders."),
    ],
    system: Annotated[str | None, typer.Option("--system", help="Only this system. Default: all that answer.")] = None,
    count: Annotated[int, typer.Option("--count", help="Show at most this many wrong answers per system.")] = 50,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Show wrong answers of a run with their evidence, sorted by the kind of error.

    \b
    Example:
      quoth eval errors runs/nq
    """
    from quoth_eval.errors import errors_table, shown_errors, wrong_answers
    from quoth_eval.harness import read_run
    from quoth_eval.task import draw

    shown, names = False, set[str]()
    for report in map(read_run, run_folders(runs)):
        names |= {result.name for result in report.systems}
        for result in report.systems:
            if system not in (None, result.name) or all(row.predictions is None for row in result.rows):
                continue
            shown, wrong = True, wrong_answers(result)
            if json:
                for each in draw(wrong, count, seed):
                    print_json({"task": report.task, "kind": each.kind, **each.row.to_dict()})
                continue
            print_tables([errors_table(f"{report.task}, {result.name}", wrong, len(result.rows))])
            results().print(shown_errors(wrong, count, seed), soft_wrap=True)
    if not shown:
        where = ", ".join(map(str, runs))
        if system is None:
            raise InputError(f"{where}: no system there answers with phrases; name another run")
        raise InputError(f"{where}: no answers of system {system!r}; it has {', '.join(sorted(names)) or 'none'}")
