"""The commands that check quotations: verify-quote, verify-quotes.

Knows how verdicts are shown, and which of them fail. Does not know how they are reached.
"""

import json as json_format
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quoth.cli.models import open_corpora
from quoth.cli.options import Json, as_utf8, read_at
from quoth.cli.output import note, plural, print_json, results, visible
from quoth.errors import InputError

if TYPE_CHECKING:
    from rich.text import Text

    from quoth.corpus.corpus import Corpus
    from quoth.corpus.exact.drafts import Draft
    from quoth.corpus.exact.gate import Verdict
    from quoth.corpus.exact.reports import Checked

app = typer.Typer()
PANEL = "Quotations"
COLOURS = {
    "verbatim": "green",
    "typographic": "green",
    "elided": "green",
    "altered": "bold red",
    "absent": "bold red",
    "unreadable": "yellow",
}
FailOn = Annotated[
    str,
    typer.Option(
        "--fail-on",
        metavar="STATUS,…",
        help="Verdicts at which the exit code is 1: typographic, elided, altered, absent, unreadable; none for never.",
    ),
]
Report = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Also write a page that stands alone.")]
Sarif = Annotated[
    Path | None, typer.Option("--sarif", metavar="FILE", help="Also write SARIF 2.1.0, for reviews of code.")
]


@app.command("verify-quote", rich_help_panel=PANEL)
def verify_quote(
    corpora: Annotated[list[str], typer.Argument(metavar="DIR... TEXT", help="Corpora, then the quotation.")],
    fail_on: FailOn = "altered,absent",
    json: Json = False,
) -> None:
    """Check whether one quotation occurs in a corpus.

    verbatim, typographic (what a careful editor may do) and elided (… or \\[brackets], the parts in order and near each
    other) are faithful. altered: what was changed, and the nearest place. absent: nothing is near. The exit code is 1
    for a verdict of --fail-on.

    \b
    Example:
      quoth verify-quote atlas.quoth "the capital of Kenya is … Nairobi"
      quoth verify-quote lease.quoth "The landlord may not enter" --json
    """
    from quoth.corpus.exact.drafts import Draft
    from quoth.corpus.exact.gate import Judge
    from quoth.corpus.exact.reports import Checked
    from quoth.records import Document

    *places, text = map(as_utf8, corpora)
    failing = _failing(fail_on)
    if not places:
        raise InputError(f"{text!r} is a corpus or a text, not both; give quoth verify-quote DIR TEXT")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise InputError(f"{text!r} is not UTF-8 text; convert it with iconv")
    if not text.strip():
        raise InputError("the text is empty; give the words of a quotation")
    verdict = Judge(_opened(places))(text)
    checked = Checked("", Draft(Document("", "", text)), [verdict])
    if json:
        print_json(verdict.to_dict())
    else:
        _show(checked, verdict)
    if verdict.status in failing:
        raise typer.Exit(1)


@app.command("verify-quotes", rich_help_panel=PANEL)
def verify_quotes(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="DIR... DRAFT...",
            help="Corpora, then the files of drafts: Markdown, HTML, Word, text, PDF and more. - reads standard input.",
        ),
    ],
    fail_on: FailOn = "altered,absent",
    html: Report = None,
    sarif: Sarif = None,
    json: Json = False,
) -> None:
    """Check every quotation of a draft against a corpus.

    Quotations are what stands in quotation marks of any language, three words or more that are no title, and block
    quotes. If the source that is named beside one is a document of the corpus, it must be in that document; if it is
    not in the corpus, or not text, the quotation is unreadable, not false. The exit code is 1 for a verdict of
    --fail-on, 2 if a draft cannot be read.

    \b
    Example:
      quoth verify-quotes sources.quoth article.md
      quoth verify-quotes sources.quoth drafts/*.docx --html report.html
    """
    from quoth.corpus.exact.checking import Checker
    from quoth.corpus.exact.reports import Checked, as_html, as_sarif
    from quoth.storage import atomic_write_bytes, refuse_unwritable

    failing = _failing(fail_on)
    for output in filter(None, (html, sarif)):
        refuse_unwritable(output)
    places, drafts = _apart([as_utf8(each) for each in files])
    check, counts, found = Checker(_opened(places)), Counter[str](), list[Checked]()
    for name, draft in _read(drafts):
        checked = Checked(name, draft, check(draft))
        found.append(checked)
        for verdict in checked.verdicts:
            counts[verdict.status] += 1
            if json:
                print_json(checked.to_dict(verdict))
            else:
                _show(checked, verdict)
        if not checked.verdicts:
            note(f"{name}: no quotations in it")
    if html:
        atomic_write_bytes(html.absolute(), as_html(found).encode())
    if sarif:
        atomic_write_bytes(sarif.absolute(), json_format.dumps(as_sarif(found, failing), ensure_ascii=False).encode())
    if not json and counts:
        each = ", ".join(f"{count:,} {status}" for status, count in counts.items())
        results().print(f"{plural(counts.total(), 'quotation')}: {each}", soft_wrap=True)
    if any(counts[status] for status in failing):
        raise typer.Exit(1)


