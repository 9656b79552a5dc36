"""Open question answering: does a system find a passage with the answer, and does it give the answer?

Knows: how to ask systems questions over a corpus, and the scores reported. Does not know: how a system searches or
answers, or when an answer is right (`answers`).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

from quoth.corpus.corpus import Corpus
from quoth.datasets.answers import answer_rank, answerable, exact_match, first, has_answer, recall
from quoth.datasets.questions import QAExample
from quoth.errors import InputError
from quoth.evaluation import abstention
from quoth.evaluation.metrics import HITS, interval, markdown, percent
from quoth.evaluation.run import ProgressCallback
from quoth.records import Hit, Passage, Prediction
from quoth.retrieval.sparse import bm25

KS = (1, 5, 20)
READ = 5
"""How many passages ORQA's and REALM's readers read."""
DELETED = 100
"""How many of BM25's passages are searched for evidence to remove."""
SCANNING = "scanning the corpus"
_NOT_MEASURED = "–"

_Asked = TypeVar("_Asked")

Ranks = tuple[int | None, ...]
"""For each question, the rank of the first relevant passage, from 0; None if none was found."""


class Searcher(Protocol):
    """A system that returns its k best passages for a question."""

    def search(self, query: str, k: int) -> list[Hit]: ...


@runtime_checkable
class Answerer(Searcher, Protocol):
    """A system that also answers: a reader, NPM, REALM."""

    def ask(self, question: str, *, top_k: int, **options: Any) -> list[Prediction]: ...


@dataclass(frozen=True, slots=True)
class BM25:
    """The baseline that always runs. It finds passages but gives no answers."""

    corpora: tuple[Corpus, ...]

    def search(self, query: str, k: int) -> list[Hit]:
        return bm25(self.corpora, query, k)


@dataclass(frozen=True, slots=True)
class SystemResult:
    """One system's results for the report's questions, in order.

    `answer_ranks`: the ranks of the first passage with an answer. `gold_ranks`: those of the first passage of the
    question's gold document (() if some question has none). `answers`: the best answers; `right_ranks`: the ranks of
    the first right one; `probabilities`: those of the first answer, 0 if there is none (all three are () for a system
    that does not answer). `without_evidence`: these probabilities with the evidence removed from the corpus (() if not
    measured).
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
        """Whether the first answer to each question is right."""
        return [rank == 0 for rank in self.right_ranks]

    @property
    def exact_match(self) -> float | None:
        """The share of questions whose first answer is right; None if the system does not answer."""
        return recall(self.right_ranks, 1) if self.answers else None

    @property
    def hit_at_5(self) -> float | None:
        """The share of questions with a right answer among the first five; None if the system does not answer."""
        return recall(self.right_ranks, HITS) if self.answers else None


@dataclass(frozen=True, slots=True)
class OpenQAReport:
    """The questions, the settings, and each system's results.

    `num_answerable`: the number of questions that some passage of the corpus answers (None if not measured).
    """

    questions: tuple[QAExample, ...]
    num_passages: int
    num_answerable: int | None
    seed: int
    ks: tuple[int, ...]
    oracle: int
    options: Mapping[str, Any]
    systems: tuple[SystemResult, ...]

    def to_dict(self) -> dict[str, Any]:
        """The settings and the scores, without the individual questions and answers."""
        return {
            "num_questions": len(self.questions),
            "num_passages": self.num_passages,
            "num_answerable": self.num_answerable,
            "seed": self.seed,
            "read": self.oracle,
            "options": dict(self.options),
            "systems": [self._scores(result) for result in self.systems],
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
    questions: Sequence[QAExample],
    corpus: Corpus | Sequence[Corpus],
    systems: Mapping[str, Searcher] | None = None,
    *,
    ks: Sequence[int] = KS,
    oracle: int = READ,
    limit: int | None = None,
    seed: int = 0,
    coverage: bool = True,
    deleted: bool = False,
    progress: ProgressCallback | None = None,
    **options: Any,
) -> OpenQAReport:
    """Ask BM25 and then each of `systems`, which search the same corpus, every question, or `limit` drawn with `seed`.

    `ks` are the depths of recall. `oracle` is the number of passages a reader reads: its oracle is right if one of them
    contains an answer. With `coverage`, every passage is read once to count the answerable questions. With `deleted`,
    every question is asked again without those of BM25's best `DELETED` passages that contain an answer or belong to
    its gold document. `options` go to each system's `ask`. Raises InputError, EmptyCorpusError.
    """
    _check(questions, ks, oracle, limit)
    corpora = (corpus,) if isinstance(corpus, Corpus) else tuple(corpus)
    asked = questions if limit is None else draw(questions, limit, seed)
    named: dict[str, Searcher] = {"bm25": BM25(corpora), **(systems or {})}
    hidden = [_evidence_rows(question, corpora) for question in asked] if deleted else []
    depth = max(*ks, oracle)
    results = [_ask_all(name, system, asked, depth, progress, options, hidden) for name, system in named.items()]
    return OpenQAReport(
        tuple(asked),
        sum(corpus.num_passages for corpus in corpora),
        _count_answerable(asked, corpora, progress) if coverage else None,
        seed,
        tuple(ks),
        oracle,
        options,
        tuple(results),
    )


def draw(questions: Sequence[_Asked], limit: int, seed: int) -> list[_Asked]:
    """Up to `limit` questions drawn at random, in their order; a smaller limit draws a subset of a larger one's."""
    order = list(range(len(questions)))
    random.Random(seed).shuffle(order)
    return [questions[i] for i in sorted(order[:limit])]


