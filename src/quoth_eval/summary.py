"""A page about finished runs: tables, pictures, the papers' figures, and wrong answers with their evidence.

Knows: what of a report is worth showing, and how. Does not know: how a page is written, or how anything was measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from quoth.answers.options import FillOptions
from quoth.fields import fields_of
from quoth_eval.charts import Bar, Line, Point, interval_chart, line_chart
from quoth_eval.errors import WrongAnswer, around_blank, quotation, right_answers, wrong_answers
from quoth_eval.pages import Folded, Part, Picture, Quotation, Section
from quoth_eval.published import published_for
from quoth_eval.report import Report, Result, Score, Table, spelled
from quoth_eval.statistics import Interval
from quoth_eval.task import draw, length_groups

WRONG = 12
"""How many wrong answers of a system are shown."""
PIECES = "word pieces"
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
            measure, score = _main(report, result), result.score()
            if measure is None or score is None or (mean := score.interval(measure)) is None:
                continue
            counted, speed = f"{score.num_examples:,}", _speed(result.per_second)
            rows.append([name, result.name, counted, spelled(measure), str(mean), speed])
            bars.setdefault(measure, []).append(_bar(name, result.name, mean))
    heads = ["run", "system", "examples", "measure", "mean", "examples per second"]
    several = {measure: own for measure, own in bars.items() if len({bar.row for bar in own}) > 1}
    return Section(
        "Overview",
        [_READ_ME, (heads, rows), *(_picture(measure, own, "Every run") for measure, own in several.items())],
    )


def _speed(per_second: float | None) -> str:
    if per_second is None:
        return "–"
    return f"{per_second:,.0f}" if per_second >= 10 else f"{per_second:.2g}"


def _parts(report: Report) -> Iterator[Part]:
    heads, rows = report.table(())
    if rows:
        yield ["system", *heads[1:]], rows
    else:
        yield "No answers yet."
    yield Folded("Settings", [_settings(report.settings)])
    answering = [measure for result in report.systems if (measure := _main(report, result))]
    main = answering[0] if answering else None
    if main is not None:
        yield from _pictures(report, main)
    compared, differences = report.differences()
    if differences:
        yield compared, differences
    yield from _groups(report, main)
    yield from _beside(report)
    for result in report.systems:
        yield from _wrong(result)


def _main(report: Report, result: Result) -> str | None:
    """The first measure that the system has for some example."""
    score = result.score()
    return next((measure for measure in report.measures if score and score.values.get(measure)), None)


def _settings(settings: Mapping[str, Any]) -> str:
    shown = [f"{name.replace('_', ' ')}: {_told(value)}" for name, value in settings.items() if value is not None]
    return f"{'; '.join(shown)}." if shown else "No settings."


def _told(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={_told(each)}" for name, each in value.items()) or "defaults"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_told, value)) or "none"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _pictures(report: Report, measure: str) -> Iterator[Picture]:
    """The systems side by side; an option's values; speed; how well a system knows when it is right."""
    scored = [(result, mean) for result in report.systems if (mean := _mean(result.score(), measure))]
    if len(scored) > 1:
        yield _picture(measure, [_bar(result.name, "", mean) for result, mean in scored], "Systems")
    yield from _sweeps(report, measure)
    timed = [(result, mean, speed) for result, mean in scored if (speed := result.per_second)]
    if len(timed) > 1:
        lines = [Line(result.name, [_point(speed, mean)]) for result, mean, speed in timed]
        yield Picture(line_chart(lines, "examples per second", _axis(measure)), "Speed and accuracy.")
    if lines := list(filter(None, map(_risk, report.systems))):
        caption = "Risk and coverage: the share of wrong answers if only the surest are given."
        yield Picture(line_chart(lines, "answered, %", "wrong, %", {x: f"{x}" for x in range(0, 101, 20)}), caption)


def _sweeps(report: Report, measure: str) -> Iterator[Picture]:
    """A line for every system of which several versions differ in the value of one option alone."""
    means = {result.name: _mean(result.score(), measure) for result in report.systems}
    for option, families in swept(means).items():
        values = list(dict.fromkeys(value for versions in families.values() for value in versions))
        numbers = {value: _number(value) for value in values}
        ordinal = None in numbers.values()
        places = {value: float(at) if ordinal else numbers[value] or 0.0 for at, value in enumerate(values)}
        labels = {places[value]: _SPELLED.get((option, value), value) for value in values}
        lines = []
        for base, versions in families.items():
            points = [_point(places[value], mean) for value, name in versions.items() if (mean := means[name])]
            lines.append(Line(base, sorted(points, key=lambda point: point.x)))
        field = fields_of(FillOptions).get(option)
        about = field.meaning if field else "The share of the corpus's documents that are searched."
        yield Picture(line_chart(lines, option.replace("_", " "), _axis(measure), labels), f"{option}: {about}")


