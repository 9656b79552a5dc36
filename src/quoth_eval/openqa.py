"""Open question answering: does a system find a passage with the answer, and does it give the answer?

Knows: how questions become a task over a corpus, and the scores reported. Does not know: how a system searches or
answers, or when an answer is right (`answers`).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from quoth.corpus.bm25 import check_not_empty
from quoth.corpus.corpus import Corpus
from quoth.datasets.judging import answer_rank, answerable, exact_match, first, holders
from quoth.datasets.questions import QAExample
from quoth.errors import InputError
from quoth.records import Passage
from quoth_eval import abstention
from quoth_eval.harness import ProgressCallback, evaluate
from quoth_eval.metrics import percent
from quoth_eval.report import Report
from quoth_eval.system import BM25, Answerer, Searcher, asks
from quoth_eval.task import Answer, Example, Scores, System, Task, draw, first_right

KS = (1, 5, 20)
READ = 5
"""How many passages ORQA's and REALM's readers read."""
QUESTIONS_AT_A_TIME = 64
"""The evidence of this many questions is found in one pass over the corpus, and kept in memory."""
SCANNING = "scanning the corpus"
WITHOUT_EVIDENCE = "probability_without_evidence"


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
    folder: Path | None = None,
    **options: Any,
) -> Report:
    """Ask BM25 and then each of `systems`, which search the same corpus, every question, or `limit` drawn with `seed`.

    `ks` are the depths of recall. `oracle` is the number of passages a reader reads: its oracle is right if one of them
    contains an answer. With `coverage`, every passage is read once to count the answerable questions. With `deleted`,
    every question is asked again without all passages that contain an answer or belong to its gold document.
    `options` go to each system's `ask`. `folder` keeps the run, to be resumed. Raises InputError,
    EmptyCorpusError.
    """
    _check(questions, ks, oracle)
    corpora = (corpus,) if isinstance(corpus, Corpus) else tuple(corpus)
    check_not_empty(corpora)
    asked = draw(questions, limit, seed)
    covered = find_answerable(asked, corpora, progress) if coverage else None
    settings = {
        "num_passages": sum(corpus.num_passages for corpus in corpora),
        "num_answerable": None if covered is None else len(covered),
        "seed": seed,
        "read": oracle,
        "options": options,
    }
    task = openqa_task(asked, settings, ks, oracle, covered)
    depth = max(*ks, oracle)
    made: dict[str, System[QAExample]] = {"bm25": asks(BM25(corpora), depth, {})}
    for name, system in (systems or {}).items():
        made[name] = asks(system, depth, options)
        if deleted and isinstance(system, Answerer):
            made[name] = _doubted(made[name], system, Evidence(asked, corpora, progress), options)
    return evaluate(task, made, folder, progress)


def openqa_task(
    questions: Sequence[QAExample],
    settings: Mapping[str, Any],
    ks: Sequence[int] = KS,
    oracle: int = READ,
    covered: set[int] | None = None,
    name: str = "openqa",
) -> Task[QAExample]:
    """Questions to answer from passages; those whose numbers are `covered` are a group."""
    gold = all(question.gold for question in questions)
    examples = [
        Example(
            question.id, question.text, question.answers, question, corpus_group(i, covered), pattern=question.pattern
        )
        for i, question in enumerate(questions)
    ]
    return Task(name=name, examples=examples, judge=partial(_judge, tuple(ks), oracle, gold), settings=settings)


def corpus_group(number: int, covered: set[int] | None) -> dict[str, str]:
    """Whether some passage of the corpus contains an answer, if that was measured."""
    return {} if covered is None else {"corpus": "answerable" if number in covered else "not answerable"}


def _judge(ks: Sequence[int], oracle: int, gold: bool, example: Example[QAExample], answer: Answer) -> Scores:
    """Is an answer, or the gold document, among the best k passages; is the first answer right, or one of five?"""
    question = example.source
    place = answer_rank((passage.text for passage in answer.passages), question)
    its = first(passage.document_id == question.gold for passage in answer.passages)
    scores: dict[str, float] = {}
    if answer.predictions is not None:
        scores |= first_right([exact_match(prediction.text, question) for prediction in answer.predictions])
    scores |= {f"answer@{k}": _within(place, k) for k in ks}
    if gold:
        scores |= {f"paragraph@{k}": _within(its, k) for k in ks}
    return {**scores, f"oracle@{oracle}": _within(place, oracle), **answer.scores}


def _within(place: int | None, k: int) -> float:
    return float(place is not None and place < k)


def _doubted(
    system: System[QAExample], model: Answerer, evidence: Evidence, options: Mapping[str, Any]
) -> System[QAExample]:
    """The system; its answers also report how sure it is with the evidence removed from the corpus."""

    def answer(examples: Sequence[Example[QAExample]]) -> list[Answer]:
        found = []
        for example, given in zip(examples, system(examples), strict=True):
            guesses = model.ask(example.text, top_k=1, exclude=evidence.rows(example.source), **options)
            chance = guesses[0].probability if guesses else 0.0
            found.append(replace(given, scores={WITHOUT_EVIDENCE: chance}))
        return found

    return answer


class Evidence:
    """The rows of all passages that contain an answer to a question (DPR's rule), or are of its gold document.

    Found for `QUESTIONS_AT_A_TIME` questions at once, in their order, and forgotten with the next ones.
    """

    def __init__(
        self, questions: Sequence[QAExample], corpora: Sequence[Corpus], progress: ProgressCallback | None = None
    ) -> None:
        """Raises InputError for several corpora, whose rows cannot be told apart."""
        if len(corpora) > 1:
            raise InputError(f"{len(corpora)} corpora; evidence can be removed from one corpus only")
        self._corpora, self._progress = corpora, progress
        self._order = {question: number for number, question in enumerate(dict.fromkeys(questions))}
        self._known: dict[QAExample, set[int]] = {}

    def rows(self, question: QAExample) -> set[int]:
        """The rows for one of the questions."""
        if question not in self._known:
            at = self._order[question]
            some = [*self._order][at : at + QUESTIONS_AT_A_TIME]
            self._known = dict(zip(some, self._find(some), strict=True))
        return self._known[question]

    def _find(self, questions: Sequence[QAExample]) -> list[set[int]]:
        found = [set[int]() for _ in questions]
        rows = array("q")

        def texts() -> Iterator[str]:
            for passage in read_passages(self._corpora, self._progress):
                rows.append(passage.row)
                for question, its in zip(questions, found, strict=True):
                    if passage.document_id == question.gold:
                        its.add(passage.row)
                yield passage.text

        for number, places in holders(questions, texts()).items():
            found[number].update(rows[place] for place in places)
        return found


def find_answerable(
    questions: Sequence[QAExample], corpora: Sequence[Corpus], progress: ProgressCallback | None = None
) -> set[int]:
    """The numbers of the questions that some passage answers. Reads every passage once."""
    return answerable(questions, (passage.text for passage in read_passages(corpora, progress)))


def read_passages(corpora: Sequence[Corpus], progress: ProgressCallback | None) -> Iterator[Passage]:
    """Every passage, in order; `progress` gets the number read so far."""
    total = sum(corpus.num_passages for corpus in corpora)
    passages = (passage for corpus in corpora for passage in corpus.passages())
    for done, passage in enumerate(passages, start=1):
        if progress is not None and done % 1000 == 0:
            progress(SCANNING, done, total)
        yield passage


def abstention_table(report: Report, least: Mapping[str, float]) -> str:
    """How well each answering system knows when it is right; `least` has the probability from which each answers."""
    parts = []
    for result in report.systems:
        right = result.values("exact_match")
        if right is None:
            continue
        threshold = least.get(result.name, 0.5)
        chances = [row.predictions[0].probability if row.predictions else 0.0 for row in result.rows]
        parts.append(abstention.table(result.name, abstention.abstention(chances, [*map(bool, right)], threshold)))
        if without := result.values(WITHOUT_EVIDENCE):
            silent = sum(p < threshold for p in without) / len(without)
            parts.append(f"With the evidence removed, {percent(silent)} % of the questions get no answer.\n")
    return "\n".join(parts)


def _check(questions: Sequence[QAExample], ks: Sequence[int], oracle: int) -> None:
    if not questions:
        raise InputError("no questions to ask; name a file that contains some")
    if not ks or min(ks) < 1 or oracle < 1:
        raise InputError(f"ks is {list(ks)}, oracle is {oracle}; both must be 1 or more passages")
