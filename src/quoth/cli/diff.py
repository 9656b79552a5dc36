"""The command that finds changed answers between two corpora, or two snapshots of one: diff.

Knows when an answer counts as changed, and how to show it. Does not know how answers are found.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quoth.cli.models import load, load_predictor, open_corpora
from quoth.cli.options import Json, Setup, as_utf8
from quoth.cli.output import counting, print_json, read_as, results
from quoth.cli.records import takes_setup
from quoth.errors import InputError
from quoth.records import Predictions, in_context

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus
    from quoth.records import Evidence

app = typer.Typer()
AT_A_TIME = 16
_AT_SNAPSHOT = re.compile(r"(.+)@(\d+)")


@app.command(rich_help_panel="Ask a corpus")
@takes_setup
def diff(
    old: Annotated[str, typer.Argument(metavar="OLD", callback=as_utf8, help="A corpus, or DIR@N for its snapshot N.")],
    new: Annotated[str, typer.Argument(metavar="NEW", callback=as_utf8, help="As OLD.")],
    ask: Annotated[
        Path,
        typer.Option("--ask", metavar="FILE", help="Questions, or texts with one [MASK], one per line."),
    ],
    *,
    model: Annotated[str, typer.Option("--model", help="The model that answers questions: shipped, or a folder.")] = (
        "quoth-reader"
    ),
    fills: Annotated[str, typer.Option("--fill-model", help="What fills blanks.")] = "quoth-mini",
    setup: Setup,
    json: Json = False,
) -> None:
    """Find answers that changed between two corpora.

    An answer changed if the best answers differ and the sentence of one is not in the other corpus: if both corpora
    contain both, it is no change. If one of them is unsure, it is only reported. The exit code is 1 if an answer
    changed.

    \b
    Example:
      quoth diff atlas-2016.quoth atlas-2026.quoth --ask questions.txt
      quoth diff notes.quoth@3 notes.quoth --ask questions.txt --json
    """
    from quoth.corpus.documents import read_text

    lines = [line for line in map(str.strip, read_text(ask).split("\n")) if line]
    if not lines:
        raise InputError(f"{ask}: no question in it; write one per line")
    corpora = [_opened(name) for name in (old, new)]
    counts = {"changed": 0, "unsure": 0}
    with counting("asking", "questions") as progress:
        found = [_answers(lines, corpus, model, fills, setup, progress) for corpus in corpora]
    for text, before, after in zip(lines, *found, strict=True):
        outcome = compared(before, after, corpora[0], corpora[1])
        if outcome in counts:
            counts[outcome] += 1
        if json:
            print_json({"query": text, "outcome": outcome, "old": _as_json(before), "new": _as_json(after)})
        elif outcome != "same":
            _show(text, outcome, before, after)
    if not json:
        told = f"{counts['changed']:,} of {len(lines):,} answers changed"
        results().print(told + (f", {counts['unsure']:,} may have" if counts["unsure"] else ""), soft_wrap=True)
    if counts["changed"]:
        raise typer.Exit(1)


def compared(before: Predictions, after: Predictions, old: "Corpus", new: "Corpus") -> str:
    """The outcome for an answer: `same`, `changed`, or `unsure` if it may have changed."""
    from quoth.cli.demo import same_answer

    first, second = ([each for each in found[:1] if each.status != "not_found"] for found in (before, after))
    if first and second and same_answer(first[0].text, second[0].text):
        return "same"
    moved = [
        not _says(corpus, each.evidence[0])
        for found, corpus in ((first, new), (second, old))
        for each in found
        if each.evidence
    ]
    if not any(moved):
        return "same"
    return "changed" if all(each.status == "answered" for each in (*first, *second)) else "unsure"


def _says(corpus: "Corpus", place: "Evidence") -> bool:
    """Whether the sentence of a place occurs in a corpus."""
    from quoth.corpus.exact.quotes import verify_quote
    from quoth.text.passages import sentences

    start, end = in_context(place)
    around = [place.context[a:b] for a, b in sentences(place.context) if a <= start and end <= b]
    return verify_quote(corpus, (around or [place.context])[0], 1).occurs


def _opened(name: str) -> "Corpus":
    from quoth.corpus.corpus import Corpus

    if not Path(name).exists() and (match := _AT_SNAPSHOT.fullmatch(name)):
        return Corpus.open(match[1], int(match[2]))
    return open_corpora(Path(name))[0]


def _answers(
    lines: Sequence[str], corpus: "Corpus", model: str, fills: str, setup: Setup, progress: Any
) -> list[Predictions]:
    from quoth.model.calls import check_blank, with_mask
    from quoth.text.tokenizer import MASK

    is_blank = [MASK in with_mask(line, MASK) for line in lines]
    answers = dict[str, Predictions]()
    for blank, name, load_one in ((True, fills, load), (False, model, load_predictor)):
        texts = list(dict.fromkeys(line for line, each in zip(lines, is_blank, strict=True) if each is blank))
        for text in texts if blank else ():
            check_blank(text)
        loaded: Any = load_one(name, [corpus], setup) if texts else None
        for at in range(0, len(texts), AT_A_TIME):
            part = texts[at : at + AT_A_TIME]
            found = loaded.fill(part, top_k=1) if blank else loaded.ask(part, top_k=1)
            answers |= dict(zip(part, found, strict=True))
            progress(len(answers), len(lines))
    return [answers[line] for line in lines]


def _as_json(found: Predictions) -> dict[str, Any] | None:
    return found[0].to_dict() | read_as(found) if found else None


def _show(text: str, outcome: str, before: Predictions, after: Predictions) -> None:
    from rich.text import Text

    from quoth.cli.render import printable, show_best

    console = results()
    console.print(Text(printable(text)).append("  may have changed" if outcome == "unsure" else "", style="dim"))
    for edition, found in (("old", before), ("new", after)):
        read = printable(found.read_as)
        show_best(console, Text(f"  {edition} ", style="dim"), found, f"  read as: {read}" if read else "")
