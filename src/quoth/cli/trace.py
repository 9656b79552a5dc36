"""The command that says which parts of a text occur word for word: trace.

Knows the options, how a text is read, and how a trace looks in a terminal and as a page. Does not know how it is found.
"""

import os
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quoth.cli.find import make_indexes
from quoth.cli.models import open_corpora
from quoth.cli.options import AsOf, CorpusDir, Json, MoreCorpora, Where, as_utf8
from quoth.cli.output import note, plural, print_json, results
from quoth.errors import InputError
from quoth.records import Document

if TYPE_CHECKING:
    from quoth.corpus.exact.trace import Trace, TracedSpan

app = typer.Typer()
RARE, FEW = 1, 10
"""Up to so many places a part of a text is rare, or is in few places."""
STYLES = {"rare": "bold black on yellow", "few": "yellow", "common": "dim yellow"}
MOST_COVERING = 5
"""Documents that are shown as covering most of a text."""
PAGE = """<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
body {{ font: 1rem/1.6 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; color: #222 }}
.text {{ white-space: pre-wrap; overflow-wrap: anywhere }}
.rare {{ background: #ffd54a }} .few {{ background: #ffeaa0 }} .common {{ background: #fff6d6 }}
li {{ margin: 1rem 0 }} small {{ color: #666 }} blockquote {{ margin: .3rem 0 .3rem 1rem }}
</style>
<h1>{title}</h1>
<p>{summary}</p>
<div class="text">{text}</div>
<ol>{spans}</ol>
</html>
"""


@app.command(rich_help_panel="Quotations")
def trace(
    directory: CorpusDir,
    text: Annotated[
        str,
        typer.Argument(
            metavar="FILE_OR_TEXT",
            callback=as_utf8,
            help="A file of any format that quoth index reads, or a text; - reads a text from standard input.",
        ),
    ],
    *,
    where: Where = None,
    as_of: AsOf = None,
    corpus: MoreCorpora = None,
    min_words: Annotated[
        int, typer.Option("--min-words", metavar="N", min=1, help="The least number of words of a part.")
    ] = 6,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Also write a page that stands alone.")
    ] = None,
    json: Json = False,
) -> None:
    """Show which parts of a text occur in a corpus word for word.

    Shows the text with its parts in colour, the rarer the stronger, then each part with its first places, ten at most,
    and the documents that cover most of the text. Typography and case make no difference, as for quoth find. In scripts
    written without spaces every letter counts as a word.

    \b
    Example:
      quoth trace wiki.quoth draft.docx
      quoth trace wiki.quoth draft.docx --html draft-traced.html
      quoth trace wiki.quoth "the longest river in Africa is the Nile"
    """
    from quoth.corpus.exact.trace import trace as traced
    from quoth.storage import refuse_unwritable

    if html is not None:
        refuse_unwritable(html)
    document = document_given(text)
    corpora = open_corpora(directory, corpus, where, as_of)
    make_indexes(corpora)
    found = traced(corpora, document.text, min_words)
    if html is not None:
        _write_page(html, document, found)
    if json:
        print_json(found.to_dict())
    else:
        _show(document.text, found, named=len(corpora) > 1)


def document_given(text: str) -> Document:
    """The document of a file, of standard input ("-"), or a text itself. Raises InputError for a file that is none, or
    several."""
    from quoth.corpus.documents import read_documents

    if text == "-":
        try:
            return Document("-", "Standard input", sys.stdin.buffer.read().decode("utf-8-sig"))
        except UnicodeDecodeError:
            raise InputError("standard input is not UTF-8 text; convert it with iconv") from None
    if os.path.isdir(text):
        raise InputError(f"{text} is a folder; give a file of one document, or a text")
    if not os.path.isfile(text):
        if not any(map(str.isspace, text)) and Path(text).suffix:
            raise InputError(f"there is no file {text}; give one that exists, or a text")
        return Document("text", "Text", text)
    documents = [*read_documents(text)]
    if len(documents) != 1:
        raise InputError(f"{text} has {plural(len(documents), 'document')}; give a file of one document, or a text")
    return documents[0]


def kind_of(span: "TracedSpan") -> str:
    """How often a part of a text occurs, in a word."""
    return "rare" if span.num_places <= RARE else "few" if span.num_places <= FEW else "common"


def pieces(text: str, found: "Trace") -> Iterator[tuple[str, str]]:
    """A text in pieces, each with the kind of the rarest part that it is in, or ""."""
    kinds = [""] * len(text)
    for span in reversed(found.spans):
        kinds[span.start : span.end] = [kind_of(span)] * (span.end - span.start)
    begin = 0
    for at in range(1, len(text) + 1):
        if at == len(text) or kinds[at] != kinds[begin]:
            yield text[begin:at], kinds[begin]
            begin = at


def _summary(found: "Trace") -> str:
    covering = [f"{name} {100 * share:.0f} %" for name, share in [*found.coverage.items()][:MOST_COVERING]]
    most = f"; most of it in {', '.join(covering)}" if covering else ""
    return f"{100 * found.share:.0f} % of the words are in {plural(len(found.spans), 'part')} that occur{most}"


def _show(text: str, found: "Trace", named: bool) -> None:
    from rich.text import Text

    from quoth.cli.render import printable, show_place

    console, shown = results(), Text()
    for piece, kind in pieces(text, found):
        shown.append("\n".join(map(printable, piece.split("\n"))), STYLES.get(kind, ""))
    console.print(shown, soft_wrap=not console.is_terminal)
    for span in found.spans:
        head = Text.assemble("\n", (printable(span.text), "bold"), (f"  {plural(span.num_places, 'place')}", "cyan"))
        console.print(head, soft_wrap=not console.is_terminal)
        for place in span.places:
            show_place(console, place, place.degree, place.corpus if named else "")
    note(_summary(found))


def _write_page(file: Path, document: Document, found: "Trace") -> None:
    text = "".join(
        f'<mark class="{kind}">{escape(piece)}</mark>' if kind else escape(piece)
        for piece, kind in pieces(document.text, found)
    )
    title = escape(document.title or document.id)
    page = PAGE.format(title=title, summary=escape(_summary(found)), text=text, spans="".join(map(_item, found.spans)))
    file.write_text(page, encoding="utf-8")


def _item(span: "TracedSpan") -> str:
    """A part of a text, with its places, for a page."""
    from quoth.records import place_html

    head = f'<mark class="{kind_of(span)}">{escape(span.text)}</mark> <small>{plural(span.num_places, "place")}</small>'
    return f"<li>{head}{''.join(map(place_html, span.places))}</li>"
