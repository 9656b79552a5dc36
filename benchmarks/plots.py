"""Cost against corpus size, in one picture: what was measured, and beyond it, dashed, what is extrapolated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.extrapolate import (
    SIZES,
    Facts,
    comparable,
    disk_bytes,
    duration,
    embedding_rate,
    extrapolate,
    hot_bytes,
    largest,
)
from benchmarks.extrapolate import size as readable

Points = list[tuple[float, float]]
COLOURS = ("#1f5fa8", "#c4571b")
INSTALL = "the picture is not drawn: matplotlib is missing; pip install 'matplotlib>=3.10'"


def draw(data: dict[str, Any], path: Path) -> None:
    """Four panels, log-log. Raises ModuleNotFoundError where matplotlib is missing."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    data = {**data, "corpora": comparable(data["corpora"])}
    figure, axes = pyplot.subplots(2, 2, figsize=(11, 8.2), layout="constrained")
    for axis, panel in zip(axes.flat, (_disk, _hot, _fill, _embedding), strict=True):
        panel(axis, data)
        _finish(axis)
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=110, metadata={"Software": None})
    pyplot.close(figure)


def _disk(axis: Any, data: dict[str, Any]) -> None:
    axis.set(title="Vectors, codes and columns on disk", ylabel="bytes")
    _bytes(axis, data, disk_bytes)


def _hot(axis: Any, data: dict[str, Any]) -> None:
    axis.set(title="Memory that must be hot: codes", ylabel="bytes")
    _bytes(axis, data, hot_bytes)


def _bytes(axis: Any, data: dict[str, Any], count: Callable[[Facts], int]) -> None:
    facts = largest(data["corpora"])
    _measured(axis, [(each["tokens"], count(each)) for each in data["corpora"]], "measured, Wikipedia")
    _random(axis, data, count)
    _beyond(axis, (facts["tokens"], count(facts)), [(n, n / facts["tokens"] * count(facts)) for n in SIZES], readable)


def _fill(axis: Any, data: dict[str, Any]) -> None:
    axis.set(title="Dense query, one core, every code looked at", ylabel="seconds")
    facts = largest(data["corpora"])
    for name, colour in (("whole", COLOURS[0]), ("search", COLOURS[1])):
        label = {"whole": "measured, the whole fill", "search": "measured, its search"}[name]
        _measured(axis, [(each["tokens"], each["dense"][name]) for each in data["corpora"]], label, colour)
    _random(axis, data, lambda facts: facts["search_seconds"])
    points: Points = [(n, extrapolate(facts, n).fill_one_core) for n in SIZES]
    between = [10 ** (tenths / 10) for tenths in range(60, 110) if 10 ** (tenths / 10) > facts["tokens"]]
    curve = [(n, extrapolate(facts, int(n)).fill_one_core) for n in between]
    _beyond(axis, (facts["tokens"], facts["dense"]["whole"]), points, duration, curve)


def _embedding(axis: Any, data: dict[str, Any]) -> None:
    axis.set(title="Embedding, one core", ylabel="seconds")
    facts = largest(data["corpora"])
    points = [tuple(sample) for each in data["corpora"] for sample in each["samples"]]
    _measured(axis, points, "measured, passages of the corpora", line="None")
    first = tuple(facts["samples"][-1])
    _beyond(axis, first, [(n, n / embedding_rate(facts)) for n in SIZES], duration)


def _measured(axis: Any, points: Points, label: str, colour: str = COLOURS[0], line: str = "-") -> None:
    axis.plot(*zip(*sorted(points), strict=True), linestyle=line, marker="o", markersize=5, color=colour, label=label)


def _random(axis: Any, data: dict[str, Any], value: Callable[[Facts], float]) -> None:
    if data["million"]:
        x, y, label = data["million"]["tokens"], value(data["million"]), "measured, random vectors"
        axis.plot([x], [y], marker="D", markersize=7, linestyle="", color="#333333", mfc="none", label=label)


def _beyond(
    axis: Any, start: tuple[float, float], points: Points, form: Callable[[float], str], curve: Sequence[Any] = ()
) -> None:
    """A dashed line from the last measured point, along a curve if one is given, and what it reaches in words."""
    axis.plot(
        *zip(start, *sorted({*points, *curve}), strict=True), linestyle="--", color="#777777", label="extrapolated"
    )
    axis.plot(*zip(*points, strict=True), marker="o", linestyle="", color="#777777", mfc="white")
    for x, y in points:
        axis.annotate(form(y), (x, y), textcoords="offset points", xytext=(-8, 4), ha="right", color="#444444")


def _finish(axis: Any) -> None:
    axis.set(xscale="log", yscale="log", xlabel="tokens")
    axis.margins(0.08)
    axis.grid(True, which="major", color="#e4e4e4")
    axis.legend(loc="lower right", frameon=False)
