"""EntityQuestions: simple questions about one entity each, by relation; is a passage found that holds an answer?

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
from quoth.datasets.questions import Question, read_questions
from quoth.errors import InputError
from quoth.evaluation.coverage import Coverage, EntityQuestion, find_coverage
from quoth.evaluation.metrics import markdown, percent
from quoth.evaluation.openqa import BM25, Ranks, draw
from quoth.evaluation.run import Progress
from quoth.evaluation.searches import Range, Search, by_text
from quoth.retrieval.sparse import check_not_empty

KS = (20, 100)
ALL, COVERED = "all", "covered"
Groups = Mapping[str, Sequence[int]]
"""The numbers of questions, by relation."""


class Templates(Protocol):
    """What is asked of the set's templates: where the entity stands in a question of a relation."""

    def entity(self, question: str, relation: str | None = None) -> Range | None: ...


def has_string(text: str, question: Question) -> bool:
    """Whether an answer's characters stand in a passage's text, case and runs of white space aside, in NFD.

    Mostly looser than DPR's match: Iran stands in Iranian; but the spaces around a dot or a dash count. (The string
    match of the set's released code is DPR's, but decomposes only the answers, so that one with an accent is never
    found in a composed text.)
    """
    folded = _folded(text)
    return any(wanted in folded for wanted in map(_folded, question.answers) if wanted)


def _folded(text: str) -> str:
    return normalise(unicodedata.normalize("NFD", text))


MATCHERS: Mapping[str, Callable[[str, Question], bool]] = {"dpr": has_answer, "string": has_string}


@dataclass(frozen=True, slots=True)
class EntityResult:
    """Where the first passage with an answer stands among a system's best for each question, by matcher."""

    name: str
    ranks: Mapping[str, Ranks]


