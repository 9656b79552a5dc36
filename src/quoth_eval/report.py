"""A report: every example's scores by system, their means with intervals, as Markdown and JSON.

Knows: rows, groups, means. Does not know: how a row came about.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from itertools import combinations
from statistics import median
from typing import Any, Self

from quoth.cli.output import markdown
from quoth.records import Evidence, Prediction
from quoth_eval.statistics import Difference, Interval, interval, macro_interval, paired

Table = tuple[list[str], list[list[str]]]
"""Heads and rows; the first column has names."""


@dataclass(frozen=True, slots=True)
class Row:
    """One system's answer to one example, and what it scored.

    `predictions` are None for a system that only searches. `passages` are those it found: "document:start-end".
    `seconds` are the time it took, its share if several were asked together; 0 if it was not measured. `weights` say
    how much the example counts in a measure's mean, where that is not 1.
    """

    system: str
    id: str
    text: str
    answers: tuple[str, ...]
    scores: Mapping[str, float]
    groups: Mapping[str, str] = field(default_factory=dict)
    predictions: tuple[Prediction, ...] | None = None
    passages: tuple[str, ...] = ()
    pattern: bool = False
    seconds: float = field(default=0.0, compare=False)
    weights: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Self:
        """The row of a line of predictions.jsonl, which has it as JSON. Raises KeyError, TypeError."""
        told = record["predictions"]
        return cls(**{
            **record,
            "answers": tuple(record["answers"]),
            "passages": tuple(record["passages"]),
            "predictions": None if told is None else tuple(map(_prediction, told)),
        })  # fmt: skip


def _prediction(record: Mapping[str, Any]) -> Prediction:
    if "abstained" in record:  # a run from before there was a status
        old = {name: value for name, value in record.items() if name not in ("score", "abstained")}
        record = {**old, "log_score": record["score"], "status": "unsure" if record["abstained"] else "answered"}
    names = {each.name for each in fields(Evidence)}  # not the location, which is in the corpus
    evidence = tuple(
        Evidence(
            **{name: value for name, value in place.items() if name in names} | {"path": tuple(place.get("path", ()))}
        )
        for place in record["evidence"]
    )
    return Prediction(**{**record, "evidence": evidence, "parts": tuple(record.get("parts", ()))})


@dataclass(frozen=True, slots=True)
class Score:
    """The examples of a group: how many they are, and the mean of each measure over those that have it, weighted if
    they have weights."""

    num_examples: int
    values: Mapping[str, Sequence[float]]
    weights: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def interval(self, measure: str) -> Interval | None:
        """The mean with its interval; None if no example has this measure."""
        values = self.values.get(measure)
        return interval(values, self.weights.get(measure)) if values else None


@dataclass(frozen=True, slots=True)
class Result:
    """One system's rows, in the order of the examples."""

    name: str
    rows: tuple[Row, ...]

    def score(self, **groups: str) -> Score:
        """The score over the examples of these groups, of all if none is given."""
        rows = [row for row in self.rows if groups.items() <= row.groups.items()]
        values, weights = dict[str, list[float]](), dict[str, list[float]]()
        for row in rows:
            for measure, value in row.scores.items():
                values.setdefault(measure, []).append(value)
            for measure, weight in row.weights.items():
                weights.setdefault(measure, []).append(weight)
        return Score(len(rows), values, weights)

    def by_group(self, dimension: str) -> dict[str, Score]:
        """The scores of the groups of one dimension, by name."""
        names = sorted({row.groups[dimension] for row in self.rows if dimension in row.groups})
        return {name: self.score(**{dimension: name}) for name in names}

    def macro(self, dimension: str, measure: str) -> Interval | None:
        """The mean over the groups of a dimension, whatever their sizes; None if a group lacks the measure."""
        groups = [score.values.get(measure) for score in self.by_group(dimension).values()]
        return macro_interval([values for values in groups if values]) if groups and all(groups) else None

    @property
    def per_second(self) -> float | None:
        """Examples answered per second, by the median of their times; None if these were not measured."""
        times = [row.seconds for row in self.rows if row.seconds]
        return 1 / median(times) if times else None

    def values(self, measure: str) -> list[float] | None:
        """The measure of every row; None if some row lacks it or is weighted."""
        values = [row.scores[measure] for row in self.rows if measure in row.scores and measure not in row.weights]
        return values if len(values) == len(self.rows) else None


