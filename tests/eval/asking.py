"""What the tests of tasks share: their files, a call without a command line, and a report of what its task asks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from quoth.cli.options import Setup
from quoth.corpus.corpus import Corpus
from quoth_eval.harness import ProgressCallback, evaluate
from quoth_eval.report import Report, Row, Score
from quoth_eval.spec import Given, Prepared
from quoth_eval.task import Answer, Example, Scores, first_right


def given(scratch: Path, *corpora: Corpus, opens: Any = None, **more: Any) -> Given:
    """A call over corpora, in which every name of a model opens `opens`, or what it returns for the corpora."""

    def opened(name: str, searched: Any, options: Any) -> Any:
        return opens(name, searched) if callable(opens) else opens

    return Given(open=opened, scratch=scratch, setup=Setup(), corpora=corpora, **more)


def measured(
    prepared: Prepared, models: Mapping[str, Mapping[str, Any]], progress: ProgressCallback | None = None
) -> Report:
    """The report of all baselines, then of models with their options."""
    systems = {name: baseline({}) for name, baseline in prepared.baselines.items()}
    systems |= {name: prepared.asks(name, options) for name, options in models.items()}
    return evaluate(prepared.task, systems, progress=progress)


def mean(score: Score, measure: str = "exact_match") -> float | None:
    """None if no example has this measure."""
    values = score.values.get(measure)
    return float(np.average(values, weights=score.weights.get(measure))) if values else None


def said(row: Row) -> tuple[str, ...]:
    """The texts of the predictions, best first."""
    return tuple(prediction.text for prediction in row.predictions or ())


def is_listed(example: Example[Any], answer: Answer) -> Scores:
    """Judges by the example's answers, to the letter."""
    return first_right([prediction.text in example.answers for prediction in answer.predictions or ()])


def plain(report: str) -> list[str]:
    """The lines of a report in Markdown, without the intervals."""
    return [re.sub(r" \[[^|]*\]", "", line) for line in report.splitlines()]


def repeated(option: str, *values: str) -> list[str]:
    """The option with each of its values, as on the command line."""
    return [word for value in values for word in (option, value)]


def written(folder: Path, files: Mapping[str, str]) -> Path:
    """The folder, with these files by their paths in it."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")
    return folder
