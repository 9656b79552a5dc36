"""Open question answering: does the search find a passage with the answer, and is the answer given?

Knows: how questions, a corpus and systems come together, and the scores reported. Does not know: how a system
searches or answers, or when an answer is right (`answers`).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

from quoth.corpus.corpus import Corpus
from quoth.datasets.answers import answer_rank, answerable, exact_match, first, has_answer, recall
from quoth.datasets.questions import Question
from quoth.errors import InputError
from quoth.evaluation import abstention
from quoth.evaluation.metrics import HITS, interval, markdown, percent
from quoth.evaluation.run import Progress
from quoth.records import Hit, Passage, Prediction
from quoth.retrieval.sparse import bm25

KS = (1, 5, 20)
READ = 5
"""How many passages ORQA's and REALM's readers read."""
DELETED = 100
"""So many of BM25's passages are looked through for evidence to take out."""
SCANNING = "what the corpus holds"
_NOT_MEASURED = "–"

_Asked = TypeVar("_Asked")

Ranks = tuple[int | None, ...]
"""For each question, where the first passage that counts stands, from 0; None where none was found."""


class Searcher(Protocol):
    """What is asked of a system: its k best passages for a question."""

    def search(self, query: str, k: int) -> list[Hit]: ...


@runtime_checkable
class Answerer(Searcher, Protocol):
    """A system that answers as well: NPM, REALM."""

    def ask(self, question: str, *, top_k: int, **options: Any) -> list[Prediction]: ...


@dataclass(frozen=True, slots=True)
class BM25:
    """The baseline that always runs. It finds passages and answers nothing."""

    corpora: tuple[Corpus, ...]

    def search(self, query: str, k: int) -> list[Hit]:
        return bm25(self.corpora, query, k)


@dataclass(frozen=True, slots=True)
class SystemResult:
    """What one system found for the report's questions, in order.

    `answer_ranks` are of the first passage that holds an answer, `gold_ranks` of the first one of the question's gold
    document (() where a question has none). `answers` are the best texts given, `right_ranks` of the first that is
    right, `probabilities` of the first given, 0 where none was (all () where the system answers nothing).
    `without_evidence` are these probabilities with the evidence taken out of the corpus (() where that was not asked).
    """

    name: str
    answer_ranks: Ranks
    gold_ranks: Ranks
    answers: tuple[tuple[str, ...], ...]
    right_ranks: Ranks
    probabilities: tuple[float, ...] = ()
    without_evidence: tuple[float, ...] = ()

    @property
    def right(self) -> list[bool]:
        """Which questions' first answers are right."""
        return [rank == 0 for rank in self.right_ranks]

    @property
    def exact_match(self) -> float | None:
        """The share of questions whose first answer is right; None where the system answers nothing."""
        return recall(self.right_ranks, 1) if self.answers else None

    @property
    def hit_at_5(self) -> float | None:
        """The share of questions with a right one among the first five answers."""
        return recall(self.right_ranks, HITS) if self.answers else None


@dataclass(frozen=True, slots=True)
class OpenQAReport:
    """What was asked, how, and each system's results.

    `num_answerable` counts the questions that some passage of the corpus holds an answer to, None where that was not
    looked for.
    """

    questions: tuple[Question, ...]
    num_passages: int
    num_answerable: int | None
    seed: int
    ks: tuple[int, ...]
    oracle: int
    options: Mapping[str, Any]
    systems: tuple[SystemResult, ...]

    def to_dict(self) -> dict[str, Any]:
        """The settings and the scores; not the single questions and answers."""
        return {
            "num_questions": len(self.questions),
            "num_passages": self.num_passages,
            "num_answerable": self.num_answerable,
            "seed": self.seed,
            "read": self.oracle,
            "options": dict(self.options),
            "systems": [self._scores(each) for each in self.systems],
        }

    def _scores(self, result: SystemResult) -> dict[str, Any]:
        gold = {str(k): recall(result.gold_ranks, k) for k in self.ks} if result.gold_ranks else None
        return {
            "name": result.name,
            "recall": {str(k): recall(result.answer_ranks, k) for k in self.ks},
            "gold_recall": gold,
            "reader_oracle": recall(result.answer_ranks, self.oracle),
            "exact_match": result.exact_match,
            "interval": asdict(interval(result.right)) if result.answers else None,
            "hit_at_5": result.hit_at_5,
        }


def run_openqa(
    questions: Sequence[Question],
    corpus: Corpus | Sequence[Corpus],
    systems: Mapping[str, Searcher] | None = None,
    *,
    ks: Sequence[int] = KS,
    oracle: int = READ,
    limit: int | None = None,
    seed: int = 0,
    coverage: bool = True,
    deleted: bool = False,
    progress: Progress | None = None,
    **options: Any,
) -> OpenQAReport:
    """Ask BM25 and then each of `systems`, which search the same corpus, every question, or `limit` drawn by `seed`.

    `ks` are the depths of recall; `oracle` is how many passages a reader reads: its oracle is right where one of them
    holds an answer. With `coverage` every passage is read once, to count what can be answered at all. With `deleted`
    every question is asked again without the passages that hold an answer among BM25's best `DELETED`, and without
    those of its gold document. `options` go to each system's `ask`. Raises InputError, EmptyCorpusError.
    """
    _check(questions, ks, oracle, limit)
    corpora = (corpus,) if isinstance(corpus, Corpus) else tuple(corpus)
    asked = questions if limit is None else draw(questions, limit, seed)
    named: dict[str, Searcher] = {"bm25": BM25(corpora), **(systems or {})}
    hidden = [_evidence_rows(each, corpora) for each in asked] if deleted else []
    results = [_ask_all(name, each, asked, max(*ks, oracle), progress, options, hidden) for name, each in named.items()]
    return OpenQAReport(
        tuple(asked),
        sum(each.num_passages for each in corpora),
        _count_answerable(asked, corpora, progress) if coverage else None,
        seed,
        tuple(ks),
        oracle,
        options,
        tuple(results),
    )


