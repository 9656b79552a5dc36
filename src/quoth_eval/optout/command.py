"""The command `quoth eval optout`.

Knows how a call is spelled. Does not know how documents are deleted, or what is counted.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from quoth.cli.models import open_corpus
from quoth.cli.options import CorpusDir, Json, Setup, repeated
from quoth.cli.output import note, plural, print_json, print_tables
from quoth.cli.records import takes_setup
from quoth.errors import InputError

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus
    from quoth_eval.spec import Options
    from quoth_eval.systems import Asked

SYSTEMS = ("quoth-mini,read=0", "quoth-realm", "quoth-reader")


@takes_setup
def optout(
    directory: CorpusDir,
    files: Annotated[
        list[Path], typer.Argument(metavar="QUESTIONS...", help="Questions with answers, as of quoth eval openqa.")
    ],
    where: Annotated[
        str,
        typer.Option("--where", metavar="CONDITION", help="Whose documents: \"owner = 'press'\", \"id like 'p-%'\"."),
    ],
    by: Annotated[
        str | None, typer.Option("--by", metavar="FIELD", help="Field that names a document's owner, for the shares.")
    ] = None,
    system: Annotated[
        list[str] | None,
        repeated("--system", "NAME[,OPTION=VALUE]", "Ask this system.", default="NPM alone, REALM and the reader."),
    ] = None,
    options: Annotated[
        list[str] | None, repeated("--set", "OPTION=VALUE", "Set an option of all systems that have it.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Use at most this many questions, drawn at random.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Random seed for drawing questions and quotations.")] = 0,
    keep: Annotated[
        Path | None, typer.Option("--run", metavar="DIR", help="Keep every answer here; a second call resumes.")
    ] = None,
    *,
    setup: Setup,
    json: Json = False,
) -> None:
    """Measure what is lost, and what is left, when an owner's documents are deleted.

    The corpus is only read: the documents are deleted from a copy in the temporary folder, which is then compacted.
    The questions are asked over the corpus and over the copy. See docs/optout.md.

    \b
    Example:
      quoth eval optout library.quoth questions.jsonl --by owner \\
        --where "owner = 'press'" --run runs/press
    """
    from quoth.datasets.questions import read_questions
    from quoth_eval.optout.experiment import Call, measure
    from quoth_eval.optout.tables import as_record, tables
    from quoth_eval.systems import Opener
    from quoth_eval.task import draw

    asked, common = _asked(system or SYSTEMS, options or [])
    corpus = _pinned(directory)
    if by is not None and by not in corpus.facets:
        raise InputError(f"--by {by}: no document has this field; use one of {', '.join(sorted(corpus.facets))}")
    ids, questions = _ids(corpus, where), draw(read_questions(*files), limit, seed)
    settings = {"limit": limit, "seed": seed, "options": common}
    with TemporaryDirectory(prefix="quoth-optout-") as folder:
        opener = Opener(setup, Path(folder, "scratch"), seed)
        call = Call(corpus, where, ids, questions, asked, settings)
        outcome = measure(call, opener, Path(folder, corpus.path.name), keep)
    if json:
        print_json(as_record(outcome, by))
        return
    note(f"{plural(len(ids), 'document')} of {corpus.num_documents:,} are theirs")
    print_tables(tables(outcome, by))


def _asked(systems: Sequence[str], options: Sequence[str]) -> "tuple[list[Asked], Options]":
    """The systems with their options, and the options of all. Raises InputError for an option that none takes."""
    from quoth_eval.spec import read_options, unknown_option
    from quoth_eval.systems import known_options, parse_system
    from quoth_eval.tasks import find

    spec, common = replace(find("openqa"), name="optout"), read_options(options)
    asked = [parse_system(each, spec, common) for each in systems]
    for name in common:
        if not any(name in each.options for each in asked):
            raise unknown_option("--set", name, [each for each in known_options([spec]) if each not in spec.names])
    return asked, common


def _pinned(directory: Path) -> "Corpus":
    """The corpus at its latest snapshot, whatever is written meanwhile."""
    from quoth.corpus.corpus import Corpus

    return Corpus.open(directory, open_corpus(directory).snapshot)


def _ids(corpus: "Corpus", where: str) -> list[str]:
    """The documents that a condition selects. Raises InputError if these are none or all."""
    ids = [*corpus.where(where).ids()]
    if not ids or len(ids) == corpus.num_documents:
        which = "every document meets" if ids else "no document meets"
        raise InputError(f"--where {where!r}: {which} this condition; choose one that some meet")
    return ids
