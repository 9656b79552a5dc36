"""What went wrong: the kind of each wrong answer of a run, and a sample of them with their evidence.

Knows: rows of a run, and where an answer occurs in a text. Does not know: systems, corpora.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

from quoth.datasets.judging import answer_ranges
from quoth.datasets.questions import QAExample
from quoth.records import in_context
from quoth.text.tokenizer import MASK
from quoth_eval.pages import Quotation, Section
from quoth_eval.report import Result, Row, Table
from quoth_eval.task import draw, percent
from quoth_eval.tasks.ner import ALL_RIGHT

BOUNDS = "right place, wrong bounds"
PHRASE = "another phrase of the right passage"
PASSAGE = "right passage found, answered from another"
UNREAD = "right passage not found"
ABSENT = "not in the corpus"
UNKNOWN = "right passage not found, or not in the corpus"
SILENT = "no answer given"
MISSED = "names missed, the others right"
WRONG_NAMES = "names with a wrong start, end or class"
KINDS = (BOUNDS, PHRASE, PASSAGE, UNREAD, ABSENT, UNKNOWN, SILENT, WRONG_NAMES, MISSED)
_WIDTH = 160


class WrongAnswer(NamedTuple):
    """A row whose first answer is wrong, and the kind of its error: one of `KINDS`, or "label A taken for B"."""

    kind: str
    row: Row


def wrong_answers(result: Result) -> list[WrongAnswer]:
    """The wrong answers of a system that answers, by kind, those of a kind in the order of the examples."""
    found = [
        WrongAnswer(error_of(row), row)
        for row in result.rows
        if row.predictions is not None and 0 in map(row.scores.get, ("exact_match", "accuracy", ALL_RIGHT))
    ]
    order = {kind: number for number, kind in enumerate(KINDS)}
    return sorted(found, key=lambda each: (order.get(each.kind, len(KINDS)), each.kind))


def error_of(row: Row) -> str:
    """The kind of a wrong answer. It goes by the first answer's kept places."""
    first = row.predictions[0] if row.predictions else None
    if first is None or not first.text or first.abstained:
        return SILENT
    if ALL_RIGHT in row.scores:
        return WRONG_NAMES if row.scores.get("precision", 1.0) < 1 else MISSED
    if "accuracy" in row.scores:
        return f"label {row.answers[0]} taken for {first.text}"
    question = QAExample(row.id, row.text, row.answers, row.pattern)
    right = [answer_ranges(place.context, question) for place in first.evidence]
    for place, ranges in zip(first.evidence, right, strict=True):
        start, end = in_context(place)
        if any(begin < end and start < stop for begin, stop in ranges):
            return BOUNDS
    if any(right):
        return PHRASE
    if any(value == 1 for measure, value in row.scores.items() if measure.startswith("oracle@")):
        return PASSAGE
    return {"answerable": UNREAD, "not answerable": ABSENT}.get(row.groups.get("corpus", ""), UNKNOWN)


def errors_table(name: str, wrong: Sequence[WrongAnswer], num_rows: int) -> Table:
    """How many of a system's answers are wrong in which way."""
    counts = Counter(each.kind for each in wrong).most_common()
    rows = [[kind, f"{count:,}", percent(count / num_rows)] for kind, count in counts]
    return [f"{name}: {len(wrong):,} of {num_rows:,} wrong", "answers", "% of all"], rows


def shown_errors(wrong: Sequence[WrongAnswer], count: int = 50, seed: int = 0) -> list[Section]:
    """Up to `count` wrong answers, drawn with `seed`, under their kinds, each with what was asked and its evidence."""
    kinds = groupby(draw(wrong, count, seed), lambda each: each.kind)
    return [Section(kind, list(map(quoted, some))) for kind, some in kinds]


def quoted(wrong: WrongAnswer) -> Quotation:
    """A wrong answer with what was asked, what is right, and the quoted place, each as far as it fits on a line."""
    kind, row = wrong
    said = row.predictions[0] if row.predictions else None
    told = f"{said.text} ({percent(said.probability)} %; {kind})" if said and said.text else f"({kind})"
    asked = Quotation(f"{row.id}: {around_blank(row.text)}", _cut(" | ".join(row.answers)), told)
    if not said or not said.evidence:
        return asked
    place, half = said.evidence[0], _WIDTH // 2
    start, end = in_context(place)
    parts = place.context[max(0, start - half) : start], place.context[start:end], place.context[end : end + half]
    before, phrase, after = (re.sub(r"\s+", " ", part) for part in parts)
    source = place.title or place.document_id
    return replace(asked, source=source, before=before.lstrip(), phrase=phrase, after=after.rstrip())


def around_blank(text: str) -> str:
    """A text's first blank with what is before and after it; the end of a text without one."""
    plain = " ".join(text.split())
    at = plain.find(MASK)
    if at < 0 or len(plain) <= _WIDTH:
        return _cut(plain)
    first = max(0, min(at - _WIDTH // 2, len(plain) - _WIDTH))
    last = first + _WIDTH
    return f"{'…' if first else ''}{plain[first:last]}{'…' if last < len(plain) else ''}"


def _cut(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= _WIDTH else f"…{plain[-_WIDTH:]}"
