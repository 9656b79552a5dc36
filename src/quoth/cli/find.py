"""The command that finds every place of a text: find.

Knows the options and how a place is shown. Does not know how places are found.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from quoth.cli.models import open_corpora
from quoth.cli.options import (
    STANDARD_INPUT,
    AsOf,
    CorpusDir,
    Json,
    MoreCorpora,
    Where,
    as_utf8,
    check_query,
    for_each_query,
)
from quoth.cli.output import counting, note, plural, print_json, results

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus

app = typer.Typer()


@app.command(rich_help_panel="Quotations")
def find(
    directory: CorpusDir,
    text: Annotated[str, typer.Argument(metavar="TEXT", callback=as_utf8, help=f"What to look for; {STANDARD_INPUT}")],
    *,
    where: Where = None,
    as_of: AsOf = None,
    corpus: MoreCorpora = None,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", min=1, help="Show the first so many places. Default: all.")
    ] = None,
    count: Annotated[bool, typer.Option("--count", help="Only print the number of places.")] = False,
    json: Json = False,
) -> None:
    """Find every place where a text occurs, word for word.

    Typography and case make no difference: quotation marks, dashes, ligatures, line ends and hyphens there. How a place
    differs from the text is told: exact, typographic or case. A place begins and ends with whole words, and may be in
    several passages. The exact index is made if it is not there (quoth index --exact makes it beforehand); its cost is
    told first. The exit code is 1 if a text occurs nowhere.

    \b
    Example:
      quoth find wiki.quoth "self-governed societies"
      quoth find wiki.quoth "self-governed societies" --json --limit 3
    """
    corpora = open_corpora(directory, corpus, where, as_of)
    check_query(text, _check_text)
    make_indexes(corpora)
    missed = 0

    def show(_: int, wanted: str) -> None:
        nonlocal missed
        total = sum(each.count(wanted) for each in corpora) if count or not json else 0
        missed += not (total if count else _show_places(corpora, wanted, limit, json, total))
        if count and json:
            print_json({"text": wanted, "count": total})
        elif count:
            results().print(total)

    for_each_query(text, show)
    if missed:
        raise typer.Exit(1)


def _check_text(text: str) -> None:
    """Raises InputError for a text without anything to look for."""
    from quoth.corpus.exact.find import Wanted

    Wanted.of(text)


def make_indexes(corpora: "Iterable[Corpus]", required: bool = False) -> int:
    """The exact indexes of corpora that lack them; their cost is told first if they take long. Returns how many
    segments lacked one."""
    from quoth.corpus.exact.indexes import make, missing

    made = 0
    for each in corpora:
        if lacking := len(missing(each)):
            made += lacking
            with counting("making the exact index", "bytes") as progress:
                make(each, progress, required)
    return made


def _show_places(corpora: "list[Corpus]", text: str, limit: int | None, json: bool, total: int) -> int:
    """Print the places of a text; returns how many were printed."""
    shown = 0
    for each in corpora:
        left = None if limit is None else limit - shown
        for match in each.find(text, left) if left != 0 else ():
            shown += 1
            if json:
                print_json(match.to_dict())
            else:
                from quoth.cli.render import show_place

                show_place(results(), match, match.degree, each.name if len(corpora) > 1 else "")
    if not shown:
        note(f"{text!r} occurs nowhere")
    elif not json:
        note(plural(total, "place") + (f", of which {shown:,} are shown" if shown < total else ""))
    return shown
