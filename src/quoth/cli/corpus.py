"""The commands that make and change a corpus: index, add, replace, delete, compact, list, info, verify, repair.

Knows how to call the corpus and what to report afterwards. Does not know how a corpus is stored.
"""

import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quoth.cli.options import (
    CorpusDir,
    Documents,
    Format,
    FormatName,
    Json,
    Ray,
    SkipBad,
)
from quoth.cli.output import LeftOut, counting, note, plural, print_json, results, rounded_down, size, visible
from quoth.errors import InputError, LockedError, advising

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus
    from quoth.corpus.segment import Segment
    from quoth.records import Document

app = typer.Typer()
PANEL = "Make and change a corpus"


@app.command(rich_help_panel=PANEL)
def index(
    docs: Documents,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="DIR", help="Folder for the new corpus; with --ray also a URL.")
    ],
    splitter: Annotated[
        str,
        typer.Option(
            "--splitter",
            help="How documents become passages: words:120 (up to 120 words, cut at sentence ends), "
            "fixed:100 (exactly 100 words), tokens:256:TOKENIZER.",
        ),
    ] = "words:120",
    skip_bad: SkipBad = False,
    format: FormatName = None,
    ray: Ray = False,
) -> None:
    """Make a corpus from documents, in seconds and without a model.

    The corpus can be searched and asked at once. With --ray, DIR must be a URL or a folder that every machine of the
    cluster sees; the documents are read on this machine.

    \b
    Example:
      quoth index wiki.jsonl notes/ -o wiki.quoth
      quoth fill wiki.quoth "Hagios Demetrios is in [MASK]."
    """
    from quoth.corpus.corpus import Corpus

    source = _Source(docs, format, skip_bad)
    folder, write = Path(output), Corpus.add
    if ray:
        folder, write = _on_ray(output)
    elif "://" in output:
        raise InputError(f"{output} is a URL; add --ray, or name a local folder")
    corpus = Corpus.create(folder, splitter=splitter)
    try:
        with counting("indexing", "documents") as progress:
            write(corpus, iter(source), progress)
    except LockedError:
        raise  # another process is writing this corpus
    except BaseException:
        if not Corpus.open(folder).num_documents:
            shutil.rmtree(folder)
        raise
    source.report()
    _state(corpus)


def _on_ray(output: str) -> "tuple[Path, Callable[..., int]]":
    """The new corpus's folder, which for a URL is a copy, and the function by which the cluster adds documents."""
    from quoth.scale.cluster import connect
    from quoth.scale.ray_build import index
    from quoth.scale.remote import RemoteFolder

    connect()
    place = RemoteFolder(output)
    if place.is_remote:
        if place.exists():
            raise InputError(f"{output} already exists; choose another name")
        shutil.rmtree(place.path, ignore_errors=True)
    return place.named, partial(index, place=place)


@app.command(rich_help_panel=PANEL)
def add(directory: CorpusDir, docs: Documents, skip_bad: SkipBad = False, format: FormatName = None) -> None:
    """Add documents to a corpus: all of them in one commit, or none.

    To replace documents that are in it already, use quoth replace.

    \b
    Example:
      quoth add wiki.quoth more.jsonl
    """
    from quoth.corpus.corpus import Corpus

    source = _Source(docs, format, skip_bad)
    corpus = Corpus.open(directory)
    with counting("adding", "documents") as progress:
        corpus.add(iter(source), progress=progress)
    source.report()
    _state(corpus)


@app.command(rich_help_panel=PANEL)
def replace(directory: CorpusDir, docs: Documents, skip_bad: SkipBad = False, format: FormatName = None) -> None:
    """Replace documents with new versions, and add new ones.

    A document replaces the one with its id; if there is none, it is added. A document that is already there with the
    same title, text and metadata is left alone, and keeps its vectors.

    \b
    Example:
      quoth replace atlas.quoth atlas-2026.jsonl
    """
    from quoth.corpus.corpus import Corpus

    source = _Source(docs, format, skip_bad)
    corpus = Corpus.open(directory)
    before = corpus.num_documents
    with counting("replacing", "documents") as progress:
        written = corpus.replace(iter(source), progress=progress)
    new = corpus.num_documents - before
    source.report()
    note(f"replaced {written - new:,}, new {new:,}, unchanged {source.count - written:,}")
    _state(corpus)


