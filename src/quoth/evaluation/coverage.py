"""Questions about entities, and what of them a corpus can answer at all.

Knows: questions, passages, and when a passage names an entity and holds an answer. Does not know: how passages are
searched.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from quoth.corpus.corpus import Corpus
from quoth.datasets.answers import answerable, has_answer, holders
from quoth.datasets.questions import Question
from quoth.evaluation.openqa import read_passages
from quoth.evaluation.run import Progress
from quoth.evaluation.searches import Range

_TITLE_END = "\n|\n"
"""Keeps an entity from beginning in a title and ending in the text."""


@dataclass(frozen=True, slots=True)
class EntityQuestion:
    """A question, its relation, and where its entity stands in its text, None where that is not known."""

    question: Question
    relation: str
    entity: Range | None

    @property
    def name(self) -> str:
        """The entity as the question writes it, "" where it is not known."""
        return self.question.text[slice(*self.entity)] if self.entity else ""


@dataclass(frozen=True, slots=True)
class Coverage:
    """What can be found at all: the numbers of the questions that some passage's text holds an answer to (DPR's match),
    and of those where the text or title of such a passage names the entity too, None where no entity is known."""

    answerable: frozenset[int]
    covered: frozenset[int] | None

    def counts(self, numbers: Collection[int]) -> tuple[int, int | None]:
        """How many of these questions are answerable, and how many covered."""
        covered = None if self.covered is None else len(self.covered.intersection(numbers))
        return len(self.answerable.intersection(numbers)), covered


def find_coverage(
    questions: Sequence[EntityQuestion], corpora: Sequence[Corpus], progress: Progress | None = None
) -> Coverage:
    """What passages of the corpora hold of the questions. Reads them all, twice where entities are known."""
    found = answerable([each.question for each in questions], (each.text for each in read_passages(corpora, progress)))
    if not any(each.entity for each in questions):
        return Coverage(frozenset(found), None)
    names = [Question("", "", (each.name,) if number in found else ()) for number, each in enumerate(questions)]
    naming = holders(names, (f"{each.title}{_TITLE_END}{each.text}" for each in read_passages(corpora, progress)))
    places = [(corpus, row) for corpus in corpora for row in corpus.live_rows().tolist()]
    covered = set()
    for number, numbers in naming.items():
        texts = (corpus.passage(row).text for corpus, row in (places[i] for i in numbers))
        if any(has_answer(text, questions[number].question) for text in texts):
            covered.add(number)
    return Coverage(frozenset(found), frozenset(covered))
