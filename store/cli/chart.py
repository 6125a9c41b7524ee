"""The tokens of each request, by policy: lines of blocks on a terminal, or a picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from . import drawing

RequestTokens = Mapping[str, Sequence[int]]
"""The tokens of each request of a session, by the policy that sent them."""

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
PLOT_AREA = drawing.Rectangle(70, 20, 620, 240)
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
    count = len(lines)
    colours = [CURVE_COLOURS[place % len(CURVE_COLOURS)] for place in range(count)]
    sent = zip(lines.values(), colours, strict=True)
    drawn = [drawing.draw_stroke(_compute_points(tokens, most), colour) for tokens, colour in sent]
    names = map(_draw_legend, range(1, len(lines) + 1), lines, colours)
    high = PLOT_AREA.bottom + LINE * (len(lines) + 2)
    return drawing.draw_picture(
        WIDE, high, f"tokens of each request, {title}", [*_draw_axes(lines), *drawn, *names]
    )


def _find_largest_request(lines: RequestTokens) -> int:
    return max((max(sent, default=0) for sent in lines.values()), default=0) or 1


def _thin_requests(sent: Sequence[int]) -> Iterator[int]:
    """Yield at most `MAX_BLOCKS` numbers: the largest of each stretch."""
    count = min(MAX_BLOCKS, len(sent))
    for place in range(count):
        yield max(sent[place * len(sent) // count : (place + 1) * len(sent) // count])


def _compute_points(sent: Sequence[int], most: int) -> Iterator[drawing.Point]:
    """Yield the point of each request: from left to right, the larger the higher."""
    step = PLOT_AREA.width / max(1, len(sent) - 1)
    for place, tokens in enumerate(sent):
        yield drawing.Point(
            PLOT_AREA.x + step * place, PLOT_AREA.bottom - PLOT_AREA.height * tokens / most
        )


def _draw_axes(lines: RequestTokens) -> Iterator[str]:
    """Yield the two edges of the plot, and what they measure."""
    corners = (PLOT_AREA.upper_left, PLOT_AREA.lower_left, PLOT_AREA.lower_right)
    count = max(map(len, lines.values()), default=0)
    yield drawing.draw_stroke(corners, drawing.INK_COLOUR)
    yield drawing.draw_words(
        PLOT_AREA.x - 6, PLOT_AREA.y, f"{_find_largest_request(lines):,}", anchor="end"
    )
    yield drawing.draw_words(PLOT_AREA.x - 6, PLOT_AREA.bottom, "0", anchor="end")
    yield drawing.draw_words(
        PLOT_AREA.right, PLOT_AREA.bottom + LINE, f"request {count}", anchor="end"
    )


def _draw_legend(row: int, name: str, colour: str) -> str:
    return drawing.draw_words(PLOT_AREA.x, PLOT_AREA.bottom + LINE * (row + 1), f"━ {name}", colour)
