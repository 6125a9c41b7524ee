"""What was said, as it went in: a line read whole, in part, or page by page."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy import Connection, select

from ..database import Row, Statement, Transactions, messages, paused, tool_calls
from ..errors import VERIFY, Damaged, InvalidValue, StoreError, quoted
from ..messages import Columns, StoredCall, assemble, find_digest_version, join_call
from ..records import StoredMessage, make_stored_message
from . import lines, session_branches
from .joining import joined, part_of
from .lines import Line, in_run
from .newest import MOST, Stored, newest_rows

MESSAGES_IN_RUN = Statement(
    select(
        messages.c.seq,
        messages.c.stored_at,
        messages.c.digest,
        messages.c.wire_format,
        *(messages.c[name] for name in Columns._fields),
    )
    .where(in_run(messages))
    .order_by(messages.c.seq)
)
CALLS_IN_RUN = Statement(
    select(tool_calls.c.seq, *(tool_calls.c[name] for name in StoredCall._fields))
    .where(in_run(tool_calls))
    .order_by(tool_calls.c.seq, tool_calls.c.position)
)


def read_messages(
    connection: Connection,
    session_id: str,
    start: int = 1,
    stop: int | None = None,
    at: int | None = None,
    *,
    branch: int | None = None,
    last: int | None = None,
) -> list[StoredMessage]:
    """Return a line's raw messages from position ``start`` to ``stop``, both included.

    The line is read as of the position ``at``. A negative ``start`` counts positions from the end:
    -20 gives what stands at the newest 20, or all where there are fewer. A message that stands at
    several positions, as one with several results does, is at the last of them. ``last`` counts
    messages instead: the newest so many, whatever positions they take; it goes without ``start``
    and ``stop``. ``branch`` names a line that the session can go back to. Raises SessionNotFound,
    InvalidValue, and PositionOutOfRange where ``at`` is not on the line; a range beyond it is just
    empty.
    """
    line = Line(connection, session_branches.find(connection, session_id, branch))
    end = lines.resolve_position(line.pointer, at)
    if last is not None:
        _check_last(last, start, stop)
        return _newest(line, last, end)
    first, final = lines.resolve_range(start, stop, end)
    with paused(final - first + 1):
        return load_messages(line, first, final, end)


def _check_last(last: int, start: int, stop: int | None) -> None:
    if type(last) is not int or last < 0:
        raise InvalidValue(f"last is a number of messages, not {quoted(last)}")
    if start != 1 or stop is not None:
        raise InvalidValue("last goes without start and stop, which count positions")


def _newest(line: Line, count: int, end: int) -> list[StoredMessage]:
    """Return the newest messages up to a position: as many positions, and more where that is few.

    Of a message that stands at several positions the earlier ones hold nothing that is missing.
    """
    found: list[StoredMessage] = []
    final = end
    with paused(min(count, end)):
        while final and len(found) < count:
            first = max(1, final - (count - len(found)) + 1)
            found = load_messages(line, first, final, end) + found
            final = first - 1
    return found


def read_chat_messages(
    connection: Connection,
    session_id: str,
    first: int,
    last: int,
    *,
    branch: int | None = None,
) -> list[StoredMessage]:
    """Return what stands at a line's positions ``first`` to ``last``, as messages of a chat.

    Whatever format they came in, each position has one. Raises what `read_messages` does.
    """
    line = Line(connection, session_branches.find(connection, session_id, branch))
    first, last = lines.resolve_range(first, last, line.pointer.head)
    with paused(last - first + 1):
        return load_chat_messages(line, first, last)


def load_messages(line: Line, first: int, last: int, end: int) -> list[StoredMessage]:
    """Return the messages that went in, of those that stand at a line's positions first to last.

    One that stands at several counts by the last, or by the last up to the line's ``end``.
    """
    rows, formats = _between(line, first, last)
    if not any(formats):
        return rows
    before = part_of(rows[0], formats[0]).number
    if before:
        earlier, theirs = _between(line, max(1, first - before), first - 1)
        rows, formats = earlier + rows, theirs + formats
    with reporting_damage(line.connection, partial(line.ranges, first - before, last)):
        whole = joined(rows, formats)
    if rows[-1].seq < end and _goes_on(line, rows[-1], formats[-1]):
        whole.pop()
    return [each for each in whole if each.seq >= first]


def _goes_on(line: Line, row: StoredMessage, wire_format: str | None) -> bool:
    """Tell whether a message has more parts behind a row on its line."""
    number, of = part_of(row, wire_format)
    if number + 1 == of:
        return False
    (following,), formats = _between(line, row.seq + 1, row.seq + 1)
    return part_of(following, formats[0]) == (number + 1, of)


class LocatedMessage(NamedTuple):
    """A message that went in, and the position before it."""

    message: StoredMessage
    before: int


def load_message_at(line: Line, seq: int) -> LocatedMessage:
    """Return the message that went in, a row of which stands at a position."""
    (row,), (wire_format,) = _between(line, seq, seq)
    number, of = part_of(row, wire_format)
    last = min(seq + of - 1 - number, line.pointer.head)
    first = max(1, seq - number)
    with reporting_damage(line.connection, partial(line.ranges, first, last)):
        whole = joined(*_between(line, first, last))
    earlier = (each.seq for each in whole if each.seq < seq)
    one = next(each for each in whole if each.seq >= seq)
    return LocatedMessage(one, max(earlier, default=first - 1))


def load_chat_messages(line: Line, first: int, last: int) -> list[StoredMessage]:
    """Return the rows of a line from one position to another, as messages of a chat."""
    return _between(line, first, last)[0]


Rows = tuple[list[StoredMessage], list[str | None]]
"""Rows as messages of a chat, and in which format each came."""


def _between(line: Line, first: int, last: int) -> Rows:
    found: Rows = ([], [])
    is_newest = last == line.pointer.head and last - first < MOST
    read = partial(newest_rows, load_stored) if is_newest else load_stored
    for run in line.ranges(first, last):
        stored = read(line.connection, run)
        try:
            rows, formats = decode_stored(stored)
        except StoreError:
            raise
        except Exception:
            check_digests(run, stored)
            raise
        found[0].extend(rows)
        found[1].extend(formats)
    _check_count(found, line.pointer.tree_id, first, last)
    return found


def _check_count(found: Rows, tree_id: int, first: int, last: int) -> None:
    if len(found[0]) <= last - first:
        problem = f"tree {tree_id} lacks messages of the positions {first} to {last}"
        raise Damaged(f"{problem}; {VERIFY}")


@contextmanager
def reporting_damage(
    connection: Connection, find_runs: Callable[[], Iterable[dict[str, int]]]
) -> Iterator[None]:
    """Report damage where decoding messages fails and their digests do not hold.

    Any other error arrives as itself: rows that are what was stored are no reason to fail.
    """
    try:
        yield
    except StoreError:
        raise
    except Exception:
        for run in find_runs():
            check_digests(run, load_stored(connection, run))
        raise


def check_digests(run: dict[str, int], stored: Stored) -> None:
    """Raise Damaged for the first message that is not what was stored."""
    calls: dict[int, list[StoredCall]] = {}
    for seq, *call in stored.calls:
        calls.setdefault(seq, []).append(StoredCall(*call))
    for seq, stored_at, digest, wire_format, *columns in stored.messages:
        said = tuple(calls.get(seq, ()))
        if not find_digest_version(Columns(*columns), said, digest, stored_at, wire_format):
            where = f"tree {run['tree_id']}, branch {run['branch']}, position {seq}"
            raise Damaged(f"{where}: the message is not what was stored; {VERIFY}")


def load_run(connection: Connection, run: dict[str, int]) -> Rows:
    """Return the rows of a run, by the names that `Segment.within` gives."""
    found = decode_stored(load_stored(connection, run))
    _check_count(found, run["tree_id"], run["first"], run["last"])
    return found


def load_stored(connection: Connection, run: dict[str, int]) -> Stored:
    """Return what is stored of a run."""
    calls = CALLS_IN_RUN.rows(connection, **run)
    return Stored(MESSAGES_IN_RUN.rows(connection, **run), calls)


def decode_stored(stored: Stored) -> Rows:
    """Return what is stored as messages of a chat."""
    calls = _by_position(stored.calls)
    rows = [
        make_stored_message((row[0], assemble(row[4:], calls.get(row[0])), row[1], row[2]))
        for row in stored.messages
    ]
    return rows, [row[3] for row in stored.messages]


def load_calls(
    connection: Connection,
    run: dict[str, int],
) -> dict[int, list[Any]]:
    """Return the tool calls of a run as they went in, by the position of their message."""
    return _by_position(CALLS_IN_RUN.rows(connection, **run))


def _by_position(rows: list[Row]) -> dict[int, list[Any]]:
    calls: dict[int, list[Any]] = {}
    for seq, call_id, name, form, arguments, extra in rows:
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
    Raises what `messages` does, and StoreError after the iterator, or the store, was closed.
    """
    return Pages(_pages(transactions, session_id, start, stop, at, size))


