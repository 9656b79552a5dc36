"""A page about finished runs: tables, pictures, the papers' figures, wrong answers with their evidence, training logs.

Knows: what of a report or a log is worth showing, and how. Does not know: how a page is written, or how anything was
measured.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from quoth.answers.options import FillOptions
from quoth.errors import InputError
from quoth.fields import fields_of
from quoth_eval.charts import Bar, Points, interval_chart, line_chart
from quoth_eval.errors import quoted, wrong_answers
from quoth_eval.pages import Part, Picture, Section
from quoth_eval.published import Column, Published, printed, published_for
from quoth_eval.report import Report, Result, spelled
from quoth_eval.statistics import Interval, interval
from quoth_eval.task import draw, length_groups

WRONG = 12
"""How many wrong answers of a system are shown."""
PIECES = "word pieces"
LOG = "log.jsonl"
LOG_PARTS = 10
_MOST_GROUPS = 12
"""A picture of more groups cannot be read."""
_READ_ME = (
    "Percentages with 95 % intervals (1,000 bootstrap samples of the examples). A table of ten comparisons at p = 0.05 "
    "shows a difference by chance four times in ten."
)
_BESIDE = (
    "The papers' figures were measured with larger models over other corpora. Compare only where both the examples and "
    "the corpus are the same: a system cannot find what its corpus does not contain."
)


def summary(runs: Mapping[str, Report]) -> list[Section]:
    """The sections of a page about runs, by their names: an overview of all, then each of them."""
    return [_overview(runs), *(Section(name, list(_parts(report))) for name, report in runs.items())]


def by_word_pieces(report: Report, num_pieces: Callable[[str], int]) -> Report:
    """The report with the examples also in groups by the number of word pieces of their shortest answer."""

    def regrouped(result: Result) -> Result:
        rows = []
        for row in result.rows:
            shortest = min(map(num_pieces, row.answers), default=0)
            groups = {} if row.pattern or not shortest else {PIECES: length_groups(shortest, PIECES)[PIECES]}
            rows.append(replace(row, groups={**row.groups, **groups}))
        return replace(result, rows=tuple(rows))

    return replace(report, systems=tuple(map(regrouped, report.systems)))


def _overview(runs: Mapping[str, Report]) -> Section:
    """Every system's main measure in every run, and a picture for each measure that several runs have."""
    rows, bars = list[list[str]](), dict[str, list[Bar]]()
    for name, report in runs.items():
        for result in report.systems:
            measure = _main(report, result)
            if measure is None or (mean := result.score().interval(measure)) is None:
                continue
            speed = "–" if (per := result.per_second) is None else f"{per:,.0f}" if per >= 10 else f"{per:.2g}"
            rows.append([name, result.name, f"{len(result.rows):,}", spelled(measure), str(mean), speed])
            bars.setdefault(measure, []).append((name, result.name, mean))
    heads = ["run", "system", "examples", "measure", "mean", "examples per second"]
    several = [_picture(*each, "Every run") for each in bars.items() if len({row for row, *_ in each[1]}) > 1]
    return Section("Overview", [_READ_ME, (heads, rows), *several])


def _parts(report: Report) -> Iterator[Part]:
    heads, rows = report.table(())
    yield (["system", *heads[1:]], rows) if rows else "No answers yet."
    settings = ((name.replace("_", " "), value) for name, value in report.settings.items() if value is not None)
    told = "; ".join(f"{name}: {_told(value)}" for name, value in settings)
    yield Section("Settings", [f"{told}." if told else "No settings."])
    main = next((measure for result in report.systems if (measure := _main(report, result))), None)
    if main is not None:
        yield from _pictures(report, main)
    compared, differences = report.differences()
    if differences:
        yield compared, differences
    yield from _groups(report, main)
    yield from beside(report, published_for(report.task))
    for result in report.systems:
        wrong = wrong_answers(result)
        if shown := draw(wrong, WRONG, 0):
            yield Section(f"Wrong answers of {result.name}: {len(shown)} of {len(wrong):,}", list(map(quoted, shown)))


def _main(report: Report, result: Result) -> str | None:
    """The first measure that the system has for some example."""
    values = result.score().values
    return next((measure for measure in report.measures if values.get(measure)), None)


