"""The tables of what is lost, of shares, and of what is left; the same as JSON.

Knows: an outcome. Does not know: how it came about.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from quoth_eval.optout.experiment import Outcome
from quoth_eval.optout.loss import ANSWERED_BY, FOUND, HOLDERS, RIGHT, THEIRS, shares_of
from quoth_eval.report import Row, Table
from quoth_eval.statistics import paired
from quoth_eval.task import percent

SHOWN = 10
"""Documents whose shares are shown."""
LEFT = {
    "documents": "documents listed",
    "snapshots": "snapshots that have one",
    "quotations": "quotations found word for word in them",
    "elsewhere": "— in others' documents",
    "in_bytes": "— in no others', but in the bytes of a file",
    "vectors": "passages with stored vectors",
    "recorded": "named in the record of source files",
}


def tables(outcome: Outcome, by: str | None) -> list[Table]:
    """All tables; shares by the owners that the field `by` names, or by their documents and others'."""
    return [loss_table(outcome), *share_tables(outcome, by), left_table(outcome)]


def as_record(outcome: Outcome, by: str | None) -> dict[str, Any]:
    """The report, every owner's and every document's share, and what is left, as JSON has them."""
    shares = {name: outcome.results(name)[0] for name in _answering(outcome)}
    return outcome.report.to_dict() | {
        "shares": {name: shares_of(result, _owner(outcome, by)) for name, result in shares.items()},
        "document_shares": {name: shares_of(result) for name, result in shares.items()},
        "num_quotations": outcome.num_quotations,
        "left": {stage: asdict(left) for stage, left in outcome.stages.items()},
    }


def loss_table(outcome: Outcome) -> Table:
    """Systems before and after, over all questions and by who holds an answer."""
    rows = []
    for name in _names(outcome):
        for group in (None, *HOLDERS):
            old, new = (
                [row for row in each.rows if group in (None, row.groups[ANSWERED_BY])] for each in outcome.results(name)
            )
            if old:
                told = name if group is None else f"{name}: {group}"
                right, found = _compared(old, new, RIGHT), _compared(old, new, FOUND)
                rows.append([told, f"{len(old):,}", *right, _sure(old), _sure(new), *found[:2]])
    heads = ["who can answer", "questions", "right before", "after", "difference", "p"]
    return [*heads, "sure before", "after", "in 5 passages before", "after"], rows


def _sure(rows: Sequence[Row]) -> str:
    """The share of the questions with a sure answer, in percent; "–" of a system that only searches."""
    told = [row.predictions for row in rows if row.predictions is not None]
    return percent(sum(any(not each.abstained for each in best[:1]) for best in told) / len(told)) if told else "–"


def _compared(old: Sequence[Row], new: Sequence[Row], measure: str) -> list[str]:
    if any(measure not in row.scores for row in (*old, *new)):
        return ["–"] * 4
    before, after = ([row.scores[measure] for row in rows] for rows in (old, new))
    found = paired(after, before)
    return [*(percent(sum(each) / len(each)) for each in (before, after)), str(found.points), f"{found.p:.4f}"]


def share_tables(outcome: Outcome, by: str | None) -> list[Table]:
    """From whose documents, and from which, the first answers before are quoted: mean shares in percent."""
    names, made = _answering(outcome), []
    for head, group, most in (("owner", _owner(outcome, by), None), ("document", None, SHOWN)):
        columns = [shares_of(outcome.results(name)[0], *([group] if group else [])) for name in names]
        named = dict.fromkeys(each for column in columns for each in column)
        best = sorted(named, key=lambda each: -sum(column.get(each, 0.0) for column in columns))[:most]
        shown = best if group else [_title(outcome, each) for each in best]
        rows = [
            [told, *(percent(column.get(each, 0.0)) for column in columns)]
            for told, each in zip(shown, best, strict=True)
        ]
        made.append(([f"share of the answers by {head}", *names], rows))
    return made


def left_table(outcome: Outcome) -> Table:
    """What is left of the documents at each stage, and for how many questions a system names one before and after."""
    counts = [asdict(each) for each in outcome.stages.values()]
    told = f" (of {outcome.num_quotations:,})"
    rows = [
        [words + told * (name == "quotations"), *(f"{each[name]:,}" for each in counts)] for name, words in LEFT.items()
    ]
    for name in _names(outcome):
        before, after = (f"{sum(each.values(THEIRS) or ()):.0f}" for each in outcome.results(name))
        rows.append([f"questions for which {name} names one", before, "", after])
    return ["what is left of them", *outcome.stages], rows


def _names(outcome: Outcome) -> list[str]:
    return [asked.spelled for asked in outcome.call.asked]


def _answering(outcome: Outcome) -> list[str]:
    """The systems with an answer that is quoted, as a language model's are not."""
    told = {name: outcome.results(name)[0].rows for name in _names(outcome)}
    return [name for name, rows in told.items() if any(each.evidence for row in rows for each in row.predictions or ())]


def _owner(outcome: Outcome, by: str | None) -> Any:
    """What names the owner of a document."""
    theirs, corpus = frozenset(outcome.call.ids), outcome.call.corpus
    if by is None:
        return lambda document: "they" if document in theirs else "others"
    return lambda document: str(corpus.document(document).metadata.get(by, "–"))


def _title(outcome: Outcome, document: str) -> str:
    title, mark = outcome.call.corpus.document(document).title, " *" if document in outcome.call.ids else ""
    return f"{title} ({document}){mark}" if title else f"{document}{mark}"
