"""What is asked before and after an owner's documents are deleted, and how much of the answers is quoted from whom.

Knows: questions, answers with their places. Does not know: models, how documents are deleted, tables.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from quoth.corpus.view import CorpusView
from quoth.datasets.judging import answer_rank, exact_match, holders
from quoth.datasets.questions import QAExample
from quoth.records import Prediction
from quoth_eval.harness import EVIDENCE
from quoth_eval.report import Result
from quoth_eval.task import HITS, Answer, Example, Scores, Task, first_right, recalls

HOLDERS = ("they alone", "they and others", "others alone", "nobody")
ANSWERED_BY = "answered by"
RIGHT, FOUND, THEIRS = "exact_match", f"answer@{HITS}", "names_them"


def held_by(questions: Sequence[QAExample], corpus: CorpusView, ids: Collection[str]) -> list[str]:
    """Whose passages contain an answer to each question (DPR's rule, which also counts those that do by chance)."""
    theirs = list[bool]()

    def texts() -> Iterator[str]:
        for passage in corpus.passages():
            theirs.append(passage.document_id in ids)
            yield passage.text

    found = holders(questions, texts())
    sides = [{theirs[place] for place in found.get(number, ())} for number in range(len(questions))]
    names = {frozenset({True}): 0, frozenset({True, False}): 1, frozenset({False}): 2, frozenset[bool](): 3}
    return [HOLDERS[names[frozenset(side)]] for side in sides]


def optout_task(
    questions: Sequence[QAExample], holder: Sequence[str], ids: Collection[str], settings: Mapping[str, Any]
) -> Task[QAExample]:
    """The questions, in groups by who holds an answer. Measures: the first answer, or one of five, is right; the best
    five passages contain an answer; a place or passage that is listed is in one of the documents `ids`."""
    examples = [
        Example(each.id, each.text, each.answers, each, {ANSWERED_BY: by}, pattern=each.pattern)
        for each, by in zip(questions, holder, strict=True)
    ]
    return Task(name="optout", examples=examples, judge=partial(_judge, frozenset(ids)), settings=settings, at_a_time=8)


def _judge(ids: Collection[str], example: Example[QAExample], answer: Answer) -> Scores:
    question, scores = example.source, dict[str, float]()
    if answer.predictions is not None:
        scores |= first_right([exact_match(each.text, question) for each in answer.predictions])
    places = [place.document_id for each in answer.predictions or () for place in each.evidence]
    named = {*places, *(passage.document_id for passage in answer.passages)}
    rank = answer_rank((passage.text for passage in answer.passages), question)
    return {**scores, **recalls("answer", rank, [HITS]), THEIRS: float(not named.isdisjoint(ids))}


def shares(prediction: Prediction) -> dict[str, float]:
    """How much of an answer is quoted from each document: their parts of the shares of its three best places; they sum
    to 1."""
    places = prediction.evidence[:EVIDENCE]
    total = sum(place.score for place in places)
    found = defaultdict[str, float](float)
    for place in places:
        found[place.document_id] += place.score / total if total else 1 / len(places)
    return found


def shares_of(result: Result, group: Callable[[str], str] = str) -> dict[str, float]:
    """The mean share of each group of documents in a system's first answers that are quoted, largest first."""
    found, answered = defaultdict[str, float](float), 0
    for row in result.rows:
        for best in (row.predictions or ())[:1]:
            answered += bool(best.evidence)
            for document, share in shares(best).items():
                found[group(document)] += share
    return {name: found[name] / answered for name in sorted(found, key=lambda each: -found[each])}