@dataclass(frozen=True, slots=True)
class Report:
    """A task's results. `settings` say what was asked and searched; `systems` are in the order they were asked."""

    task: str
    settings: Mapping[str, Any]
    systems: tuple[Result, ...]
    macro: tuple[str, ...] = ()

    def system(self, name: str) -> Result:
        """The result of the system with this name."""
        return next(result for result in self.systems if result.name == name)

    @property
    def measures(self) -> list[str]:
        """All measures that some system has, the main one first: in the order of the rows with the most of them."""
        distinct = {tuple(row.scores): None for result in self.systems for row in result.rows}
        return list(dict.fromkeys(name for names in sorted(distinct, key=len, reverse=True) for name in names))

    @property
    def dimensions(self) -> list[str]:
        """The dimensions of groups."""
        return list(dict.fromkeys(name for result in self.systems for row in result.rows for name in row.groups))

    def to_dict(self) -> dict[str, Any]:
        """The settings and the scores, without the individual examples."""
        return {
            "task": self.task,
            **self.settings,
            "num_examples": max((len(result.rows) for result in self.systems), default=0),
            "systems": [self._scores(result) for result in self.systems],
            "differences": [
                {"system": one, "other": other, "measure": measure, **asdict(difference)}
                for one, other, measure, difference in self._pairs()
            ],
        }

    def _scores(self, result: Result) -> dict[str, Any]:
        return {
            "name": result.name,
            **_record(result.score()),
            "examples_per_second": result.per_second,
            "groups": {
                dimension: {name: _record(score) for name, score in result.by_group(dimension).items()}
                for dimension in self.dimensions
            },
            "macro": {
                dimension: {measure: _interval(result.macro(dimension, measure)) for measure in self.measures}
                for dimension in self.macro
            },
        }

    def _pairs(self) -> Iterable[tuple[str, str, str, Difference]]:
        """Pairs of systems that share a measure for all examples, and how they differ in the first such measure."""
        for one, other in combinations(self.systems, 2):
            both = ((name, one.values(name), other.values(name)) for name in self.measures)
            same = [row.id for row in one.rows] == [row.id for row in other.rows]
            for measure, values, others in ((name, a, b) for name, a, b in both if a and b and same):
                yield one.name, other.name, measure, paired(values, others)
                break

    def table(self, dimensions: Sequence[str] | None = None) -> Table:
        """The scores; percentages with 95 % intervals, "–" for what was not measured.

        A line per system and per group of the `dimensions` (None: all).
        """
        measures, rows = self.measures, list[list[str]]()
        for result in self.systems:
            rows.append([result.name, *_cells(result.score(), measures)])
            for dimension in self.dimensions:
                if dimensions is None or dimension in dimensions:
                    scores = result.by_group(dimension)
                    rows += [[f"{result.name}: {name}", *_cells(score, measures)] for name, score in scores.items()]
                if dimension in self.macro:
                    means = [_shown(result.macro(dimension, measure)) for measure in measures]
                    rows.append([f"{result.name}: mean over {dimension}", "", *means])
        counts = ((name, value) for name, value in self.settings.items() if isinstance(value, int))
        counted = [f"{name[4:]}: {value:,}" for name, value in counts if name.startswith("num_")]
        return ["; ".join([self.task, *counted]), "examples", *map(spelled, measures)], rows

    def measure_table(self) -> Table:
        """A line per measure and a column per system, for tasks with many measures."""
        heads = [self.task, *(f"{result.name}, {len(result.rows):,} examples" for result in self.systems)]
        scores = [result.score() for result in self.systems]
        rows = [[spelled(name), *(_shown(score.interval(name)) for score in scores)] for name in self.measures]
        return heads, rows

    def group_table(self, dimension: str) -> Table:
        """The scores of each group of a dimension, system by system."""
        measures = self.measures
        by_system = {result.name: result.by_group(dimension) for result in self.systems}
        rows = [
            [group, name, *_cells(scores[group], measures)]
            for group in dict.fromkeys(group for scores in by_system.values() for group in scores)
            for name, scores in by_system.items()
            if group in scores
        ]
        return [dimension, "system", "examples", *map(spelled, measures)], rows

    def differences(self) -> Table:
        """The systems compared in pairs, by the first measure that both have for all examples."""
        rows = [
            [f"{one} − {other}", spelled(measure), str(found.points), f"{found.p:.4f}"]
            for one, other, measure, found in self._pairs()
        ]
        return ["difference", "measure", "points", "p, paired"], rows

    def tables(self, dimensions: Sequence[str] | None = None) -> list[Table]:
        """`table` and then, if there are several systems, `differences`."""
        differences = self.differences()
        return [self.table(dimensions), *([differences] if differences[1] else [])]

    def markdown(self, dimensions: Sequence[str] | None = None) -> str:
        """The `tables` as Markdown."""
        return "\n".join(markdown(heads, rows) for heads, rows in self.tables(dimensions))


def spelled(measure: str) -> str:
    """A measure's name as people read it."""
    return measure.replace("_", " ")


def _cells(score: Score, measures: Sequence[str]) -> list[str]:
    return [f"{score.num_examples:,}", *(_shown(score.interval(measure)) for measure in measures)]


def _shown(value: Interval | None) -> str:
    return "–" if value is None else str(value)


def _interval(value: Interval | None) -> dict[str, float] | None:
    return None if value is None else asdict(value)


def _record(score: Score) -> dict[str, Any]:
    return {"num_examples": score.num_examples} | {name: _interval(score.interval(name)) for name in score.values}
