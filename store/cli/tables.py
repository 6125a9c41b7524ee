"""Drawing with ``rich``: tables, bars, progress; imported only for drawing.

A table that is wider than the terminal (or than $COLUMNS, if the output is a pipe) is fitted in
four steps, each only if the one before was not enough: ids are cut to unique beginnings,
dispensable columns are dropped, columns that may lose a part are clipped, wide columns are folded.
No markup in the texts of others may reach ``rich``, so it gets texts and styles separately.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from rich import box
from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderableType
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from .terminal import (
    CUT_MARK,
    STYLES,
    Bar,
    Cell,
    Column,
    StyledLine,
    StyledText,
    escape_controls,
    original_stream,
)

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn

MIN_ID_LENGTH = 8
"""Code points that a cut id keeps, at least."""

MIN_FOLDED_WIDTH = 24
"""Columns in which a wide text can still be read, folded."""

MIN_CLIPPED_WIDTH = 16
"""Columns that are left of a clipped text, at least."""

COLUMN_GAP = 3
"""Columns between two columns of a table."""

CellTexts = list[Text]

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


class FilledColumn(NamedTuple):
    """A column and its cells, from top to bottom."""

    column: Column
    texts: CellTexts

    def width(self, *, folded: bool) -> int:
        """Return how wide it is, a wide one folded or not."""
        longest = max((cell_len(text.plain) for text in self.texts), default=0)
        if folded and self.column.wide:
            longest = min(longest, MIN_FOLDED_WIDTH)
        if folded and self.column.clip and not self.column.spare:
            longest = min(longest, MIN_CLIPPED_WIDTH)
        return max(longest, cell_len(self.column.name))

    def cut(self) -> FilledColumn:
        """Return it with its ids cut."""
        if not self.column.id:
            return self
        length = _find_unique_length({each.plain for each in self.texts})
        return self._replace(
            texts=[
                each if len(each.plain) <= length + 1 else Text(each.plain[:length] + CUT_MARK)
                for each in self.texts
            ]
        )

    def clipped(self, over: int) -> FilledColumn:
        """Return it narrower by so many columns, if it can be clipped."""
        if not self.column.clip or over <= 0:
            return self
        room = max(self.width(folded=False) - over, MIN_CLIPPED_WIDTH)
        clip = CLIP_FUNCTIONS[self.column.clip]
        return self._replace(texts=[clip(each, room) for each in self.texts])


def clip_start(text: Text, room: int) -> Text:
    """Return a text of at most so many columns, its end where all has no room."""
    if cell_len(text.plain) <= room:
        return text
    end = set_cell_size(text.plain[::-1], room - 1)[::-1]
    return Text(CUT_MARK + end)


def _clip_end(text: Text, room: int) -> Text:
    short = text.copy()
    short.truncate(room, overflow="ellipsis")
    return short


CLIP_FUNCTIONS = {"start": clip_start, "end": _clip_end}
"""What clips a text, by the end that gives way."""


def _find_unique_length(ids: set[str]) -> int:
    length = MIN_ID_LENGTH
    while len({each[:length] for each in ids}) < len(ids):
        length += 1
    return length


def fit_columns(columns: list[FilledColumn], width: int) -> list[FilledColumn]:
    """Return a table's columns, cut and dropped as far as a width makes it necessary."""
    if _compute_table_width(columns, folded=False) <= width:
        return columns
    left = [each.cut() for each in columns]
    spare = [each for each in left if each.column.spare]
    to_spare = sorted(spare, key=_rank_spare_column)
    while to_spare and not has_room_for_row(left, width):
        left.remove(to_spare.pop())
    over = _compute_table_width(left, folded=False) - width
    return [each.clipped(over) for each in left]


def has_room_for_row(columns: list[FilledColumn], width: int) -> bool:
    """Tell whether a line has room for a whole row, wide columns folded."""
    return _compute_table_width(columns, folded=True) <= width


def _rank_spare_column(each: FilledColumn) -> tuple[bool, int]:
    """Return how easily a column can be spared."""
    is_empty = not any(text.plain for text in each.texts)
    return is_empty, each.column.spare


def _compute_table_width(columns: list[FilledColumn], *, folded: bool) -> int:
    gaps = COLUMN_GAP * (len(columns) - 1)
    return gaps + sum(each.width(folded=folded) for each in columns)


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
