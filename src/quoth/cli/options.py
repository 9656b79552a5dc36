"""Arguments and options that several commands share, and the small parsers behind them.

Knows typer's declarations only. Does not know corpora or models.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import typer

from quoth.cli.output import note
from quoth.cli.plugged import clusters
from quoth.errors import InputError
from quoth.fields import checked as field_checked
from quoth_sources.formats import FORMATS


class Setup(NamedTuple):
    """How to load a model: the folder of its base weights, its device, its number format. None means the shipped ones,
    the best device, and the best format."""

    base: Path | None = None
    device: str | None = None
    dtype: str | None = None


Keys = Literal["tokens", "passages", "entities", "exact"]
Dtype = Literal["fp32", "bf16", "fp16", "int8", "auto"]
VECTORS = "QUOTH_VECTORS"
DEVICES = ("cpu", "cuda", "mps", "xpu", "xla", "hpu", "npu", "mtia")


def checked(check: Callable[[str, Any], None]) -> Callable[..., Any]:
    """A callback that checks an option's value, if it is given, by the name that it has on the command line."""

    def callback(option: typer.CallbackParam, value: Any) -> Any:
        if value is not None:
            check(max(option.opts, key=len), value)
        return value

    return callback


def within(kind: Any, such: Any) -> Callable[..., Any]:
    """A callback that checks an option against a type with bounds; `such` is a good value."""
    return checked(lambda name, value: field_checked(name, value, kind, such))


def _check_folder(name: str, folder: Path) -> None:
    if not folder.is_dir():
        raise InputError(f"{name} is {str(folder)!r}; there is no such folder")


def _check_device(name: str, device: str) -> None:
    if device.partition(":")[0] not in DEVICES:
        raise InputError(f"{name} is {device!r}; it must be cpu, cuda, cuda:1 or mps")


def read_at(place: str) -> Path:
    """The folder of a corpus; for a URL that of a copy, with all that is there. Raises InputError, and
    CorpusNotFoundError if nothing is there."""
    folder: Path = clusters().read_at(place) if "://" in place else Path(place)
    return folder


def _own(place: str) -> Path:
    """The folder of a corpus that is to be changed. Raises InputError for a URL."""
    if "://" in place:
        raise InputError(f"{place} is a URL, where index, add, replace, delete and embed write; name a folder")
    return Path(place)


def repeated(flag: str, metavar: str, meaning: str, default: str = "") -> Any:
    """How an option that may be given several times is declared."""
    what_else = f" Default: {default}" if default else ""
    return typer.Option(flag, metavar=metavar, help=f"{meaning} May be repeated.{what_else}")


FILES = typer.Option(
    "--files",
    metavar="FOLDER",
    callback=checked(_check_folder),
    help="The folder that was indexed, or a copy: a document's id is its file's path there.",
)
LOADING = "Loading the model"
STANDARD_INPUT = "- reads one per line from standard input."
CorpusDir = Annotated[
    Path,
    typer.Argument(
        metavar="DIR",
        parser=read_at,
        help="A corpus folder made by quoth index; or its URL (s3://, gs://, …), whose files are copied first.",
    ),
]
OwnCorpusDir = Annotated[Path, typer.Argument(metavar="DIR", parser=_own, help="A corpus folder made by quoth index.")]
ChangedCorpus = Annotated[
    str,
    typer.Argument(
        metavar="DIR",
        help="A corpus folder made by quoth index; or its URL (s3://, gs://, …), to which the change is sent at the "
        "end.",
    ),
]
CorpusPlace = Annotated[
    str, typer.Argument(metavar="DIR", help="A corpus folder; with --ray also a URL (s3://, gs://, …).")
]
Documents = Annotated[
    list[str],
    typer.Argument(
        metavar="DOCS",
        help="Files, folders or URLs (s3://, https://, …) of documents: PDF, web pages, Word, Excel, PowerPoint, "
        "Markdown, notebooks, reStructuredText, manual pages, mail, text, JSON, JSONL, CSV, TSV or Parquet, also "
        "compressed (.gz .bz2 .xz). - reads JSONL from standard input.",
    ),
]
Ray = Annotated[
    bool,
    typer.Option(
        "--ray",
        help="Run on the Ray cluster at RAY_ADDRESS, or on this machine (pip install '.\\[ray]' in a clone of Quoth).",
    ),
]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Leave out broken records and report their number.")]
FollowLinks = Annotated[
    bool,
    typer.Option("--follow-links", help="Also read what symbolic links in a folder lead to, outside it too."),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first row of a CSV or TSV names the columns. Default: judged from its cells.",
    ),
]
BadInputs = Annotated[
    bool | None,
    typer.Option(
        "--skip-bad/--strict",
        help="Leave out files and records that cannot be read, and name them; the exit code is then 1. --strict stops "
        "at the first. Default: --skip-bad in folders, --strict for other DOCS.",
    ),
]
FormatName = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        callback=within(Literal[FORMATS], None),
        help=f"Read DOCS as {', '.join(FORMATS[:-1])} or {FORMATS[-1]}, whatever their suffix.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")]
