"""The experiment: systems answer over a corpus, and over a copy from which documents were deleted.

Knows who is asked over what. Does not know how documents are deleted, what is counted, or how it is shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from quoth.cli.output import counting
from quoth.corpus.corpus import Corpus
from quoth.datasets.questions import QAExample
from quoth_eval.harness import Lazy, evaluate
from quoth_eval.optout.loss import held_by, optout_task
from quoth_eval.optout.removal import STAGES, Left, Removal, draw_quotations
from quoth_eval.report import Report, Result
from quoth_eval.systems import BM25, Asked, Opener, asking, asks, inputs_of
from quoth_eval.task import HITS, System

BEFORE, AFTER = "before", "after"
QUOTATIONS = 1000


@dataclass(frozen=True, slots=True)
class Call:
    """What is measured: a corpus, the condition that selects documents, their ids, questions, and the systems asked."""

    corpus: Corpus
    where: str
    ids: Sequence[str]
    questions: Sequence[QAExample]
    asked: Sequence[Asked]
    settings: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """All answers, and what is left of the documents at each stage of `STAGES`, of so many quotations."""

    call: Call
    report: Report
    stages: Mapping[str, Left]
    num_quotations: int

    def results(self, name: str) -> tuple[Result, Result]:
        """A system's answers before and after."""
        return self.report.system(f"{name}, {BEFORE}"), self.report.system(f"{name}, {AFTER}")


def measure(call: Call, opener: Opener, copy: Path, keep: Path | None) -> Outcome:
    """Deletes the documents from a copy in the new folder `copy`, and asks every system over both. With `keep`, answers
    are kept there, and a stopped run resumes."""
    corpus, seed = call.corpus, int(call.settings["seed"])
    quotations = draw_quotations(corpus.where(call.where), QUOTATIONS, seed)
    removal, stages = Removal(corpus, copy, call.ids, quotations), dict[str, Left]()
    with counting("removing", "stages") as removed:
        for stage, left in removal.stages():
            stages[stage] = left
            removed(len(stages), len(STAGES))
    settings = {
        "corpus": corpus.path.name,
        "where": call.where,
        "num_documents": corpus.num_documents,
        "num_removed": len(call.ids),
        **call.settings,
    }
    task = optout_task(call.questions, held_by(call.questions, corpus, call.ids), call.ids, settings)
    systems: dict[str, System[QAExample]] = {
        f"{asked.spelled}, {told}": Lazy(partial(_asking, opener, asked, searched))
        for asked in call.asked
        for told, searched in ((BEFORE, corpus), (AFTER, removal.corpus))
    }
    inputs = inputs_of(call.asked, [corpus]) if keep else {}
    with counting("measuring", "questions") as measured:
        report = evaluate(task, systems, keep, lambda _, done, total: measured(done, total), inputs)
    return Outcome(call, report, stages, len(quotations))


def _asking(opener: Opener, asked: Asked, corpus: Corpus) -> System[QAExample]:
    if asked.name == "bm25":
        return asks(BM25([corpus], asked.options), HITS, {})
    return asking(opener(asked.name, [corpus], asked.options), asked.name, HITS, asked.options)