@app.command(rich_help_panel=PANEL)
def delete(
    directory: CorpusDir,
    ids: Annotated[list[str], typer.Argument(metavar="IDS", help="Ids of documents, as quoth list shows them.")],
) -> None:
    """Delete documents by id: all of them in one commit, or none.

    \b
    Example:
      quoth delete wiki.quoth greece-1 greece-2
    """
    from quoth.corpus.corpus import Corpus

    corpus = Corpus.open(directory)
    corpus.delete(ids)
    _state(corpus)


@app.command(rich_help_panel=PANEL)
def compact(directory: CorpusDir) -> None:
    """Free the space of deleted documents and old snapshots.

    Also merges small segments, which makes searches faster.

    \b
    Example:
      quoth compact wiki.quoth
    """
    from quoth.corpus.corpus import Corpus
    from quoth.retrieval.carry import follow

    corpus = Corpus.open(directory)
    before = _bytes(directory)
    corpus.compact()
    follow(corpus)
    note(f"{size(before)} before, {size(_bytes(directory))} now")
    _state(corpus)


@app.command("list", rich_help_panel=PANEL)
def list_documents(
    directory: CorpusDir,
    contains: Annotated[
        str, typer.Option("--contains", metavar="TEXT", help="Only documents with this text in their id or title.")
    ] = "",
    json: Json = False,
) -> None:
    """List a corpus's documents: id, title and number of passages.

    --contains ignores upper and lower case.

    \b
    Example:
      quoth list wiki.quoth --contains thessaloniki
    """
    from quoth.corpus.corpus import Corpus

    corpus = Corpus.open(directory)
    for document in corpus.documents():
        if not any(contains.casefold() in name.casefold() for name in (document.id, document.title)):
            continue
        passages = len(corpus.rows_of(document.id))
        if json:
            print_json({"id": document.id, "title": document.title, "passages": passages})
        else:
            line = f"{document.id}  {document.title}  ({plural(passages, 'passage')})"
            results().print(visible(line), soft_wrap=True)


@app.command(rich_help_panel=PANEL)
def info(directory: CorpusDir, json: Json = False) -> None:
    """Show what a corpus contains, and which models have embedded it.

    \b
    Example:
      quoth info wiki.quoth
    """
    from quoth.corpus.corpus import Corpus

    corpus = Corpus.open(directory)
    with advising(directory):
        tables = _tables(directory, [each.name for each in corpus.segments])
    segments = [_segment(corpus, directory, each) for each in corpus.segments]
    total, freed = _bytes(directory), _freed_by_compact(segments, directory)
    facts = {
        "corpus": str(directory),
        "documents": corpus.num_documents,
        "passages": corpus.num_passages,
        "segments": segments,
        "freed_by_compact": freed,
        "snapshot": corpus.snapshot,
        "splitter": corpus.splitter,
        "bytes": total,
        "embedded": tables,
    }
    if json:
        print_json(facts)
        return
    from quoth.render import show_facts

    embedded = ", ".join(
        f"{each['model']} {each['precision']} ({each['segments']} of {len(corpus.segments)} segments, "
        f"{size(each['bytes'])}{_recall_in_words(each['codes'])})"
        for each in tables
    )
    shown = {**facts, "documents": f"{corpus.num_documents:,}", "passages": f"{corpus.num_passages:,}"}
    shown |= {"bytes": size(total), "embedded": embedded or "nothing (fill and ask encode the passages they read)"}
    shown |= {"freed_by_compact": f"about {size(freed)}", "segments": ", ".join(map(_in_words, segments)) or "none"}
    show_facts(results(), ((name, str(value)) for name, value in shown.items()))


@app.command(rich_help_panel=PANEL)
def verify(directory: CorpusDir) -> None:
    """Check every file of a corpus against its checksums.

    Names the first damaged file; quoth repair repairs what can be repaired.

    \b
    Example:
      quoth verify wiki.quoth
    """
    from quoth.corpus.corpus import Corpus

    corpus = Corpus.open(directory)
    corpus.verify()
    results().print(f"{visible(str(directory))}: sound", soft_wrap=True)
    _state(corpus)


@app.command(rich_help_panel=PANEL)
def repair(directory: CorpusDir) -> None:
    """Rebuild damaged files from the rest of the corpus.

    Rebuilds words, tables and checksums from the documents. Removes damaged vectors, which quoth embed makes again.
    Documents that are damaged themselves are lost; the files to restore from a backup are named.

    \b
    Example:
      quoth repair wiki.quoth
    """
    from quoth.corpus.corpus import Corpus

    repairs = Corpus.repair(directory)
    for line in repairs.repaired:
        results().print(f"repaired: {line}", soft_wrap=True)
    if repairs.lost:
        for line in repairs.lost:
            note(f"lost: {line}")
        raise typer.Exit(1)
    if not repairs.repaired:
        results().print(f"{directory}: sound, nothing to repair", soft_wrap=True)
    _state(Corpus.open(directory))


