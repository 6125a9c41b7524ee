"""How things look: tables, bars, JSON, moments; plain where the output is no terminal.

What is inside messages was written by others: no escape sequence in it may reach a terminal, no
markup may reach `rich`.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..errors import CompactionError
from ..text import json_line, shortened
from ..text import one_line as in_one_line
from .fitting import Column, Drawn, Texts, fitted, without_start

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn

PLAIN_WIDTH = 1000
"""Columns where the output is no terminal and $COLUMNS is not set: nothing is cut or folded."""

PREVIEW = 60
"""Code points of a message shown in one line of a table, at most."""

BAR = 24
"""Columns of the longest bar."""

STYLES = {
    **dict.fromkeys(("terminal", "any_tool", "arguments"), "yellow"),
    "file_read": "cyan",
    "tool_output": "green",
    **dict.fromkeys(("summary", "picture", "draft"), "magenta"),
    "repair": "red",
    "user": "green",
    "assistant": "blue",
    "system": "magenta",
    "tool": "dim",
}
"""Colours of rules and roles, on a terminal."""

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Characters that move a terminal's cursor, turn text around or cannot be written at all.

Not tabs and line ends.
"""

Cell = str | int | Text | None
Row = tuple[Cell, ...]
BAR_COLUMNS = (
    Column("name", wide=True),
    Column("amount", number=True),
    Column("bar"),
    Column("remark", wide=True),
)
Bar = tuple[str, int, str]
"""An amount to be drawn: its name, how much it is, and a remark."""

NO_DATE = (ValueError, OverflowError, OSError)
"""What is raised for a moment that no calendar has."""


def console(*, error: bool = False, width: int | None = None) -> Console:
    """Return a console for what is standard output or error right now.

    Without colours where it is no terminal.
    """
    file = sys.stderr if error else sys.stdout
    if width is None and not file.isatty():
        width = _piped_width()
    return Console(file=file, width=width, highlight=False, markup=False, emoji=False)


def _piped_width() -> int:
    asked = os.environ.get("COLUMNS", "")
    return int(asked) if asked.isdecimal() and int(asked) else PLAIN_WIDTH


def safe(text: str) -> str:
    """Return a text with what could act on a terminal written out, but for tabs and line ends."""
    return _UNSAFE.sub(lambda found: _escaped(found[0]), text)


def one_line(text: str, limit: int = PREVIEW) -> str:
    """Return a text's beginning as one safe line of at most ``limit`` code points."""
    return shortened(safe(in_one_line(text, limit)), limit)


def moment(milliseconds: int | None) -> str:
    """Return a moment as ISO time in UTC; as the bare number where no calendar has it."""
    if milliseconds is None:
        return ""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    except NO_DATE:
        return str(milliseconds)


def styled(text: str | None) -> Text:
    """Return a rule or a role in its colour."""
    return Text(text or "", STYLES.get(text or "", ""))


def say(*texts: str | Text) -> None:
    """Print lines, made safe, wrapped by the terminal alone."""
    for text in texts:
        if isinstance(text, str):
            sys.stdout.write(safe(text) + "\n")
        else:
            console().print(text, soft_wrap=True)


def table(
    columns: Sequence[Column],
    rows: Iterable[Sequence[Cell]],
    *,
    width: int | None = None,
    error: bool = False,
) -> None:
    """Print a table, on standard error if asked; numbers get thousands separators."""
    screen = console(width=width, error=error)
    texts = [[_cell(value) for value in row] for row in rows]
    whole = list(_filled(columns, texts))
    screen.print(_drawn(fitted(whole, screen.width)))


def _filled(columns: Sequence[Column], texts: list[Texts]) -> Iterator[Drawn]:
    """Yield columns with what stands in them: nothing where there are no rows."""
    for place, column in enumerate(columns):
        yield Drawn(column, [row[place] for row in texts])


def _drawn(columns: list[Drawn]) -> Table:
    """Return columns as `rich` draws them."""
    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for column, _ in columns:
        _add_column(drawn, column)
    for row in zip(*(each.texts for each in columns), strict=True):
        drawn.add_row(*row)
    return drawn


def _add_column(drawn: Table, column: Column) -> None:
    drawn.add_column(
        Text(safe(column.name)),
        justify="right" if column.number else "left",
        no_wrap=not column.wide,
        overflow="fold",
    )


def bars(rows: Sequence[Bar], *, width: int | None = None) -> None:
    """Print named amounts as bars, each with a remark; the longest bar is the greatest amount."""
    greatest = max((amount for _, amount, _ in rows), default=0) or 1
    screen = console(width=width)
    drawn = Table.grid(padding=(0, 1))
    for column in BAR_COLUMNS:
        _add_column(drawn, column)
    for name, amount, remark in rows:
        shown = without_start(Text(safe(name)), screen.width // 3)
        bar, beside = _bar(name, amount / greatest), Text(safe(remark), "dim")
        drawn.add_row(shown, f"{amount:,}", bar, beside)
    screen.print(drawn)


def _bar(name: str, share: float) -> Text:
    """Return a bar for a share of the longest; what is not nothing is seen."""
    length = round(BAR * share)
    if share:
        length = max(length, 1)
    return Text("█" * length, STYLES.get(name, "blue"))


def remark(text: str) -> None:
    """Print a line beside the answer, on standard error."""
    sys.stderr.write(f"{safe(text)}\n")


def progress(amount: ProgressColumn) -> Progress:
    """Return progress bars for standard error, seen on a terminal only; ``amount`` is how far."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    error = console(error=True)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        amount,
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=error, transient=True, disable=not error.is_terminal)


def complain(text: str) -> None:
    """Print what went wrong as one line on standard error."""
    sys.stderr.write(f"convostore: {safe(' '.join(text.split()))}\n")


def write(lines: Iterable[str]) -> None:
    """Write lines of JSON to standard output as they come."""
    for line in lines:
        sys.stdout.write(line)


def print_json(value: Any) -> None:
    """Print a value as one line of JSON."""
    write([json_text(value), "\n"])


def answer(value: Any, *texts: str, json: bool) -> None:
    """Print what a command did: a value as JSON, or lines of text."""
    if json:
        print_json(value)
    else:
        say(*texts)


def print_json_list(values: Iterable[Any]) -> None:
    """Print values as a JSON list, one a line, as they come."""
    write(["["])
    write((",\n" if number else "\n") + json_text(value) for number, value in enumerate(values))
    write(["\n]\n"])


def print_request(messages: list[Any], system: Any) -> None:
    """Print the messages of a request; in an object where a text of the system goes beside them."""
    if system is None:
        print_json_list(messages)
    else:
        print_json({"system": system, "messages": messages})


def _told(value: Any) -> Any:
    return value.response() if isinstance(value, CompactionError) else str(value)


def json_text(value: Any, *, ascii_only: bool | None = None) -> str:
    """Return a value as JSON of one line.

    What could act on a terminal, or cannot be written, is written as escapes. ``ascii_only`` None
    means as standard output needs it.
    """
    if ascii_only is None:
        ascii_only = not speaks_unicode()
    return json_line(value, ascii_only=ascii_only, default=_told)


def speaks_unicode() -> bool:
    """Tell whether standard output takes any character."""
    encoding = sys.stdout.encoding or ""
    return encoding.lower().startswith("utf")


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _cell(value: Cell) -> Text:
    if isinstance(value, Text):
        return value
    if isinstance(value, int):
        return Text(f"{value:,}")
    return Text(safe(value or ""))
