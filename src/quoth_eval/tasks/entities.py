"""EntityQuestions: simple questions about one entity each, by relation. Is a passage with an answer retrieved?

Knows: relations, what a corpus covers, recall. Does not know: how a system searches, or how a question's entity is
found.

Sciavolino et al. 2021, "Simple Entity-Centric Questions Challenge Dense Retrievers".
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from annotated_types import MinLen

from quoth.cli.models import load_entities
from quoth.corpus.bm25 import check_not_empty, indexed_text
from quoth.datasets.judging import answerable, first, has_answer, holders, normalise
from quoth.datasets.questions import QAExample, read_questions
from quoth.errors import InputError
from quoth.fields import Count, check_fields
from quoth_eval.entity_search import Range, Search, by_text, searches, searching
from quoth_eval.harness import ProgressCallback
from quoth_eval.question_templates import QuestionTemplates
from quoth_eval.rarity import count_terms, idf_buckets
from quoth_eval.report import Report
from quoth_eval.spec import ENTITIES, Given, Options, Prepared, Settings, TaskSpec
from quoth_eval.systems import searcher_by_words
from quoth_eval.task import Answer, Example, Scores, System, Task, draw_of_each
from quoth_eval.tasks.openqa import DEPTHS, corpus_group, read_passages

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus
    from quoth.records import Passage

KS = (20, 100)
COVERED = "covered"
SHOWN = ("covered", "relation", "rarity")
"""The dimensions whose groups a table shows; of covered questions by relation only the mean is shown."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class EntitySettings(Settings):
    """Which questions are asked, and what is measured. Raises InputError."""

    ks: Annotated[tuple[Count, ...], MinLen(1), DEPTHS] = KS
    templates: Annotated[str | None, "The dataset's relation_query_templates.json, to find the entities."] = None
    coverage: Annotated[bool, "Read every passage to count the questions that the corpus can answer."] = True
    covered: Annotated[bool, "Ask only questions of which a passage contains both the answer and the entity."] = False
    idf: Annotated[bool, "Also report by how rare the entity is."] = False
    picture: Annotated[str | None, "Draw covered questions and the first system's keys (UMAP) as PNG."] = None

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("idf", "covered", "picture"):
            if getattr(self, name) and self.templates is None:
                raise InputError(f"{name} requires each question's entity; give --set templates=FILE")


MATCHERS: Mapping[str, Callable[[str, QAExample], bool]] = {"dpr": has_answer, "string": has_string}


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


def read_entity_questions(
    files: Sequence[str | Path], templates: QuestionTemplates | None = None
) -> list[EntityQuestion]:
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
    settings: EntitySettings,
    limit: int | None = None,
    seed: int = 0,
    progress: ProgressCallback | None = None,
) -> Chosen:
    """The questions of the files, or `limit` per relation, drawn with `seed`, as the settings say. Raises InputError,
    EmptyCorpusError."""
    if not files:
        raise InputError("no file of questions; give one or more, such as P17.test.json")
    check_not_empty(corpora)
    templates = QuestionTemplates.read(settings.templates) if settings.templates else None
    read = read_entity_questions(files, templates)
    asked = draw_of_each(_covered(read, corpora, progress) if settings.covered else read, limit, seed, _relation)
    covers: Coverage | None = None
    if settings.covered:
        covers = Coverage(frozenset(range(len(asked))), frozenset(range(len(asked))))
    elif settings.coverage:
        covers = find_coverage(asked, corpora, progress)
    return Chosen(tuple(asked), Counter(map(_relation, read)), tuple(corpora), covers, seed)


def entities_task(chosen: Chosen, ks: Sequence[int] = KS, rarity: bool = False) -> Task[EntityQuestion]:
    """The questions; with `rarity`, they are also grouped by their entity's IDF."""
    groups = chosen.groups(_rarity(chosen) if rarity else {})
    examples = [
        Example(asked.question.id, asked.question.text, asked.question.answers, asked, of)
        for asked, of in zip(chosen.questions, groups, strict=True)
    ]
    some_covered = 0 < len((chosen.coverage.covered if chosen.coverage else None) or ()) < len(examples)
    return Task(
        name="entities",
        examples=examples,
        judge=partial(_judge, tuple(ks)),
        settings=chosen.settings(),
        macro=("relation", "covered relation") if some_covered else ("relation",),
    )


def searches_of(search: Search, ks: Sequence[int] = KS) -> System[EntityQuestion]:
    """A search as a system."""
    return searches(search, lambda _: max(ks), lambda asked: asked.entity)


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
        raise InputError("covered questions need to know the entities; give the templates (--set templates=FILE)")
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


def _make(given: Given, settings: EntitySettings) -> Prepared:
    chosen = choose_questions(given.files, given.searched(), settings, given.limit, given.seed, given.progress)
    search = searching(given)
    if settings.picture is not None:
        from quoth_eval.key_picture import check_installed

        check_installed()

    def drawn(report: Report) -> str:
        if settings.picture is None:
            return ""
        from quoth_eval.key_picture import picture_of

        model = load_entities(given.systems[0].partition(",")[0], given.corpora, given.setup)
        covered = sorted((chosen.coverage.covered if chosen.coverage else None) or ())
        picture_of(settings.picture, [chosen.questions[at] for at in covered if chosen.questions[at].entity], model)
        return f"\nThe picture is {settings.picture}\n"

    def words(options: Options) -> System[EntityQuestion]:
        return searches_of(by_text(searcher_by_words(given.corpora, options)), settings.ks)

    return Prepared(
        task=entities_task(chosen, settings.ks, settings.idf),
        asks=lambda name, options: searches_of(search(name, options), settings.ks),
        baselines={
            "bm25": lambda options: searches_of(by_text(searcher_by_words(given.corpora, options)), settings.ks)
        },
        tables=lambda report: report.tables(SHOWN),
        more=drawn,
    )


SPECS = [
    TaskSpec(
        name="entities",
        help="The questions of FILES (EntityQuestions, one per relation): is a passage with an answer found?",
        settings=EntitySettings,
        make=_make,
        form=ENTITIES,
        systems=("bm25",),
        baselines=("bm25",),
        each=True,
        files="entityquestions/test/*.json*",
        takes_files=True,
    )
]
