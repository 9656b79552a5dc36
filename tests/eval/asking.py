"""What the tests of tasks share: a call without a command line, and a report of what its task asks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from quoth.cli.options import Setup
from quoth.corpus.corpus import Corpus
from quoth_eval.harness import ProgressCallback, evaluate
from quoth_eval.report import Report, Row, Score
from quoth_eval.spec import Given, Prepared


def given(scratch: Path, *corpora: Corpus, opens: Any = None, **more: Any) -> Given:
    """A call over corpora, in which every name of a model opens `opens`, or what it returns for the corpora."""

    def opened(name: str, searched: Any, options: Any) -> Any:
        return opens(name, searched) if callable(opens) else opens

    return Given(open=opened, scratch=scratch, setup=Setup(), corpora=corpora, **more)


def measured(
    prepared: Prepared,
    models: Mapping[str, Mapping[str, Any]] | None = None,
    progress: ProgressCallback | None = None,
    folder: Path | None = None,
) -> Report:
    """The report of all baselines, then of models with their options."""
    systems = {name: baseline({}) for name, baseline in prepared.baselines.items()}
    systems |= {name: prepared.asks(name, options) for name, options in (models or {}).items()}
    return evaluate(prepared.task, systems, folder, progress)


def mean(score: Score, measure: str = "exact_match") -> float | None:
    """None if no example has this measure."""
    values = score.values.get(measure)
    return float(np.average(values, weights=score.weights.get(measure))) if values else None


def said(row: Row) -> tuple[str, ...]:
    """The texts of the predictions, best first."""
    return tuple(prediction.text for prediction in row.predictions or ())
