"""EntityQuestions: simple questions about one entity each, by relation. Is a passage with an answer retrieved?

Knows: relations and their templates, what a corpus covers, recall. Does not know: how a system searches.

Sciavolino et al. 2021, "Simple Entity-Centric Questions Challenge Dense Retrievers".
"""

import json
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Self

from annotated_types import MinLen

from quoth.cli.models import load_entities
from quoth.corpus.bm25 import check_not_empty
from quoth.corpus.corpus import Corpus
from quoth.corpus.documents import read_text
from quoth.corpus.view import count_passages
from quoth.datasets.judging import answerable, first, has_answer, holders, normalise
from quoth.datasets.questions import QAExample, read_questions
from quoth.errors import InputError
from quoth.fields import Checked, Count
from quoth_eval.entity_search import (
    Range,
    by_text,
    check_installed,
    picture_of,
    rarity_groups,
    searches,
    searching,
    term_idfs,
)
from quoth_eval.harness import ProgressCallback
from quoth_eval.report import Report
from quoth_eval.spec import ENTITIES, Given, Prepared, TaskSpec
from quoth_eval.systems import BM25
from quoth_eval.task import Answer, Example, Scores, Task, draw_of_each, recalls
from quoth_eval.tasks.openqa import DEPTHS, corpus_group, read_passages

KS = (20, 100)
ENTITY = "[X]"
"""The entity in a template."""
COVERED = "covered"
SHOWN = ("covered", "relation", "rarity")
"""The dimensions whose groups a table shows; of covered questions by relation only the mean is shown."""


def has_string(text: str, question: QAExample) -> bool:
    """Whether a passage's text contains an answer's characters, in NFD, ignoring case and the amount of white space.

    Mostly looser than DPR's match (Iranian contains Iran), but spaces around a dot or a dash count. (The string match
    in the dataset's released code is DPR's, but it decomposes only the answers, so it never finds an answer with an
    accent in a composed text.)
    """

    def folded(text: str) -> str:
        return normalise(unicodedata.normalize("NFD", text))

    return any(wanted in folded(text) for wanted in map(folded, question.answers) if wanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntitySettings(Checked):
    """Which questions are asked, and what is measured. Raises InputError."""

    ks: Annotated[tuple[Count, ...], MinLen(1), DEPTHS] = KS
    templates: Annotated[str | None, "The dataset's relation_query_templates.json, to find the entities."] = None
    coverage: Annotated[bool, "Read every passage to count the questions that the corpus can answer."] = True
    covered: Annotated[bool, "Ask only questions of which a passage contains both the answer and the entity."] = False
    idf: Annotated[bool, "Also report by how rare the entity is."] = False
    picture: Annotated[str | None, "Draw covered questions and the first system's keys (UMAP) as PNG."] = None

    def check(self) -> None:
        for name in ("idf", "covered", "picture"):
            if getattr(self, name) and self.templates is None:
                raise InputError(f"{name} requires each question's entity; give --set templates=FILE")


class QuestionTemplates:
    """One template per relation, with [X] in place of the entity.

    Case matters; the amount of white space does not. A final question mark is optional and never part of the entity.
    """

    def __init__(self, templates: Mapping[str, str]) -> None:
        """Raises InputError if there are no templates, or if one does not contain exactly one [X]."""
        if not templates:
            raise InputError('no templates; give one per relation, such as {"P19": "Where was [X] born?"}')
        for relation, template in templates.items():
            if not isinstance(template, str) or template.count(ENTITY) != 1:
                raise InputError(f"template {template!r} of {relation}: it must be a text with exactly one {ENTITY}")
        self._patterns = {relation: _pattern(template) for relation, template in templates.items()}

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """The templates of a JSON file. Raises InputError, naming the file, if it is not a file of templates."""
        try:
            content = json.loads(read_text(path))
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path}:{getattr(error, 'lineno', 1)}: not JSON ({error}); fix the file") from None
        if not isinstance(content, Mapping):
            raise InputError(f'{path}: not a JSON object; it must map relations to templates: {{"P19": "Where was …"}}')
        try:
            return cls(content)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None

    def entity(self, question: str, relation: str) -> Range | None:
        """The character range of the question's entity; None if the template does not match. Raises InputError for a
        relation without a template."""
        if relation not in self._patterns:
            raise InputError(f"no template for relation {relation!r}; use one of {', '.join(self._patterns)}")
        match = self._patterns[relation].fullmatch(_without_mark(question))
        return match.span("entity") if match else None


def _without_mark(text: str) -> str:
    """`text` without a final question mark and the white space around it."""
    return text.rstrip().removesuffix("?").rstrip()


def _pattern(template: str) -> re.Pattern[str]:
    """Matches the template with any amount of white space wherever it has some."""
    parts = (re.split(r"\s+", part) for part in _without_mark(template.strip()).split(ENTITY))
    before, after = (r"\s+".join(map(re.escape, words)) for words in parts)
    return re.compile(rf"\s*{before}(?P<entity>\S(?:.*\S)?){after}", re.DOTALL)


MATCHERS: Mapping[str, Callable[[str, QAExample], bool]] = {"dpr": has_answer, "string": has_string}


@dataclass(frozen=True, slots=True)
class EntityQuestion:
    """A question, its relation, the characters of its entity (None if unknown), and what can be found at all.

    `answerable`: some passage's text contains an answer (DPR's match). `covered`: the text or title of such a passage
    also names the entity. None if that was not measured, or if no question's entity is known.
    """

    question: QAExample
    relation: str
    entity: Range | None
    answerable: bool | None = None
    covered: bool | None = None

    @property
    def name(self) -> str:
        """The entity as spelled in the question, "" if unknown."""
        return self.question.text[slice(*self.entity)] if self.entity else ""


