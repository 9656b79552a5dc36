"""Reading comprehension: given the passage, the reader marks the answer in it, or says that there is none.

Knows: examples, exact match and F1 as SQuAD scores them. Does not know: retrieval.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from quoth.answers.evidence import Source, predict_spans
from quoth.cli.output import LeftOut
from quoth.datasets.judging import normalise_answer
from quoth.fields import Checked
from quoth.reader.data import ReadingExample, read_examples
from quoth.reader.runtime import open_reader
from quoth.reader.spans import SpanReader
from quoth.records import Passage
from quoth_eval.spec import Given, Prepared, TaskSpec
from quoth_eval.task import HITS, Answer, Example, Scores, System, Task, draw, first_right

REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingSettings(Checked):
    """How files are read."""

    skip_bad: Annotated[bool, "Leave out broken records and report their number."] = False


def reads(reader: SpanReader) -> System[ReadingExample]:
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
    """Exact match, F1 and exact match among five answers if the passage answers the question; whether the reader
    refused to answer any other."""
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


def _make(given: Given, settings: ReadingSettings) -> Prepared:
    left_out, setup = LeftOut(), given.setup
    examples = [each for path in given.files for each in read_examples(Path(path), settings.skip_bad, left_out)]
    left_out.report()
    base = None if setup.base is None else str(setup.base)
    asked = []
    for each in draw(examples, given.limit, given.seed):
        gold = tuple(each.passage.text[start:end] for start, end in each.answers)
        asked.append(Example(each.id, each.question, gold, each, {"kind": each.kind} if each.kind else {}))
    return Prepared(
        task=Task(name="reading", examples=asked, judge=_judge, at_a_time=32),
        asks=lambda name, options: reads(open_reader(name, device=setup.device, dtype=setup.dtype, base=base)),
    )


SPECS = [
    TaskSpec(
        name="reading",
        settings=ReadingSettings,
        make=_make,
        form="reading",
        systems=("quoth-reader",),
        files="squad/*.json*",
        takes_files=True,
    )
]