Model = Annotated[
    str, typer.Option("--model", help="A shipped model (quoth-mini, quoth-reader, quoth-realm), a folder or a hub id.")
]
Base = Annotated[
    Path | None,
    typer.Option(
        "--base",
        rich_help_panel=LOADING,
        callback=checked(_check_folder),
        help="Folder with the base weights. Default: the shipped ones.",
    ),
]
Device = Annotated[
    str | None,
    typer.Option(
        "--device",
        rich_help_panel=LOADING,
        callback=checked(_check_device),
        help="cpu, cuda, cuda:1 or mps. Default: the best available.",
    ),
]
NumberFormat = Annotated[
    Dtype | None,
    typer.Option(
        "--dtype",
        rich_help_panel=LOADING,
        help="Number format of the encoder. Default: auto: int8, bf16 or fp32, whichever is fastest on this processor.",
    ),
]
MoreCorpora = Annotated[
    list[Path] | None,
    typer.Option("--corpus", metavar="DIR", parser=read_at, help="Search this corpus as well. May be repeated."),
]
Where = Annotated[
    str | None,
    typer.Option(
        "--where",
        metavar="CONDITION",
        help="Search only documents whose metadata meet this: \"date >= '2024-01-01' and source in ('minutes')\"; "
        "once, at its end or alone: equal texts once.",
    ),
]
AsOf = Annotated[
    str | None,
    typer.Option("--as-of", metavar="DATE", help="Search only documents with no later date, and those without one."),
]
Vectors = Annotated[
    bool | None,
    typer.Option(
        "--vectors/--no-vectors",
        envvar=VECTORS,
        help="Make the vectors by which passages are found by meaning too, however long it takes, or none. Default: if "
        "it takes at most 10 minutes.",
    ),
]
Timings = Annotated[bool, typer.Option("--timings", hidden=True, help="Report how long each of the five steps took.")]


def check_query(text: str, check: Callable[[str], None]) -> None:
    """Check a query before a model is loaded for it. The lines of standard input are checked when they are handled."""
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise InputError(f"{text!r} is not UTF-8 text; convert it with iconv")
    if text != "-":
        check(text)


def as_utf8(text: str) -> str:
    """A text of the command line that the locale cannot spell, read as UTF-8; unchanged if it is not."""
    try:
        return text.encode(sys.getfilesystemencoding(), "surrogateescape").decode("utf-8")
    except UnicodeError:
        return text


def for_each_query(text: str, handle: Callable[[int, str], None]) -> None:
    """Call `handle` with the number and the text of each query: `text` itself or, if it is "-", the lines of standard
    input that are not blank.

    A line that is not UTF-8, or that `handle` refuses with an InputError, is reported with its number. The other lines
    are handled, and the exit code is 2. Raises InputError if all lines are blank, or if `text` is a file's name.
    """
    if text != "-":
        if os.path.isfile(text):
            raise InputError(f"{text!r} is a file, not a text; - < {text} takes a text from each of its lines")
        handle(0, text)
        return
    handled, failed = 0, False
    for number, line in enumerate(sys.stdin.buffer, start=1):
        try:
            query = line.decode("utf-8-sig").strip()
            if query:
                handle(handled, query)
                handled += 1
        except (UnicodeDecodeError, InputError) as error:
            what = error if isinstance(error, InputError) else "not UTF-8 text; convert it with iconv"
            note(f"standard input:{number}: {what}")
            failed = True
    if failed:
        raise typer.Exit(2)
    if not handled:
        raise InputError("standard input is empty; write one text or question per line")


def without_vectors() -> bool:
    """Whether the environment says that no vectors are wanted: QUOTH_VECTORS=0."""
    return os.environ.get(VECTORS, "").lower() in ("0", "no", "off", "false")


def given(**options: Any) -> dict[str, Any]:
    """The options that were given; for the others, the model has its own defaults."""
    return {name: value for name, value in options.items() if value is not None}


def pairs(items: list[str], option: str, example: str) -> dict[str, str]:
    """`["a=1", "b=2"]` as a mapping. Raises InputError on an item without "=" or a name given twice."""
    values: dict[str, str] = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not equals or not name.strip():
            raise InputError(f"{option} {item!r} is not NAME=VALUE; for example {option} {example}")
        if name.strip() in values:
            raise InputError(f"{option} names {name.strip()!r} twice; give each name once")
        values[name.strip()] = value
    return values


def label_words(items: list[str]) -> dict[str, list[str]]:
    """`["positive=great,good"]` as `{"positive": ["great", "good"]}`. Raises InputError on anything else."""
    labels = pairs(items, "--labels", "positive=great,good")
    words = {label: [word.strip() for word in value.split(",")] for label, value in labels.items()}
    for label, its_words in words.items():
        if "" in its_words:
            raise InputError(f"--labels {label}={labels[label]} lacks a word; write --labels {label}=great,good")
    return words