def _ask_all(
    name: str,
    system: Searcher,
    questions: Sequence[QAExample],
    k: int,
    progress: ProgressCallback | None,
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
        answer_ranks.append(answer_rank((passage.text for passage in passages), question))
        gold_ranks.append(first(passage.document_id == question.gold for passage in passages))
        if isinstance(system, Answerer):
            predictions = system.ask(question.text, top_k=HITS, **options)
            answers.append(tuple(prediction.text for prediction in predictions))
            probabilities.append(predictions[0].probability if predictions else 0.0)
            if hidden:
                guesses = system.ask(question.text, top_k=1, exclude=hidden[done - 1], **options)
                without.append(guesses[0].probability if guesses else 0.0)
        if progress is not None:
            progress(name, done, len(questions))
    pairs = zip(answers, questions, strict=bool(answers))
    right_ranks = tuple(first(exact_match(text, question) for text in given) for given, question in pairs)
    gold = tuple(gold_ranks) if all(question.gold for question in questions) else ()
    return SystemResult(
        name, tuple(answer_ranks), gold, tuple(answers), right_ranks, tuple(probabilities), tuple(without)
    )


def _evidence_rows(question: QAExample, corpora: Sequence[Corpus]) -> set[int]:
    """The rows of BM25's best passages that answer a question: those of its gold document or with an answer.

    Raises InputError for several corpora, whose rows cannot be told apart.
    """
    if len(corpora) > 1:
        raise InputError(f"{len(corpora)} corpora; evidence can be removed from one corpus only")
    passages = [hit.passage for hit in bm25(corpora, question.text, DELETED)]
    return {
        passage.row
        for passage in passages
        if passage.document_id == question.gold or has_answer(passage.text, question)
    }


def _count_answerable(
    questions: Sequence[QAExample], corpora: Sequence[Corpus], progress: ProgressCallback | None
) -> int:
    return len(answerable(questions, (passage.text for passage in read_passages(corpora, progress))))


def read_passages(corpora: Sequence[Corpus], progress: ProgressCallback | None) -> Iterator[Passage]:
    """Every passage, in order; `progress` gets the number read so far."""
    total = sum(corpus.num_passages for corpus in corpora)
    passages = (passage for corpus in corpora for passage in corpus.passages())
    for done, passage in enumerate(passages, start=1):
        if progress is not None and done % 1000 == 0:
            progress(SCANNING, done, total)
        yield passage


def abstention_table(report: OpenQAReport, least: Mapping[str, float]) -> str:
    """How well each answering system knows when it is right; `least` has the probability from which each answers."""
    parts = []
    for system in report.systems:
        if not system.answers:
            continue
        threshold = least.get(system.name, 0.5)
        scores = abstention.abstention(system.probabilities, system.right, threshold)
        parts.append(abstention.table(system.name, scores))
        if system.without_evidence:
            silent = sum(p < threshold for p in system.without_evidence) / len(system.without_evidence)
            parts.append(f"With the evidence removed, {percent(silent)} % of the questions get no answer.\n")
    return "\n".join(parts)


def table(report: OpenQAReport) -> str:
    """The scores as a Markdown table, one system per line; percentages, "–" for what was not measured."""
    gold = any(system.gold_ranks for system in report.systems)
    heads = [f"answer@{k}" for k in report.ks] + [f"paragraph@{k}" for k in report.ks if gold]
    heads += [f"oracle@{report.oracle}", "exact match (hit@5)"]
    rows = []
    for system in report.systems:
        shares = [recall(system.answer_ranks, k) for k in report.ks]
        shares += [recall(system.gold_ranks, k) for k in report.ks if gold]
        cells = [percent(share) for share in [*shares, recall(system.answer_ranks, report.oracle)]]
        rows.append([system.name, *cells, _exact(system)])
    return markdown([_counted(report), *heads], rows)


def _counted(report: OpenQAReport) -> str:
    counted = f"questions: {len(report.questions):,}; passages: {report.num_passages:,}"
    return counted if report.num_answerable is None else f"{counted}; answerable: {report.num_answerable:,}"


def _exact(result: SystemResult) -> str:
    if result.exact_match is None or result.hit_at_5 is None:
        return _NOT_MEASURED
    return f"{interval(result.right)} ({percent(result.hit_at_5)})"


def _check(questions: Sequence[QAExample], ks: Sequence[int], oracle: int, limit: int | None) -> None:
    if not questions:
        raise InputError("no questions to ask; name a file that contains some")
    if not ks or min(ks) < 1 or oracle < 1:
        raise InputError(f"ks is {list(ks)}, oracle is {oracle}; both must be 1 or more passages")
    if limit is not None and limit < 1:
        raise InputError(f"limit is {limit}; it must be 1 or more questions")
