"""The commands that make and change a corpus: index, add, replace, delete, compact, list, verify, repair,
export.

Knows how to call the corpus and report the result. Does not know how a corpus is stored.
"""

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quoth.cli.embed import make_vectors, tell_late
from quoth.cli.find import make_indexes
from quoth.cli.info import bytes_of
from quoth.cli.inputs import Gone, Inputs, tell_remaining
from quoth.cli.models import changing, contents, open_corpus
from quoth.cli.options import (
    BadInputs,
    ChangedCorpus,
    CorpusDir,
    Documents,
    FollowLinks,
    FormatName,
    Header,
    Json,
    OwnCorpusDir,
    Ray,
    Vectors,
    as_utf8,
    repeated,
)
from quoth.cli.output import counting, note, plural, print_json, results, size, visible
from quoth.cli.plugged import clusters
from quoth.errors import InputError, LockedError
from quoth.storage import no_empty_folder

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus

app = typer.Typer()
PANEL = "Make and change a corpus"
SplitterName = Annotated[
    str,
    typer.Option(
        "--splitter",
        help=(
            "How documents are split: blocks:120 (up to 120 words, cut at the end of a paragraph, of a line of a "
            "list, record or table, or of a sentence), words:120 (at sentence ends only), fixed:100 (exactly 100 "
            "words), tokens:256:TOKENIZER."
        ),
    ),
]
Block = Annotated[
    int | None,
    typer.Option(
        "--block",
        metavar="N",
        min=1,
        help="With --ray: million characters of text per segment; each shard needs a segment. Default: 64.",
    ),
]


@app.command(rich_help_panel=PANEL)
def index(
    docs: Documents,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="DIR", help="Folder for the new corpus; with --ray also a URL.")
    ],
    splitter: SplitterName = "blocks:120",
    skip_bad: BadInputs = None,
    follow_links: FollowLinks = False,
    format: FormatName = None,
    header: Header = None,
    vectors: Vectors = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Also make the exact index, which find, trace and verify-quotes use.")
    ] = False,
    ray: Ray = False,
    block: Block = None,
) -> None:
    """Make a corpus from documents.

    The texts are committed in seconds, without a model, and can then be searched by words. Next, every passage gets a
    vector, to be found by meaning too; quoth embed --keys passages resumes a stopped run. In a folder, unreadable files
    are skipped and listed, and the exit code is 1. With --ray, DIR must be a URL or a folder shared by all machines of
    the cluster; the documents are read on this machine.

    \b
    Example:
      quoth index wiki.jsonl notes/ -o wiki.quoth
      quoth index wiki.jsonl -o wiki.quoth --no-vectors
      quoth fill wiki.quoth "Hagios Demetrios is in [MASK]."
    """
    from quoth.corpus.corpus import Corpus

    if vectors and ray:
        raise InputError("--vectors does not work with --ray; leave it out, and use quoth embed --keys passages")
    if exact and ray:
        raise InputError("--exact does not work with --ray; leave it out, and use quoth embed --keys exact")
    if block and not ray:
        raise InputError(f"--block is {block}, which works with --ray only; leave it out")
    inputs = Inputs(docs, format, skip_bad, header, follow_links)
    folder, write = clusters().indexing(output, block) if ray else (_here(output), Corpus.add)
    with no_empty_folder(folder):
        corpus = Corpus.create(folder, splitter=splitter)
        try:
            with inputs.recorded(corpus, output), counting("indexing", "documents") as progress:
                write(corpus, inputs.with_text(), progress)
        except LockedError:
            raise  # another process is writing this corpus
        except BaseException:
            if not Corpus.open(folder).num_documents:
                shutil.rmtree(folder)
            raise
    inputs.report()
    _state(corpus, output)
    if exact:
        make_indexes([corpus], required=True)
    if not ray:
        make_vectors(corpus, vectors)
    inputs.finish()


def _here(output: str) -> Path:
    if "://" in output:
        raise InputError(f"{output} is a URL; add --ray, or name a local folder")
    return Path(output)


