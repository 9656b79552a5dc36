"""Charts as SVG text: intervals in rows, and lines of points. They fit a light or a dark page.

Knows: matplotlib, names and intervals. Does not know: what they measure.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from io import StringIO
from itertools import cycle
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:  # which imports numpy
    from quoth_eval.statistics import Interval

Bar: TypeAlias = "tuple[str, str, Interval]"
"""The name of its row, of its series, and where it is."""
Points: TypeAlias = "Sequence[tuple[float, Interval]]"
"""Places on the x axis with their intervals, in the order in which a line connects them."""
NEEDS_MATPLOTLIB = "matplotlib draws them; pip install '.[eval]' in a clone of Quoth"
_INK = "#010203"
"""Becomes the colour of the page's text."""
_INKED = ("text.color", "axes.labelcolor", "axes.edgecolor", "grid.color", "xtick.color", "ytick.color")
_STYLE: Any = {
    **dict.fromkeys(_INKED, _INK),
    "axes.prop_cycle": "cycler('color', ['3f87c9', 'd9772b', '2fa072', 'b264b8', 'b8952a', 'd1566b', '7b8794'])",
    "axes.grid": True,
    "grid.alpha": 0.2,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "quoth",
    "text.parse_math": False,
}
"""The colours are seen on white and on black alike; text stays text."""
_LETTERS = 21
"""How many letters of a row's name are shown."""


def drawable() -> bool:
    """Whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def interval_chart(bars: Sequence[Bar], axis: str) -> str:
    """A row per name with an interval per series, one below the other, over an axis of percentages."""
    rows, series = list(dict.fromkeys(row for row, _, _ in bars)), list(dict.fromkeys(name for _, name, _ in bars))

    def draw(axes: Any) -> None:
        for number, (name, mark) in enumerate(zip(series, cycle("os^D"), strict=False)):
            own = [(rows.index(row), mean) for row, its, mean in bars if its == name]
            at = [row + 0.6 * (number - (len(series) - 1) / 2) / len(series) for row, _ in own]
            means, lengths = _scaled([mean for _, mean in own], 100)
            axes.errorbar(means, at, xerr=lengths, fmt=mark, markersize=5, label=name)
        axes.set_yticks(range(len(rows)), list(map(_cut, rows)))
        axes.set(xlabel=axis, xlim=(min(0, axes.get_xlim()[0]), None), ylim=(len(rows) - 0.5, -0.5))
        axes.grid(visible=False, axis="y")

    return _svg(draw, 1 + 0.3 * max(len(rows), 0.7 * len(bars)), len(series))


def line_chart(
    lines: Mapping[str, Points],
    x_axis: str,
    y_axis: str,
    ticks: Mapping[float, str] | None = None,
    marks: bool = True,
    scale: float = 100,
) -> str:
    """Lines through points, by name, over an axis of percentages (`scale` 1: of the numbers as they are) from 0 or
    lower. The x axis is logarithmic if its values are positive and span a factor of 20; `ticks` are its labels. Without
    `marks`, only the lines are drawn."""
    xs = sorted({*(ticks or ()), *(x for points in lines.values() for x, _ in points)})

    def draw(axes: Any) -> None:
        for (name, points), mark in zip(lines.items(), cycle("os^D"), strict=False):
            means, lengths = _scaled([mean for _, mean in points], scale)
            style = f"{mark}-" if marks else "-"
            ends = lengths if marks else None
            axes.errorbar([x for x, _ in points], means, yerr=ends, fmt=style, markersize=5, label=name)
        if xs[0] > 0 and xs[-1] >= 20 * xs[0]:
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter("{x:,.10g}")
        if ticks:
            axes.set_xticks(list(ticks), list(ticks.values()))
            axes.minorticks_off()
        axes.set(xlabel=x_axis, ylabel=y_axis, ylim=(min(0, axes.get_ylim()[0]), None))

    return _svg(draw, 3, len(lines))


def _scaled(means: Sequence[Interval], scale: float) -> tuple[list[float], list[list[float]]]:
    """The means, and how long their intervals are to the left and to the right."""
    lengths = [[scale * (each.mean - each.low) for each in means], [scale * (each.high - each.mean) for each in means]]
    return [scale * each.mean for each in means], lengths


def _svg(draw: Callable[[Any], None], height: float, num_series: int) -> str:
    """What `draw` draws, with a legend if there are several series."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    file = StringIO()
    with rc_context(_STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # The reader's font may have it.
        figure = Figure(figsize=(5, height + (0.25 * num_series if num_series > 1 else 0)), layout="constrained")
        draw(figure.add_subplot())
        if num_series > 1:
            figure.legend(loc="outside lower left")
        named: dict[str, Any] = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(file, format="svg", transparent=True, metadata=named)
    svg = file.getvalue()
    return svg[svg.index("<svg") :].replace(_INK, "currentColor")


def _cut(name: str) -> str:
    """The name, or its beginning and its end, where names of systems differ."""
    return name if len(name) <= _LETTERS else f"{name[: _LETTERS // 2 - 1]}…{name[-_LETTERS // 2 :]}"
