"""Questions about entities, and how many of them a corpus can answer at all.

Knows: questions, passages, and when a passage names an entity and contains an answer. Does not know: how passages are
searched.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from quoth.datasets.judging import answerable, has_answer, holders
from quoth.datasets.questions import QAExample
from quoth_eval.entities.searches import Range
from quoth_eval.harness import ProgressCallback
from quoth_eval.openqa import read_passages

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus
    from quoth.records import Passage


@dataclass(frozen=True, slots=True)
class EntityQuestion:
    """A question, its relation, and the characters of its entity (None if unknown)."""

    question: QAExample
    relation: str
    entity: Range | None

    @property
    def name(self) -> str:
        """The entity as spelled in the question, "" if unknown."""
        return self.question.text[slice(*self.entity)] if self.entity else ""


@dataclass(frozen=True, slots=True)
class Coverage:
    """What can be found at all, as indices of questions.

    `answerable`: some passage's text contains an answer (DPR's match). `covered`: the text or title of such a passage
    also names the entity (None if no entity is known).
    """

    answerable: frozenset[int]
    covered: frozenset[int] | None

    def counts(self, numbers: Collection[int]) -> tuple[int, int | None]:
        """How many of these questions are answerable, and how many are covered."""
        covered = None if self.covered is None else len(self.covered.intersection(numbers))
        return len(self.answerable.intersection(numbers)), covered


def titled(passage: Passage) -> str:
    """A passage with its title, apart enough that no entity begins in the title and ends in the text."""
    return f"{passage.title}\n|\n{passage.text}"


def find_coverage(
    questions: Sequence[EntityQuestion], corpora: Sequence[Corpus], progress: ProgressCallback | None = None
) -> Coverage:
    """Which of the questions the corpora cover. Reads all passages, twice if entities are known."""
    texts = (passage.text for passage in read_passages(corpora, progress))
    answered = answerable([question.question for question in questions], texts)
    if not any(question.entity for question in questions):
        return Coverage(frozenset(answered), None)
    names = [QAExample("", "", (asked.name,) if i in answered else ()) for i, asked in enumerate(questions)]
    naming = holders(names, map(titled, read_passages(corpora, progress)))
    places = [(corpus, row) for corpus in corpora for row in corpus.live_rows().tolist()]
    covered = set()
    for number, numbers in naming.items():
        texts = (corpus.passage(row).text for corpus, row in (places[i] for i in numbers))
        if any(has_answer(text, questions[number].question) for text in texts):
            covered.add(number)
    return Coverage(frozenset(answered), frozenset(covered))
