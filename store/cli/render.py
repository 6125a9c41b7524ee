"""The output of commands: tables, bars, JSON, moments; plain if the output is no terminal.

The texts of messages come from others: no escape sequence in them may reach a terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from ..errors import CompactionError
from ..text import format_json_line, truncate
from ..text import truncate_to_line as in_one_line
from .shown import Bar, Cell, Column, Line, safe

PREVIEW = 60
"""Code points of a message shown in one line of a table, at most."""

NO_DATE = (ValueError, OverflowError, OSError)
"""The errors for a moment outside the calendar."""


def one_line(text: str, limit: int = PREVIEW) -> str:
    """Return a text's beginning as one safe line of at most ``limit`` code points."""
    return truncate(safe(in_one_line(text, limit)), limit)


def moment(milliseconds: int | None) -> str:
    """Return a moment as ISO time in UTC, or as the bare number outside the calendar."""
    if milliseconds is None:
        return ""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    except NO_DATE:
        return str(milliseconds)


def say(*texts: str | Line) -> None:
    """Print lines, made safe, wrapped by the terminal alone."""
    for text in texts:
        if isinstance(text, str):
            sys.stdout.write(safe(text) + "\n")
        else:
            from .tables import print_line

            print_line(text)


def room() -> int:
    """Return how many columns a line has."""
    from .tables import console

    return console().width


def indented(text: Line) -> None:
    """Print a text, folded where the terminal ends, a little to the right."""
    from .tables import print_indented

    print_indented(text)


def table(
    columns: Sequence[Column],
    rows: Iterable[Sequence[Cell]],
    *,
    width: int | None = None,
    error: bool = False,
) -> None:
    """Print a table, on standard error if asked; numbers get thousands separators."""
    from .tables import print_table

    print_table(columns, rows, width=width, error=error)


def rows(
    columns: Sequence[Column],
    found: Sequence[Sequence[Cell]],
    *,
    width: int | None = None,
) -> None:
    """Print rows of any columns as a table, or one below the other if they are too wide."""
    from .tables import print_rows

    print_rows(columns, found, width=width)


def bars(rows: Sequence[Bar], *, width: int | None = None) -> None:
    """Print named amounts as bars, each with a remark; the longest bar is the greatest amount."""
    from .tables import print_bars

    print_bars(rows, width=width)


def remark(text: str) -> None:
    """Print a line beside the answer, on standard error."""
    sys.stderr.write(f"{safe(text)}\n")


def complain(text: str) -> None:
    """Print a problem as one line on standard error."""
    sys.stderr.write(f"convostore: {safe(' '.join(text.split()))}\n")


def write(lines: Iterable[str]) -> None:
    """Write lines of JSON to standard output as they come."""
    for line in lines:
        sys.stdout.write(line)


def print_json(value: Any) -> None:
    """Print a value as one line of JSON."""
    write([json_text(value), "\n"])


def answer(value: Any, *texts: str, json: bool) -> None:
    """Print the answer of a command: a value as JSON, or lines of text."""
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
    """Print the messages of a request; in an object if a system text is sent beside them."""
    if system is None:
        print_json_list(messages)
    else:
        print_json({"system": system, "messages": messages})


def _told(value: Any) -> Any:
    return value.response() if isinstance(value, CompactionError) else str(value)


def json_text(value: Any, *, ascii_only: bool | None = None) -> str:
    """Return a value as JSON of one line.

    Characters that could act on a terminal, or cannot be written, are escaped. ``ascii_only`` None
    follows the encoding of standard output.
    """
    if ascii_only is None:
        ascii_only = not speaks_unicode()
    return format_json_line(value, ascii_only=ascii_only, default=_told)


def speaks_unicode() -> bool:
    """Tell whether standard output takes any character."""
    encoding = sys.stdout.encoding or ""
    return encoding.lower().startswith("utf")
