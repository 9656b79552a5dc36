"""The cloze task: fill blanks drawn from pages.

Knows: how an answer is judged. Does not know: how blanks are drawn, or models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from quoth.datasets.blanks import Blank
from quoth_eval.metrics import length_groups, rank
from quoth_eval.task import Answer, Example, Scores, Task, first_right

BLANKS_AT_A_TIME = 32


def cloze_task(blanks: Sequence[Blank], settings: Mapping[str, Any]) -> Task[Blank]:
    """Blanks to fill, those of neighbouring passages together; a blank's own passage is hidden."""
    examples = [
        Example(
            f"{blank.kind}-{number}",
            blank.text,
            (blank.answer,),
            blank,
            {"kind": blank.kind} | length_groups(blank.num_words, "words"),
            frozenset({blank.row}),
        )
        for number, blank in enumerate(blanks)
    ]
    return Task(
        name="cloze",
        examples=examples,
        judge=_judge,
        settings=settings,
        at_a_time=BLANKS_AT_A_TIME,
        order=lambda example: example.source.row,
    )


def _judge(example: Example[Blank], answer: Answer) -> Scores:
    place = rank(example.source.answer, [prediction.text for prediction in answer.predictions or ()])
    return first_right([i == place for i in range(len(answer.predictions or ()))])
