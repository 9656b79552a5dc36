"""EntityQuestions: simple questions about one entity each, by relation. Is a passage with an answer retrieved?

Knows: relations, what a corpus covers, recall. Does not know: how a system searches, or how a question's entity is
found.

Sciavolino et al. 2021, "Simple Entity-Centric Questions Challenge Dense Retrievers".
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Protocol

from quoth.corpus.corpus import Corpus
from quoth.datasets.answers import first, has_answer, normalise, recall
from quoth.datasets.questions import QAExample, read_questions
from quoth.errors import InputError
from quoth.evaluation.coverage import Coverage, EntityQuestion, find_coverage
from quoth.evaluation.metrics import markdown, percent
from quoth.evaluation.openqa import BM25, Ranks, draw
from quoth.evaluation.run import ProgressCallback
from quoth.evaluation.searches import Range, Search, by_text
from quoth.retrieval.sparse import check_not_empty

KS = (20, 100)
ALL, COVERED = "all", "covered"
Groups = Mapping[str, Sequence[int]]
"""The indices of questions, by relation."""


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
class EntityResult:
    """For each question, the rank of the first passage with an answer among a system's best, by matcher."""

    name: str
    ranks: Mapping[str, Ranks]


@dataclass(frozen=True, slots=True)
class EntityReport:
    """The questions asked, how many were read (by relation), how many the corpus covers, and the results."""

    questions: tuple[EntityQuestion, ...]
    num_read: Mapping[str, int]
    num_passages: int
    coverage: Coverage | None
    seed: int
    ks: tuple[int, ...]
    results: tuple[EntityResult, ...]

    def parts(self) -> dict[str, Groups]:
        """All questions by relation, and the covered ones if some but not all are covered. A relation without any
        question is left out."""
        covered = (self.coverage.covered if self.coverage else None) or ()
        parts = {ALL: self._groups(range(len(self.questions)))}
        return parts | ({COVERED: self._groups(sorted(covered))} if 0 < len(covered) < len(self.questions) else {})

    def _groups(self, numbers: Iterable[int]) -> Groups:
        groups: dict[str, list[int]] = {}
        for number in numbers:
            groups.setdefault(self.questions[number].relation, []).append(number)
        return groups

    def counts(self, numbers: Collection[int]) -> tuple[int | None, int | None]:
        """How many of these questions are answerable, and how many are covered; None if that was not measured."""
        return (None, None) if self.coverage is None else self.coverage.counts(numbers)

    def to_dict(self) -> dict[str, Any]:
        """The settings, the coverage and the scores, without the individual questions."""
        relations = self.parts()[ALL]
        counted = {
            name: (self.num_read[name], len(numbers), *self.counts(numbers)) for name, numbers in relations.items()
        }
        names = ("num_read", "num_questions", "num_answerable", "num_covered")
        num_answerable, num_covered = self.counts(range(len(self.questions)))
        return {
            "num_questions": len(self.questions),
            "num_passages": self.num_passages,
            "num_answerable": num_answerable,
            "num_covered": num_covered,
            "seed": self.seed,
            "relations": {name: dict(zip(names, counts, strict=True)) for name, counts in counted.items()},
            "systems": [
                {"name": result.name} | {part: self._scores(result, groups) for part, groups in self.parts().items()}
                for result in self.results
            ],
        }

    def _scores(self, result: EntityResult, groups: Groups) -> dict[str, Any]:
        return {
            matcher: {
                str(k): {
                    "macro": macro(ranks, groups, k),
                    "micro": micro(ranks, groups, k),
                    "relations": {name: recall_of(ranks, numbers, k) for name, numbers in groups.items()},
                }
                for k in self.ks
            }
            for matcher, ranks in result.ranks.items()
        }


def recall_of(ranks: Ranks, numbers: Iterable[int], k: int) -> float:
    """Recall over the questions with these indices."""
    return recall([ranks[number] for number in numbers], k)


def macro(ranks: Ranks, groups: Groups, k: int) -> float:
    """The mean of the relations' recalls, as the papers report it."""
    return fmean(recall_of(ranks, numbers, k) for numbers in groups.values())


def micro(ranks: Ranks, groups: Groups, k: int) -> float:
    """Recall over the questions of all relations together."""
    return recall_of(ranks, [number for numbers in groups.values() for number in numbers], k)


def read_entity_questions(files: Sequence[str | Path], templates: Templates | None = None) -> list[EntityQuestion]:
    """The questions of files named by their relation (P17.test.json). Raises InputError as `read_questions` does."""
    questions = []
    for path in map(Path, files):
        relation = path.name.split(".")[0]
        for question in read_questions(path):
            entity = templates.entity(question.text, relation) if templates else None
            questions.append(EntityQuestion(question, relation, entity))
    return questions


