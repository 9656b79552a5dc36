"""The command that demonstrates Quoth on bundled texts: demo.

Knows the bundled samples, the language reference in every Python, and how to show answers compactly. Does not know how
answers are found. The blanks are fixed; wrong answers are shown and counted too.
"""

import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from quoth.cli.models import contents, load, load_reader
from quoth.cli.options import Base, Device, Model, Setup
from quoth.cli.output import note, results
from quoth.datasets.judging import exact_match, normalise_answer
from quoth.datasets.questions import QAExample
from quoth.errors import InputError
from quoth.records import Document, Prediction

if TYPE_CHECKING:
    from rich.console import Console

    from quoth.corpus.corpus import Corpus
    from quoth.npm.model import NPM
    from quoth.reader.model import Reader

app = typer.Typer()

CHANGES_SHOWN = 16
JUDGED = "✓: it says what the text says. Case, punctuation and articles do not count, nor do a few words more or less."
Answers = Sequence[Sequence[Prediction]]


class Blank(NamedTuple):
    """A text with one blank, or a question, and its answer according to the corpus."""

    text: str
    answer: str


PYTHON_BLANKS = (
    Blank("The break statement terminates the nearest enclosing [MASK].", "loop"),
    Blank("The pass statement is a [MASK]: when it is executed, nothing happens.", "null operation"),
    Blank("If a name is bound at the module level, it is a [MASK].", "global variable"),
    Blank("The pdb module defines an interactive source code [MASK] for Python programs.", "debugger"),
    Blank("Using yield in a function definition is sufficient to create a [MASK].", "generator function"),
    Blank("If the name to be deleted is unbound, a [MASK] exception will be raised.", "NameError"),
    Blank("A right shift by n bits is defined as [MASK] by pow(2, n).", "floor division"),
    Blank("Python uses the [MASK] model of error handling.", "termination"),
    Blank("Lambda expressions are used to create [MASK].", "anonymous functions"),
    Blank("There is currently only one standard mapping type, the [MASK].", "dictionary"),
    Blank("There are three basic sequence types: lists, [MASK], and range objects.", "tuples"),
    Blank("A global statement is a declaration which holds for the entire current [MASK].", "code block"),
)


@app.command(rich_help_panel="Ask a corpus")
def demo(
    python: Annotated[
        bool, typer.Option("--python", help="Use Python's language reference instead of the encyclopedia.")
    ] = False,
    keep: Annotated[
        Path | None, typer.Option("--keep", metavar="DIR", help="Keep the corpus in this new folder.")
    ] = None,
    model: Model = "quoth-mini",
    base: Base = None,
    device: Device = None,
) -> None:
    """Answer from a small encyclopedia, then from a later edition.

    \b
    Example:
      quoth demo
      quoth demo --python --keep python.quoth
    """
    from quoth.corpus.corpus import Corpus

    console = results()
    with nullcontext("") if keep else tempfile.TemporaryDirectory(prefix="quoth-") as temporary:
        folder = keep or Path(temporary) / ("python.quoth" if python else "atlas.quoth")
        begin, corpus = time.perf_counter(), Corpus.create(folder)
        corpus.add(python_documents() if python else atlas("2016"))
        console.print(f"{folder.name}: {contents(corpus)}, indexed in {time.perf_counter() - begin:.1f} s")
        npm = load(model, [corpus], Setup(base, device))
        if python:
            _show_all(console, "Fill blanks", npm.fill, PYTHON_BLANKS)
        else:
            _show_atlas(console, npm, load_reader("quoth-reader", [corpus], Setup(base, device)), corpus)
    console.print(f"\n{JUDGED}", style="dim", soft_wrap=True)
    if keep is not None:
        note(f'the corpus is in {keep}; try: quoth fill {keep} "… [MASK] …"')


def python_documents() -> Iterator[Document]:
    """The topics of the running interpreter's `help()` as documents."""
    from pydoc_data.topics import topics

    for topic, text in topics.items():
        yield Document(topic, text.partition("\n")[0].replace('"', ""), text)


def atlas(edition: str) -> Iterator[Document]:
    """The articles of the bundled atlas of `edition`, "2016" or "2026"."""
    for record in sample(f"atlas-{edition}.jsonl"):
        yield Document(record["id"], record["title"], record["text"])


def sample(name: str) -> list[dict[str, Any]]:
    """The records of a bundled JSONL file, from the installed package or from the checkout."""
    checkout: Traversable = Path(__file__).resolve().parents[3] / "samples"
    for folder in (files("quoth") / "samples", checkout):
        if (folder / name).is_file():
            return [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines()]
    raise InputError(f"the sample {name} is missing from this installation; reinstall Quoth")


