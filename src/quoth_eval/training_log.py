"""What the log of a training run says: its measures by steps, as a table and a picture.

Knows: the lines of log.jsonl. Does not know: training, or which figure asks for it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from quoth.errors import InputError
from quoth_eval.charts import line_chart
from quoth_eval.pages import Picture, Section
from quoth_eval.statistics import Interval, interval

GROUPS = 10
LOG = "log.jsonl"


def log_section(run: Path, measures: Sequence[str]) -> Section:
    """A run's measures in ten parts of its steps: the mean of the logged steps of each, with its interval.

    Raises InputError if the folder has no log with these measures.
    """
    file = run / LOG
    if not file.is_file():
        raise InputError(f"{run} has no {LOG}; name the folder that quoth train realm-pretrain wrote")
    told = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    lines = [line for line in told if all(name in line for name in measures)]
    if not lines:
        raise InputError(f"{file} has no {measures[0]}; name the folder of a realm-pretrain")
    size = -(-len(lines) // GROUPS)
    parts = [lines[at : at + size] for at in range(0, len(lines), size)]
    rows, points = list[list[str]](), dict[str, list[tuple[float, Interval]]]()
    for part in parts:
        means = {name: interval([line[name] for line in part]) for name in measures}
        for name, mean in means.items():
            points.setdefault(name, []).append((part[-1]["step"], mean))
        shown = [f"{mean.mean:.2f} [{mean.low:.2f}, {mean.high:.2f}]" for mean in means.values()]
        rows.append([f"{part[0]['step']} to {part[-1]['step']}", *shown])
    picture = Picture(partial(line_chart, points, "steps", "nats", scale=1), f"{', '.join(measures)} by steps.")
    return Section(run.name, [(["steps", *measures], rows), picture])
