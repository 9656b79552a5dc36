"""Charts as SVG text: intervals in rows, and lines of points. They need no library, and fit a light or a dark page.

Knows: numbers with names, and how they are drawn. Does not know: what they measure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

WIDTH = 480
_TOP, _RIGHT, _LEFT, _LABELS = 22, 16, 52, 150
_ROW, _PLOT, _TEXT = 22, 230, 13
_COLOURS = ("#3f87c9", "#d9772b", "#2fa072", "#b264b8", "#b8952a", "#d1566b", "#7b8794")
"""Seen on white and on black alike."""
_MARKS = ("M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0", "M-4-4H4V4H-4z", "M0-5L5 4H-5z", "M0-5.5L5.5 0L0 5.5L-5.5 0z")
_LETTER = 8
"""The width of a letter, at most."""
_LETTERS = 21
"""How many letters of a row's name fit beside its interval."""


@dataclass(frozen=True, slots=True)
class Point:
    """A value at x with the ends of its interval, if it has one."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """Points in the order in which a line connects them; without `marks`, only the line is drawn."""

    name: str
    points: Sequence[Point]
    marks: bool = True


@dataclass(frozen=True, slots=True)
class Bar:
    """A value and the ends of its interval, in a row with the name `row` and the colour of `series`."""

    row: str
    series: str
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Scale:
    """Numbers to pixels: `low` is at `start`, `high` at `end`. If `logarithmic`, equal ratios are equally long."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        low, high, at = (log10(x) if self.logarithmic else x for x in (self.low, self.high, value))
        return self.start + (self.end - self.start) * ((at - low) / (high - low) if high > low else 0.5)


