"""Reading comprehension: given the passage, the reader marks the answer in it, or says that there is none.

Knows: examples, exact match and F1 as SQuAD scores them. Does not know: retrieval.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from quoth.answers.evidence import Source, predict_spans
from quoth.datasets.judging import normalise_answer
from quoth.reader.data import ReadingExample
from quoth.reader.network import SpanReader
from quoth.records import Passage
from quoth_eval.harness import ProgressCallback, evaluate
from quoth_eval.metrics import HITS
from quoth_eval.report import Report
from quoth_eval.task import Answer, Example, Scores, System, Task, first_right

_AT_A_TIME = 32
REFUSED = "refused"


def run_reading(
    examples: Sequence[ReadingExample],
    reader: SpanReader,
    name: str = "reader",
    progress: ProgressCallback | None = None,
    folder: Path | None = None,
) -> Report:
    """Ask each example's question of its own passage. Measures are exact match, F1 and exact match among five answers
    if the passage answers the question, and the share of the others that the reader refused to answer."""
    asked = [Example(example.id, example.question, _gold(example), example) for example in examples]
    task = Task(name="reading", examples=asked, judge=_judge, at_a_time=_AT_A_TIME)
    return evaluate(task, {name: _reads(reader)}, folder, progress)


def _gold(example: ReadingExample) -> tuple[str, ...]:
    return tuple(example.passage.text[start:end] for start, end in example.answers)


def _reads(reader: SpanReader) -> System[ReadingExample]:
    def answer(examples: Sequence[Example[ReadingExample]]) -> list[Answer]:
        sources = [example.source for example in examples]
        passages = [[Passage(0, each.id, each.passage.title, each.passage.text, 0, 0)] for each in sources]
        read = reader.read([each.question for each in sources], passages)
        return [
            Answer(predict_spans([Source(shown[0], "")], spans, HITS), shown, {REFUSED: float(spans[0].total < 0)})
            for shown, spans in zip(passages, read, strict=True)
        ]

    return answer


def _judge(example: Example[ReadingExample], answer: Answer) -> Scores:
    if not example.answers:
        return answer.scores
    said = [prediction.text for prediction in answer.predictions or ()] or [""]
    wanted = set(map(normalise_answer, example.answers))
    scores = first_right([normalise_answer(text) in wanted for text in said])
    return {**scores, "F1": max(token_f1(said[0], text) for text in example.answers)}


def token_f1(prediction: str, answer: str) -> float:
    """The harmonic mean of precision and recall over normalised words (Rajpurkar et al. 2016)."""
    said, wanted = normalise_answer(prediction).split(), normalise_answer(answer).split()
    if not said or not wanted:
        return float(said == wanted)
    common = sum((Counter(said) & Counter(wanted)).values())
    return 2 * common / (len(said) + len(wanted))