def _segment(corpus: "Corpus", directory: Path, segment: "Segment") -> dict[str, Any]:
    """A segment's number of passages, deleted ones included, and of deleted ones, and its bytes with its keys."""
    import numpy as np

    from quoth.retrieval.key_store import stores

    live = int(corpus.live(np.arange(segment.first_row, segment.last_row)).sum())
    keys = [path for store in stores(directory) for path in store.folders(segment.name)]
    return {
        "name": segment.name,
        "passages": segment.num_passages,
        "deleted": segment.num_passages - live,
        "bytes": sum(map(_bytes, [segment.path, *keys])),
    }


def _in_words(segment: dict[str, Any]) -> str:
    deleted = f" ({segment['deleted']:,} deleted)" if segment["deleted"] else ""
    return f"{plural(segment['passages'], 'passage')}{deleted} {size(segment['bytes'])}"


def _recall_in_words(codes: list[dict[str, Any]]) -> str:
    """The lowest recall of a model's codes, with the requested one if that is higher."""
    if not codes:
        return ""
    lowest = min(codes, key=lambda each: float(each["recall"] - each["target"]))
    target = f", {lowest['target']} requested" if lowest["recall"] < lowest["target"] else ""
    return f", recall {rounded_down(lowest['recall'])}{target}"


def _freed_by_compact(segments: list[dict[str, Any]], directory: Path) -> int:
    """About how many bytes deleted passages take, and segments that only older snapshots have."""
    from quoth.corpus.layout import segment_of
    from quoth.retrieval.key_store import stores

    deleted = sum(each["bytes"] * each["deleted"] // max(each["passages"], 1) for each in segments)
    kept = {each["name"] for each in segments}
    old = [path for path in directory.glob("segments/*") if path.name not in kept]
    old += [path for store in stores(directory) for path in store.folders() if segment_of(path) not in kept]
    return int(deleted) + sum(map(_bytes, old))


def _tables(directory: Path, segments: list[str]) -> list[dict[str, Any]]:
    """The key tables of these segments, per model: precision, numbers of segments and bytes, recall of the codes."""
    from quoth.retrieval.codes import facts_of
    from quoth.retrieval.key_store import stores, table_facts

    embedded = []
    for store in stores(directory):
        tables = [store.tables(segment) for segment in segments]
        facts = [table_facts(each[0]) for each in tables if each]
        if facts:
            same = {name: facts[0][name] for name in ("model", "precision", "fingerprint")}
            coded = {segment: facts_of(store.codes(segment)) for segment in segments}
            codes = [{"segment": s, "recall": c.recall, "target": c.target} for s, c in coded.items() if c]
            embedded.append({**same, "segments": len(facts), "bytes": _bytes(store.folder), "codes": codes})
    return embedded


class _Source:
    """A command's documents, read once; counts them, those without text, and the broken records left out."""

    def __init__(self, docs: list[str], format: Format | None, skip_bad: bool) -> None:
        from quoth.corpus.documents import read_documents

        self.count, self._without_text = 0, 0
        self._left_out, self._docs = LeftOut(), docs
        self.documents: Iterator[Document] = read_documents(
            *docs, format=format.value if format else None, skip_bad=skip_bad, on_bad=self._left_out
        )

    def __iter__(self) -> "Iterator[Document]":
        """Raises InputError if there is no document."""
        for document in self.documents:
            self.count += 1
            if not document.text.strip():
                self._without_text += 1
                if self._without_text <= 3:
                    note(f"document {document.id!r} has no text, so it gets no passage")
            yield document
        if not self.count:
            raise InputError(f"{', '.join(self._docs)}: no documents in it; give a file that has some")

    def report(self) -> None:
        """Report how many documents had no text and how many were left out, if any."""
        if self._without_text:
            note(f"{plural(self._without_text, 'document')} without text; no search finds them")
        self._left_out.report()


def _state(corpus: "Corpus") -> None:
    """One line on standard output: what the corpus contains now."""
    documents, passages = plural(corpus.num_documents, "document"), plural(corpus.num_passages, "passage")
    results().print(f"{visible(str(corpus.path))}: {documents}, {passages}, snapshot {corpus.snapshot}", soft_wrap=True)


def _bytes(folder: Path) -> int:
    """The bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
