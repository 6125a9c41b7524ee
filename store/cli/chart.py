"""Pictures as SVG text: blocks, words, bands, arrows, and the tokens of requests as curves.

Pure: the same values give the same text, so that a picture can be compared with the code that it
was drawn from. Lengths are pixels of a picture that is shown at its own size. A page may be white
or black, so a block brings its own ground for its words, and words beside blocks have a grey that
is read on both.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import cycle, starmap
from typing import Literal, NamedTuple
from unicodedata import east_asian_width
from xml.sax.saxutils import escape, quoteattr

INK_COLOUR = "#7a828e"
"""The colour of words that stand on the page itself, light or dark."""
FONT_FAMILY = "-apple-system, 'Segoe UI', 'Noto Sans', 'DejaVu Sans', Helvetica, Arial, sans-serif"
TEXT_SIZE = 12
"""The size of words in a block."""

_NARROW, _WIDE = 0.56, 1.0
_BLOCK_MARGIN = 8
_BASELINE = 0.36
_ARROW_HEAD = "M0,0 L-8,-4 L-8,4 Z"
"""The head of an arrow that points to the right, its point at 0."""

RequestTokens = Mapping[str, Sequence[int]]
"""The tokens of each request of a session, by the policy that sent them."""
SessionBills = Mapping[str, Sequence[tuple[int, float]]]
"""The tokens of each session, and its bill to that of sending everything, by policy."""

BLOCK_CHARACTERS = "▁▂▃▄▅▆▇█"
MAX_BLOCKS = 60
"""Blocks of a line; of more requests each block is the largest of some."""
CURVE_COLOURS = (
    "#57606a",
    "#cf222e",
    "#bf8700",
    "#8250df",
    "#0969da",
    "#1a7f37",
    "#bc4c00",
    "#1b7c83",
)


class Paint(NamedTuple):
    """The colour of a block, and that of the words in it."""

    ground: str
    words: str = "#ffffff"


class Point(NamedTuple):
    """A place, from the upper left corner of the picture."""

    x: float
    y: float


class Rectangle(NamedTuple):
    """A rectangle by its upper left corner and its size."""

    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        """Where the block ends, from left to right."""
        return self.x + self.width

    @property
    def bottom(self) -> float:
        """Where the block ends, from above."""
        return self.y + self.height

    @property
    def upper_left(self) -> Point:
        """The first of four corners."""
        return Point(self.x, self.y)

    @property
    def upper_right(self) -> Point:
        """The corner above the lower right one."""
        return Point(self.right, self.y)

    @property
    def lower_left(self) -> Point:
        """The corner below the upper left one."""
        return Point(self.x, self.bottom)

    @property
    def lower_right(self) -> Point:
        """The last of four corners."""
        return Point(self.right, self.bottom)


def draw_block(
    at: Rectangle,
    paint: Paint,
    said: str = "",
    number: str = "",
) -> str:
    """Return a block, with words at its left edge and a number at its right one.

    Words that do not fit are cut off and end in an ellipsis.
    """
    left, right = at.x + _BLOCK_MARGIN, at.right - _BLOCK_MARGIN
    middle = at.y + at.height / 2
    room = right - left
    if number:
        room -= measure_text(number) + _BLOCK_MARGIN
    shape = _build_element("rect", **at._asdict(), rx=3, fill=paint.ground)
    begun = draw_words(left, middle, fit_text(said, room), paint.words)
    ended = draw_words(right, middle, number, paint.words, anchor="end")
    return "\n".join(filter(None, (shape, begun, ended)))


def draw_words(
    x: float,
    middle: float,
    text: str,
    colour: str = INK_COLOUR,
    *,
    anchor: Literal["start", "middle", "end"] = "start",
    size: int = TEXT_SIZE,
) -> str:
    """Return a line of words around a height; nothing where there are none.

    ``anchor`` says what of them is at ``x``.
    """
    if not text:
        return ""
    baseline = middle + _BASELINE * size
    place = {"x": x, "y": baseline, "fill": colour, "font_size": size, "text_anchor": anchor}
    return _build_element("text", text, **place)


def draw_band(left: Rectangle, right: Rectangle, colour: str) -> str:
    """Return a see-through band from the right edge of one block to the left edge of another."""
    upper = _build_curve(left.upper_right, right.upper_left)
    lower = _build_curve(right.lower_left, left.lower_right)
    return _build_element("path", d=f"M{upper} L{lower} Z", fill=colour, fill_opacity=0.25)


def _build_curve(begin: Point, end: Point) -> str:
    """Return a line between two points that leaves and arrives level."""
    half = (begin.x + end.x) / 2
    leaving, arriving = Point(half, begin.y), Point(half, end.y)
    bends = " ".join(map(_format_point, (leaving, arriving, end)))
    return f"{_format_point(begin)} C{bends}"


def _format_point(point: Point) -> str:
    return f"{_format_attribute(point.x)},{_format_attribute(point.y)}"


def draw_arrow(begin: Point, end: Point, colour: str = INK_COLOUR) -> str:
    """Return a straight line from one point to another, with a head at its end."""
    line = f"M{_format_point(begin)} L{_format_point(end)}"
    shaft = _build_element("path", d=line, stroke=colour, stroke_width=1.5)
    angle = math.atan2(end.y - begin.y, end.x - begin.x)
    direction = _format_attribute(math.degrees(angle))
    turned = f"translate({_format_point(end)}) rotate({direction})"
    return f"{shaft}\n{_build_element('path', d=_ARROW_HEAD, transform=turned, fill=colour)}"


def draw_stroke(points: Iterable[Point], colour: str) -> str:
    """Return a line from point to point; nothing where there is none."""
    path = " L".join(map(_format_point, points))
    return (
        _build_element("path", d=f"M{path}", stroke=colour, stroke_width=1.5, fill="none")
        if path
        else ""
    )


def draw_grid_line(begin: Point, end: Point) -> str:
    """Return a faint line from one point to another, in the background."""
    line = f"M{_format_point(begin)} L{_format_point(end)}"
    return _build_element("path", d=line, stroke=INK_COLOUR, stroke_opacity=0.3)


def draw_dot(middle: Point, radius: float, colour: str) -> str:
    """Return a filled circle."""
    return _build_element("circle", cx=middle.x, cy=middle.y, r=radius, fill=colour)


def draw_picture(
    wide: float,
    high: float,
    title: str,
    parts: Iterable[str],
) -> str:
    """Return a whole picture; ``title`` describes it to those who cannot see it."""
    inside = [_build_element("title", title), *filter(None, parts)]
    box = f"0 0 {_format_attribute(wide)} {_format_attribute(high)}"
    space = f'xmlns="http://www.w3.org/2000/svg" viewBox="{box}"'
    size = f'width="{_format_attribute(wide)}" height="{_format_attribute(high)}"'
    head = f'<svg {space} {size} role="img" font-family={quoteattr(FONT_FAMILY)}>'
    return "\n".join([head, *inside, "</svg>\n"])


def _build_element(name: str, said: str = "", /, **attributes: object) -> str:
    """Return an element of the picture; an underscore in a name is written as a hyphen."""
    given = [
        f"{key.replace('_', '-')}={quoteattr(_format_attribute(value))}"
        for key, value in attributes.items()
    ]
    begun = " ".join([name, *given])
    return f"<{begun}>{escape(said)}</{name}>" if said else f"<{begun}/>"


def _format_attribute(value: object) -> str:
    """Return a value as an attribute says it, numbers to two decimals."""
    return f"{round(value, 2):g}" if isinstance(value, float) else str(value)


def measure_text(text: str, size: int = TEXT_SIZE) -> float:
    """Return about how many pixels a text takes."""
    wide = sum(east_asian_width(each) in "FW" for each in text)
    narrow = len(text) - wide
    return size * (wide * _WIDE + narrow * _NARROW)


def fit_text(text: str, room: float) -> str:
    """Return a text, or as much of its beginning as there is room for, and an ellipsis."""
    if measure_text(text) <= room:
        return text
    kept = text
    while kept and measure_text(kept + "…") > room:
        kept = kept[:-1]
    return kept.rstrip() + "…" if kept else ""


PLOT_AREA = Rectangle(70, 20, 620, 240)
WIDE, LINE = 720, 18


def render_request_blocks(lines: RequestTokens) -> Iterator[tuple[str, str]]:
    """Yield each policy with its requests as blocks; the highest is the largest of all."""
    most = _find_largest_request(lines)
    for name, sent in lines.items():
        yield (
            name,
            "".join(
                BLOCK_CHARACTERS[
                    min(len(BLOCK_CHARACTERS) - 1, int((tokens / most) * len(BLOCK_CHARACTERS)))
                ]
                for tokens in _thin_requests(sent)
            ),
        )


def draw_request_chart(lines: RequestTokens, title: str) -> str:
    """Return a picture of the tokens of each request, a line for each policy."""
    most = _find_largest_request(lines)
    colours = _choose_colours(lines)
    drawn = [
        draw_stroke(_compute_points(tokens, most), colours[name]) for name, tokens in lines.items()
    ]
    last = f"request {max(map(len, lines.values()), default=0)}"
    title = f"tokens of each request, {title}"
    return _draw_plot(title, [*_draw_axes(f"{most:,}", last), *drawn], colours)


def draw_savings_chart(bills: SessionBills) -> str:
    """Return a picture of the bill of each session, a dot for each session and policy.

    From left to right are the tokens of the session, by their logarithm; a line shows the bill of
    sending everything.
    """
    points = [point for of_policy in bills.values() for point in of_policy]
    largest = max((tokens for tokens, _ in points), default=2)
    smallest = min((tokens for tokens, _ in points), default=2)
    least = math.log(max(2, smallest))
    size = math.log(max(2, largest)) - least or 1.0
    high = max((1.0, *(ratio for _, ratio in points)))
    colours = _choose_colours(bills)

    def place(tokens: float, ratio: float) -> Point:
        share = (math.log(max(2, tokens)) - least) / size
        x = PLOT_AREA.x + PLOT_AREA.width * share
        return Point(x, PLOT_AREA.bottom - PLOT_AREA.height * ratio / high)

    drawn = [
        draw_dot(at, 3, colours[name])
        for name, of_policy in bills.items()
        for at in starmap(place, of_policy)
    ]
    whole = place(0, 1).y
    left, right = Point(PLOT_AREA.x, whole), Point(PLOT_AREA.right, whole)
    line = draw_grid_line(left, right)
    axes = [*_draw_axes(f"{high:.2f} ×", f"session of {largest:,} tokens"), line]
    return _draw_plot(
        "bill of each session, to that of sending everything", [*axes, *drawn], colours
    )


def _choose_colours(names: Iterable[str]) -> dict[str, str]:
    return dict(zip(names, cycle(CURVE_COLOURS), strict=False))


def _draw_plot(title: str, drawn: Sequence[str], colours: Mapping[str, str]) -> str:
    """Return a picture with a plot area and a legend below."""
    legend = starmap(_draw_legend, enumerate(colours.items(), 1))
    high = PLOT_AREA.bottom + LINE * (len(colours) + 2)
    return draw_picture(WIDE, high, title, [*drawn, *legend])


def _find_largest_request(lines: RequestTokens) -> int:
    largest = (max(sent, default=0) for sent in lines.values())
    return max(largest, default=0) or 1


def _thin_requests(sent: Sequence[int]) -> Iterator[int]:
    """Yield at most `MAX_BLOCKS` numbers: the largest of each stretch."""
    count = min(MAX_BLOCKS, len(sent))
    for place in range(count):
        first = place * len(sent) // count
        end = (place + 1) * len(sent) // count
        yield max(sent[first:end])


def _compute_points(sent: Sequence[int], most: int) -> Iterator[Point]:
    """Yield the point of each request: from left to right, the larger the higher."""
    step = PLOT_AREA.width / max(1, len(sent) - 1)
    for place, tokens in enumerate(sent):
        yield Point(PLOT_AREA.x + step * place, PLOT_AREA.bottom - PLOT_AREA.height * tokens / most)


def _draw_axes(top: str, right: str) -> Iterator[str]:
    """Yield the two edges of the plot, with the value at the end of each."""
    corners = (PLOT_AREA.upper_left, PLOT_AREA.lower_left, PLOT_AREA.lower_right)
    yield draw_stroke(corners, INK_COLOUR)
    yield draw_words(PLOT_AREA.x - 6, PLOT_AREA.y, top, anchor="end")
    yield draw_words(PLOT_AREA.x - 6, PLOT_AREA.bottom, "0", anchor="end")
    yield draw_words(PLOT_AREA.right, PLOT_AREA.bottom + LINE, right, anchor="end")


def _draw_legend(row: int, line: tuple[str, str]) -> str:
    name, colour = line
    return draw_words(PLOT_AREA.x, PLOT_AREA.bottom + LINE * (row + 1), f"━ {name}", colour)