def _told(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={_told(each)}" for name, each in value.items()) or "defaults"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_told, value)) or "none"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _pictures(report: Report, measure: str) -> Iterator[Picture]:
    """The systems side by side; an option's values; speed; how well a system knows when it is right."""
    scored = [(result, mean) for result in report.systems if (mean := result.score().interval(measure))]
    if len(scored) > 1:
        yield _picture(measure, [(result.name, "", mean) for result, mean in scored], "Systems")
    yield from _sweeps(report, measure)
    timed = [(result, mean, speed) for result, mean in scored if (speed := result.per_second)]
    if len(timed) > 1:
        lines: dict[str, Points] = {result.name: [(speed, mean)] for result, mean, speed in timed}
        yield Picture(partial(line_chart, lines, "examples per second", _axis(measure)), "Speed and accuracy.")
    if lines := {result.name: points for result in report.systems if (points := _risk(result))}:
        caption = "Risk and coverage: the share of wrong answers if only the surest are given."
        yield Picture(partial(line_chart, lines, "answered, %", "wrong, %", marks=False), caption)


def _sweeps(report: Report, measure: str) -> Iterator[Picture]:
    """A line for every system of which several versions differ in the value of one option alone."""
    means = {result.name: result.score().interval(measure) for result in report.systems}
    for option, families in swept(means).items():
        values = list(dict.fromkeys(value for versions in families.values() for value in versions))
        places = {value: float(at) for at, value in enumerate(values)}
        with suppress(ValueError):  # words have the same distance
            places = {value: float(value) for value in values}
        spelled_out = {"null": "every token"} if option == "passages" else {}
        labels = {places[value]: spelled_out.get(value, value) for value in values}
        lines = {
            base: sorted((places[value], mean) for value, name in versions.items() if (mean := means[name]))
            for base, versions in families.items()
        }
        field = fields_of(FillOptions).get(option)
        about = field.meaning if field else "The share of the corpus's documents that are searched."
        drawn = partial(line_chart, lines, option.replace("_", " "), _axis(measure), labels)
        yield Picture(drawn, f"{option}: {about}")


def swept(names: Iterable[str]) -> dict[str, dict[str, dict[str, str]]]:
    """The systems that differ in one option alone: by option, by the name without it, by value. A system is spelled
    MODEL,OPTION=VALUE,…"""
    found: dict[str, dict[str, dict[str, str]]] = {}
    for name in names:
        model, *options = name.split(",")
        for at, option in enumerate(options):
            key, equals, value = option.partition("=")
            base = ",".join([model, *options[:at], *options[at + 1 :]])
            if equals:
                found.setdefault(key, {}).setdefault(base, {})[value] = name
    several = {key: {base: its for base, its in found[key].items() if len(its) > 1} for key in found}
    return {key: families for key, families in several.items() if families}


def _risk(result: Result) -> Points:
    """The share of wrong answers among the surest, at every share of answers given (Geifman and El-Yaniv 2017)."""
    right = result.values("exact_match")
    chances = [row.predictions[0].probability if row.predictions else 0.0 for row in result.rows]
    if right is None or len(set(chances)) < 2:
        return []
    order = sorted(range(len(right)), key=lambda i: -chances[i])
    wrong, points = 0.0, list[tuple[float, Interval]]()
    for count, i in enumerate(order, start=1):
        wrong += 1 - right[i]
        if count == len(order) or chances[order[count]] < chances[i]:  # equally sure answers are given together
            points.append((100 * count / len(right), Interval(wrong / count, wrong / count, wrong / count)))
    return points


def _groups(report: Report, measure: str | None) -> Iterator[Part]:
    for dimension in report.dimensions:
        found = [
            (group, result.name, mean)
            for result in report.systems
            for group, score in result.by_group(dimension).items()
            if measure is not None and (mean := score.interval(measure))
        ]
        if measure is not None and 1 < len({group for group, *_ in found}) <= _MOST_GROUPS:
            yield _picture(measure, sorted(found, key=lambda bar: bar[0]), f"By {dimension}")
        yield Section(f"By {dimension}", [report.group_table(dimension)])


def beside(report: Report, tables: Sequence[tuple[Published, Sequence[Column]]]) -> Iterator[Section]:
    """The papers' numbers for these columns of their tables, below ours, averaged in the same way."""
    parts = list[Part]()
    corpus = _told(report.settings.get("corpora", "its own"))
    passages, found = report.settings.get("num_passages"), report.settings.get("num_answerable")
    searched = f"{corpus}, {passages:,} passages" if isinstance(passages, int) else corpus
    searched += f", answerable questions: {found:,}" if isinstance(found, int) else ""
    for table, columns in tables:
        rows = [
            [
                result.name,
                f"here, {len(result.rows):,} example{'s' * (len(result.rows) != 1)}",
                *(_number(each.of(result, report.task)) for each in columns),
            ]
            for result in report.systems
        ]
        places = [table.columns.index(each) for each in columns]
        for system, values in table.rows:
            if any(values[at] is not None for at in places):
                rows.append([system, table.where, *(printed(values[at]) for at in places)])
        sizes = [f"{each.name} {each.examples:,}" for each in columns if each.examples]
        about = [f"Searched here: {searched}; in the paper: {table.corpus}", table.note]
        about += [f"examples of the paper: {', '.join(sizes)}"] if sizes else []
        heads = [f"{each.name}: {_measured(each, report.task)}" for each in columns]
        parts += [(["system", "measured", *heads], rows), f"{'; '.join(filter(None, about))}."]
    if parts:
        sources = dict.fromkeys(table.source for table, _ in tables)
        yield Section("Beside the papers' figures", [_BESIDE, *parts, f"{'; '.join(sources)}."])


def _measured(column: Column, task: str) -> str:
    return spelled(column.measures[task]) + (f", mean over {column.macro}" if column.macro else "")


def _number(value: Interval | float | None) -> str:
    """A mean with its interval, or a speed."""
    return "–" if value is None else str(value) if isinstance(value, Interval) else f"{value:.3g}"


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
    size = -(-len(lines) // LOG_PARTS)
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


def _picture(measure: str, bars: Sequence[Bar], caption: str) -> Picture:
    return Picture(partial(interval_chart, bars, _axis(measure)), f"{caption}: {spelled(measure)}.")


def _axis(measure: str) -> str:
    return f"{spelled(measure)}, %"