class Pages(Iterator[list[StoredMessage]]):
    """The pages of a line; one that is closed raises StoreError, so nobody takes it for the end."""

    def __init__(self, pages: Generator[list[StoredMessage]]) -> None:
        self._pages, self._is_closed = pages, False

    def __next__(self) -> list[StoredMessage]:
        if self._is_closed:
            raise StoreError("these pages were closed; ask for `pages` anew")
        return next(self._pages)

    def close(self) -> None:
        """Give no page any more."""
        self._is_closed = True
        self._pages.close()


def _pages(
    transactions: Transactions,
    session_id: str,
    start: int,
    stop: int | None,
    at: int | None,
    size: int,
) -> Generator[list[StoredMessage]]:
    _check_size(size)
    with transactions.reading() as connection:
        branch, start, last = resolve_page_range(connection, session_id, start, stop, at)
    for first in range(start, last + 1, size):
        end = min(first + size - 1, last)
        yield _page(transactions, session_id, first, end, last, branch)


def _page(
    transactions: Transactions, session_id: str, first: int, end: int, last: int, branch: int
) -> list[StoredMessage]:
    """Return a page to which nothing else refers, so that one is gone when the next is read."""
    with transactions.reading() as connection:
        return read_messages(connection, session_id, first, end, last, branch=branch)


def _check_size(size: int) -> None:
    if type(size) is not int or size < 1:
        raise InvalidValue(f"a page has at least 1 message, not {quoted(size)}")


def resolve_page_range(
    connection: Connection, session_id: str, start: int, stop: int | None, at: int | None
) -> tuple[int, int, int]:
    """Return the head branch, the first and the last position of what `read_messages` would return.

    Raises what that does.
    """
    pointer = lines.load_pointer(connection, session_id)
    return pointer.branch, *lines.resolve_range(start, stop, lines.resolve_position(pointer, at))
