"""The output of commands: tables, bars, JSON, moments; plain if the output is no terminal.

The texts of messages come from others: no escape sequence in them may reach a terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any

from ..clock import resolve_now
from ..errors import CompactionError
from ..records import ProgressCallback, UsageTotal, View
from ..text import format_json_line, truncate
from ..text import truncate_to_line as in_one_line
from ..tokens import ESTIMATE_NAME
from .terminal import Bar, Cell, Column, StyledLine, escape_controls

PREVIEW_LENGTH = 60
"""Code points of a message shown in one line of a table, at most."""

DATE_ERRORS = (ValueError, OverflowError, OSError)
"""The errors for a moment outside the calendar."""


def shorten_to_line(text: str, limit: int = PREVIEW_LENGTH) -> str:
    """Return a text's beginning as one safe line of at most ``limit`` code points."""
    return truncate(escape_controls(in_one_line(text, limit)), limit)


def format_moment(milliseconds: int | None) -> str:
    """Return a moment as ISO time in UTC, or as the bare number outside the calendar."""
    if milliseconds is None:
        return ""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    except DATE_ERRORS:
        return str(milliseconds)


SUMMED_FIELDS = ("input", "cached", "output")
"""Tokens of totals that are told: those sent, what of them was cached, those of the answers."""

AGE_UNITS = (("y", 31_557_600), ("w", 604_800), ("d", 86_400), ("h", 3_600), ("m", 60))
"""Units of an age, and their seconds."""


def format_age(milliseconds: int) -> str:
    """Return how long ago a moment was, in its largest unit."""
    seconds = (resolve_now(None) - milliseconds) // 1000
    for unit, length in AGE_UNITS:
        if seconds >= length:
            return f"{seconds // length}{unit}"
    return "now"


def print_lines(*texts: str | StyledLine) -> None:
    """Print lines, made safe, wrapped by the terminal alone."""
    for text in texts:
        if isinstance(text, str):
            sys.stdout.write(escape_controls(text) + "\n")
        else:
            from .tables import print_line

            print_line(text)


def count_columns() -> int:
    """Return how many columns a line has."""
    from .tables import build_console

    return build_console().width


def show_indented(text: StyledLine) -> None:
    """Print a text, folded where the terminal ends, a little to the right."""
    from .tables import print_indented

    print_indented(text)


def show_table(
    columns: Sequence[Column],
    rows: Iterable[Sequence[Cell]],
    *,
    width: int | None = None,
    error: bool = False,
) -> None:
    """Print a table, on standard error if asked; numbers get thousands separators."""
    from .tables import print_table

    print_table(columns, rows, width=width, error=error)


def show_rows(
    columns: Sequence[Column],
    found: Sequence[Sequence[Cell]],
    *,
    width: int | None = None,
) -> None:
    """Print rows of any columns as a table, or one below the other if they are too wide."""
    from .tables import print_rows

    print_rows(columns, found, width=width)


def show_bars(rows: Sequence[Bar], *, width: int | None = None) -> None:
    """Print named amounts as bars, each with a remark; the longest bar is the greatest amount."""
    from .tables import print_bars

    print_bars(rows, width=width)


def print_remark(text: str) -> None:
    """Print a line beside the answer, on standard error."""
    sys.stderr.write(f"{escape_controls(text)}\n")


def print_problem(text: str) -> None:
    """Print a problem as one line on standard error."""
    sys.stderr.write(f"convostore: {escape_controls(' '.join(text.split()))}\n")


def write_lines(lines: Iterable[str]) -> None:
    """Write lines of JSON to standard output as they come."""
    for line in lines:
        sys.stdout.write(line)


def print_json(value: Any) -> None:
    """Print a value as one line of JSON."""
    write_lines([format_json(value), "\n"])


def print_answer(value: Any, *texts: str, json: bool) -> None:
    """Print the answer of a command: a value as JSON, or lines of text."""
    if json:
        print_json(value)
    else:
        print_lines(*texts)


def print_json_list(values: Iterable[Any]) -> None:
    """Print values as a JSON list, one a line, as they come."""
    write_lines(["["])
    write_lines(
        (",\n" if number else "\n") + format_json(value) for number, value in enumerate(values)
    )
    write_lines(["\n]\n"])


def print_request(messages: list[Any], system: Any) -> None:
    """Print the messages of a request; in an object if a system text is sent beside them."""
    if system is None:
        print_json_list(messages)
    else:
        print_json({"system": system, "messages": messages})


def _encode_unknown_value(value: Any) -> Any:
    return value.response() if isinstance(value, CompactionError) else str(value)


def format_json(value: Any, *, ascii_only: bool | None = None) -> str:
    """Return a value as JSON of one line.

    Characters that could act on a terminal, or cannot be written, are escaped. ``ascii_only`` None
    follows the encoding of standard output.
    """
    if ascii_only is None:
        ascii_only = not is_unicode_output()
    return format_json_line(value, ascii_only=ascii_only, default=_encode_unknown_value)


def is_unicode_output() -> bool:
    """Tell whether standard output takes any character."""
    encoding = sys.stdout.encoding or ""
    return encoding.lower().startswith("utf")


def describe_counting(view: View) -> str:
    """Return how the tokens of a view were counted."""
    encoding = view.stats.counted_by
    return "estimated" if encoding == ESTIMATE_NAME else f"counted by {encoding}"


def describe_token_sums(totals: list[UsageTotal]) -> str:
    """Return the tokens of totals: those sent, how many were cached, those of the answers."""
    given, cached, output = (sum(map(attrgetter(name), totals)) for name in SUMMED_FIELDS)
    share = f" ({cached / given:.0%} cached)" if given else ""
    return f"{given:,} tokens in{share}, {output:,} out"


def format_costs(totals: list[UsageTotal]) -> str:
    """Return the sum of the costs of totals, and the part without a price."""
    known = [each.cost for each in totals if each.cost is not None]
    unpriced = sum(each.unpriced for each in totals)
    open_ = f"{unpriced:,} unpriced" if unpriced else ""
    return ", ".join(filter(None, (_format_dollars(sum(known)) if known else "", open_)))


def _format_dollars(cost: float) -> str:
    return f"${cost:,.2f}" if cost >= 1 else f"${cost:.4f}"


@contextmanager
def show_progress(title: str, parts: str, advice: str) -> Iterator[ProgressCallback]:
    """Draw the progress of long work on a terminal; Ctrl-C tells how far it came, and an advice."""
    from rich.progress import MofNCompleteColumn

    from .tables import build_progress

    reached = (0, 0)
    with build_progress(MofNCompleteColumn()) as bar:
        task = bar.add_task(title, total=None)

        def tell(done: int, total: int) -> None:
            nonlocal reached
            reached = done, total
            bar.update(task, completed=done, total=total)

        try:
            yield tell
        except KeyboardInterrupt:
            bar.stop()
            done, total = reached
            print_problem(f"stopped after {done:,} of {total:,} {parts}; {advice}")
            raise