def same_answer(predicted: str, answer: str) -> bool:
    """Whether two phrases are one answer: equal by the rule of `quoth eval openqa`, which ignores case, punctuation and
    articles, or one has the words of the other and is at most twice as long ("340 million people", "340 million")."""
    if exact_match(predicted, QAExample("", "", (answer,))):
        return True
    inner, outer = sorted((normalise_answer(predicted), normalise_answer(answer)), key=len)
    return 0 < len(outer) <= 2 * len(inner) and f" {inner} " in f" {outer} "


def _show_atlas(console: "Console", npm: "NPM", reader: "Reader", corpus: "Corpus") -> None:
    """Show blanks and questions over the 2016 edition, then facts before and after the swap for the 2026 edition."""
    records = sample("blanks.jsonl")
    blanks = [Blank(record["text"], record["answer"]) for record in records if "text" in record]
    questions = [Blank(record["question"], record["answer"]) for record in records if "question" in record]
    _show_all(console, "Fill blanks", npm.fill, blanks)
    _show_all(console, "Ask questions", reader.ask, questions)
    every = sample("changes.jsonl")
    changes = [every[number * len(every) // CHANGES_SHOWN] for number in range(CHANGES_SHOWN)]
    texts = [record["blank"] for record in changes]
    before = npm.fill(texts, top_k=1)
    begin = time.perf_counter()
    corpus.replace(atlas("2026"))
    swapped = time.perf_counter() - begin
    _title(console, f"Swap the 2016 edition for the 2026 edition ({swapped:.1f} s, no training)")
    _show_changes(console, changes, before, npm.fill(texts, top_k=1))


def _show_all(console: "Console", title: str, predict: Any, blanks: Sequence[Blank]) -> None:
    """Answer `blanks` in one batch and print each answer with its evidence, then how many are right."""
    _title(console, title)
    begin = time.perf_counter()
    answers = predict([blank.text for blank in blanks], top_k=1)
    seconds = time.perf_counter() - begin
    right = unsure = 0
    for blank, predictions in zip(blanks, answers, strict=True):
        good = _show(console, blank.text, [("", blank.answer, predictions)])
        right += good
        unsure += good and predictions[0].status == "unsure"
    told = f"{right} of {len(blanks)} right" + (f" ({unsure} of these unsure)" if unsure else "")
    console.print(f"  {told}, {1000 * seconds / len(blanks):.0f} ms each", style="bold")


def _show_changes(console: "Console", changes: Sequence[dict[str, Any]], before: Answers, after: Answers) -> None:
    """Print each fact's answers from both editions, then how many are right and how many changed."""
    right = {"2016": 0, "2026": 0}
    moved = followed = 0
    for record, old, new in zip(changes, before, after, strict=True):
        rows = [("2016", record["2016"], old), ("2026", record["2026"], new)]
        followed += _show(console, record["blank"], rows) == len(rows)
        for edition, answer, predictions in rows:
            right[edition] += _is_right(predictions, answer)
        moved += [prediction.text for prediction in old[:1]] != [prediction.text for prediction in new[:1]]
    total = len(changes)
    counts = f"{right['2016']} of {total} right in 2016, {right['2026']} of {total} in 2026"
    console.print(f"  {moved} of {total} answers changed, {followed} from right to right; {counts}", style="bold")


def _show(console: "Console", text: str, rows: "Sequence[tuple[str, str, Sequence[Prediction]]]") -> int:
    """Print a query and the best prediction of each row (edition, answer, predictions); return how many are right."""
    from rich.text import Text

    from quoth.cli.render import printable, show_best

    console.print(Text(printable(text)), soft_wrap=True)
    right = 0
    for edition, answer, predictions in rows:
        good = _is_right(predictions, answer)
        right += good
        line = Text("  ").append(f"{edition} " if edition else "", style="dim")
        line.append("✓ " if good else "✗ ", style="green" if good else "red")
        show_best(console, line, predictions, "" if good else f"  (the text says {answer})")
    return right


def _is_right(predictions: "Sequence[Prediction]", answer: str) -> bool:
    """Whether the best prediction is the answer, and is given as one, sure or unsure."""
    return bool(predictions) and predictions[0].status != "not_found" and same_answer(predictions[0].text, answer)


def _title(console: "Console", text: str) -> None:
    from rich.text import Text

    console.print()
    console.print(Text(text, style="bold underline"))
