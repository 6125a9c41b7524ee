"""The geometry of plots and trees; templates draw them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

PLOT_WIDTH, PLOT_HEIGHT = 860, 180
"""The area of a plot, without the room for its numbers."""
MOST_POINTS = 400
"""Points of a curve; of more requests every so many are drawn."""
CURVE_COLORS = 6


class PlotBar(NamedTuple):
    """A bar: its place, its height, the ``dark`` part of it, and its label."""

    x: float
    width: float
    height: float
    dark: float
    name: str
    text: str


class PlotCurve(NamedTuple):
    """A curve: its name, the number of its color, and its points as SVG has them."""

    name: str
    color: int
    points: str


class Plot(NamedTuple):
    """Bars or curves, with the largest value, and the first and the last place."""

    bars: list[PlotBar]
    curves: list[PlotCurve]
    largest: float
    first: str
    last: str


def plot_bars(rows: Sequence[tuple[str, float, float, str]]) -> Plot:
    """Return a plot of rows: a name, a value, the part of it that is marked, and a text."""
    largest = max((value for _, value, *_ in rows), default=0) or 1
    step = PLOT_WIDTH / max(1, len(rows))
    scale = PLOT_HEIGHT / largest
    bars = [
        PlotBar(place * step, max(1, min(step * 0.8, 40)), value * scale, part * scale, name, text)
        for place, (name, value, part, text) in enumerate(rows)
    ]
    names = [name for name, *_ in rows] or [""]
    return Plot(bars, [], largest, names[0], names[-1])


def plot_curves(lines: Mapping[str, Sequence[float]]) -> Plot:
    """Return a plot of curves by their names, over the numbers of their points."""
    largest = max((max(values, default=0) for values in lines.values()), default=0) or 1
    longest = max(map(len, lines.values()), default=0)
    curves = [
        PlotCurve(name, place % CURVE_COLORS, " ".join(_place_points(values, largest, longest)))
        for place, (name, values) in enumerate(lines.items())
    ]
    return Plot([], curves, largest, "1", str(longest))


def _place_points(values: Sequence[float], largest: float, longest: int) -> Iterator[str]:
    every = max(1, len(values) // MOST_POINTS)
    for place in range(0, len(values), every):
        x = PLOT_WIDTH * place / max(1, longest - 1)
        yield f"{x:.1f},{PLOT_HEIGHT * (1 - values[place] / largest):.1f}"


def add_up(values: Iterable[float]) -> list[float]:
    """Return the sum up to each value."""
    return [*accumulate(values)]
