"""The command `quoth eval`: all tasks; wrong answers of finished runs; a REALM's likelihoods.

Knows: the command-line syntax. Does not know: any task, or how anything is measured.
"""

import tempfile
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from itertools import takewhile
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from typer.core import TyperGroup
from typer.main import get_command

from quoth.cli import records
from quoth.cli.models import load_predictor, open_corpora
from quoth.cli.options import CorpusDir, Json, MoreCorpora, Setup, repeated
from quoth.cli.output import counting, note, print_json, print_tables, results
from quoth.cli.records import PASSAGES, flow_help, num_read, record_of, takes, takes_setup
from quoth.errors import InputError, UserError, nearest
from quoth.fields import fields_of
from quoth_eval import report_command
from quoth_eval.optout.command import optout
from quoth_eval.quotations.command import quotations
from quoth_eval.tables.command import table
from quoth_eval.tasks import GROUPS, NAMES, QUICK, expand, find

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus
    from quoth.records import Likelihood
    from quoth_eval.report import Report
    from quoth_eval.spec import Given, Prepared, TaskSpec
    from quoth_eval.systems import Asked

Made = TypeVar("Made")
FEW = 30
"""The number of examples per task of `quick`; a tenth of it per relation, language or kind."""


class Tasks(TyperGroup):
    """The commands, and the names of tasks, which are short for `run` with them."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        return super().resolve_command(ctx, args if not args or args[0] in self.commands else ["run", *args])


HELP = """Measure systems on tasks.

\b
Example:
  quoth eval openqa nq.test.tsv --corpus wiki.quoth --limit 500
  quoth eval sst2 mr --data tasks --corpus reviews.quoth
  quoth eval quotations wiki.quoth
  quoth eval quick --data tasks --corpus wiki.quoth --run runs/quick