def draw(questions: Sequence[_Asked], limit: int, seed: int) -> list[_Asked]:
    """Up to `limit` of the questions, at random, in their order; a smaller limit gives some of a larger one's."""
    order = list(range(len(questions)))
    random.Random(seed).shuffle(order)
    return [questions[i] for i in sorted(order[:limit])]


def _ask_all(
    name: str,
    system: Searcher,
    questions: Sequence[Question],
    k: int,
    progress: Progress | None,
    options: Mapping[str, Any],
    hidden: Sequence[set[int]] = (),
) -> SystemResult:
    answer_ranks: list[int | None] = []
    gold_ranks: list[int | None] = []
    answers: list[tuple[str, ...]] = []
    probabilities: list[float] = []
    without: list[float] = []
    for done, question in enumerate(questions, start=1):
        passages = [hit.passage for hit in system.search(question.text, k)]
        answer_ranks.append(answer_rank((each.text for each in passages), question))
        gold_ranks.append(first(each.document_id == question.gold for each in passages))
        if isinstance(system, Answerer):
            found = system.ask(question.text, top_k=HITS, **options)
            answers.append(tuple(each.text for each in found))
            probabilities.append(found[0].probability if found else 0.0)
            if hidden:
                guesses = system.ask(question.text, top_k=1, exclude=hidden[done - 1], **options)
                without.append(guesses[0].probability if guesses else 0.0)
        if progress is not None:
            progress(name, done, len(questions))
    pairs = zip(answers, questions, strict=bool(answers))
    right_ranks = tuple(first(exact_match(text, question) for text in given) for given, question in pairs)
    gold = tuple(gold_ranks) if all(each.gold for each in questions) else ()
    return SystemResult(
        name, tuple(answer_ranks), gold, tuple(answers), right_ranks, tuple(probabilities), tuple(without)
    )


def _evidence_rows(question: Question, corpora: Sequence[Corpus]) -> set[int]:
    """The rows of passages that answer a question: of its gold document, and of BM25's best that hold an answer.

    Raises InputError for several corpora, whose rows are not told apart.
    """
    if len(corpora) > 1:
        raise InputError(f"{len(corpora)} corpora; evidence can be taken out of one alone")
    found = [hit.passage for hit in bm25(corpora, question.text, DELETED)]
    return {each.row for each in found if each.document_id == question.gold or has_answer(each.text, question)}


def _count_answerable(questions: Sequence[Question], corpora: Sequence[Corpus], progress: Progress | None) -> int:
    return len(answerable(questions, (each.text for each in read_passages(corpora, progress))))


def read_passages(corpora: Sequence[Corpus], progress: Progress | None) -> Iterator[Passage]:
    """Every passage, in order; `progress` is told how many have been read."""
    total = sum(each.num_passages for each in corpora)
    passages = (passage for corpus in corpora for passage in corpus.passages())
    for done, passage in enumerate(passages, start=1):
        if progress is not None and done % 1000 == 0:
            progress(SCANNING, done, total)
        yield passage


def abstention_table(report: OpenQAReport, least: Mapping[str, float]) -> str:
    """How well each system that answers knows when it is right; `least` are the probabilities they answer from."""
    parts = []
    for each in report.systems:
        if not each.answers:
            continue
        threshold = least.get(each.name, 0.5)
        parts.append(abstention.table(each.name, abstention.abstention(each.probabilities, each.right, threshold)))
        if each.without_evidence:
            silent = sum(p < threshold for p in each.without_evidence) / len(each.without_evidence)
            parts.append(f"With the evidence taken out, {percent(silent)} % of the questions get no answer.\n")
    return "\n".join(parts)


def table(report: OpenQAReport) -> str:
    """The scores as a Markdown table, a system a line; percentages, "–" for what was not measured."""
    gold = any(each.gold_ranks for each in report.systems)
    heads = [f"answer@{k}" for k in report.ks] + [f"paragraph@{k}" for k in report.ks if gold]
    heads += [f"oracle@{report.oracle}", "exact match (hit@5)"]
    rows = []
    for each in report.systems:
        found = [recall(each.answer_ranks, k) for k in report.ks]
        found += [recall(each.gold_ranks, k) for k in report.ks if gold]
        cells = [percent(share) for share in [*found, recall(each.answer_ranks, report.oracle)]]
        rows.append([each.name, *cells, _exact(each)])
    return markdown([_counted(report), *heads], rows)


def _counted(report: OpenQAReport) -> str:
    counted = f"questions: {len(report.questions):,}; passages: {report.num_passages:,}"
    return counted if report.num_answerable is None else f"{counted}; answerable: {report.num_answerable:,}"


def _exact(result: SystemResult) -> str:
    if result.exact_match is None or result.hit_at_5 is None:
        return _NOT_MEASURED
    return f"{interval(result.right)} ({percent(result.hit_at_5)})"


def _check(questions: Sequence[Question], ks: Sequence[int], oracle: int, limit: int | None) -> None:
    if not questions:
        raise InputError("no question to ask; name a file that holds some")
    if not ks or min(ks) < 1 or oracle < 1:
        raise InputError(f"ks {list(ks)}, oracle {oracle}; allowed is 1 or more passages")
    if limit is not None and limit < 1:
        raise InputError(f"limit is {limit}; allowed is 1 or more questions")