@app.command(rich_help_panel=PANEL)
def add(
    directory: ChangedCorpus,
    docs: Documents,
    skip_bad: BadInputs = None,
    follow_links: FollowLinks = False,
    format: FormatName = None,
    header: Header = None,
    vectors: Vectors = None,
) -> None:
    """Add documents to a corpus, all in one commit or none.

    To replace documents already in it, use quoth replace. If the corpus has passage vectors, new passages get theirs.

    \b
    Example:
      quoth add wiki.quoth more.jsonl
    """
    inputs = Inputs(docs, format, skip_bad, header, follow_links)
    with changing(directory) as corpus, inputs.recorded(corpus, directory), counting("adding", "documents") as progress:
        corpus.add(inputs.with_text(), progress=progress)
    inputs.report()
    _state(corpus, directory)
    _complete_vectors(corpus, directory, vectors)
    inputs.finish()


@app.command(rich_help_panel=PANEL)
def replace(
    directory: ChangedCorpus,
    docs: Documents,
    delete_missing: Annotated[
        bool,
        typer.Option("--delete-missing", help="Also delete documents whose files are gone from a folder of DOCS."),
    ] = False,
    skip_bad: BadInputs = None,
    follow_links: FollowLinks = False,
    format: FormatName = None,
    header: Header = None,
    vectors: Vectors = None,
) -> None:
    """Replace documents with new versions, and add new ones.

    A document replaces the one with its id, or is added if there is none. An unchanged document (same title, text,
    metadata and places in its file) keeps its vectors; if the corpus has passage vectors, new passages get theirs.
    --delete-missing also deletes, in the same commit, the documents of missing files that index, add or replace read
    from the same folder; documents from elsewhere, rows and records stay. If a file or a record is skipped, nothing is
    deleted.

    \b
    Example:
      quoth replace atlas.quoth atlas-2026.jsonl
      quoth replace notes.quoth notes/ --delete-missing
    """
    if delete_missing and "://" in directory:
        raise InputError(f"--delete-missing needs a folder's record, which {directory} has not; leave it out")
    inputs = Inputs(docs, format, skip_bad, header, follow_links)
    if delete_missing and not inputs.folders:
        raise InputError(f"--delete-missing requires a folder, not {', '.join(docs)}; name the folder, or leave it out")
    with changing(directory) as corpus:
        before, gone = corpus.num_documents, Gone(corpus, inputs, required=delete_missing)
        recorded = inputs.recorded(corpus, directory, gone if delete_missing else None)
        with recorded, counting("replacing", "documents") as progress:
            written = corpus.replace(iter(inputs), progress, gone.to_delete() if delete_missing else ())
    inputs.report()
    deleted = gone.report(delete_missing)
    new = corpus.num_documents - before + deleted
    counts = f"replaced {written - new:,}, new {new:,}, unchanged {inputs.count - written:,}"
    note(f"{counts}, deleted {deleted:,}" if delete_missing else counts)
    _state(corpus, directory)
    _complete_vectors(corpus, directory, vectors)
    inputs.finish()


@app.command(rich_help_panel=PANEL)
def delete(
    directory: ChangedCorpus,
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[IDS]...", help="Document ids, as shown by quoth list.")
    ] = None,
    where: Annotated[
        str | None, typer.Option("--where", metavar="CONDITION", help="All whose metadata match: \"owner = 'press'\".")
    ] = None,
) -> None:
    """Delete documents by id or condition, in one commit.

    quoth compact then removes them from disk. Those whose files are still in their folder are named: the next quoth
    sync of it reads them again.

    \b
    Example:
      quoth delete wiki.quoth greece-1 greece-2
      quoth delete library.quoth --where "owner = 'press'"
    """
    with changing(directory) as corpus:
        chosen = [*map(as_utf8, ids or []), *(corpus.where(where).ids() if where else [])]
        if not chosen:
            none = f"--where {where!r}: no document meets this condition; choose one that some meet"
            raise InputError(none if where else "no ids; give some, or --where CONDITION")
        corpus.delete(chosen)
    if "://" not in directory:
        tell_remaining(corpus, chosen)
    _state(corpus, directory)


@app.command(rich_help_panel=PANEL)
def compact(directory: OwnCorpusDir) -> None:
    """Free the space of deleted documents and old snapshots.

    Also merges small segments, which makes searches faster.

    \b
    Example:
      quoth compact wiki.quoth
    """
    from quoth.index.key_store import follow

    corpus = open_corpus(directory)
    before = bytes_of(directory)
    corpus.compact()
    follow(corpus)
    note(f"{size(before)} before, {size(bytes_of(directory))} now")
    _state(corpus)


