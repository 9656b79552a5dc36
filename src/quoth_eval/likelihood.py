"""The command `eval likelihood`: how likely a REALM finds an answer, and which passages make it so.

Knows: the options and the table. Does not know: how anything is computed.
"""

from math import exp
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from quoth.cli.models import load_predictor, open_corpora
from quoth.cli.options import CorpusDir, Json, MoreCorpora, Setup
from quoth.cli.output import print_json, print_tables
from quoth.cli.records import PASSAGES, Given, record_of, takes, takes_setup
from quoth.errors import InputError
from quoth.fields import fields_of

if TYPE_CHECKING:
    from quoth.records import Likelihood, PassageShare

app = typer.Typer()


@app.command()
@takes_setup
@takes("options", {"passages": PASSAGES["passages"]})
def likelihood(
    directory: CorpusDir,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="A text with one [MASK].")],
    answer: Annotated[str, typer.Argument(metavar="ANSWER", help="What the blank is to be filled with.")],
    corpus: MoreCorpora = None,
    *,
    options: Given,
    model: Annotated[str, typer.Option("--model", help="The folder of a REALM that fills masks.")],
    setup: Setup,
    json: Json = False,
) -> None:
    """How likely is an answer, without any passage, with each of them, and with all (REALM, Table 3)?

    Requires a REALM that quoth train realm-pretrain or quoth convert made, and its vectors (quoth embed).

    \b
    Example:
      quoth eval likelihood wiki.quoth --model pretrained \\
        "War and Peace was written by [MASK]." "Leo Tolstoy"
    """
    if "null_document" not in fields_of(record_of(model)):
        raise InputError(f"model {model!r} is not a REALM; name the folder of one that fills masks")
    loaded: Any = load_predictor(model, open_corpora(directory, corpus), setup)
    found = cast("Likelihood", loaded.likelihood(text, answer, **options))
    if json:
        print_json(found.to_dict())
        return
    print_tables([_table(found)])


def _table(found: "Likelihood") -> tuple[list[str], list[list[str]]]:
    rows = [
        [_named(z), _probability(z.log_retrieval), _probability(z.log_likelihood), f"{100 * z.share:.1f} %"]
        for z in found.passages
    ]
    whole = ["all of them: p(y|x)", "1", _probability(found.log_probability), "100.0 %"]
    heads = [f"{found.answer}: {' '.join(found.pieces)}", "p(z|x)", "p(y|z,x)", "share"]
    return heads, [*rows, whole]


def _named(each: "PassageShare") -> str:
    passage = each.passage
    return "no passage" if passage is None else f"{passage.title or passage.document_id}, {passage.start}"


def _probability(log: float) -> str:
    return f"{exp(log):.3g}"
