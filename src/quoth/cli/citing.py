"""The option --cite: predictions with citations in standard forms.

Knows: how the forms are spelled and printed. Does not know: how citations are made.
"""

from collections.abc import Callable, Sequence
from json import dumps
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from quoth.cli.output import results, visible

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus
    from quoth.records import Prediction


Form = Literal["w3c", "chars", "link"]
Cite = Annotated[
    Form | None,
    typer.Option(
        "--cite",
        metavar="FORM",
        help="Cite the best place of each answer (with --json: every place) as a web annotation (w3c: "
        "TextQuoteSelector), by its characters (chars), or by a link that highlights it (link, to the document's "
        "metadata url). Offsets count code points; UTF-16 units are next to them.",
    ),
]


def citations(
    predictions: "Sequence[Prediction]", corpora: "Sequence[Corpus]", form: Form
) -> list[list[dict[str, Any] | str]]:
    """The citations of each prediction's places, best first, in this form."""
    from quoth.corpus.exact.cite import Citation, cite

    forms: dict[Form, Callable[[Citation], dict[str, Any] | str]]
    forms = {"w3c": Citation.selector, "chars": Citation.char_location, "link": Citation.link}
    write = forms[form]
    return [[write(place) for place in places] for places in cite(predictions, corpora)]


def show_citations(cited: Sequence[Sequence[dict[str, Any] | str]]) -> None:
    """Print the citation of each prediction's best place on a line of its own."""
    console = results()
    console.print()
    for rank, (best, *_) in ((rank, each) for rank, each in enumerate(cited, start=1) if each):
        line = best if isinstance(best, str) else dumps(best, ensure_ascii=False)
        line += "  (the document's metadata has no url)" if line.startswith("#") else ""
        console.print(f"{rank:3d}  {visible(line)}", soft_wrap=True)