def run_entity_questions(
    files: Sequence[str | Path],
    corpora: Sequence[Corpus],
    systems: Mapping[str, Search] | None = None,
    templates: Templates | None = None,
    *,
    ks: Sequence[int] = KS,
    limit: int | None = None,
    seed: int = 0,
    coverage: bool = True,
    covered_only: bool = False,
    progress: ProgressCallback | None = None,
) -> EntityReport:
    """Ask BM25 and then each of `systems` every question, or `limit` questions per relation, drawn with `seed`.

    With `covered_only`, only covered questions are asked. Raises InputError, EmptyCorpusError.
    """
    _check(files, ks, limit)
    check_not_empty(corpora)
    read = read_entity_questions(files, templates)
    by_relation: dict[str, list[EntityQuestion]] = {}
    for question in _covered(read, corpora, progress) if covered_only else read:
        by_relation.setdefault(question.relation, []).append(question)
    asked = [question for some in by_relation.values() for question in (draw(some, limit, seed) if limit else some)]
    named = {"bm25": by_text(BM25(tuple(corpora))), **(systems or {})}
    return EntityReport(
        tuple(asked),
        Counter(question.relation for question in read),
        sum(corpus.num_passages for corpus in corpora),
        _coverage(asked, corpora, coverage, covered_only, progress),
        seed,
        tuple(ks),
        tuple(_ask_all(name, search, asked, max(ks), progress) for name, search in named.items()),
    )


def _coverage(
    asked: Sequence[EntityQuestion],
    corpora: Sequence[Corpus],
    wanted: bool,
    covered: bool,
    progress: ProgressCallback | None,
) -> Coverage | None:
    if covered:
        everything = frozenset(range(len(asked)))
        return Coverage(everything, everything)
    return find_coverage(asked, corpora, progress) if wanted else None


def _covered(
    questions: Sequence[EntityQuestion], corpora: Sequence[Corpus], progress: ProgressCallback | None
) -> list[EntityQuestion]:
    covered = find_coverage(questions, corpora, progress).covered
    if covered is None:
        raise InputError("covered questions need to know the entities; give the templates (--templates)")
    if not covered:
        raise InputError(f"none of the {len(questions):,} questions is covered by a passage; give a larger corpus")
    return [questions[number] for number in sorted(covered)]


def _ask_all(
    name: str, search: Search, questions: Sequence[EntityQuestion], k: int, progress: ProgressCallback | None
) -> EntityResult:
    ranks: dict[str, list[int | None]] = {matcher: [] for matcher in MATCHERS}
    for done, asked in enumerate(questions, start=1):
        texts = [hit.passage.text for hit in search(asked.question.text, asked.entity, k)]
        for matcher, holds in MATCHERS.items():
            ranks[matcher].append(first(holds(text, asked.question) for text in texts))
        if progress is not None:
            progress(name, done, len(questions))
    return EntityResult(name, {matcher: tuple(of_matcher) for matcher, of_matcher in ranks.items()})


def table(report: EntityReport) -> str:
    """Each system's recall over all and over covered questions by both matchers, then by relation with DPR's match.

    Markdown; percentages, "–" for what was not measured.
    """
    ways = [(matcher, mean, k) for matcher in MATCHERS for mean in (macro, micro) for k in report.ks]
    rows = [
        [f"{result.name}: {part} ({sum(map(len, groups.values())):,})"]
        + [percent(mean(result.ranks[matcher], groups, k)) for matcher, mean, k in ways]
        for result in report.results
        for part, groups in report.parts().items()
    ]
    asked = f"{len(report.questions):,} of {sum(report.num_read.values()):,} questions"
    heads = [f"{matcher} {mean.__name__}@{k}" for matcher, mean, k in ways]
    return markdown([f"{asked}; {report.num_passages:,} passages", *heads], rows) + "\n" + _relation_table(report)


def _relation_table(report: EntityReport) -> str:
    heads = ["relation", "questions", "answerable", "covered"]
    heads += [f"{result.name}@{k}" for result in report.results for k in report.ks]
    relations = report.parts()[ALL]
    return markdown(heads, [[name, *scored(report, numbers)] for name, numbers in relations.items()])


def scored(report: EntityReport, numbers: Sequence[int]) -> list[str]:
    """For these questions: their number, how many are answerable and covered, and each system's recalls (DPR's
    match)."""
    counts = ["–" if count is None else f"{count:,}" for count in (len(numbers), *report.counts(numbers))]
    return counts + [
        percent(recall_of(result.ranks["dpr"], numbers, k)) for result in report.results for k in report.ks
    ]


def _check(files: Sequence[str | Path], ks: Sequence[int], limit: int | None) -> None:
    if not files:
        raise InputError("no file of questions; give one or more, such as P17.test.json")
    if not ks or min(ks) < 1:
        raise InputError(f"ks is {list(ks)}; it must be 1 or more passages")
    if limit is not None and limit < 1:
        raise InputError(f"limit is {limit}; it must be 1 or more questions")