def with_coverage(
    questions: Sequence[EntityQuestion], corpora: Sequence[Corpus], progress: ProgressCallback | None = None
) -> list[EntityQuestion]:
    """The questions, with what the corpora cover. Reads all passages, twice if entities are known."""
    texts = (passage.text for passage in read_passages(corpora, progress))
    answered = answerable([each.question for each in questions], texts)
    measured = [replace(each, answerable=number in answered) for number, each in enumerate(questions)]
    if not any(each.entity for each in questions):
        return measured
    names = [QAExample("", "", (each.name,) if each.answerable else ()) for each in measured]
    # No entity begins in the title and ends in the text.
    titled = (f"{passage.title}\n|\n{passage.text}" for passage in read_passages(corpora, progress))
    naming = holders(names, titled)
    places = [(corpus, row) for corpus in corpora for row in corpus.live_rows().tolist()]

    def covered(number: int, question: QAExample) -> bool:
        texts = (corpus.passage(row).text for corpus, row in (places[at] for at in naming.get(number, ())))
        return any(has_answer(text, question) for text in texts)

    return [replace(each, covered=covered(number, each.question)) for number, each in enumerate(measured)]


def _counts(questions: Sequence[EntityQuestion]) -> dict[str, int | None]:
    """How many questions are answerable, and how many are covered; None if that is not known."""
    measures = {
        "num_answerable": [each.answerable for each in questions],
        "num_covered": [each.covered for each in questions],
    }
    return {name: None if None in known else sum(map(bool, known)) for name, known in measures.items()}


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


def choose_questions(given: Given, settings: EntitySettings) -> tuple[list[EntityQuestion], Counter[str]]:
    """The questions to ask, `limit` per relation, and how many were read of each. Raises InputError,
    EmptyCorpusError."""
    if not given.files:
        raise InputError("no file of questions; give one or more, such as P17.test.json")
    corpora, progress = given.searched(), given.progress
    check_not_empty(corpora)
    templates = QuestionTemplates.read(settings.templates) if settings.templates else None
    asked = read_entity_questions(given.files, templates)
    num_read = Counter(each.relation for each in asked)
    if settings.covered:
        asked = [each for each in with_coverage(asked, corpora, progress) if each.covered]
        if not asked:
            raise InputError(
                f"none of the {num_read.total():,} questions is covered by a passage; give a larger corpus"
            )
    asked = draw_of_each(asked, given.limit, given.seed, lambda question: question.relation)
    if settings.coverage and not settings.covered:
        asked = with_coverage(asked, corpora, progress)
    return asked, num_read


def entities_task(given: Given, settings: EntitySettings) -> Task[EntityQuestion]:
    """The questions by relation, by what is covered, and, if that is wanted, by the rarity of their entities."""
    questions, num_read = choose_questions(given, settings)
    names = [question.name for question in questions]
    passages = (passage for corpus in given.corpora for passage in corpus.passages())
    rarity = rarity_groups(names, term_idfs(passages, names)) if settings.idf else {}
    relations = defaultdict[str, list[EntityQuestion]](list)
    examples = []
    for number, asked in enumerate(questions):
        relations[asked.relation].append(asked)
        groups = {"relation": asked.relation, **corpus_group(asked.answerable)}
        if asked.covered:
            groups |= {COVERED: COVERED, "covered relation": asked.relation}
        if number in rarity:
            groups["rarity"] = rarity[number]
        examples.append(Example(asked.question.id, asked.question.text, asked.question.answers, asked, groups))
    counts = {
        "num_read": num_read.total(),
        "num_passages": count_passages(given.corpora),
        **_counts(questions),
        "seed": given.seed,
        "relations": {
            name: {"num_read": num_read[name], "num_questions": len(own), **_counts(own)}
            for name, own in relations.items()
        },
    }
    num_covered = sum(COVERED in example.groups for example in examples)
    return Task(
        name="entities",
        examples=examples,
        judge=partial(_judge, settings.ks),
        settings=counts,
        macro=("relation", "covered relation") if 0 < num_covered < len(examples) else ("relation",),
    )


def _judge(ks: Sequence[int], example: Example[EntityQuestion], answer: Answer) -> Scores:
    """Does one of the best k passages contain an answer, by each matcher?"""
    scores: dict[str, float] = {}
    for matcher, holds in MATCHERS.items():
        place = first(holds(passage.text, example.source.question) for passage in answer.passages)
        scores |= recalls(matcher, place, ks)
    return scores


def _make(given: Given, settings: EntitySettings) -> Prepared:
    task, search = entities_task(given, settings), searching(given)
    asked = partial(searches, depth=lambda _: max(settings.ks))
    if settings.picture is not None:
        check_installed()

    def drawn(report: Report) -> str:
        if settings.picture is None:
            return ""
        model = load_entities(given.systems[0].partition(",")[0], given.corpora, given.setup)
        questions = [example.source for example in task.examples]
        covered = [each for each in questions if each.covered and each.entity]
        picture_of(settings.picture, covered, model)
        return f"\nThe picture is {settings.picture}\n"

    return Prepared(
        task=task,
        asks=lambda name, options: asked(search(name, options)),
        baselines={"bm25": lambda options: asked(by_text(BM25(given.corpora, options)))},
        tables=lambda report: report.tables(SHOWN),
        more=drawn,
    )


SPECS = [
    TaskSpec(
        name="entities",
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