@app.command("list", rich_help_panel=PANEL)
def list_documents(
    directory: CorpusDir,
    contains: Annotated[
        str, typer.Option("--contains", metavar="TEXT", help="Only documents with this text in their id or title.")
    ] = "",
    as_json: Json = False,
) -> None:
    """List a corpus's documents: id, title and number of passages.

    --contains ignores upper and lower case.

    \b
    Example:
      quoth list wiki.quoth --contains thessaloniki
    """
    from quoth.cli.render import show_line

    corpus, console = open_corpus(directory), results()
    for document in corpus.documents():
        if not any(contains.casefold() in name.casefold() for name in (document.id, document.title)):
            continue
        passages = len(corpus.rows_of(document.id))
        if as_json:
            print_json({"id": document.id, "title": document.title, "passages": passages})
        else:
            show_line(console, visible(document.id), visible(document.title), f"({plural(passages, 'passage')})")


@app.command(rich_help_panel=PANEL)
def verify(directory: CorpusDir) -> None:
    """Check that every file of a corpus is whole, by its checksum.

    Names the first damaged file; quoth repair repairs what it can. To check quotations, use quoth verify-quotes.

    \b
    Example:
      quoth verify wiki.quoth
    """
    from quoth.corpus.repair import verify as check

    check(directory)
    results().print(f"{visible(str(directory))}: sound", soft_wrap=True)
    _state(open_corpus(directory))


@app.command(rich_help_panel=PANEL)
def repair(
    directory: OwnCorpusDir,
    drop: Annotated[
        list[str] | None,
        repeated("--drop", "SEGMENT", "Drop this segment, or list of deletions, if it cannot be repaired."),
    ] = None,
) -> None:
    """Rebuild damaged files from the rest of the corpus.

    Rebuilds words, tables and checksums from the documents. Removes damaged vectors, which quoth embed rebuilds.
    Damaged documents are lost; it names the files to restore from a backup, and the number of documents still readable
    in each. Until then the corpus opens without them. --drop gives them up; run quoth export first to save the readable
    ones. Dropping a list of deletions brings back documents that only it marked as deleted.

    \b
    Example:
      quoth repair wiki.quoth
    """
    from quoth.corpus.corpus import Corpus

    repairs = Corpus.repair(directory, drop or ())
    told = [f"dropped: {line}" for line in repairs.dropped] + [f"repaired: {line}" for line in repairs.repaired]
    for line in told:
        results().print(line, soft_wrap=True)
    for line in repairs.lost:
        note(f"lost: {line}")
    if repairs.lost:
        raise typer.Exit(1)
    if not told:
        results().print(f"{directory}: sound, nothing to repair", soft_wrap=True)
    _state(open_corpus(directory))


@app.command(rich_help_panel=PANEL)
def export(
    directory: CorpusDir,
    output: Annotated[
        str,
        typer.Option("--output", "-o", metavar="FILE", help=".jsonl, .jsonl.gz, .jsonl.bz2 or .jsonl.xz; - prints."),
    ],
) -> None:
    """Write a corpus's documents to a file for quoth index.

    Also works on a damaged corpus: it writes every intact document, even of a damaged segment. If others are
    unreadable, it counts them, and the exit code is 1.

    \b
    Example:
      quoth export wiki.quoth -o wiki.jsonl.gz
    """
    from quoth.corpus.documents import create_lines
    from quoth.corpus.repair import intact_documents

    lost: list[str] = []
    count = 0
    with create_lines(output) as stream, counting("exporting", "documents") as progress:
        for count, each in enumerate(intact_documents(directory, lost.append), 1):
            record = {"id": each.id, "title": each.title, "text": each.text, "metadata": dict(each.metadata)}
            stream.write(json.dumps(record, ensure_ascii=False).encode() + b"\n")
            progress(count)
    note(f"exported {plural(count, 'document')}")
    for line in lost:
        note(f"lost: {line}")
    if lost:
        raise typer.Exit(1)


def _state(corpus: "Corpus", place: str = "") -> None:
    """One line on standard output: the current contents of a corpus at `where`."""
    where = visible(place or str(corpus.path))
    results().print(f"{where}: {contents(corpus)}, snapshot {corpus.snapshot}", soft_wrap=True)


def _complete_vectors(corpus: "Corpus", place: str, wanted: bool | None) -> None:
    """The vectors of new passages, if `wanted` or if others have some; none are sent to a URL."""
    from quoth.index.finder import has_vectors

    if "://" in place:
        if has_vectors(corpus):
            tell_late([corpus], place=place)
    elif wanted or has_vectors(corpus):
        make_vectors(corpus, wanted)
