"""The tokens of each request, by policy: lines of blocks on a terminal, or a picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from . import drawing

Lines = Mapping[str, Sequence[int]]
"""The tokens of each request of a session, by the policy that sent them."""

BLOCKS = "▁▂▃▄▅▆▇█"
WIDEST = 60
"""Blocks of a line; of more requests each block is the largest of some."""
COLOURS = ("#57606a", "#cf222e", "#bf8700", "#8250df", "#0969da", "#1a7f37", "#bc4c00", "#1b7c83")
PLOT = drawing.Block(70, 20, 620, 240)
WIDE, LINE = 720, 18


def rows(lines: Lines) -> Iterator[tuple[str, str]]:
    """Yield each policy with its requests as blocks; the highest is the largest of all."""
    most = _largest(lines)
    for name, sent in lines.items():
        yield (
            name,
            "".join(
                BLOCKS[min(len(BLOCKS) - 1, int((tokens / most) * len(BLOCKS)))]
                for tokens in _thinned(sent)
            ),
        )


def picture(lines: Lines, title: str) -> str:
    """Return a picture of the tokens of each request, a line for each policy."""
    most = _largest(lines)
    count = len(lines)
    colours = [COLOURS[place % len(COLOURS)] for place in range(count)]
    sent = zip(lines.values(), colours, strict=True)
    drawn = [drawing.stroke(_points(tokens, most), colour) for tokens, colour in sent]
    names = map(_legend, range(1, len(lines) + 1), lines, colours)
    high = PLOT.bottom + LINE * (len(lines) + 2)
    return drawing.picture(
        WIDE, high, f"tokens of each request, {title}", [*_axes(lines), *drawn, *names]
    )


def _largest(lines: Lines) -> int:
    return max((max(sent, default=0) for sent in lines.values()), default=0) or 1


def _thinned(sent: Sequence[int]) -> Iterator[int]:
    """Yield at most `WIDEST` numbers: the largest of each stretch."""
    count = min(WIDEST, len(sent))
    for place in range(count):
        yield max(sent[place * len(sent) // count : (place + 1) * len(sent) // count])


def _points(sent: Sequence[int], most: int) -> Iterator[drawing.Point]:
    """Yield the point of each request: from left to right, the larger the higher."""
    step = PLOT.width / max(1, len(sent) - 1)
    for place, tokens in enumerate(sent):
        yield drawing.Point(PLOT.x + step * place, PLOT.bottom - PLOT.height * tokens / most)


def _axes(lines: Lines) -> Iterator[str]:
    """Yield the two edges of the plot, and what they measure."""
    corners = (PLOT.upper_left, PLOT.lower_left, PLOT.lower_right)
    count = max(map(len, lines.values()), default=0)
    yield drawing.stroke(corners, drawing.INK)
    yield drawing.words(PLOT.x - 6, PLOT.y, f"{_largest(lines):,}", anchor="end")
    yield drawing.words(PLOT.x - 6, PLOT.bottom, "0", anchor="end")
    yield drawing.words(PLOT.right, PLOT.bottom + LINE, f"request {count}", anchor="end")


def _legend(row: int, name: str, colour: str) -> str:
    return drawing.words(PLOT.x, PLOT.bottom + LINE * (row + 1), f"━ {name}", colour)
