"""The command that finds the runs of words that two collections share: overlap.

Knows what a collection is named by, and how pairs are shown. Does not know how they are found.
"""

from collections.abc import Callable, Iterator
from heapq import nlargest
from textwrap import shorten
from typing import TYPE_CHECKING, Annotated

import typer

from quoth.cli.options import Json, as_utf8, within
from quoth.cli.output import LeftOut, counting, plural, print_json, print_tables, results
from quoth.errors import CorpusNotFoundError, InputError
from quoth.fields import Count

if TYPE_CHECKING:
    from quoth.corpus.exact.overlap import Overlap
    from quoth.records import Document

app = typer.Typer()
EXCERPT = 60
"""Characters shown of a pair's longest run."""
COLLECTION = "A corpus folder made by quoth index, or a file or folder of documents that quoth index would read."


class Collection:
    """The documents of a corpus, or of files, which are read each time.

    Raises InputError if there is no such file or no document in it, or standard input is to be read again.
    """

    def __init__(self, place: str, left_out: LeftOut, progress: Callable[[], None]) -> None:
        from quoth.corpus.corpus import Corpus

        self._place, self._progress = place, progress
        self._corpus: Corpus | None = None
        self._first: Iterator[Document] | None = None
        try:
            self._corpus = Corpus.open(place)
        except CorpusNotFoundError:
            self._first = self._files(left_out)

    def __iter__(self) -> "Iterator[Document]":
        is_empty = True
        for document in self._documents():
            yield document
            is_empty = False
            self._progress()
        if is_empty:
            raise InputError(f"{self._place}: no documents in it; give a file that has some")

    def _documents(self) -> "Iterator[Document]":
        if self._corpus is not None:
            return self._corpus.documents()
        first, self._first = self._first, None
        if first is None and self._place == "-":
            raise InputError("standard input can be read only once; name a file")
        return first or self._files(None)

    def _files(self, left_out: LeftOut | None) -> "Iterator[Document]":
        from quoth.corpus.documents import read_paths

        [read] = read_paths([self._place], None, None, left_out)
        return read


@app.command(rich_help_panel="Quotations")
def overlap(
    a: Annotated[str, typer.Argument(metavar="A", callback=as_utf8, help=f"{COLLECTION} Of two, the larger one.")],
    b: Annotated[
        str, typer.Argument(metavar="B", callback=as_utf8, help="As A. Read again for every 8 million words of A.")
    ],
    words: Annotated[
        int,
        typer.Option("--words", metavar="N", callback=within(Count, 13), help="The least number of words in a row."),
    ] = 13,
    limit: Annotated[
        int, typer.Option("--limit", callback=within(Count, 20), help="Show this many pairs, those that share most.")
    ] = 20,
    json: Json = False,
) -> None:
    """Find documents of two collections that share words in a row.

    Typography and case make no difference. --json prints every pair with the places of its runs in both documents.

    \b
    Example:
      quoth overlap train.jsonl test.jsonl
      quoth overlap wiki2018.quoth wiki2015.quoth --words 30 --json
    """
    from quoth.corpus.exact.overlap import overlap as overlaps

    left_out, num_read, num_runs = LeftOut(), 0, 0
    documents: tuple[set[str], set[str]] = (set(), set())

    with counting("reading", "documents") as progress:

        def read() -> None:
            nonlocal num_read
            num_read += 1
            progress(num_read)

        def counted() -> "Iterator[Overlap]":
            nonlocal num_runs
            for pair in overlaps(Collection(a, left_out, read), Collection(b, left_out, read), words):
                num_runs += len(pair.runs)
                for ids, side in zip(documents, (pair.a, pair.b), strict=True):
                    ids.add(side.document_id)
                yield pair

        if json:
            for pair in counted():
                print_json(pair.to_dict())
        else:
            shown = nlargest(limit, counted(), key=lambda pair: pair.b.shared)
    left_out.report()
    if not json:
        if shown:
            heads = ["A", "B", "words shared", "of A", "of B", "in the longest run", "which begins"]
            print_tables([(heads, [*map(_row, shown)])])
        told = f"{plural(len(documents[0]), 'document')} of A and {len(documents[1]):,} of B"
        results().print(f"{told} share {plural(num_runs, 'run')} of {words} words or more", soft_wrap=True)
    if left_out.count:
        raise typer.Exit(1)


def _row(pair: "Overlap") -> list[str]:
    longest = max(pair.runs, key=lambda run: run.words)
    shares = [f"{100 * side.share:.1f} %" for side in (pair.a, pair.b)]
    counts = [f"{pair.b.shared:,}", *shares, f"{longest.words:,}"]
    return [pair.a.document_id, pair.b.document_id, *counts, shorten(longest.text, EXCERPT, placeholder=" …")]
