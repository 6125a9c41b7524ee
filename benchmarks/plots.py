"""Plots as SVG text, of the store's own drawing: lines that grow, and dots on a scale.

Both scales are logarithmic: what stays level costs the same at any size, what grows as the size
does rises with the grid. Each line says what it is at its end, where no two words may meet. The
colours are read on a white and on a black page.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from store.cli.chart import (
    INK_COLOUR,
    Point,
    Rectangle,
    draw_dot,
    draw_grid_line,
    draw_picture,
    draw_stroke,
    draw_words,
    measure_text,
)

WIDTH = 860
COLOURS = (
    "#3f7fe8",
    "#d0612b",
    "#2f9a63",
    "#a667d8",
    "#c9487f",
    "#1f95ab",
    "#9a8320",
    "#7a828e",
    "#a0714a",
    "#5f9a2f",
)
"""One for each line: more lines in a plot nobody could tell apart."""
LINE = 17
"""How far apart words stand, from middle to middle."""
TITLE, SMALL = 14, 12
_DOT, _OURS = 4, 6.5
_GAP = 10


class Line(NamedTuple):
    """A line of a plot: what it is, and its points as values, from left to right."""

    label: str
    points: list[tuple[float, float]]


class Axis(NamedTuple):
    """A logarithmic scale along pixels: from one value to another, and how a value is said."""

    least: float
    most: float
    begin: float
    end: float
    said: Callable[[float], str]
    marked: Sequence[float] = ()

    def place(self, value: float) -> float:
        """Return where a value stands."""
        share = math.log(value / self.least) / math.log(self.most / self.least)
        return self.begin + share * (self.end - self.begin)

    def ticks(self) -> list[float]:
        """Return the powers of ten on it."""
        first, last = math.ceil(math.log10(self.least)), math.floor(math.log10(self.most))
        return [10.0**power for power in range(first, last + 1)]


def milliseconds(value: float) -> str:
    """Return a time in ms as people say it."""
    for limit, unit, size in ((1, "µs", 1e-3), (1_000, "ms", 1), (math.inf, "s", 1_000)):
        if value < limit * 0.9999:
            return f"{value / size:,.3g} {unit}"
    raise AssertionError(value)


def number(value: float) -> str:
    """Return a whole number with commas."""
    return f"{value:,.0f}"


def times(value: float) -> str:
    """Return how many times something is."""
    said = f"{value:,.0f}" if value >= 100 else f"{value:.2g}"
    return f"{said} ×"


def grown(
    title: str,
    below: str,
    lines: Sequence[Line],
    said: Callable[[float], str] = milliseconds,
    *,
    high: float = 340,
) -> str:
    """Return a plot of lines over sizes; ``below`` says what the sizes count."""
    lines = [line for line in lines if line.points]
    labels = max((measure_text(line.label) for line in lines), default=0)
    area = Rectangle(70, 40, WIDTH - 70 - labels - 34, high - 96)
    across, up = _axes(area, lines, said)
    foot = draw_words(area.x + area.width / 2, area.bottom + 42, below, size=SMALL, anchor="middle")
    head = draw_words(0, 14, title, size=TITLE)
    drawn = [head, *_grid(area, across, up), *_lines(lines, across, up, area), foot]
    return draw_picture(WIDTH, high, title, drawn)


def _axes(
    area: Rectangle, lines: Iterable[Line], said: Callable[[float], str]
) -> tuple[Axis, Axis]:
    """Return the scales on which all points have room."""
    points = [point for line in lines for point in line.points]
    xs, ys = [x for x, _ in points], [y for _, y in points]
    across = Axis(min(xs), max(*xs, min(xs) * 2), area.x, area.right, number)
    up = Axis(*_decades(ys), area.bottom, area.y, said)
    return across._replace(marked=_apart(sorted({*xs}), across)), up


def _apart(values: Sequence[float], axis: Axis) -> list[float]:
    """Return the values whose words have room beside each other, from left to right."""
    marked: list[float] = []
    free = -math.inf
    for value in values:
        half = measure_text(axis.said(value)) / 2
        if axis.place(value) - half > free:
            marked.append(value)
            free = axis.place(value) + half + _GAP
    return marked


def _decades(values: Iterable[float]) -> tuple[float, float]:
    """Return the powers of ten between which all values lie."""
    powers = [math.log10(value) for value in values]
    least = math.floor(min(powers))
    return 10.0**least, 10.0 ** max(math.ceil(max(powers)), least + 1)


def _grid(area: Rectangle, across: Axis, up: Axis) -> Iterator[str]:
    for value in up.ticks():
        y = up.place(value)
        yield draw_grid_line(Point(area.x, y), Point(area.right, y))
        yield draw_words(area.x - 8, y, up.said(value), size=SMALL, anchor="end")
    for value in across.marked:
        x = across.place(value)
        yield draw_grid_line(Point(x, area.y), Point(x, area.bottom + 5))
        yield draw_words(x, area.bottom + 18, across.said(value), size=SMALL, anchor="middle")


def _lines(lines: Sequence[Line], across: Axis, up: Axis, area: Rectangle) -> Iterator[str]:
    """Yield each line with its dots, and its label beside its end, where there is room for it."""
    placed = [_points(line, across, up) for line in lines]
    heights = spread([points[-1].y for points in placed], LINE, area.y, area.bottom)
    for line, points, y, colour in zip(lines, placed, heights, COLOURS[: len(lines)], strict=True):
        yield draw_stroke(points, colour)
        yield from (draw_dot(point, _DOT - 0.5, colour) for point in points)
        begin = Point(area.right + 14, y)
        yield draw_grid_line(Point(points[-1].x + 6, points[-1].y), begin)
        yield draw_words(begin.x + 6, y, line.label, colour, size=SMALL)


def _points(line: Line, across: Axis, up: Axis) -> list[Point]:
    return [Point(across.place(x), up.place(y)) for x, y in line.points]


def spread(wanted: Sequence[float], apart: float, top: float, bottom: float) -> list[float]:
    """Return heights as near to the wanted ones as can be, none nearer to another than ``apart``.

    Groups that would meet are put around their middle, again and again, until none do.
    """
    order = sorted(range(len(wanted)), key=wanted.__getitem__)
    groups = [[place] for place in order]
    while len(merged := _merged(groups, wanted, apart, top, bottom)) < len(groups):
        groups = merged
    found = [0.0] * len(wanted)
    for group in groups:
        begin = _begin(group, wanted, apart, top, bottom)
        for step, place in enumerate(group):
            found[place] = begin + step * apart
    return found


def _merged(
    groups: list[list[int]], wanted: Sequence[float], apart: float, top: float, bottom: float
) -> list[list[int]]:
    """Return the groups, two neighbours that meet as one."""
    found: list[list[int]] = []
    for group in groups:
        begin = _begin(group, wanted, apart, top, bottom)
        if found:
            last = _begin(found[-1], wanted, apart, top, bottom) + apart * len(found[-1])
            if begin < last:
                found[-1] = [*found[-1], *group]
                continue
        found.append([*group])
    return found


def _begin(
    group: Sequence[int], wanted: Sequence[float], apart: float, top: float, bottom: float
) -> float:
    """Return where the first of a group stands, the group around the middle of what is wanted."""
    long = apart * (len(group) - 1)
    middle = sum(wanted[place] for place in group) / len(group)
    return max(top, min(bottom - long, middle - long / 2))


def compared(title: str, rows: Mapping[str, Mapping[str, float]], ours: str) -> str:
    """Return a row of dots for each operation: how many times the work by hand each side takes.

    ``rows`` holds that figure by operation and side; the side that is ``ours`` has a larger dot,
    and its figure at the end of the row.
    """
    sides = [*dict.fromkeys(side for row in rows.values() for side in row)]
    colours = dict(zip(sides, COLOURS[: len(sides)], strict=True))
    labels = max(map(measure_text, rows))
    legend, top = _legend(sides, colours, ours)
    area = Rectangle(labels + 16, top + 12, WIDTH - labels - 16 - 70, 30 * len(rows))
    values = [value for row in rows.values() for value in row.values()]
    across = Axis(min(0.3, *values) * 0.8, max(values) * 1.3, area.x, area.right, times)
    drawn = [draw_words(0, 14, title, size=TITLE), *legend, *_scale(area, across)]
    for place, (name, row) in enumerate(rows.items()):
        drawn += _row(area.y + 30 * place + 15, name, row, ours, across, colours)
    return draw_picture(WIDTH, area.bottom + 32, title, drawn)


def _legend(sides: Sequence[str], colours: Mapping[str, str], ours: str) -> tuple[list[str], float]:
    """Return the names of the sides with their dots, in as many lines as they need."""
    drawn: list[str] = []
    x, y = 8.0, 40.0
    for side in sides:
        wide = 14 + measure_text(side) + 2 * _GAP
        if x + wide > WIDTH:
            x, y = 8.0, y + LINE + 3
        drawn.append(draw_dot(Point(x, y), _OURS if side == ours else _DOT, colours[side]))
        drawn.append(draw_words(x + 12, y, side, size=SMALL))
        x += wide
    return drawn, y + LINE


def _scale(area: Rectangle, across: Axis) -> Iterator[str]:
    for value in across.ticks():
        x = across.place(value)
        yield draw_grid_line(Point(x, area.y), Point(x, area.bottom))
        yield draw_words(x, area.bottom + 14, _named(value), size=SMALL, anchor="middle")
    by_hand = across.place(1)
    yield draw_stroke((Point(by_hand, area.y), Point(by_hand, area.bottom)), INK_COLOUR)


def _named(value: float) -> str:
    return "by hand" if value == 1 else times(value)


def _row(
    y: float,
    name: str,
    row: Mapping[str, float],
    ours: str,
    across: Axis,
    colours: Mapping[str, str],
) -> Iterator[str]:
    """Yield a row: its name, its dots, the figure of the side that is ours."""
    yield draw_words(0, y, name, size=SMALL)
    yield draw_grid_line(Point(across.begin, y), Point(across.end, y))
    for side in sorted(row, key=lambda each: each == ours):
        radius = _OURS if side == ours else _DOT
        yield draw_dot(Point(across.place(row[side]), y), radius, colours[side])
    if ours in row:
        yield draw_words(WIDTH, y, times(row[ours]), colours[ours], size=SMALL, anchor="end")