def nice_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers, 1, 2 or 5 times a power of ten apart, of which the first is at most `low` and the last at least
    `high`; up to `most` of them between, if there is a span at all."""
    if high <= low:
        high = low + 1
    power = 10.0 ** floor(log10((high - low) / most))
    step = next(size * power for size in (1, 2, 5, 10) if (high - low) / (size * power) <= most)
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    return [round(number * step, 10) for number in range(first, last + 1)]


def _powers(low: float, high: float) -> list[float]:
    return [10.0**power for power in range(floor(log10(low)), ceil(log10(high)) + 1)]


def interval_chart(bars: Sequence[Bar], axis: str) -> str:
    """A row per name with an interval per series, under one another, over an axis of values."""
    rows, series = (list(dict.fromkeys(names)) for names in ([bar.row for bar in bars], [bar.series for bar in bars]))
    ticks = nice_ticks(min(0.0, *(bar.low for bar in bars)), max(bar.high for bar in bars))
    left = _LABELS if any(rows) else 8
    x = Scale(ticks[0], ticks[-1], left, WIDTH - _RIGHT)
    heights = {row: max(_ROW, 12 * sum(bar.row == row for bar in bars) + 8) for row in rows}
    bottom = _TOP + sum(heights.values())
    parts = [_vertical(x(tick), _TOP, bottom, _number(tick)) for tick in ticks]
    at = float(_TOP)
    for row in rows:
        own = [bar for bar in bars if bar.row == row]
        parts.append(_text(left - 8, at + heights[row] / 2 + 4, _cut(row), "end", row))
        for number, bar in enumerate(own):
            y = at + heights[row] / 2 + 12 * (number - (len(own) - 1) / 2)
            parts += _interval(series.index(bar.series), x(bar.value), y, (x(bar.low), y), (x(bar.high), y))
        at += heights[row]
    return _svg(parts, axis, series, bottom + 34)


def line_chart(lines: Sequence[Line], x_axis: str, y_axis: str, ticks: Mapping[float, str] | None = None) -> str:
    """Lines through points, over an axis from 0 or lower. The x axis is logarithmic if its values are positive and
    span a factor of 20; `ticks` are its labels (default: round numbers)."""
    points = [point for line in lines for point in line.points]
    xs = sorted({*(ticks or ()), *(point.x for point in points)})
    logarithmic = xs[0] > 0 and xs[-1] >= 20 * xs[0]
    named = ticks or {tick: _number(tick) for tick in (_powers if logarithmic else nice_ticks)(xs[0], xs[-1])}
    x = Scale(min(*named, xs[0]), max(*named, xs[-1]), _LEFT, WIDTH - _RIGHT, logarithmic)
    ends = [value for point in points for value in (point.y, point.low, point.high) if value is not None]
    levels = nice_ticks(min(0.0, *ends), max(ends))
    y = Scale(levels[0], levels[-1], _TOP + _PLOT, _TOP)
    parts = [_horizontal(y(level), _number(level)) for level in levels]
    parts += [_vertical(x(tick), _TOP, _TOP + _PLOT, label, False) for tick, label in named.items()]
    for number, line in enumerate(lines):
        parts += _line(number, line, x, y)
    parts.append(_text(_LEFT, _TOP - 9, y_axis))
    return _svg(parts, x_axis, [line.name for line in lines], _TOP + _PLOT + 34)


def _line(number: int, line: Line, x: Scale, y: Scale) -> Iterator[str]:
    places = [(x(point.x), y(point.y)) for point in line.points]
    path = " ".join(f"{_pixels(across)},{_pixels(down)}" for across, down in places)
    yield f'<polyline points="{path}" fill="none" stroke="{_colour(number)}" stroke-width="2"/>'
    for point, (across, down) in zip(line.points, places, strict=True):
        if line.marks:
            ends = [(across, y(end)) for end in (point.low, point.high) if end is not None]
            yield from _interval(number, across, down, *(ends if len(ends) == 2 else [(across, down)] * 2))


def _interval(
    number: int, across: float, down: float, low: tuple[float, float], high: tuple[float, float]
) -> Iterator[str]:
    colour = _colour(number)
    ends = " ".join(f'{name}="{_pixels(at)}"' for name, at in zip(("x1", "y1", "x2", "y2"), low + high, strict=True))
    yield f'<line {ends} stroke="{colour}" stroke-width="2" stroke-opacity=".55"/>'
    yield _mark(number, across, down)


def _mark(number: int, across: float, down: float) -> str:
    shape, place = _MARKS[number % len(_MARKS)], f"translate({_pixels(across)} {_pixels(down)})"
    return f'<path d="{shape}" fill="{_colour(number)}" transform="{place}"/>'


def _svg(parts: Sequence[str], axis: str, series: Sequence[str], bottom: int) -> str:
    """The whole picture, with the name of the x axis, and a legend if there are several series."""
    parts = [*parts, _text(WIDTH - _RIGHT, bottom, axis, "end")]
    for number, name in enumerate(series if len(series) > 1 else ()):
        bottom += 19
        parts += [_mark(number, 16, bottom - 4), _text(28, bottom, name)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 8}" role="img" '
        f'font-family="sans-serif" font-size="{_TEXT}" fill="currentColor">{"".join(parts)}</svg>'
    )


def _vertical(across: float, top: float, bottom: float, label: str, grid: bool = True) -> str:
    start = top if grid else bottom
    line = _gridline(f"M{_pixels(across)} {_pixels(start)}V{_pixels(bottom + 4)}")
    return line + _text(min(across, WIDTH - _LETTER / 2 * len(label)), bottom + 17, label, "middle")


def _horizontal(down: float, label: str) -> str:
    return _gridline(f"M{_LEFT} {_pixels(down)}H{WIDTH - _RIGHT}") + _text(_LEFT - 7, down + 4, label, "end")


def _gridline(path: str) -> str:
    return f'<path d="{path}" stroke="currentColor" stroke-opacity=".2"/>'


def _text(across: float, down: float, text: str, anchor: str = "start", full: str = "") -> str:
    title = f"<title>{escape(full)}</title>" if full and full != text else ""
    return f'<text x="{_pixels(across)}" y="{_pixels(down)}" text-anchor="{anchor}">{title}{escape(text)}</text>'


def _cut(name: str) -> str:
    """The name, or its beginning and its end, where names of systems differ."""
    return name if len(name) <= _LETTERS else f"{name[: _LETTERS // 2 - 1]}…{name[-_LETTERS // 2 :]}"


def _colour(number: int) -> str:
    return _COLOURS[number % len(_COLOURS)]


def _pixels(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _number(value: float) -> str:
    return f"{value:,.10g}"
