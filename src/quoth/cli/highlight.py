"""The command that marks answers in their source PDFs: highlight.

Knows the output of `quoth ask --json`, and which file to mark. Does not know how a PDF is marked.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from quoth.cli.options import FILES
from quoth.cli.output import note, plural, results, visible
from quoth.errors import InputError, brief, few

app = typer.Typer()
MOST_BYTES = 1 << 30
Place = tuple[str, list[Any]]
"""A document, and a mark in it as in `quoth_sources.marks.Mark`."""


@app.command(rich_help_panel="Ask a corpus")
def highlight(
    answers: Annotated[
        str, typer.Argument(metavar="ANSWERS", help="The output of quoth ask --json; - reads standard input.")
    ],
    files: Annotated[Path, FILES],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The marked PDF; must not exist yet.")],
    document: Annotated[
        str | None, typer.Option("--document", metavar="ID", help="The document to mark, if answers are in several.")
    ] = None,
    unsure: Annotated[bool, typer.Option("--unsure", help="Also mark unsure answers.")] = False,
) -> None:
    """Mark answers in their source PDF.

    Writes a copy of the PDF with every place of the answers highlighted, for any viewer; a click on a highlight shows
    the answer with its probability. The original is found by the document's id, its path below the indexed folder. If
    its words have changed since, it is not marked.

    \b
    Example:
      quoth index reports/ -o reports.quoth
      quoth ask reports.quoth "Who is the chair?" --json > answers.json
      quoth highlight answers.json --files reports/ -o marked.pdf
    """
    from quoth.storage import atomic_write_bytes, refuse_unless_plain
    from quoth_sources.files import check_parsers, format_of
    from quoth_sources.originals import original
    from quoth_sources.worker import Worker

    refuse_unless_plain(output)
    if output.exists():
        raise InputError(f"{output} already exists; choose another name")
    check_parsers(["pdf"])
    places = [*_places(answers, unsure)]
    found = [place for place in places if place]
    name = _document(answers, [each for each, _ in found], document)
    if format_of(Path(name)) != "pdf":
        raise InputError(f"{brief(name)} is not a PDF; only places in a PDF can be marked")
    marks = [mark for each, mark in found if each == name]
    content = original(files, name, MOST_BYTES)
    try:
        with Worker() as worker:
            marked = worker.made("quoth_sources.marks.highlighted", content, marks=marks)
    except ValueError as error:
        raise InputError(f"{brief(name)}: {error}") from None
    atomic_write_bytes(output.absolute(), marked)
    pages = ", ".join(f"{page:,}" for page in sorted({mark[0] for mark in marks}))
    told = f"{output}: {plural(len(marks), 'place')} marked in {name}, on page {pages}"
    results().print(visible(told), soft_wrap=True)
    if len(places) > len(found):
        note(f"{plural(len(places) - len(found), 'place')} not on a page of a PDF left out")


def _document(answers: str, names: list[str], wanted: str | None) -> str:
    """The document to mark. Raises InputError unless it has a place."""
    known = [*dict.fromkeys(names)]
    shown = few([*map(brief, known)], 5)
    if wanted is not None and wanted not in known:
        raise InputError(f"--document {brief(wanted)}: no answer is on a page of it; answers are in {shown or 'none'}")
    if not known:
        raise InputError(f"{answers}: no answer is on a page of a PDF; --unsure marks unsure answers too")
    if wanted is None and len(known) > 1:
        raise InputError(f"{answers}: answers are in {len(known)} documents ({shown}); name one with --document")
    return known[0] if wanted is None else wanted


def _places(answers: str, unsure: bool) -> Iterator[Place | None]:
    """The places of the answers, None for one not on a page. Raises InputError naming a line that is not an answer."""
    with sys.stdin.buffer if answers == "-" else Path(answers).open("rb") as stream:
        for number, line in enumerate(stream, 1):
            try:
                record = json.loads(line) if line.strip() else {"status": ""}
                if record["status"] in (("answered", "unsure") if unsure else ("answered",)):
                    yield from [_place(record, each) for each in record["evidence"]]
            except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
                where = f"{'standard input' if answers == '-' else answers}:{number}"
                raise InputError(f"{where}: not an answer; pass the output of `quoth ask --json`") from None


def _place(answer: Any, place: Any) -> Place | None:
    """A place of an answer; None if it is not on a page. Raises ValueError and the like if it is not one."""
    location = place.get("location", {})
    if "page" not in location:
        return None
    page, rectangles = location["page"], location["rectangles"]
    first = place["context_start"]
    phrase = place["context"][place["start"] - first : place["end"] - first]
    sides = [(left, top, right, bottom) for left, top, right, bottom in rectangles]
    inside = all(0 <= left < right <= 100 and 0 <= top < bottom <= 100 for left, top, right, bottom in sides)
    if not (
        isinstance(page, int) and 0 < page < 1 << 31 and sides and inside and isinstance(place["document_id"], str)
    ):
        raise ValueError("not a place")
    chance = "" if (share := answer["probability"]) is None else f" ({100 * share:.0f} %)"
    query = f"{answer['query']}\n" if "query" in answer else ""
    return place["document_id"], [page, sides, f"{phrase}", f"{query}{answer['text']}{chance}"]
