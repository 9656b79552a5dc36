"""EntityQuestions: simple questions about one entity each, by relation. Is a passage with an answer retrieved?

Knows: relations, what a corpus covers, recall. Does not know: how a system searches, or how a question's entity is
found.

Sciavolino et al. 2021, "Simple Entity-Centric Questions Challenge Dense Retrievers".
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from quoth.corpus.bm25 import check_not_empty
from quoth.corpus.word_index import indexed_text
from quoth.datasets.judging import first, has_answer, normalise
from quoth.datasets.questions import QAExample, read_questions
from quoth.errors import InputError
from quoth_eval.entities.coverage import Coverage, EntityQuestion, find_coverage
from quoth_eval.entities.rarity import count_terms, idf_buckets
from quoth_eval.entities.searches import Range, Search, by_text, searches
from quoth_eval.harness import ProgressCallback, evaluate
from quoth_eval.openqa import corpus_group
from quoth_eval.report import Report
from quoth_eval.system import BM25
from quoth_eval.task import Answer, Example, Scores, Task, draw_of_each

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus

KS = (20, 100)
COVERED = "covered"
SHOWN = ("covered", "relation", "rarity")
"""The dimensions whose groups a table shows; of covered questions by relation only the mean is shown."""


class Templates(Protocol):
    """What the evaluation needs of the question templates: the characters of the entity in a question of a relation."""

    def entity(self, question: str, relation: str | None = None) -> Range | None: ...


def has_string(text: str, question: QAExample) -> bool:
    """Whether a passage's text contains an answer's characters, in NFD, ignoring case and the amount of white space.

    Mostly looser than DPR's match (Iranian contains Iran), but spaces around a dot or a dash count. (The string match
    in the dataset's released code is DPR's, but it decomposes only the answers, so it never finds an answer with an
    accent in a composed text.)
    """
    folded = _folded(text)
    return any(wanted in folded for wanted in map(_folded, question.answers) if wanted)


def _folded(text: str) -> str:
    return normalise(unicodedata.normalize("NFD", text))


MATCHERS: Mapping[str, Callable[[str, QAExample], bool]] = {"dpr": has_answer, "string": has_string}


@dataclass(frozen=True, slots=True)
class Chosen:
    """The questions to ask, how many were read (by relation), the corpora, and what these cover of them (None if that
    was not measured)."""

    questions: tuple[EntityQuestion, ...]
    num_read: Mapping[str, int]
    corpora: tuple[Corpus, ...]
    coverage: Coverage | None
    seed: int = 0

    def settings(self) -> dict[str, Any]:
        """The numbers of questions and passages, in all and by relation."""
        by_relation: dict[str, list[int]] = {}
        for number, question in enumerate(self.questions):
            by_relation.setdefault(question.relation, []).append(number)
        num_answerable, num_covered = self._counts(range(len(self.questions)))
        return {
            "num_read": sum(self.num_read.values()),
            "num_passages": sum(corpus.num_passages for corpus in self.corpora),
            "num_answerable": num_answerable,
            "num_covered": num_covered,
            "seed": self.seed,
            "relations": {
                name: {"num_read": self.num_read[name], "num_questions": len(numbers)}
                | dict(zip(("num_answerable", "num_covered"), self._counts(numbers), strict=True))
                for name, numbers in by_relation.items()
            },
        }

    def _counts(self, numbers: Sequence[int]) -> tuple[int | None, int | None]:
        return (None, None) if self.coverage is None else self.coverage.counts(numbers)

    def groups(self, rarity: Mapping[int, str]) -> list[dict[str, str]]:
        """Each question's groups."""
        answerable = None if self.coverage is None else set(self.coverage.answerable)
        covered = (self.coverage.covered if self.coverage else None) or ()
        return [
            {"relation": question.relation}
            | corpus_group(number, answerable)
            | ({COVERED: COVERED, "covered relation": question.relation} if number in covered else {})
            | ({"rarity": rarity[number]} if number in rarity else {})
            for number, question in enumerate(self.questions)
        ]


