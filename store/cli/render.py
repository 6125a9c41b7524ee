"""How things look: tables, bars, JSON, moments; plain where the output is no terminal.

What is inside messages was written by others: no escape sequence in it may reach a terminal, no markup `rich`.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..errors import CompactionError
from ..messages import Message, content_text

PLAIN_WIDTH = 1000
"""Columns where the output is no terminal: wide enough that nothing is cut or folded."""

PREVIEW = 60
"""Code points of a message shown in one line of a table, at most."""

FILE_NAME = 36
"""Code points of a file's name shown in a table on a terminal, at most."""

BAR = 24
"""Columns of the longest bar."""

STYLES = {
    "terminal": "yellow",
    "file_read": "cyan",
    "tool_output": "green",
    "summary": "magenta",
    "repair": "red",
    "user": "green",
    "assistant": "blue",
    "system": "magenta",
    "tool": "dim",
}
"""Colours of rules and roles, on a terminal."""

_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that move a terminal's cursor, turn text around or cannot be written at all; not tabs and line ends."""
_UNSAFE_IN_JSON = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

Cell = str | int | Text | None


class Column(NamedTuple):
    """A column of a table; numbers are aligned to the right, ``wide`` texts fold where there is no room."""

    name: str
    number: bool = False
    wide: bool = False


def console(*, error: bool = False, width: int | None = None) -> Console:
    """Return a console for what is standard output or error right now; without colours where it is no terminal."""
    file = sys.stderr if error else sys.stdout
    width = width or (None if file.isatty() else PLAIN_WIDTH)
    return Console(file=file, width=width, highlight=False, markup=False, emoji=False)


def safe(text: str) -> str:
    """Return a text with what could act on a terminal written out, tabs and line ends as they are."""
    return _UNSAFE.sub(lambda found: _escaped(found[0]), text)


def one_line(text: str, limit: int = PREVIEW) -> str:
    """Return a text's beginning as one safe line of at most ``limit`` code points."""
    line = safe(" ".join(text[: limit * 20].split()))
    return line if len(line) <= limit else line[: limit - 1] + "…"


def file_name(name: str) -> str:
    """Return a file's name for a table; of a long one on a terminal its end, which tells it from others."""
    name = safe(name)
    return f"…{name[1 - FILE_NAME :]}" if len(name) > FILE_NAME and sys.stdout.isatty() else name


def preview(message: Message, limit: int = PREVIEW) -> str:
    """Return a message in one line: the first line of what it says, else what it calls."""
    said = next((line for line in content_text(message.get("content")).splitlines() if line.strip()), "")
    calls = message.get("tool_calls")
    called = ", ".join(map(call_text, calls)) if isinstance(calls, list) else ""
    return one_line(" → ".join([said, called] if called else [said]).strip(), limit)


def moment(milliseconds: int | None) -> str:
    """Return a moment as ISO time in UTC; as the bare number where no calendar has it."""
    if milliseconds is None:
        return ""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return str(milliseconds)


def counted(number: int, noun: str) -> str:
    """Return a number of things in words: 1 result, 2,000 results."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


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
    columns: Sequence[Column], rows: Iterable[Sequence[Cell]], *, width: int | None = None, error: bool = False
) -> None:
    """Print a table, on standard error if asked; numbers get thousands separators."""
    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for column in columns:
        drawn.add_column(
            column.name,
            justify="right" if column.number else "left",
            no_wrap=column.number or not column.wide,
            overflow="fold",
        )
    for row in rows:
        drawn.add_row(*map(_cell, row))
    console(width=width, error=error).print(drawn)


def bars(rows: Sequence[tuple[str, int, str]], *, width: int | None = None) -> None:
    """Print named amounts as bars, each with a remark; the longest bar is the greatest amount."""
    greatest = max((amount for _, amount, _ in rows), default=0) or 1
    drawn = Table.grid(padding=(0, 1))
    for justify in ("left", "right", "left", "left"):
        drawn.add_column(justify=justify, no_wrap=justify == "right", overflow="fold")
    for name, amount, remark in rows:
        bar = "█" * max(round(BAR * amount / greatest), 1 if amount else 0)
        drawn.add_row(Text(safe(name)), f"{amount:,}", Text(bar, STYLES.get(name, "blue")), Text(safe(remark), "dim"))
    console(width=width).print(drawn)


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


def print_json_list(values: Iterable[Any]) -> None:
    """Print values as a JSON list, one a line, as they come."""
    write(["["])
    write((",\n" if number else "\n") + json_text(value) for number, value in enumerate(values))
    write(["\n]\n"])


def _told(value: Any) -> Any:
    return value.response() if isinstance(value, CompactionError) else str(value)


def json_text(value: Any, *, ascii_only: bool | None = None) -> str:
    """Return a value as JSON of one line; what could act on a terminal, or cannot be written, as escapes.

    ``ascii_only`` None means as standard output needs it.
    """
    text = json.dumps(value, ensure_ascii=not _speaks_unicode() if ascii_only is None else ascii_only, default=_told)
    return _UNSAFE_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _speaks_unicode() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf")


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _cell(value: Cell) -> Text:
    if isinstance(value, Text):
        return value
    return Text(f"{value:,}" if isinstance(value, int) else safe(value or ""))


def call_text(call: object) -> str:
    """Return a tool call as it would be written."""
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return "?"
    arguments = function.get("arguments")
    return f"{function.get('name')}({arguments if isinstance(arguments, str) else json.dumps(arguments)})"
