"""Reading comprehension: given the passage, the reader marks the answer in it, or says that there is none.

Knows: examples, exact match and F1 as SQuAD scores them. Does not know: retrieval.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from quoth.datasets.answers import normalise_answer
from quoth.datasets.comprehension import ReadingExample
from quoth.evaluation.metrics import Interval, interval, markdown, percent
from quoth.predictors.answers import Source, predict_spans
from quoth.predictors.span_reader import SpanReader
from quoth.records import Passage

_AT_A_TIME = 32
HITS = 5


@dataclass(frozen=True, slots=True)
class ReadingReport:
    """For questions that the passage answers: exact match, F1, and exact match among five answers. For the others: the
    share that the reader refused to answer (None if there were none)."""

    num_questions: int
    exact_match: Interval
    f1: Interval
    hit_at_5: float
    refused: float | None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def run_reading(
    examples: Sequence[ReadingExample], reader: SpanReader, progress: Callable[[int, int], None] | None = None
) -> ReadingReport:
    """Ask each example's question of its own passage."""
    exact, f1, hits, refused = list[bool](), list[float](), list[bool](), list[bool]()
    for at in range(0, len(examples), _AT_A_TIME):
        part = examples[at : at + _AT_A_TIME]
        passages = [[Passage(0, example.id, example.passage.title, example.passage.text, 0, 0)] for example in part]
        for example, shown, spans in zip(
            part, passages, reader.read([e.question for e in part], passages), strict=True
        ):
            if not example.answers:
                refused.append(spans[0].total < 0)
                continue
            said = [answer.text for answer in predict_spans([Source(shown[0], "")], spans, HITS)] or [""]
            gold = [example.passage.text[start:end] for start, end in example.answers]
            right = [normalise_answer(text) in set(map(normalise_answer, gold)) for text in said]
            exact.append(right[0])
            hits.append(any(right))
            f1.append(max(token_f1(said[0], text) for text in gold))
        if progress is not None:
            progress(min(at + _AT_A_TIME, len(examples)), len(examples))
    return ReadingReport(
        len(exact),
        interval(exact),
        interval(f1),
        float(np.mean(hits)) if hits else 0.0,
        float(np.mean(refused)) if refused else None,
    )


def token_f1(prediction: str, answer: str) -> float:
    """The harmonic mean of precision and recall over normalised words (Rajpurkar et al. 2016)."""
    said, wanted = normalise_answer(prediction).split(), normalise_answer(answer).split()
    if not said or not wanted:
        return float(said == wanted)
    common = sum((Counter(said) & Counter(wanted)).values())
    return 2 * common / (len(said) + len(wanted))


def table(name: str, report: ReadingReport) -> str:
    """The shares as a Markdown table; percentages with 95 % intervals."""
    heads = [f"{report.num_questions:,} questions", "exact match", "F1", "hit@5", "refused if there is no answer"]
    refused = "–" if report.refused is None else percent(report.refused)
    return markdown(heads, [[name, str(report.exact_match), str(report.f1), percent(report.hit_at_5), refused]])
