"""The command that keeps a corpus in step with a folder: sync.

Knows what to report. Does not know how changes are detected.
"""

import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quoth.cli.embed import make_vectors
from quoth.cli.models import contents, open_corpus
from quoth.cli.options import FollowLinks, Header, Json, Vectors
from quoth.cli.output import counting, note, print_json, results, visible
from quoth.errors import InputError, LockedError
from quoth.storage import no_empty_folder

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus
    from quoth.corpus.sync import Synced

app = typer.Typer()
SHOWN = 20
LONGEST_WAIT = 1e9
"""Seconds; the system's limit is a little higher."""


@app.command(rich_help_panel="Make and change a corpus")
def sync(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of your documents.")],
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The corpus; created if missing.")],
    vectors: Vectors = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only report what would be done.")] = False,
    watch: Annotated[
        float | None,
        typer.Option("--watch", metavar="SECONDS", min=0.1, help="Repeat every so many seconds, until Ctrl-C."),
    ] = None,
    delete_all: Annotated[
        bool, typer.Option("--delete-all", help="Delete the documents even if the folder is empty.")
    ] = False,
    follow_links: FollowLinks = False,
    header: Header = None,
    as_json: Json = False,
) -> None:
    """Keep a corpus in step with a folder.

    New and changed files are read, and documents of missing files deleted; unchanged documents keep their vectors. Once
    that is committed and searchable, new passages get vectors, to be found by meaning too. Unreadable files are listed,
    the corpus keeps their last version, and the exit code is 1. Documents from elsewhere stay. Files matched by
    FOLDER/.quothignore, in .gitignore syntax, count as missing. A stopped run resumes. --header applies to tables read
    now, not to unchanged ones.

    \b
    Example:
      quoth sync reports/ reports.quoth
      quoth sync reports/ reports.quoth --dry-run
      quoth sync reports/ reports.quoth --watch 10
    """
    if dry_run and watch is not None:
        raise InputError("--dry-run looks once; leave --watch out")
    done = None
    with no_empty_folder(directory):
        corpus, is_new = _opened(directory, folder)
        try:
            done = _once(corpus, folder, vectors, dry_run, delete_all, follow_links, header, as_json)
        finally:
            if is_new and not corpus.num_documents and (watch is None or done is None):
                shutil.rmtree(directory)
    if watch is None and done.unreadable:
        raise typer.Exit(1)
    told = ""
    while watch is not None:
        time.sleep(min(watch, LONGEST_WAIT))
        try:
            _once(corpus, folder, vectors, dry_run, delete_all, follow_links, header, as_json, quiet=not told)
            told = ""
        except BrokenPipeError:  # nobody reads what this prints
            raise
        except (LockedError, InputError, OSError) as error:  # the next look does it
            if str(error) != told:
                note(str(error))
            told = str(error)


def _opened(directory: Path, folder: Path) -> "tuple[Corpus, bool]":
    """The corpus, and whether it was just created."""
    from quoth.corpus.corpus import Corpus

    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; give one that exists")
    if any(directory.glob("manifest-*.json")) or directory.is_file():
        return open_corpus(directory), False
    return Corpus.create(directory), True


def _once(
    corpus: "Corpus",
    folder: Path,
    vectors: bool | None,
    dry_run: bool,
    delete_all: bool,
    follow_links: bool,
    header: bool | None,
    as_json: bool,
    quiet: bool = False,
) -> "Synced":
    from quoth.corpus.sync import sync as bring

    with counting("syncing", "files") as progress:
        done = bring(
            corpus,
            folder,
            dry_run=dry_run,
            delete_all=delete_all,
            follow_links=follow_links,
            header=header,
            progress=progress,
        )
    if quiet and not done:
        return done
    if as_json:
        print_json(vars(done))
    else:
        _show(done, corpus, dry_run)
    if not dry_run:
        make_vectors(corpus, vectors)
    return done


def _show(done: "Synced", corpus: "Corpus", dry_run: bool) -> None:
    console = results()
    parts = {"new": done.new, "changed": done.changed, "deleted": done.deleted}
    named = [(sign, name) for sign, names in zip("+~-", parts.values(), strict=True) for name in names]
    for sign, name in named[:SHOWN]:
        console.print(f"{sign} {visible(name)}", soft_wrap=True)
    if len(named) > SHOWN:
        console.print(f"… and {len(named) - SHOWN:,} more")
    for name, reason in done.unreadable.items():
        note(f"{'left as it was' if name in done.kept else 'left out'}: {name}: {reason}")
    counts = ", ".join(f"{len(names):,} {kind}" for kind, names in parts.items())
    lost = f", {len(done.unreadable):,} unreadable" if done.unreadable else ""
    state = "nothing is written" if dry_run else contents(corpus)
    console.print(f"{visible(str(corpus.path))}: {counts}, {done.unchanged:,} unchanged{lost}; {state}", soft_wrap=True)
