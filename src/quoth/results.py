"""Rankings that show themselves: lists of predictions and of hits, as a page of a notebook and as a table.

Knows: the records, HTML, and pandas where it is installed. Does not know: how a ranking came about.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from quoth.errors import InputError
from quoth.records import NOT_FOUND, Evidence, Hit, Prediction, Status

EXCERPT = 160
"""Characters shown before a phrase, and after it."""
PLACES = 3
"""Places of a prediction that are shown."""


class Predictions(list[Prediction]):
    """A ranking of predictions, best first: a list that shows itself in a notebook."""

    @property
    def status(self) -> Status:
        """The best prediction's status; "not_found" if there is none."""
        return self[0].status if self else "not_found"

    def __repr__(self) -> str:
        return "\n".join(["Predictions([", *(f"    {each!r}," for each in self), "])"]) if self else "Predictions([])"

    def _repr_html_(self) -> str:
        if not self:
            return f"<p><em>{NOT_FOUND}</em></p>"
        nearest = f"<p><em>{NOT_FOUND}; what comes nearest:</em></p>" if self.status == "not_found" else ""
        return nearest + _ranking(_prediction(each) for each in self)

    def to_pandas(self) -> Any:
        """A pandas DataFrame, a prediction per row, with its best place.

        Raises:
            InputError: pandas is not installed.
        """
        return _frame([each.to_row() for each in self])


class Hits(list[Hit]):
    """A ranking of passages, best first: a list that shows itself in a notebook."""

    def _repr_html_(self) -> str:
        if not self:
            return "<p><em>no passage of the corpus matches</em></p>"
        return _ranking(_hit(each) for each in self)

    def to_pandas(self) -> Any:
        """A pandas DataFrame, a passage per row.

        Raises:
            InputError: pandas is not installed.
        """
        return _frame([each.to_dict() for each in self])


def _frame(rows: Sequence[dict[str, Any]]) -> Any:
    try:
        import pandas
    except ImportError:
        raise InputError("to_pandas() takes pandas, which is not installed; pip install pandas") from None
    return pandas.DataFrame(rows)


def _ranking(items: Iterable[str]) -> str:
    return f"<ol>{''.join(f'<li>{each}</li>' for each in items)}</ol>"


def _prediction(prediction: Prediction) -> str:
    unsure = " <em>(unsure)</em>" if prediction.status == "unsure" else ""
    head = f"<b>{_text(prediction.text)}</b> {100 * prediction.probability:.1f} %{unsure}"
    more = prediction.num_places - len(prediction.evidence[:PLACES])
    rest = f"<small>… and {more:,} more {'place' if more == 1 else 'places'}</small>" if more > 0 else ""
    return head + "".join(map(_evidence, prediction.evidence[:PLACES])) + rest


def _evidence(evidence: Evidence) -> str:
    begin = evidence.context_start
    quote = _excerpt(evidence.context, [(evidence.start - begin, evidence.end - begin)])
    source = _source(evidence.title, evidence.document_id, evidence.start, evidence.end, evidence.corpus)
    return f"<blockquote>{quote}<br>{source}</blockquote>"


def _hit(hit: Hit) -> str:
    passage = hit.passage
    ranges = sorted({(each.start - passage.start, each.end - passage.start) for each in hit.matches})
    quote = _excerpt(passage.text, [each for each in ranges if each[0] < each[1]])
    source = _source(passage.title, passage.document_id, passage.start, passage.end)
    head = f"<b>{_text(passage.title or passage.document_id)}</b> {hit.score:.3f}"
    return f"{head}<blockquote>{quote}<br>{source}</blockquote>"


def _excerpt(text: str, marked: Sequence[tuple[int, int]]) -> str:
    """The text around the first marked range, with what is marked highlighted."""
    first, last = marked[0] if marked else (0, 0)
    start, end = max(first - EXCERPT, 0), min(max(last, first) + EXCERPT, len(text))
    parts, at = ["…" if start else ""], start
    for low, high in marked:
        if at <= low and high <= end:
            parts += [_text(text[at:low]), f"<mark>{_text(text[low:high])}</mark>"]
            at = high
    return "".join([*parts, _text(text[at:end]), "…" if end < len(text) else ""])


def _source(title: str, document_id: str, start: int, end: int, corpus: str = "") -> str:
    parts = [each for each in (title, document_id, f"characters {start:,}–{end:,}", corpus) if each]
    return f"<small>{' · '.join(map(_text, parts))}</small>"


def _text(text: str) -> str:
    """Text of a corpus as it can be put into a page: no markup, nothing that turns the rest of the line around."""
    if not text:
        return ""
    return f"<bdi>{escape(text.encode('utf-8', 'replace').decode())}</bdi>"
