"""The commands that query a corpus: fill, ask, classify.

Knows the options and how results are printed. Does not know how predictions are made.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from json import dumps
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from quoth.answers.options import FillOptions
from quoth.cli.embed import tell_late
from quoth.cli.models import DENSE, check_embedded, load, load_predictor, open_corpora, system
from quoth.cli.options import (
    STANDARD_INPUT,
    AsOf,
    CorpusDir,
    Json,
    Model,
    MoreCorpora,
    Setup,
    Timings,
    Where,
    as_utf8,
    check_query,
    for_each_query,
    given,
    label_words,
    within,
    without_vectors,
)
from quoth.cli.output import look_in, note, print_json, read_as, results, visible
from quoth.cli.records import (
    PASSAGES,
    RARE,
    Given,
    HelpAll,
    fill_arguments,
    num_passages,
    option,
    record_of,
    takes,
    takes_fill_options,
    takes_setup,
)
from quoth.errors import InputError
from quoth.fields import fields_of
from quoth.npm.config import AskOptions, ClassifyOptions
from quoth.records import Predictions
from quoth.timing import timed

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus

app = typer.Typer()
PANEL = "Ask a corpus"

Marginal = Annotated[
    bool,
    typer.Option(
        "--marginal",
        **RARE,
        help="For REALM: weight each passage's answers by p(z|x) (the paper's eq. 1), instead of one softmax over "
        "the answers of all passages.",
    ),
]
NullDocument = Annotated[
    bool | None,
    typer.Option(
        "--null-document/--no-null-document",
        **RARE,
        help="For REALM, with --marginal: z includes an empty passage. Default: for fill, not for ask.",
    ),
]
Form = Literal["w3c", "chars", "link"]
Cite = Annotated[
    Form | None,
    typer.Option(
        "--cite",
        metavar="FORM",
        help=(
            "Cite the best place of each answer (with --json: every place) as a web annotation (w3c: "
            "TextQuoteSelector), by its characters (chars), or by a link that highlights it (link, to the document's "
            "metadata url). Offsets are in code points, with UTF-16 units next to them."
        ),
    ),
]
LABELLING = {
    "template": option(
        ClassifyOptions,
        "template",
        help="A text with {text} and one [MASK]. Default: the model's own ({text} It was [MASK].).",
    ),
    **PASSAGES,
    "temperature": option(ClassifyOptions, "temperature", **RARE),
}


@app.command(rich_help_panel=PANEL)
@takes_setup
@takes_fill_options
def fill(
    context: typer.Context,
    directory: CorpusDir,
    text: Annotated[
        str, typer.Argument(metavar="TEXT", callback=as_utf8, help=f"A text with [MASK]; {STANDARD_INPUT}")
    ],
    *,
    where: Where = None,
    as_of: AsOf = None,
    json: Json = False,
    filling: Given,
    model: Model = "quoth-mini",
    corpus: MoreCorpora = None,
    cite: Cite = None,
    marginal: Marginal = False,
    null_document: NullDocument = None,
    timings: Timings = False,
    setup: Setup,
    help_all: HelpAll = False,
) -> None:
    """Fill the blank in a text with phrases from the corpus.

    Mark the blank with [MASK] or ___; several are filled together. Every answer is shown where it occurs.

    \b
    Example:
      quoth fill wiki.quoth "Hagios Demetrios is in [MASK]."
      quoth fill wiki.quoth --corpus news.quoth --json - < queries.txt
    """
    from quoth.model.calls import MOST_BLANKS, check_blank

    options = fill_arguments(context, model, filling) | _by_eq_1(model, marginal, null_document)
    corpora = open_corpora(directory, corpus, where, as_of)
    check_query(text, partial(check_blank, most=MOST_BLANKS if issubclass(record_of(model), FillOptions) else 1))
    _check_vectors(corpora, model, options)
    loaded = load_predictor(model, corpora, setup)
    _answer(text, lambda query: _called(loaded.fill, query, options), json, timings, (cite, corpora))


@app.command(rich_help_panel=PANEL)
@takes_setup
@takes_fill_options
def ask(
    context: typer.Context,
    directory: CorpusDir,
    question: Annotated[
        str, typer.Argument(metavar="QUESTION", callback=as_utf8, help=f"A question; {STANDARD_INPUT}")
    ],
    *,
    where: Where = None,
    as_of: AsOf = None,
    json: Json = False,
    filling: Given,
    model: Model = "quoth-reader",
    corpus: MoreCorpora = None,
    cite: Cite = None,
    template: Annotated[
        str | None,
        typer.Option(
            "--template",
            **RARE,
            callback=within(fields_of(AskOptions)["template"].kind, None),
            help="For an NPM: a text with {question} and one [MASK]. Default: the model's own.",
        ),
    ] = None,
    marginal: Marginal = False,
    null_document: NullDocument = None,
    timings: Timings = False,
    setup: Setup,
    help_all: HelpAll = False,
) -> None:
    """Answer a question with phrases from the corpus.

    Every answer is shown where it occurs. If it is unsure, or the passages read do not say, the command says so and
    shows what may answer. A reader corrects misspelt words to the corpus's spelling, and says so. Passages are found by
    words, and also by meaning if the corpus has passage vectors, as quoth index and quoth sync compute them.

    \b
    Example:
      quoth ask wiki.quoth "Who composed Carmen?"
      quoth ask wiki.quoth --model quoth-mini --template "{question} [MASK]" \\
        "Who composed Carmen?"
      quoth ask wiki.quoth "Who composed Carmen?" --mode hybrid
      quoth ask minutes.quoth "Who is the chair?" --where "year = 2024"
    """
    from quoth.model.calls import check_questions

    options = fill_arguments(context, model, filling, asks=True) | given(template=template)
    options |= _by_eq_1(model, marginal, null_document)
    _check_template(template)
    corpora = open_corpora(directory, corpus, where, as_of)
    check_query(question, lambda asked: check_questions([asked]))
    _check_vectors(corpora, model, options)
    if filling["mode"] == "auto" and not system(model).needs_vectors and not without_vectors():
        tell_late(corpora)
    loaded = load_predictor(model, corpora, setup)
    _answer(question, lambda query: _called(loaded.ask, query, options), json, timings, (cite, corpora))


@app.command(rich_help_panel=PANEL)
@takes_setup
@takes("options", LABELLING)
def classify(
    directory: CorpusDir,
    text: Annotated[str, typer.Argument(metavar="TEXT", callback=as_utf8, help=f"A text to label; {STANDARD_INPUT}")],
    labels: Annotated[
        list[str],
        typer.Option("--labels", metavar="LABEL=WORD,WORD", help="A label and its words; once per label."),
    ],
    *,
    where: Where = None,
    as_of: AsOf = None,
    json: Json = False,
    options: Given,
    model: Model = "quoth-mini",
    corpus: MoreCorpora = None,
    timings: Timings = False,
    setup: Setup,
    help_all: HelpAll = False,
) -> None:
    """Choose the label whose words fit a text best.

    The words of each label compete for the blank after the text; the corpus decides how well they fit.

    \b
    Example:
      quoth classify reviews.quoth "A joy to read." \\
        --labels positive=great,good --labels negative=terrible
    """
    from quoth.model.calls import check_labels

    words = label_words(labels)
    own = {name: options[name] for name in fields_of(ClassifyOptions)} | {"passages": num_passages(options)}
    _check_template(options["template"])
    corpora = open_corpora(directory, corpus, where, as_of)
    check_query(text, lambda labelled: check_labels(labelled, words))
    if own["passages"] == "all":
        check_embedded(corpora, model, "tokens")
    npm = load(model, corpora, setup)
    _answer(text, lambda query: npm.classify(query, words, **own), json, timings)


def _check_template(template: str | None) -> None:
    """Raises InputError for a template without one blank."""
    from quoth.model.calls import check_blank

    if template is not None:
        check_blank(template)


def _check_vectors(corpora: "Sequence[Corpus]", model: str, options: Mapping[str, Any]) -> None:
    """Raises InputError if the model needs vectors to search or find passages, and a corpus has none."""
    row, everywhere = system(model), options.get("passages", 1) is None or options.get("passage_share")
    if row.answers and row.keys and (row.needs_vectors or everywhere):
        check_embedded(corpora, model, row.keys)
    if options.get("mode") in ("dense", "hybrid") and row.answers and not row.needs_vectors:
        check_embedded(corpora, DENSE, "passages")


def _by_eq_1(model: str, marginal: bool, null_document: bool | None) -> dict[str, Any]:
    """The keyword arguments of a REALM for --marginal and --null-document. Raises InputError for another kind of
    model."""
    told = "--marginal" if marginal else "--null-document"
    if (marginal or null_document is not None) and "null_document" not in fields_of(record_of(model)):
        of = system(model).kind
        raise InputError(f"{told} requires a REALM, and {model} is of kind {of!r}; try --model quoth-realm")
    return given(combine="marginal" if marginal else None, null_document=null_document)


def _called(verb: Callable[..., Predictions], text: str, options: dict[str, Any]) -> Predictions:
    try:
        return verb(text, **options)
    except InputError as error:
        if str(error).startswith("null_document"):  # whether a model is marginal by itself, only the model knows
            raise InputError("--null-document is for --marginal; add --marginal, or leave it out") from None
        raise


def _answer(
    text: str,
    predict: Callable[[str], Predictions],
    json: bool,
    timings: bool = False,
    citing: "tuple[Form | None, Sequence[Corpus]]" = (None, ()),
) -> None:
    """Print the predictions for `text` or, if it is "-", for each line of standard input as soon as they are ready.

    JSON objects name their query; one without predictions has an object too. With `timings`, the time of each step goes
    to standard error. `citing` is the form of citations, if any, and the corpora to cite.
    """
    form, corpora = citing

    def show(number: int, query: str) -> None:
        with timed() as seconds:
            predictions = predict(query)
        if timings:
            note(" · ".join(f"{name} {1000 * spent:.1f} ms" for name, spent in seconds.items()))
        cited = _citations(predictions, corpora, form) if form else []
        if json:
            for place, prediction in enumerate(predictions):
                more: dict[str, Any] = {"citations": cited[place]} if form else {}
                if not place and predictions.sentences:
                    more |= {"sentences": [each.to_dict() for each in predictions.sentences]}
                    more |= {"shown": [each.to_dict() for each in predictions.shown], "status": predictions.status}
                    more |= {"abstained": predictions.status != "answered"} | look_in(predictions)
                print_json({"query": query} | read_as(predictions) | prediction.to_dict() | more)
            if not predictions:
                nothing = {"text": "", "probability": 0.0, "status": "not_found", "abstained": True, "evidence": []}
                print_json({"query": query} | read_as(predictions) | nothing)
            return
        from quoth.cli.render import show_predictions, worth_showing

        if number:
            print()
        console = results()
        show_predictions(console, query, predictions)
        if form:
            console.print()
        for rank, places in enumerate(cited[: len(worth_showing(predictions))], start=1):
            for best in places[:1]:
                line = best if isinstance(best, str) else dumps(best, ensure_ascii=False)
                line += "  (the document's metadata has no url)" if line.startswith("#") else ""
                console.print(f"{rank:3d}  {visible(line)}", soft_wrap=True)

    for_each_query(text, show)


def _citations(predictions: Predictions, corpora: "Sequence[Corpus]", form: Form) -> list[list[dict[str, Any] | str]]:
    """The citations of each prediction's places, best first, in this form."""
    from quoth.corpus.exact.cite import Citation, cite

    forms: dict[Form, Callable[[Citation], dict[str, Any] | str]]
    forms = {"w3c": Citation.selector, "chars": Citation.char_location, "link": Citation.link}
    write = forms[form]
    return [[write(place) for place in places] for places in cite(predictions, corpora)]
