"""Pictures as SVG text: blocks, words, and bands and arrows from one block to another.

Pure: the same values give the same text, so that a picture can be compared with the code that it
was drawn from. Lengths are pixels of a picture that is shown at its own size. A page may be white
or black, so a block brings its own ground for its words, and words beside blocks have a grey that
is read on both.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal, NamedTuple
from unicodedata import east_asian_width
from xml.sax.saxutils import escape, quoteattr

INK = "#7a828e"
"""The colour of words that stand on the page itself, light or dark."""
FONT = "-apple-system, 'Segoe UI', 'Noto Sans', 'DejaVu Sans', Helvetica, Arial, sans-serif"
SIZE = 12
"""The size of words in a block."""

_NARROW, _WIDE = 0.56, 1.0
_MARGIN = 8
_BASELINE = 0.36
_HEAD = "M0,0 L-8,-4 L-8,4 Z"
"""The head of an arrow that points to the right, its point at 0."""


class Paint(NamedTuple):
    """The colour of a block, and that of the words in it."""

    ground: str
    words: str = "#ffffff"


class Point(NamedTuple):
    """A place, from the upper left corner of the picture."""

    x: float
    y: float


class Block(NamedTuple):
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


def block(
    at: Block,
    paint: Paint,
    said: str = "",
    number: str = "",
) -> str:
    """Return a block, with words at its left edge and a number at its right one.

    Words that do not fit are cut off and end in an ellipsis.
    """
    left, right = at.x + _MARGIN, at.right - _MARGIN
    middle = at.y + at.height / 2
    room = right - left
    if number:
        room -= width(number) + _MARGIN
    shape = _element("rect", **at._asdict(), rx=3, fill=paint.ground)
    begun = words(left, middle, fitted(said, room), paint.words)
    ended = words(right, middle, number, paint.words, anchor="end")
    return "\n".join(filter(None, (shape, begun, ended)))


def words(
    x: float,
    middle: float,
    text: str,
    colour: str = INK,
    *,
    anchor: Literal["start", "middle", "end"] = "start",
    size: int = SIZE,
) -> str:
    """Return a line of words around a height; nothing where there are none.

    ``anchor`` says what of them is at ``x``.
    """
    if not text:
        return ""
    baseline = middle + _BASELINE * size
    place = {"x": x, "y": baseline, "fill": colour, "font_size": size, "text_anchor": anchor}
    return _element("text", text, **place)


def band(left: Block, right: Block, colour: str) -> str:
    """Return a see-through band from the right edge of one block to the left edge of another."""
    upper = _curve(left.upper_right, right.upper_left)
    lower = _curve(right.lower_left, left.lower_right)
    return _element("path", d=f"M{upper} L{lower} Z", fill=colour, fill_opacity=0.25)


def _curve(begin: Point, end: Point) -> str:
    """Return a line between two points that leaves and arrives level."""
    half = (begin.x + end.x) / 2
    leaving, arriving = Point(half, begin.y), Point(half, end.y)
    bends = " ".join(map(_place, (leaving, arriving, end)))
    return f"{_place(begin)} C{bends}"


def _place(point: Point) -> str:
    return f"{_written(point.x)},{_written(point.y)}"


def arrow(begin: Point, end: Point, colour: str = INK) -> str:
    """Return a straight line from one point to another, with a head at its end."""
    line = f"M{_place(begin)} L{_place(end)}"
    shaft = _element("path", d=line, stroke=colour, stroke_width=1.5)
    turned = f"translate({_place(end)}) rotate({_written(_direction(begin, end))})"
    return f"{shaft}\n{_element('path', d=_HEAD, transform=turned, fill=colour)}"


def _direction(begin: Point, end: Point) -> float:
    """Return in which direction one point is seen from another, in degrees."""
    return math.degrees(math.atan2(end.y - begin.y, end.x - begin.x))


def stroke(points: Iterable[Point], colour: str) -> str:
    """Return a line from point to point; nothing where there is none."""
    path = " L".join(map(_place, points))
    return (
        _element("path", d=f"M{path}", stroke=colour, stroke_width=1.5, fill="none") if path else ""
    )


def grid(begin: Point, end: Point) -> str:
    """Return a faint line from one point to another, in the background."""
    line = f"M{_place(begin)} L{_place(end)}"
    return _element("path", d=line, stroke=INK, stroke_opacity=0.3)


def dot(middle: Point, radius: float, colour: str) -> str:
    """Return a filled circle."""
    return _element("circle", cx=middle.x, cy=middle.y, r=radius, fill=colour)


def picture(
    wide: float,
    high: float,
    title: str,
    parts: Iterable[str],
) -> str:
    """Return a whole picture; ``title`` describes it to those who cannot see it."""
    inside = [_element("title", title), *filter(None, parts)]
    space = f'xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_written(wide)} {_written(high)}"'
    size = f'width="{_written(wide)}" height="{_written(high)}"'
    head = f'<svg {space} {size} role="img" font-family={quoteattr(FONT)}>'
    return "\n".join([head, *inside, "</svg>\n"])


def _element(name: str, said: str = "", /, **attributes: object) -> str:
    """Return an element of the picture; an underscore in a name stands for a hyphen."""
    given = [
        f"{key.replace('_', '-')}={quoteattr(_written(value))}" for key, value in attributes.items()
    ]
    begun = " ".join([name, *given])
    return f"<{begun}>{escape(said)}</{name}>" if said else f"<{begun}/>"


def _written(value: object) -> str:
    """Return a value as an attribute says it, numbers to two decimals."""
    return f"{round(value, 2):g}" if isinstance(value, float) else str(value)


def width(text: str, size: int = SIZE) -> float:
    """Return about how many pixels a text takes."""
    wide = sum(east_asian_width(each) in "FW" for each in text)
    narrow = len(text) - wide
    return size * (wide * _WIDE + narrow * _NARROW)


def fitted(text: str, room: float) -> str:
    """Return a text, or as much of its beginning as there is room for, and an ellipsis."""
    if width(text) <= room:
        return text
    kept = text
    while kept and width(kept + "…") > room:
        kept = kept[:-1]
    return kept.rstrip() + "…" if kept else ""
