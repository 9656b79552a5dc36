"""How predictions and hits look in a terminal: ranked answers, probability bars, the quoted evidence.

Knows the records and rich. Does not know corpora, models or the command line. Text from a corpus is never
interpreted as markup, and its control characters never reach the terminal.
"""

import re
from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from quoth.cli.output import plural
from quoth.records import (
    LEAST_SHOWN,
    NOT_FOUND,
    Evidence,
    Hits,
    Passage,
    Prediction,
    Predictions,
    Sentence,
    Status,
    in_context,
    quote_of,
)
from quoth.text.passages import sentences
from quoth.text.terms import analyse

BAR_CELLS = 20
EXCERPT_LINES = 3
LEAST_TEXT, MOST_TEXT = 20, 50
LEAST_ANSWER = 0.001
"""The chance from which an answer behind the first is shown."""
PLACE_CELLS = 120
"""Of the words around a place, where there is no terminal."""
MARGIN = "     "

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_INVISIBLE = re.compile(r"[\u202a-\u202e\u2066-\u2069\ufeff]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def printable(text: str) -> str:
    """`text` on one line and safe to print: no control characters, no bidirectional overrides."""
    text = _CONTROL.sub(" ", _INVISIBLE.sub("", text))
    return re.sub(r" {2,}", " ", _SURROGATE.sub("\ufffd", text))


def bar(share: float, cells: int = BAR_CELLS) -> str:
    """A bar of `cells` cells, filled to `share` (clipped to 0..1) in steps of an eighth of a cell."""
    eighths = round(max(0.0, min(1.0, share)) * cells * 8)
    full, rest = divmod(eighths, 8)
    return ("█" * full + (_EIGHTHS[rest] if rest else "")).ljust(cells)


def excerpt(context: str, start: int, end: int, cells: int) -> Text:
    """`context` cut to about `cells` cells around `context[start:end]`, which is highlighted.

    Cuts are made between words if possible, and shown as "…".
    """
    before, words, after = (printable(part) for part in (context[:start], context[start:end], context[end:]))
    phrase = Text(words, "bold yellow")
    spare = max(0, cells - phrase.cell_len - 2)
    left = min(cell_len(before), max(spare // 2, spare - cell_len(after)))
    right = spare - left
    head = _last_words(before, left)
    tail = _first_words(after, right)
    return Text.assemble("" if head == before else "…", head, phrase, tail, "" if tail == after else "…")


def show_predictions(console: Console, query: str, predictions: Predictions) -> None:
    """Print the ranked `predictions` of `query`, each with a bar and its best place, or one per blank."""
    _show_query(console, query, predictions)
    if not predictions:
        console.print(Text(f"  {NOT_FOUND}", style="dim"))
        return
    best = predictions[0]
    if best.abstained and (likely := [each for each in predictions.sentences if each.probability >= LEAST_SHOWN]):
        _show_sentences(console, likely, predictions.status)
    elif best.status == "not_found":
        console.print(Text(f"  {NOT_FOUND}; what comes nearest:", style="dim"))
    elif best.status == "unsure":
        told = f"  unsure: {printable(best.text)}, {_percent(best.probability).strip()}"
        console.print(Text(told, style="dim"), soft_wrap=True)
    found, predictions = predictions, worth_showing(predictions)
    texts = [_in_lines(prediction) for prediction in predictions]
    width = min(MOST_TEXT, max(cell_len(printable(line)) for text in texts for line in text.split("\n")))
    for rank, (text, prediction) in enumerate(zip(texts, predictions, strict=True), start=1):
        _show_row(console, rank, text, _share(console, prediction.probability), width)
        blanks = len(prediction.parts) if prediction.sequence else 1
        shown = prediction.evidence[: max(blanks, 1)]
        for evidence in shown:
            _quote(console, _source(evidence, evidence.title, evidence.corpus))
            _show_excerpt(console, evidence.context, *in_context(evidence))
        if (more := prediction.num_places - len(shown)) > 0:
            console.print(Text(f"{MARGIN}  … and {plural(more, 'more place')}", style="dim"))
    if place := found.look_in:
        console.print(Text("  look in:", style="dim"))
        _quote(console, _source(place, place.title, place.corpus))


def worth_showing(predictions: Predictions) -> Predictions:
    """The first prediction, and those that are not all but impossible."""
    return Predictions(each for rank, each in enumerate(predictions) if not rank or each.probability >= LEAST_ANSWER)


def _in_lines(prediction: Prediction) -> str:
    """What a prediction says; a list in the lines that it has where it stands."""
    if prediction.sequence or len(prediction.parts) < 2:
        return prediction.text
    lines = [" ".join(line.split()) for line in quote_of(prediction.evidence[0]).splitlines()]
    return "\n".join(filter(None, lines)) if len(lines) > 1 else prediction.text


def _show_query(console: Console, query: str, found: Hits | Predictions) -> str:
    """Print what was asked, and as what it was read, which is returned."""
    console.print(Text(printable(query), style="bold"), end="\n" if found.read_as else "\n\n")
    if found.read_as:
        console.print(Text(f"read as: {printable(found.read_as)}", style="dim"), end="\n\n")
    return found.read_as or query


def _show_sentences(console: Console, sentences: Sequence[Sentence], status: Status) -> None:
    """Print the units that may answer, each with a bar and its place."""
    told = f"{NOT_FOUND}; what comes nearest:" if status == "not_found" else "nothing is sure; these may answer:"
    if status != "answered":
        console.print(Text(f"  {told}", style="dim"))
    for rank, sentence in enumerate(sentences, start=1):
        _show_row(console, rank, sentence.text, _share(console, sentence.probability), console.width)
        [place] = sentence.evidence
        _quote(console, _source(place, place.title, place.corpus))
    console.print(Text("  the phrases:", style="dim"))


def show_quote(console: Console, evidence: Evidence) -> None:
    """Print `evidence` on one line: its source, and as much context as fits, with the phrase highlighted."""
    name = Text(printable(evidence.document_id))
    name.truncate(max(8, console.width // 3), overflow="ellipsis")
    source = f"{name.plain} {evidence.start}–{evidence.end}  "
    cells = max(20, console.width - len(MARGIN) - 3 - cell_len(source))
    line = Text.assemble(MARGIN, ("│ ", "dim"), (source, "dim"))
    console.print(line.append_text(excerpt(evidence.context, *in_context(evidence), cells)), soft_wrap=True)


def show_place(console: Console, place: Evidence, degree: str, corpus: str = "") -> None:
    """Print a place on one line: its document, where it is there, and the words around it, as many as fit."""
    where = str(place.locate() or f"{place.start:,}–{place.end:,}")
    name = Text(printable(" ".join(filter(None, [corpus, place.document_id]))))
    if console.is_terminal:
        name.truncate(max(8, console.width // 3), overflow="ellipsis")
    source = f"{name.plain} · {printable(where)} · {degree}  "
    cells = max(20, console.width - cell_len(source)) if console.is_terminal else PLACE_CELLS
    start, end = in_context(place)
    words = excerpt(place.context, start, min(end, start + cells), cells)  # of a long place only the beginning
    console.print(Text.assemble((source, "dim"), words), soft_wrap=True)


def show_best(console: Console, head: Text, predictions: Sequence[Prediction], rest: str = "") -> None:
    """Print `head`, the best of these predictions with its chance, and `rest`; below it, where the prediction is."""
    said = predictions[0] if predictions and predictions[0].status != "not_found" else None
    line = head.append(printable(said.text) if said else NOT_FOUND, style="bold")
    if said:
        line.append(f"  {'unsure, ' * (said.status == 'unsure')}{100 * said.probability:.0f} %", style="cyan")
    console.print(line.append(rest, style="dim"), soft_wrap=True)
    if said and said.evidence:
        show_quote(console, said.evidence[0])


def show_hits(console: Console, query: str, hits: Hits, explain: bool = False) -> None:
    """Print the ranked passages of a search, each with its score, source and the sentence that shares most terms with
    the query. With `explain`, also print the keys that matched; the excerpt then shows the nearest one."""
    query = _show_query(console, query, hits)
    if not hits:
        console.print(Text("  no passage of the corpus matches", style="dim"))
    several = len({hit.corpus for hit in hits}) > 1
    for rank, hit in enumerate(hits, start=1):
        passage = hit.passage
        _show_row(console, rank, passage.title, Text(f"{hit.score:.3f}", "cyan"), cell_len(printable(passage.title)))
        _quote(console, _source(passage, corpus=hit.corpus if several else ""))
        matches = hit.matches if explain else ()
        for match in matches:
            where = "title" if match.start == match.end else f"characters {match.start:,}–{match.end:,}"
            line = f"{printable(match.query)} = {printable(match.text)} ({where})  {match.similarity:.3f}"
            _quote(console, Text(line, style="cyan"))
        nearest = max(matches, key=lambda match: match.similarity, default=None)
        start, end = (nearest.start, nearest.end) if nearest else [passage.start + _likest(passage.text, query)] * 2
        _show_excerpt(console, passage.text, start - passage.start, end - passage.start)


def _likest(text: str, query: str) -> int:
    """Where the sentence of a text begins that has most of a query's search terms."""
    wanted = set(analyse(query))
    shared = [(len(wanted.intersection(analyse(text[start:end]))), -start) for start, end in sentences(text)]
    most, start = max(shared, default=(0, 0))
    return -start if most else 0


def show_facts(console: Console, facts: Iterable[tuple[str, str]]) -> None:
    """Print `name  value` lines, with the values in a column; in a terminal, long ones are wrapped inside it."""
    rows = list(facts)
    indent = max((cell_len(name) for name, _ in rows), default=0) + 2
    for name, value in rows:
        text = Text(printable(value))
        lines = text.wrap(console, max(LEAST_TEXT, console.width - indent)) if console.is_terminal else [text]
        for number, line in enumerate(lines or [text]):
            line.rstrip()
            head = "" if number else name
            console.print(Text.assemble((head, "dim"), " " * (indent - cell_len(head)), line), soft_wrap=True)


def show_line(console: Console, name: str, title: str, rest: str) -> None:
    """Print `name  title  rest` on one line. If it is too long for a terminal, the title is cut."""
    shown = Text(printable(title))
    if console.is_terminal:
        shown.truncate(max(8, console.width - cell_len(name) - cell_len(rest) - 4), overflow="ellipsis")
    console.print(Text.assemble(name, "  ", shown, "  ", rest), soft_wrap=True)


def _share(console: Console, probability: float) -> Text:
    """A bar, if there is room for one, and a percentage."""
    cells = min(BAR_CELLS, console.width - len(MARGIN) - LEAST_TEXT - 10)
    drawn = bar(probability, cells) + " " if cells >= 4 else ""
    return Text.assemble((drawn, "cyan"), _percent(probability))


def _percent(probability: float) -> str:
    return f"{100 * probability:5.1f} %" if probability == 0 or probability >= 0.001 else "< 0.1 %"


def _show_row(console: Console, rank: int, text: str, rest: Text, width: int) -> None:
    """Print `rank  text  rest`: the text in a column of its own, of `width` cells or as many as fit, in as many lines
    as it needs."""
    column = min(width, max(LEAST_TEXT, console.width - len(MARGIN) - rest.cell_len - 2))
    parts = [Text(printable(part), "bold").wrap(console, max(column, 1)) for part in text.split("\n")]
    lines = [line for part in parts for line in part]
    for number, line in enumerate(lines or [Text()]):
        line.rstrip()
        head = Text(MARGIN) if number else Text(f"{rank:3d}  ", "dim")
        tail = Text() if number else Text(" " * (column - line.cell_len + 2)).append_text(rest)
        console.print(head.append_text(line).append_text(tail), soft_wrap=True)


def _source(place: Evidence | Passage, title: str = "", corpus: str = "") -> Text:
    """Title, document id, page or other place in the file, character range and corpus on one line."""
    first, *steps = str(place.locate() or "").split(" > ")
    where = " > ".join([first, *(["…", *steps[-2:]] if len(steps) > 3 else steps)])
    parts = [place.document_id, where, f"characters {place.start:,}–{place.end:,}", corpus]
    parts = [printable(part) for part in parts if part]
    path = place.path if isinstance(place, Evidence) else place.path()
    line = Text(printable(" › ".join(filter(None, [title, *path]))), style="italic")
    return line.append((" · " if title else "") + " · ".join(parts), style="not italic dim")


def _show_excerpt(console: Console, context: str, start: int, end: int) -> None:
    """Print the excerpt on at most `EXCERPT_LINES` lines, shortening it until it fits."""
    width = max(20, console.width - len(MARGIN) - 2)
    cells = EXCERPT_LINES * width
    text = excerpt(context, start, end, cells)
    while len(text.wrap(console, width)) > EXCERPT_LINES and cells > width:
        cells -= max(1, width // 8)
        text = excerpt(context, start, end, cells)
    _quote(console, text)


def _quote(console: Console, text: Text) -> None:
    """Print `text` wrapped behind a vertical rule."""
    width = max(20, console.width - len(MARGIN) - 2)
    for line in text.wrap(console, width):
        line.rstrip()
        console.print(Text.assemble(MARGIN, ("│ ", "dim"), line), soft_wrap=True)


def _first_words(text: str, cells: int) -> str:
    """The longest start of `text` of at most `cells` cells, cut between words if it must be cut."""
    used = 0
    for position, character in enumerate(text):
        used += cell_len(character)
        if used > cells:
            return text[:position] if text[position] == " " else text[:position].rpartition(" ")[0]
    return text


def _last_words(text: str, cells: int) -> str:
    """The longest end of `text` of at most `cells` cells, cut between words if it must be cut."""
    return _first_words(text[::-1], cells)[::-1]
