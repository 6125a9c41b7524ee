"""What was said, as it went in: a line read whole, in part, or page by page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, select

from ..database import Statement, Transactions, messages, paused, tool_calls
from ..errors import InvalidValue
from ..messages import Columns, StoredCall, assemble, join_call
from ..records import StoredMessage
from . import left, lines
from .lines import Line, run_of

MESSAGES = Statement(
    select(
        messages.c.seq,
        messages.c.stored_at,
        messages.c.digest,
        *(messages.c[name] for name in Columns._fields),
    )
    .where(run_of(messages))
    .order_by(messages.c.seq)
)
CALLS = Statement(
    select(tool_calls.c.seq, *(tool_calls.c[name] for name in StoredCall._fields))
    .where(run_of(tool_calls))
    .order_by(tool_calls.c.seq, tool_calls.c.position)
)


def read(
    connection: Connection,
    session_id: str,
    start: int = 1,
    stop: int | None = None,
    at: int | None = None,
    *,
    branch: int | None = None,
) -> list[StoredMessage]:
    """Return a line's raw messages from position ``start`` to ``stop``, both included.

    The line is read as of the position ``at``. A negative ``start`` counts from the end: -20 gives
    the newest 20, or all where there are fewer. ``branch`` names a line that the session can go
    back to. Raises SessionNotFound, InvalidValue, and PositionOutOfRange where ``at`` is not on the
    line; a range beyond it is just empty.
    """
    pointer = left.find(connection, session_id, branch)
    first, last = lines.span(start, stop, lines.position(pointer, at))
    with paused(last - first):
        return messages_between(Line(connection, pointer), first, last)


def messages_between(line: Line, first: int, last: int) -> list[StoredMessage]:
    """Return the messages of a line from one position to another, both included."""
    found: list[StoredMessage] = []
    for run in line.ranges(first, last):
        found += read_run(line.connection, run)
    return found


def read_run(connection: Connection, run: dict[str, int]) -> list[StoredMessage]:
    """Return the messages of a run, by the names that `Segment.within` gives."""
    calls = stored_calls(connection, run)
    return [
        StoredMessage(seq, assemble(columns, calls.get(seq)), stored_at, digest)
        for seq, stored_at, digest, *columns in MESSAGES.scan(connection, **run)
    ]


def stored_calls(
    connection: Connection,
    run: dict[str, int],
) -> dict[int, list[Any]]:
    """Return the tool calls of a run as they went in, by the position of their message."""
    calls: dict[int, list[Any]] = {}
    for seq, call_id, name, form, arguments, extra in CALLS.rows(connection, **run):
        call = join_call(call_id, name, form, arguments, extra)
        calls.setdefault(seq, []).append(call)
    return calls


def pages(
    transactions: Transactions,
    session_id: str,
    start: int = 1,
    stop: int | None = None,
    at: int | None = None,
    *,
    size: int = 500,
) -> Iterator[list[StoredMessage]]:
    """Yield a line's raw messages in lists of at most ``size``, so any line fits in memory.

    The line is the one that the session has at the first page, wherever its head moves meanwhile.
    Raises what `messages` does.
    """
    _check_size(size)
    with transactions.reading() as connection:
        branch, start, last = stretch(connection, session_id, start, stop, at)
    for first in range(start, last + 1, size):
        with transactions.reading() as connection:
            end = min(first + size - 1, last)
            page = read(connection, session_id, first, end, branch=branch)
        yield page


def _check_size(size: int) -> None:
    if type(size) is not int or size < 1:
        raise InvalidValue(f"a page has at least 1 message, not {size!r}")


def stretch(
    connection: Connection, session_id: str, start: int, stop: int | None, at: int | None
) -> tuple[int, int, int]:
    """Return the head branch, the first and the last position of what `read` would return.

    Raises what that does.
    """
    pointer = lines.find(connection, session_id)
    return pointer.branch, *lines.span(start, stop, lines.position(pointer, at))