@dataclass(frozen=True, slots=True)
class EntityReport:
    """What was asked, of how many questions read (by relation), what the corpus covers of it, and what was found."""

    questions: tuple[EntityQuestion, ...]
    num_read: Mapping[str, int]
    num_passages: int
    coverage: Coverage | None
    seed: int
    ks: tuple[int, ...]
    results: tuple[EntityResult, ...]

    def parts(self) -> dict[str, Groups]:
        """All questions by relation, and the covered ones where there are some and not all are; a relation without one
        is left out."""
        covered = (self.coverage.covered if self.coverage else None) or ()
        parts = {ALL: self._groups(range(len(self.questions)))}
        return parts | ({COVERED: self._groups(sorted(covered))} if 0 < len(covered) < len(self.questions) else {})

    def _groups(self, numbers: Iterable[int]) -> Groups:
        found: dict[str, list[int]] = {}
        for number in numbers:
            found.setdefault(self.questions[number].relation, []).append(number)
        return found

    def counts(self, numbers: Collection[int]) -> tuple[int | None, int | None]:
        """How many of these questions are answerable, and how many covered; None where that was not looked for."""
        return (None, None) if self.coverage is None else self.coverage.counts(numbers)

    def to_dict(self) -> dict[str, Any]:
        """The settings, the coverage and the scores; not the single questions."""
        relations = self.parts()[ALL]
        counted = {name: (self.num_read[name], len(each), *self.counts(each)) for name, each in relations.items()}
        names = ("num_read", "num_questions", "num_answerable", "num_covered")
        num_answerable, num_covered = self.counts(range(len(self.questions)))
        return {
            "num_questions": len(self.questions),
            "num_passages": self.num_passages,
            "num_answerable": num_answerable,
            "num_covered": num_covered,
            "seed": self.seed,
            "relations": {name: dict(zip(names, each, strict=True)) for name, each in counted.items()},
            "systems": [
                {"name": each.name} | {part: self._scores(each, groups) for part, groups in self.parts().items()}
                for each in self.results
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
    """Recall over the questions of these numbers."""
    return recall([ranks[number] for number in numbers], k)


def macro(ranks: Ranks, groups: Groups, k: int) -> float:
    """The mean of the relations' recalls, as the papers report it."""
    return fmean(recall_of(ranks, numbers, k) for numbers in groups.values())


def micro(ranks: Ranks, groups: Groups, k: int) -> float:
    """Recall over the questions of all relations together."""
    return recall_of(ranks, [number for numbers in groups.values() for number in numbers], k)


def read_entity_questions(files: Sequence[str | Path], templates: Templates | None = None) -> list[EntityQuestion]:
    """The questions of files named by their relation (P17.test.json). Raises InputError as `read_questions` does."""
    found = []
    for path in map(Path, files):
        relation = path.name.split(".")[0]
        for question in read_questions(path):
            entity = templates.entity(question.text, relation) if templates else None
            found.append(EntityQuestion(question, relation, entity))
    return found


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
    progress: Progress | None = None,
) -> EntityReport:
    """Ask BM25 and then each of `systems` every question, or of each relation `limit` drawn by `seed`.

    With `covered_only`, of the covered questions alone. Raises InputError, EmptyCorpusError.
    """
    _check(files, ks, limit)
    check_not_empty(corpora)
    read = read_entity_questions(files, templates)
    by_relation: dict[str, list[EntityQuestion]] = {}
    for each in _covered(read, corpora, progress) if covered_only else read:
        by_relation.setdefault(each.relation, []).append(each)
    asked = [each for some in by_relation.values() for each in (draw(some, limit, seed) if limit else some)]
    named = {"bm25": by_text(BM25(tuple(corpora))), **(systems or {})}
    return EntityReport(
        tuple(asked),
        Counter(each.relation for each in read),
        sum(each.num_passages for each in corpora),
        _coverage(asked, corpora, coverage, covered_only, progress),
        seed,
        tuple(ks),
        tuple(_ask_all(name, search, asked, max(ks), progress) for name, search in named.items()),
    )


def _coverage(
    asked: Sequence[EntityQuestion], corpora: Sequence[Corpus], wanted: bool, covered: bool, progress: Progress | None
) -> Coverage | None:
    if covered:
        everything = frozenset(range(len(asked)))
        return Coverage(everything, everything)
    return find_coverage(asked, corpora, progress) if wanted else None


def _covered(
    questions: Sequence[EntityQuestion], corpora: Sequence[Corpus], progress: Progress | None
) -> list[EntityQuestion]:
    covered = find_coverage(questions, corpora, progress).covered
    if covered is None:
        raise InputError("a covered question is one whose entity a passage names; give the templates (--templates)")
    if not covered:
        raise InputError(f"none of {len(questions):,} questions is covered by a passage; give a larger corpus")
    return [questions[number] for number in sorted(covered)]


def _ask_all(
    name: str, search: Search, questions: Sequence[EntityQuestion], k: int, progress: Progress | None
) -> EntityResult:
    ranks: dict[str, list[int | None]] = {matcher: [] for matcher in MATCHERS}
    for done, each in enumerate(questions, start=1):
        texts = [hit.passage.text for hit in search(each.question.text, each.entity, k)]
        for matcher, holds in MATCHERS.items():
            ranks[matcher].append(first(holds(text, each.question) for text in texts))
        if progress is not None:
            progress(name, done, len(questions))
    return EntityResult(name, {matcher: tuple(found) for matcher, found in ranks.items()})


def table(report: EntityReport) -> str:
    """Recall of each system over all questions and over the covered ones, by both matchers, then by relation (DPR's).

    Markdown; percentages, "–" for what was not looked for.
    """
    ways = [(matcher, mean, k) for matcher in MATCHERS for mean in (macro, micro) for k in report.ks]
    rows = [
        [f"{each.name}: {part} ({sum(map(len, groups.values())):,})"]
        + [percent(mean(each.ranks[matcher], groups, k)) for matcher, mean, k in ways]
        for each in report.results
        for part, groups in report.parts().items()
    ]
    asked = f"{len(report.questions):,} of {sum(report.num_read.values()):,} questions"
    heads = [f"{matcher} {mean.__name__}@{k}" for matcher, mean, k in ways]
    return markdown([f"{asked}; {report.num_passages:,} passages", *heads], rows) + "\n" + _relation_table(report)


def _relation_table(report: EntityReport) -> str:
    heads = ["relation", "questions", "answerable", "covered"]
    heads += [f"{each.name}@{k}" for each in report.results for k in report.ks]
    relations = report.parts()[ALL]
    return markdown(heads, [[name, *scored(report, numbers)] for name, numbers in relations.items()])


def scored(report: EntityReport, numbers: Sequence[int]) -> list[str]:
    """Of some of the questions: how many they are, are answerable, are covered, and each system's recalls (DPR's)."""
    counts = ["–" if each is None else f"{each:,}" for each in (len(numbers), *report.counts(numbers))]
    ranks = [each.ranks["dpr"] for each in report.results]
    return counts + [percent(recall_of(each, numbers, k)) for each in ranks for k in report.ks]


def _check(files: Sequence[str | Path], ks: Sequence[int], limit: int | None) -> None:
    if not files:
        raise InputError("no file of questions; give one or more, such as P17.test.json")
    if not ks or min(ks) < 1:
        raise InputError(f"ks {list(ks)}; allowed is 1 or more passages")
    if limit is not None and limit < 1:
        raise InputError(f"limit is {limit}; allowed is 1 or more questions")