_SPELLED = {("passages", "null"): "every token"}


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
    several = {
        key: {base: versions for base, versions in families.items() if len(versions) > 1}
        for key, families in found.items()
    }
    return {key: families for key, families in several.items() if families}


def _risk(result: Result) -> Line | None:
    """The share of wrong answers among the surest, at every share of answers given (Geifman and El-Yaniv 2017)."""
    right = result.values("exact_match")
    chances = [row.predictions[0].probability if row.predictions else 0.0 for row in result.rows]
    if right is None or len(set(chances)) < 2:
        return None
    order = sorted(range(len(right)), key=lambda i: -chances[i])
    wrong, points = 0.0, list[Point]()
    for count, i in enumerate(order, start=1):
        wrong += 1 - right[i]
        if count == len(order) or chances[order[count]] < chances[i]:  # equally sure answers are given together
            points.append(Point(100 * count / len(right), 100 * wrong / count))
    return Line(result.name, points, marks=False)


def _groups(report: Report, measure: str | None) -> Iterator[Part]:
    for dimension in report.dimensions:
        scores = {result.name: result.by_group(dimension) for result in report.systems}
        found = [
            _bar(group, name, mean)
            for name, groups in scores.items()
            for group, score in groups.items()
            if measure is not None and (mean := _mean(score, measure))
        ]
        if measure is not None and 1 < len({bar.row for bar in found}) <= _MOST_GROUPS:
            order = sorted(found, key=lambda bar: bar.row)
            yield _picture(measure, order, f"By {dimension}")
        yield Folded(f"By {dimension}", [report.group_table(dimension)])


def _beside(report: Report) -> Iterator[Part]:
    """The papers' figures for this task, below ours, averaged in the same way."""
    figures = published_for(report.task)
    if not figures:
        return
    corpus = _told(report.settings.get("corpora", "its own"))
    passages = report.settings.get("num_passages")
    searched = f"{corpus}, {passages:,} passages" if isinstance(passages, int) else corpus
    rows = list[list[str]]()
    for measure, macro in dict.fromkeys((figure.measure, figure.macro) for figure in figures):
        weighed = f", mean over {macro}" if macro else ""
        for result in report.systems:
            mean = result.macro(macro, measure) if macro else _mean(result.score(), measure)
            if mean:
                number = f"{len(result.rows):,}"
                rows.append([result.name + weighed, "here", spelled(measure), str(mean), number, searched])
        for figure in figures:
            if (figure.measure, figure.macro) == (measure, macro):
                where = f"{figure.source.split(',')[0]}{f', table {figure.table}' if figure.table else ''}"
                number = "–" if figure.num_examples is None else f"{figure.num_examples:,}"
                about = "; ".join(filter(None, [figure.corpus, figure.note]))
                rows.append([figure.system + weighed, where, spelled(measure), f"{figure.value:.1f}", number, about])
    sources = dict.fromkeys(figure.source for figure in figures)
    heads = ["system", "measured", "measure", "mean", "examples", "corpus"]
    table: Table = (heads, rows)
    yield Folded("Beside the papers' figures", [_BESIDE, table, f"{'; '.join(sources)}."])


def _wrong(result: Result) -> Iterator[Folded]:
    wrong = wrong_answers(result)
    shown = draw(wrong, WRONG, 0)
    if shown:
        title = f"Wrong answers of {result.name}: {len(shown)} of {len(wrong):,}"
        yield Folded(title, [part for each in shown for part in _error(each)])


def _error(wrong: WrongAnswer) -> Iterator[Quotation]:
    row = wrong.row
    said = row.predictions[0] if row.predictions else None
    places = said.evidence[:1] if said else ()
    told = Quotation(
        around_blank(row.text),
        right_answers(row),
        f"{said.text} ({100 * said.probability:.1f} %; {wrong.kind})" if said and said.text else f"({wrong.kind})",
    )
    for place in places:
        before, phrase, after = quotation(place)
        told = replace(told, source=place.title or place.document_id, before=before, phrase=phrase, after=after)
    yield told


def _mean(score: Score | None, measure: str) -> Interval | None:
    return score.interval(measure) if score else None


def _bar(row: str, series: str, mean: Interval) -> Bar:
    return Bar(row, series, 100 * mean.mean, 100 * mean.low, 100 * mean.high)


def _point(x: float, mean: Interval) -> Point:
    return Point(x, 100 * mean.mean, 100 * mean.low, 100 * mean.high)


def _picture(measure: str, bars: Sequence[Bar], caption: str) -> Picture:
    return Picture(interval_chart(bars, _axis(measure)), f"{caption}: {spelled(measure)}.")


def _axis(measure: str) -> str:
    return f"{spelled(measure)}, %"


def _number(value: str) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None