def _failing(fail_on: str) -> list[str]:
    """The verdicts that fail. Raises InputError for a word that is no verdict."""
    from quoth.corpus.exact.changed import STATUSES

    names = [each.strip() for each in fail_on.split(",") if each.strip()]
    if names == ["none"]:
        return []
    for name in names:
        if name not in STATUSES:
            raise InputError(f"--fail-on {name!r} is no verdict; it must be none, or some of {', '.join(STATUSES)}")
    return names


def _opened(places: Sequence[str]) -> "list[Corpus]":
    first, *more = map(read_at, places)
    return open_corpora(first, more)


def _apart(names: list[str]) -> tuple[list[str], list[str]]:
    """Corpora and drafts: the first is a corpus, and so are folders and URLs that follow it."""
    count = 1
    while count < len(names) and (Path(names[count]).is_dir() or "://" in names[count]):
        count += 1
    if count == len(names):
        raise InputError(f"{names[-1]!r} is a corpus; name a draft after it: quoth verify-quotes DIR DRAFT")
    return names[:count], names[count:]


def _read(drafts: Sequence[str]) -> "Iterator[tuple[str, Draft]]":
    """Drafts and their names. Raises InputError for one that cannot be read."""
    from quoth.corpus.exact.drafts import Draft, read_drafts
    from quoth.records import Document

    for name in drafts:
        if name == "-":
            try:
                yield "standard input", Draft(Document("-", "", sys.stdin.buffer.read().decode("utf-8-sig")))
            except UnicodeDecodeError:
                raise InputError("standard input is not UTF-8 text; convert it with iconv") from None
        else:
            yield from ((name, draft) for draft in read_drafts(Path(name)))


def _show(checked: "Checked", verdict: "Verdict") -> None:
    """A quotation with its verdict, its changes and its places; words that differ are marked."""
    from rich.text import Text

    from quoth.corpus.exact.reports import marked_quote, marked_source, told, where

    console = results()
    head = Text(f"{visible(checked.place(verdict))}  " if checked.name else "")
    console.print(head.append(verdict.status, COLOURS[verdict.status]), soft_wrap=True)
    console.print(_marked("  “", marked_quote(verdict), "bold red"), soft_wrap=True)
    for change in verdict.changes:
        console.print(Text(f"  {visible(told(change))}", "bold red" if change.is_loud else ""), soft_wrap=True)
    if verdict.status == "unreadable":
        console.print(f"  {visible(verdict.source)} is not in the corpus, or is not text", soft_wrap=True)
    for place in verdict.evidence[:3]:
        line = _marked(f"  {visible(where(place))}: “", marked_source(verdict, place), "bold green")
        console.print(line, soft_wrap=True)
    console.print()


def _marked(before: str, pieces: Sequence[tuple[str, bool]], style: str) -> "Text":
    """Words on a line, those that differ between brackets and in a style."""
    from rich.text import Text

    line = Text(before)
    for text, is_marked in pieces:
        shown = visible(" ".join(f"|{text}|".split()))[1:-1]
        line.append(f"⟦{shown}⟧" if is_marked else shown, style if is_marked else "")
    return line.append("”")