def read_entity_questions(files: Sequence[str | Path], templates: Templates | None = None) -> list[EntityQuestion]:
    """The questions of files named by their relation (P17.test.json). Raises InputError as `read_questions` does."""
    questions = []
    for path in map(Path, files):
        relation = path.name.split(".")[0]
        for question in read_questions(path):
            entity = templates.entity(question.text, relation) if templates else None
            questions.append(EntityQuestion(question, relation, entity))
    return questions


def choose_questions(
    files: Sequence[str | Path],
    corpora: Sequence[Corpus],
    templates: Templates | None = None,
    *,
    limit: int | None = None,
    seed: int = 0,
    coverage: bool = True,
    covered_only: bool = False,
    progress: ProgressCallback | None = None,
) -> Chosen:
    """The questions of the files, or `limit` questions per relation, drawn with `seed`; with `covered_only`, of those
    that the corpora cover. Raises InputError, EmptyCorpusError."""
    if not files:
        raise InputError("no file of questions; give one or more, such as P17.test.json")
    check_not_empty(corpora)
    read = read_entity_questions(files, templates)
    asked = draw_of_each(_covered(read, corpora, progress) if covered_only else read, limit, seed, _relation)
    covers: Coverage | None = None
    if covered_only:
        covers = Coverage(frozenset(range(len(asked))), frozenset(range(len(asked))))
    elif coverage:
        covers = find_coverage(asked, corpora, progress)
    return Chosen(tuple(asked), Counter(map(_relation, read)), tuple(corpora), covers, seed)


def run_entity_questions(
    chosen: Chosen,
    systems: Mapping[str, Search] | None = None,
    *,
    ks: Sequence[int] = KS,
    rarity: bool = False,
    progress: ProgressCallback | None = None,
    folder: Path | None = None,
) -> Report:
    """Ask BM25 and then each of `systems` the questions. With `rarity`, they are also grouped by their entity's IDF.

    `folder` keeps the run, to be resumed. Raises InputError.
    """
    if not ks or min(ks) < 1:
        raise InputError(f"ks is {list(ks)}; it must be 1 or more passages")
    groups = chosen.groups(_rarity(chosen) if rarity else {})
    examples = [
        Example(asked.question.id, asked.question.text, asked.question.answers, asked, of)
        for asked, of in zip(chosen.questions, groups, strict=True)
    ]
    some_covered = 0 < len((chosen.coverage.covered if chosen.coverage else None) or ()) < len(examples)
    task = Task(
        name="entities",
        examples=examples,
        judge=partial(_judge, tuple(ks)),
        settings=chosen.settings(),
        macro=("relation", "covered relation") if some_covered else ("relation",),
    )

    def entity(asked: EntityQuestion) -> Range | None:
        return asked.entity

    named = {"bm25": by_text(BM25(chosen.corpora)), **(systems or {})}
    made = {name: searches(search, lambda _: max(ks), entity) for name, search in named.items()}
    return evaluate(task, made, folder, progress)


def _relation(question: EntityQuestion) -> str:
    return question.relation


def _rarity(chosen: Chosen) -> dict[int, str]:
    names = [question.name for question in chosen.questions]
    passages = (passage for corpus in chosen.corpora for passage in corpus.passages())
    buckets = idf_buckets(names, count_terms((indexed_text(p.title, p.text) for p in passages), names))
    return {number: bucket.name(i, len(buckets)) for i, bucket in enumerate(buckets) for number in bucket.numbers}


def _covered(
    questions: Sequence[EntityQuestion], corpora: Sequence[Corpus], progress: ProgressCallback | None
) -> list[EntityQuestion]:
    covered = find_coverage(questions, corpora, progress).covered
    if covered is None:
        raise InputError("covered questions need to know the entities; give the templates (--templates)")
    if not covered:
        raise InputError(f"none of the {len(questions):,} questions is covered by a passage; give a larger corpus")
    return [questions[number] for number in sorted(covered)]


def _judge(ks: Sequence[int], example: Example[EntityQuestion], answer: Answer) -> Scores:
    """Does one of the best k passages contain an answer, by each matcher?"""
    scores: dict[str, float] = {}
    for matcher, holds in MATCHERS.items():
        place = first(holds(passage.text, example.source.question) for passage in answer.passages)
        scores |= {f"{matcher}@{k}": float(place is not None and place < k) for k in ks}
    return scores