"""
app = typer.Typer(name="eval", cls=Tasks, no_args_is_help=True, help=HELP, add_completion=False)


TaskWords = Annotated[
    list[str],
    typer.Argument(
        metavar="TASK... [FILES]",
        help=f"Tasks: {', '.join(NAMES)}; groups: {', '.join(GROUPS)}. Then the files of tasks that read them.",
    ),
]
SearchedCorpora = Annotated[list[Path] | None, repeated("--corpus", "DIR", "Search this corpus.")]
Data = Annotated[
    Path | None, typer.Option("--data", metavar="DIR", help="Folder of the tasks' files: DIR/sst2/test.tsv, …")
]
Systems = Annotated[
    list[str] | None,
    repeated(
        "--system",
        "NAME[,OPTION=VALUE]",
        "Measure this model or baseline, with its own options: quoth-mini,combine=sum, bm25, lm:ID_OR_FOLDER.",
        default="the task's.",
    ),
]
Sweep = Annotated[
    list[str] | None,
    repeated(
        "--sweep",
        "OPTION=VALUES",
        "Measure every model once per value of an option: temperature=0.5,1,2, passages=3,20,null (null: every "
        "token), or corpus=0.05,0.25,1 (that share of the documents, nested samples by --seed).",
    ),
]
SetOptions = Annotated[
    list[str] | None,
    repeated("--set", "OPTION=VALUE", "Set an option of the tasks, or of all systems that have it: read=0."),
]
Limit = Annotated[
    int | None,
    typer.Option("--limit", help="Use at most this many examples, drawn at random (0: all). Default: the task's."),
]
Seed = Annotated[int, typer.Option("--seed", help="Random seed for drawing examples.")]
Keep = Annotated[
    Path | None,
    typer.Option(
        "--run",
        metavar="DIR",
        help="Store every answer with its evidence here, one folder per task; a second call resumes.",
    ),
]


@app.command()
@takes_setup
def run(
    tasks: TaskWords,
    corpus: SearchedCorpora = None,
    data: Data = None,
    system: Systems = None,
    sweep: Sweep = None,
    options: SetOptions = None,
    limit: Limit = None,
    seed: Seed = 0,
    *,
    keep: Keep = None,
    setup: Setup,
    json: Json = False,
) -> None:
    """Measure systems on tasks. `quoth eval sst2 mr` is short for `quoth eval run sst2 mr`.

    Tasks of a group that cannot be run (a file is missing, a system cannot do it) are skipped, with a note. `quick`
    runs a small sample of everything, and writes report.html to --run. See docs/evaluation.md for every task's options.

    \b
    Example:
      quoth eval cloze pages.jsonl --set passages=all --system quoth-mini
      quoth eval nq --data tasks --corpus wiki.quoth --run runs/nq \\
        --system quoth-mini --system quoth-reader
      quoth eval nq --data tasks --corpus wiki.quoth \\
        --sweep passages=1,3,10,30 --run runs/passages
      quoth eval swap --corpus wiki2018.quoth --set old=wiki2015.quoth
    """
    from quoth_eval.spec import Given, read_options
    from quoth_eval.systems import Opener

    names, files = _split(tasks)
    check_call(data, limit)
    told, swept = read_options(options or []), [version for each in sweep or () for version in _swept(each)]
    corpora = tuple(open_corpora(corpus[0], corpus[1:])) if corpus else ()
    with tempfile.TemporaryDirectory(prefix="quoth-eval-") as folder:
        scratch = Path(folder)
        given = Given(
            open=Opener(setup, scratch, seed),
            scratch=scratch,
            setup=setup,
            files=files,
            data=data,
            corpora=corpora,
            systems=tuple(system or ()),
            options=told,
            limit=limit,
            seed=seed,
        )
        _run(given, names, swept, keep, json)
    if keep and QUICK in names:
        report_command.write([keep], keep / "report.html")


def check_call(data: Path | None, limit: int | None) -> None:
    """Raises InputError if --data is no folder, or --limit below 0."""
    if data is not None and not data.is_dir():
        raise InputError(f"--data {data}: no such folder; name the folder of the tasks' files")
    if limit is not None and limit < 0:
        raise InputError(f"--limit {limit}; it must be 1 or more, or 0 for all")


def _run(given: "Given", names: Sequence[str], swept: Sequence[str], keep: Path | None, json: bool) -> None:
    """Run the tasks, and print the report of each."""
    with counting("reading", "passages") as read:
        given = replace(given, progress=lambda name, done, total: read(done, total))
        # All are read before one is asked, so that a missing file is reported at once.
        ready = _prepared(given, names, swept)
    for spec, prepared, asked in ready:
        report = _or_left_out(spec, spec.name in names, partial(_measured, spec, prepared, asked, given.corpora, keep))
        if report is not None and json:
            print_json(report.to_dict())
        elif report is not None:
            print_tables(prepared.tables(report))
            results().print(prepared.more(report), soft_wrap=True, end="")


def _or_left_out(spec: "TaskSpec", wanted: bool, do: Callable[[], Made]) -> Made | None:
    """The result of `do` for a task. A task that cannot be run is skipped, with a note; if it was named itself
    (`wanted`), that is an error."""
    try:
        return do()
    except UserError as error:
        if wanted:
            raise
        note(f"left out {spec.name}: {error}")
        return None


def _prepared(
    given: "Given", names: Sequence[str], swept: Sequence[str]
) -> "list[tuple[TaskSpec, Prepared, list[Asked]]]":
    """The runnable tasks, each with its systems. Raises InputError if another was named itself, if none is left, and
    for an option nothing takes."""
    from quoth_eval.spec import unknown_option
    from quoth_eval.systems import known_options

    specs = [find(name) for name in expand(names)]
    ready: list[tuple[TaskSpec, Prepared, list[Asked]]] = []
    taken = {name for spec in specs for name in spec.names}
    for spec in specs:
        wanted = spec.name in names or (spec is specs[-1] and not ready)
        made = _or_left_out(spec, wanted, partial(_with_systems, spec, given, swept, QUICK in names))
        if made is not None:
            taken |= {name for asked in made[1] for name in asked.options}
            ready.append((spec, *made))
    for name in given.options:
        if name not in taken:
            raise unknown_option("--set", name, known_options(specs))
    return ready


def _with_systems(
    spec: "TaskSpec", given: "Given", swept: Sequence[str], quick: bool
) -> "tuple[Prepared, list[Asked]]":
    from quoth_eval.systems import check_shares, parse_system

    spelled = _versions(given.systems or spec.systems, swept, spec.baselines)
    asked = [parse_system(each, spec, given.options) for each in spelled]
    limit = FEW if quick and given.limit is None else given.limit
    limit = spec.limit if limit is None else max(1, limit // 10) if spec.each and quick else limit
    pattern, colon, part = spec.files.partition(":")  # the part that is read, if only a part is
    found = sorted(given.data.glob(pattern)) if given.data and pattern else ()
    own = replace(
        given,
        scratch=given.scratch / spec.name,  # two tasks may make a corpus of one name
        files=given.files or tuple(f"{path}{colon}{part}" for path in found),
        systems=tuple(spelled),
        options={name: value for name, value in given.options.items() if name not in spec.names},
        limit=limit or None,
    )
    prepared = spec.prepare(own, given.options)
    check_shares(asked, prepared)
    return prepared, asked


def _measured(
    spec: "TaskSpec", prepared: "Prepared", asked: "list[Asked]", corpora: "Sequence[Corpus]", folder: Path | None
) -> "Report":
    """The report. Models are loaded on first use; what cannot be asked, such as a corpus without any word of a label,
    is an error."""
    from quoth_eval.harness import Lazy, evaluate
    from quoth_eval.systems import inputs_of

    made: dict[str, Any] = {}
    for each in asked:
        if baseline := prepared.baselines.get(each.name):
            made[each.spelled] = baseline(each.options)
        else:
            made[each.spelled] = Lazy(partial(prepared.asks, each.name, each.options))
    with counting("measuring", spec.name) as measured:
        kept = folder and folder / spec.name
        inputs = inputs_of(asked, corpora) if kept else {}
        return evaluate(prepared.task, made, kept, lambda name, done, total: measured(done, total), inputs)


def _split(words: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """The names of tasks, and the files after them. Raises InputError."""
    names = list(takewhile(lambda word: word in NAMES or word in GROUPS, words))
    if not names:
        known = f"{', '.join(NAMES)}; groups: {', '.join(GROUPS)}"
        raise InputError(f"unknown task {words[0]!r}{nearest(words[0], [*NAMES, *GROUPS])}; choose from {known}")
    return names, tuple(words[len(names) :])


def _swept(sweep: str) -> list[str]:
    """`temperature=0.5,1` as `temperature=0.5` and `temperature=1`. Raises InputError."""
    option, _, values = sweep.partition("=")
    versions = [f"{option}={value}" for value in dict.fromkeys(values.split(","))]
    if not option or len(versions) < 2 or "" in values.split(","):
        raise InputError(f"--sweep {sweep}: not OPTION=VALUE,VALUE; for example --sweep temperature=0.5,1,2")
    return versions


def _versions(specs: Sequence[str], swept: Sequence[str], baselines: Collection[str]) -> list[str]:
    """Every system except baselines, once per option and value of `swept`."""
    swept_ones = [spec for spec in specs if swept and spec.partition(",")[0] not in baselines]
    return [each for spec in specs for each in ([f"{spec},{one}" for one in swept] if spec in swept_ones else [spec])]


@app.command()
def errors(
    runs: Annotated[list[Path], typer.Argument(metavar="RUNS", help=report_command.RUNS)],
    system: Annotated[str | None, typer.Option("--system", help="Only this system. Default: all that answer.")] = None,
    count: Annotated[int, typer.Option("--count", help="Show at most this many wrong answers per system.")] = 50,
    seed: Annotated[int, typer.Option("--seed", help="Random seed for drawing them.")] = 0,
    json: Json = False,
) -> None:
    """Show wrong answers of a run with their evidence, sorted by the kind of error.

    \b
    Example:
      quoth eval errors runs/nq
    """
    from quoth_eval.errors import errors_table, shown_errors, wrong_answers
    from quoth_eval.harness import read_run, run_folders
    from quoth_eval.pages import as_markdown
    from quoth_eval.task import draw
    from quoth_sources.source_map import as_json

    names, answering = set[str](), False
    for report in map(read_run, run_folders(runs)):
        names |= {result.name for result in report.systems}
        for result in report.systems:
            if system not in (None, result.name) or all(row.predictions is None for row in result.rows):
                continue
            answering, wrong = True, wrong_answers(result)
            if json:
                for each in draw(wrong, count, seed):
                    print_json({"task": report.task, "kind": each.kind, **as_json(each.row)})
                continue
            print_tables([errors_table(f"{report.task}, {result.name}", wrong, len(result.rows))])
            page = as_markdown(f"Wrong answers of {result.name}", shown_errors(wrong, count, seed))
            results().print(page, soft_wrap=True)
    if not answering:
        where, known = ", ".join(map(str, runs)), ", ".join(sorted(names)) or "none"
        none = f"no answers of system {system!r}; it has {known}" if system else None
        raise InputError(f"{where}: {none or 'no system there answers with phrases; name another run'}")


@app.command()
@takes_setup
@takes("options", {"passages": PASSAGES["passages"]})
def likelihood(
    directory: CorpusDir,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="A text with one [MASK].")],
    answer: Annotated[str, typer.Argument(metavar="ANSWER", help="The filling of the blank.")],
    corpus: MoreCorpora = None,
    *,
    options: records.Given,
    model: Annotated[str, typer.Option("--model", help="The folder of a REALM that fills masks.")],
    setup: Setup,
    json: Json = False,
) -> None:
    """Likelihood of an answer without passages, with each, and with all (REALM, Table 3).

    Requires a REALM that quoth train realm-pretrain or quoth convert made, and its vectors (quoth embed).

    \b
    Example:
      quoth eval likelihood wiki.quoth --model pretrained \\
        "War and Peace was written by [MASK]." "Leo Tolstoy"
    """
    if "null_document" not in fields_of(record_of(model)):
        raise InputError(f"model {model!r} is not a REALM; name the folder of one that fills masks")
    loaded: Any = load_predictor(model, open_corpora(directory, corpus), setup)
    found: Likelihood = loaded.likelihood(text, answer, passages=num_read(options))
    if json:
        print_json(found.to_dict())
        return
    rows = []
    for z in found.passages:
        name = f"{z.passage.title or z.passage.document_id}, {z.passage.start}" if z.passage else "no passage"
        rows.append([name, f"{exp(z.log_retrieval):.3g}", f"{exp(z.log_likelihood):.3g}", f"{100 * z.share:.1f} %"])
    rows.append(["all of them: p(y|x)", "1", f"{exp(found.log_probability):.3g}", "100.0 %"])
    heads = [f"{found.answer}: {' '.join(found.pieces)}", "p(z|x)", "p(y|z,x)", "share"]
    print_tables([(heads, rows)])


app.command()(quotations)
app.command()(table)
app.command()(optout)
flow_help(app)
flow_help(report_command.app)
eval_command: Any = get_command(app)
report_plugged: Any = get_command(report_command.app)
eval_command.rich_help_panel = report_plugged.rich_help_panel = "Train and measure"
