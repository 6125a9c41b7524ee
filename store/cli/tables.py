"""Drawing with ``rich``: tables, bars, progress; imported only for drawing.

No markup in the texts of others may reach ``rich``, so it gets texts and styles separately.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from .fitting import COLUMN_GAP, CellTexts, FilledColumn, clip_start, fit_columns, has_room_for_row
from .shown import STYLES, Bar, Cell, Column, StyledLine, StyledText, escape_controls
from .terminal import original_stream

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn

PIPED_WIDTH = 1000
"""Columns if the output is no terminal and $COLUMNS is not set: nothing is cut or folded."""

BAR_WIDTH = 24
"""Columns of the longest bar."""

BAR_COLUMNS = (
    Column("name", wide=True),
    Column("amount", number=True),
    Column("bar"),
    Column("remark", wide=True),
)


class Screen(Console):
    """A console in which styles and bars alone act on a terminal: texts are made safe."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        """Yield the pieces to write: texts, each with its style, and controls."""
        for each in super().render(renderable, options):
            yield each if each.control else each._replace(text=escape_controls(each.text))


def build_console(*, error: bool = False, width: int | None = None) -> Console:
    """Return a console for the current standard output or error.

    It has no colours if the output is no terminal.
    """
    file = original_stream(sys.stderr if error else sys.stdout)
    if width is None and not file.isatty():
        asked = os.environ.get("COLUMNS", "")
        width = int(asked) if asked.isdecimal() and int(asked) else PIPED_WIDTH
    return Screen(file=file, width=width, highlight=False, markup=False, emoji=False)


def print_line(line: StyledLine) -> None:
    """Print a line, wrapped by the terminal alone."""
    build_console().print(_join_styled_line(line), soft_wrap=True)


def print_indented(text: StyledLine) -> None:
    """Print a text, folded where the terminal ends, a little to the right."""
    build_console().print(Padding(_join_styled_line(text), (0, 0, 0, 2), expand=False))


def _join_styled_line(line: StyledLine) -> Text:
    return Text.assemble(*map(_build_cell_text, line))


def print_table(
    columns: Sequence[Column],
    rows: Iterable[Sequence[Cell]],
    *,
    width: int | None = None,
    error: bool = False,
) -> None:
    """Print a table, on standard error if asked; numbers get thousands separators."""
    screen = build_console(width=width, error=error)
    texts = [[_build_cell_text(value) for value in row] for row in rows]
    whole = list(_fill_columns(columns, texts))
    screen.print(_build_rich_table(fit_columns(whole, screen.width)), crop=False)


def print_rows(
    columns: Sequence[Column],
    rows: Sequence[Sequence[Cell]],
    *,
    width: int | None = None,
) -> None:
    """Print a table; if rows are too wide for a line, print them as blocks, one line per column."""
    screen = build_console(width=width)
    texts = [[_build_cell_text(value) for value in row] for row in rows]
    if has_room_for_row(list(_fill_columns(columns, texts)), screen.width):
        print_table(columns, rows, width=width)
    else:
        drawn = Table.grid(padding=(0, COLUMN_GAP, 0, 0))
        drawn.add_column(overflow="fold")
        drawn.add_column(overflow="fold")
        for number, row in enumerate(texts, 1):
            drawn.add_row(Text(f"row {number}", "bold"))
            for column, text in zip(columns, row, strict=True):
                drawn.add_row(Text(f"  {escape_controls(column.name)}"), text)
        screen.print(drawn)


def _fill_columns(columns: Sequence[Column], texts: list[CellTexts]) -> Iterator[FilledColumn]:
    """Yield columns with their cells; no cells if there are no rows."""
    for place, column in enumerate(columns):
        yield FilledColumn(column, [row[place] for row in texts])


def _build_rich_table(columns: list[FilledColumn]) -> Table:
    """Return columns as `rich` draws them."""
    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for each in columns:
        _add_column(drawn, each.column, least=each.width(folded=True))
    for row in zip(*(each.texts for each in columns), strict=True):
        drawn.add_row(*row)
    return drawn


def _add_column(drawn: Table, column: Column, least: int | None = None) -> None:
    """Add a column; one of numbers is never narrower, since of a number no part will do."""
    drawn.add_column(
        Text(escape_controls(column.name)),
        justify="right" if column.number else "left",
        min_width=least if column.number else None,
        no_wrap=not column.wide,
        overflow="fold",
    )


def print_bars(rows: Sequence[Bar], *, width: int | None = None) -> None:
    """Print named amounts as bars, each with a remark; the longest bar is the greatest amount."""
    greatest = max((amount for _, amount, _ in rows), default=0) or 1
    screen = build_console(width=width)
    drawn = Table.grid(padding=(0, 1))
    for column in BAR_COLUMNS:
        _add_column(drawn, column)
    for name, amount, remark in rows:
        shown = clip_start(Text(escape_controls(name)), screen.width // 3)
        bar, beside = _draw_bar(name, amount / greatest), Text(escape_controls(remark), "dim")
        drawn.add_row(shown, f"{amount:,}", bar, beside)
    screen.print(drawn)


def _draw_bar(name: str, share: float) -> Text:
    """Return a bar for a share of the longest; every share above 0 is visible."""
    length = round(BAR_WIDTH * share)
    if share:
        length = max(length, 1)
    return Text("█" * length, STYLES.get(name, "blue"))


def build_progress(amount: ProgressColumn) -> Progress:
    """Return progress bars for standard error, seen on a terminal only; ``amount`` is how far."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    error = build_console(error=True)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        amount,
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=error, transient=True, disable=not error.is_terminal)


def _build_cell_text(value: Cell) -> Text:
    if isinstance(value, StyledText):
        return Text(escape_controls(value.text), value.style)
    if isinstance(value, int):
        return Text(f"{value:,}")
    return Text(escape_controls(value or ""))
