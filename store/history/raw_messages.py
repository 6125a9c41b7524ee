"""Raw messages as they went in: a line read whole, in part, or page by page.

A message of another format may be several rows (see `store.formats`); each row says which part of
how many it is. A message is identified by its last position, so that rewinding there keeps all of
it.

**The cache of the newest rows** keeps rows of a branch in memory as they were read. A chat app asks
for the newest messages of a line at each turn, and read nearly all of them a turn ago. So their
rows stay in memory (`ViewCache`), and only new rows are read. The cache holds rows, not messages: a
caller may change a message, but texts and numbers are immutable. Most lines of a large store are
read once in a while, so rows are kept from the second read on.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy import Connection, Text, bindparam, literal_column, select

from ..database import (
    Row,
    Statement,
    Transactions,
    messages,
    pause_gc,
    tool_calls,
)
from ..errors import VERIFY_HINT, Damaged, InvalidValue, StoreError, quote_value
from ..formats import (
    ShapedRow,
    find_shaped_part,
    restore_message,
    restore_row,
    shape_row,
)
from ..messages import (
    WIRE_KEY,
    Columns,
    Message,
    StoredCall,
    assemble_rows,
    find_digest_version,
    join_call,
)
from ..records import StoredMessage, make_stored_message
from . import lines, session_branches
from .attachments import restore_calls, restore_messages
from .erasure_log import ChangeCounts
from .lines import Line, match_run
from .stored_rows import NO_CALL_ROWS, NO_STORED_ROWS, StoredRows
from .view_cache import Validity, ViewCache

MAX_NEWEST_ROWS = 100
"""The most positions of a branch that are kept, in addition to `LEADING_ROWS` before them."""
LEADING_ROWS = 16
"""Positions before these that are kept where a message begins there which ends among them."""
TAIL_OVERHEAD_BYTES = 1_000
"""Bytes that a line takes in addition to its rows."""


class BranchTail(NamedTuple):
    """The rows of a branch's positions ``first`` to ``last``."""

    first: int
    last: int
    rows: StoredRows = NO_STORED_ROWS
    weight: int = 0

    def grown(self, first: int, last: int, new: StoredRows) -> BranchTail:
        """Return it with new rows; if these are too many, only the rows that are asked for."""
        rows = self.rows.followed_by(new)
        if last - self.first < MAX_NEWEST_ROWS:
            return BranchTail(self.first, last, rows, self.weight + new.weight)
        first = max(self.first, first - LEADING_ROWS)
        rows = rows.part(first, last)
        kept = {seq: each for seq, each in [*(rows.kept or {}).items()] if seq >= first}
        return BranchTail(first, last, rows._replace(kept=kept), rows.weight)


NEVER_VALID = Validity(ChangeCounts(-1, -1))
"""The validity of the entry for rows that were asked for once, which holds none."""


def load_newest_rows(connection: Connection, run: dict[str, int]) -> StoredRows:
    """Return the rows of a run of at most `MAX_NEWEST_ROWS` positions; read those not cached."""
    cache = ViewCache(connection, run["tree_id"])
    name = ("newest", run["branch"])
    if not cache.is_enabled:
        return load_stored_rows(connection, run)
    if not cache.has(name):
        cache.count(hit=False)
        cache.save(name, BranchTail(0, 0), TAIL_OVERHEAD_BYTES, NEVER_VALID)
        return load_stored_rows(connection, run)
    first, last = run["first"], run["last"]
    tail: BranchTail | None = cache.load(name)
    is_hit = tail is not None and tail.first <= first <= tail.last + 1
    cache.count(hit=is_hit)
    if tail is None or not is_hit:
        tail = BranchTail(first, first - 1, StoredRows([], [], {}))
    if tail.last < last:
        tail = tail.grown(
            first, last, load_stored_rows(connection, {**run, "first": tail.last + 1})
        )
        cache.save(name, tail, TAIL_OVERHEAD_BYTES + tail.weight)
    return tail.rows.part(first, last)


MESSAGES_IN_RUN = Statement(
    select(
        messages.c.seq,
        messages.c.stored_at,
        messages.c.digest,
        messages.c.wire_format,
        *(messages.c[name] for name in Columns._fields),
    )
    .where(match_run(messages))
    .order_by(messages.c.seq)
)
FIND_OTHER_FORMAT = Statement(
    select(messages.c.seq)
    .where(
        match_run(messages),
        messages.c.wire_format.is_distinct_from(bindparam("wire_format", type_=Text)),
    )
    .limit(literal_column("1"))
)
CALLS_IN_RUN = Statement(
    select(tool_calls.c.seq, *(tool_calls.c[name] for name in StoredCall._fields))
    .where(match_run(tool_calls))
    .order_by(tool_calls.c.seq, tool_calls.c.position)
)


class MessagePart(NamedTuple):
    """The number of a part of a message, counted from 0, and how many parts there are."""

    number: int = 0
    of: int = 1


WHOLE_MESSAGE = MessagePart()


def parse_part(row: StoredMessage, wire_format: str | None) -> MessagePart:
    """Return the part of a message that a row holds. Raises Damaged for an impossible one."""
    held = row.message.get(WIRE_KEY) if wire_format else None
    return check_part(row.seq, held.get("part")) if isinstance(held, dict) else WHOLE_MESSAGE


def check_part(seq: int, part: Any) -> MessagePart:
    """Return the part that the row of a position says it is (None: a whole message).

    Raises Damaged for an impossible one.
    """
    if part is None:
        return WHOLE_MESSAGE
    problem = f"position {seq} is not part of a message; {VERIFY_HINT}"
    try:
        number, of = part
        if 0 <= number < of:
            return MessagePart(number, of)
    except (TypeError, ValueError) as error:
        raise Damaged(problem) from error
    raise Damaged(problem)


def join_parts(rows: list[StoredMessage], formats: Sequence[str | None]) -> list[StoredMessage]:
    """Return the messages that went in, joined from rows and the format of each row."""
    if not any(formats):
        return rows
    joined: list[StoredMessage] = []
    parts: list[StoredMessage] = []
    previous: tuple[str | None, MessagePart] = (None, WHOLE_MESSAGE)
    for row, wire_format in zip(rows, formats, strict=True):
        part = parse_part(row, wire_format)
        wire_format_before, (number, of) = previous
        if parts and (wire_format, part) != (wire_format_before, MessagePart(number + 1, of)):
            joined.append(_join_message(parts, wire_format_before))
            parts = []
        parts.append(row)
        previous = (wire_format, part)
    if parts:
        joined.append(_join_message(parts, previous[0]))
    return joined


def _join_message(parts: list[StoredMessage], wire_format: str | None) -> StoredMessage:
    last = parts[-1]
    if wire_format is None:
        return last
    from ..formats import decode_message

    return last._replace(message=decode_message(wire_format, [each.message for each in parts]))


def load_session_messages(
    connection: Connection,
    session_id: str,
    start: int = 1,
    stop: int | None = None,
    at: int | None = None,
    *,
    branch: int | None = None,
    last: int | None = None,
    format: str | None = None,  # noqa: A002 - the public name
) -> list[StoredMessage]:
    """Return a line's raw messages from position ``start`` to ``stop``, both included.

    The line is read as of the position ``at``. A negative ``start`` counts positions from the end:
    -20 gives the newest 20 positions, or all where there are fewer. A message that takes several
    positions, such as one with several results, is at the last of them. ``last`` counts
    messages instead: that many of the newest, whatever positions they take; it excludes ``start``
    and ``stop``. ``branch`` names a line that the session can go back to. With ``format`` messages
    of other formats are written in that one, each position for itself, so that all have one shape;
    None gives each as it went in. Raises SessionNotFound, InvalidValue, and PositionOutOfRange if
    ``at`` is not on the line; a range beyond it is just empty.
    """
    line = Line(connection, session_branches.find_line_pointer(connection, session_id, branch))
    end = lines.resolve_position(line.pointer, at)
    if last is not None:
        if type(last) is not int or last < 0:
            raise InvalidValue(f"last must be a number of messages, not {quote_value(last)}")
        if start != 1 or stop is not None:
            raise InvalidValue("last cannot be combined with start and stop, which are positions")
        found = _load_newest_messages(line, last + (format is not None), end)
        first, final = 1, end
        if len(found) > last:
            first, found = found[0].seq + 1, found[1:]
    else:
        first, final = lines.resolve_range(start, stop, end)
        with pause_gc(final - first + 1):
            found = load_line_messages(line, first, final, end)
    return found if format is None else _translate_messages(line, found, first, final, format)


def _translate_messages(
    line: Line,
    found: list[StoredMessage],
    first: int,
    last: int,
    format: str,  # noqa: A002 - what it is
) -> list[StoredMessage]:
    """Return messages in a format: one that came in it as it is, the rows of others written."""
    from ..formats import CHAT, get_format

    target = get_format(format)
    own_name = None if target is CHAT else target.name
    if not any(
        FIND_OTHER_FORMAT.rows(line.connection, **run, wire_format=own_name)
        for run in line.ranges(first, last)
    ):
        return found
    whole = {each.seq: each for each in found}
    translated: list[StoredMessage] = []
    for row, name in zip(*load_message_rows(line, first, last), strict=True):
        if name != own_name:
            written = target.write_row(row.seq, row.message)
            translated += [row._replace(message=message) for message in written]
        elif row.seq in whole:
            translated.append(whole[row.seq])
    return translated


def _load_newest_messages(line: Line, count: int, end: int) -> list[StoredMessage]:
    """Return the newest messages up to a position.

    As many positions are read as messages are asked for, and more while that gives fewer messages,
    because a message may take several positions and is returned at the last of them.
    """
    found: list[StoredMessage] = []
    final = end
    with pause_gc(min(count, end)):
        while final and len(found) < count:
            first = max(1, final - (count - len(found)) + 1)
            found = load_line_messages(line, first, final, end) + found
            final = first - 1
    return found


def load_session_chat_messages(
    connection: Connection,
    session_id: str,
    first: int,
    last: int,
    *,
    branch: int | None = None,
) -> list[StoredMessage]:
    """Return the rows at a line's positions ``first`` to ``last``, as messages of a chat.

    Each position has one, whatever the format of the messages. Raises the errors of
    `load_session_messages`.
    """
    line = Line(connection, session_branches.find_line_pointer(connection, session_id, branch))
    first, last = lines.resolve_range(first, last, line.pointer.head)
    with pause_gc(last - first + 1):
        return load_chat_messages(line, first, last)


def load_line_messages(line: Line, first: int, last: int, end: int) -> list[StoredMessage]:
    """Return the messages that went in at a line's positions first to last.

    One that takes several positions belongs to the last of them, or the last up to ``end``.
    """
    stored = load_line_rows(line, first, last)
    with report_damage(line.connection, partial(line.ranges, first, last)):
        if not any(row[3] for row in stored.messages):
            return decode_stored_rows(stored)[0]
        before = stored.count_leading(LEADING_ROWS)
        if before is None:
            before = _parse_stored_part(stored, 0).number
    if before:
        begins = max(1, first - before)
        if stored.kept is not None and before <= LEADING_ROWS:
            stored = load_line_rows(line, begins, last, before)
        else:
            stored = load_line_rows(line, begins, first - 1).followed_by(stored)
    with report_damage(line.connection, partial(line.ranges, max(1, first - before), last)):
        whole = join_stored_rows(stored)
        is_end = stored.messages[-1][0] >= end
        number, of = WHOLE_MESSAGE if is_end else _parse_stored_part(stored, -1)
    if number + 1 < of:
        following = load_line_rows(line, last + 1, last + 1)
        if _parse_stored_part(following, 0) == (number + 1, of):
            whole.pop()  # it goes on after these positions
    return [each for each in whole if each.seq >= first]


def _parse_stored_part(stored: StoredRows, index: int) -> MessagePart:
    """Return the part of a message that the row at an index holds."""
    row = stored.messages[index]
    if row[3] is None:
        return WHOLE_MESSAGE
    rows, formats = decode_stored_rows(stored.part(row[0], row[0]))
    return parse_part(rows[0], formats[0])


class _FormattedRow(NamedTuple):
    """A stored row, its calls, its part of a message, and its shape if others may have the same."""

    stored: Row
    calls: Sequence[Row]
    part: MessagePart
    shaped: ShapedRow | None

    def is_followed_by(self, row: _FormattedRow) -> bool:
        """Tell whether a row is the next part of the same message."""
        number, of = self.part
        return row.part == (number + 1, of) and row.stored[3] == self.stored[3]


def join_stored_rows(stored: StoredRows) -> list[StoredMessage]:
    """Return the messages that went in, built by templates where their shapes are known.

    Raises Damaged.
    """
    if whole := stored.restore_kept():
        return whole
    calls: dict[int, list[Row]] = {}
    for call in stored.calls:
        calls.setdefault(call[0], []).append(call)
    joined: list[StoredMessage] = []
    parts: list[_FormattedRow] = []
    place = 0
    while place < len(stored.messages):
        last = row = stored.messages[place]
        theirs, shaped = calls.get(row[0], NO_CALL_ROWS), None
        if kept := stored.find_kept(place):
            message: Message | None = kept.message.restore()
            last = kept.rows[-1]
        else:
            try:
                shaped = shape_row(row, theirs) if row[3] is not None else None
            except (TypeError, ValueError, RecursionError):
                shaped = None  # the general way tells what is wrong
            message = restore_row(shaped) if shaped else None
            if message and shaped:
                stored.keep([row], [shaped], is_alone=True)
        place += len(kept.rows) if kept else 1
        each = None if message else _read_part(row, theirs, shaped)
        if parts and not (each and parts[-1].is_followed_by(each)):
            joined.append(_join_formatted_rows(parts, stored))
            parts = []
        if each:
            parts.append(each)
        else:
            joined.append(make_stored_message((last[0], message, last[1], last[2])))
    if parts:
        joined.append(_join_formatted_rows(parts, stored))
    return joined


def _read_part(row: Row, calls: Sequence[Row], shaped: ShapedRow | None) -> _FormattedRow:
    """Return a row with its part of a message. Raises Damaged for an impossible one."""
    if shaped is not None:
        part = check_part(row[0], find_shaped_part(shaped))
    elif row[3] is None:
        part = WHOLE_MESSAGE
    else:
        part = parse_part(_decode_stored_row(row, calls), row[3])
    return _FormattedRow(row, calls, part, shaped)


def _decode_stored_row(row: Row, calls: Sequence[Row]) -> StoredMessage:
    """Return a row as a message of a chat."""
    return decode_stored_rows(StoredRows([row], [*calls]))[0][0]


def _join_formatted_rows(parts: list[_FormattedRow], stored: StoredRows) -> StoredMessage:
    """Return the message of some rows; it is kept with them if nothing can follow any more."""
    shaped = [each.shaped for each in parts if each.shaped is not None]
    message = restore_message(shaped) if len(shaped) == len(parts) else None
    last = parts[-1].stored
    number, of = parts[-1].part
    if message and number + 1 == of and not parts[0].part.number:
        stored.keep([each.stored for each in parts], shaped)
    if message is None:
        return _join_message(
            [_decode_stored_row(each.stored, each.calls) for each in parts], last[3]
        )
    return make_stored_message((last[0], message, last[1], last[2]))


class LocatedMessage(NamedTuple):
    """A message that went in, and the position before it."""

    message: StoredMessage
    before: int


def load_message_at(line: Line, seq: int) -> LocatedMessage:
    """Return the message that went in at a position, which may be one of several that it takes."""
    (row,), (wire_format,) = found = load_message_rows(line, seq, seq)
    number, of = parse_part(row, wire_format)
    last = min(seq + of - 1 - number, line.pointer.head)
    first = max(1, seq - number)
    with report_damage(line.connection, partial(line.ranges, first, last)):
        whole = join_parts(*(found if of == 1 else load_message_rows(line, first, last)))
    earlier = (each.seq for each in whole if each.seq < seq)
    one = next(each for each in whole if each.seq >= seq)
    return LocatedMessage(one, max(earlier, default=first - 1))


def load_chat_messages(line: Line, first: int, last: int) -> list[StoredMessage]:
    """Return the rows of a line from one position to another, as messages of a chat."""
    return load_message_rows(line, first, last)[0]


FormattedRows = tuple[list[StoredMessage], list[str | None]]
"""Rows as messages of a chat, and the format of each."""


def load_line_rows(line: Line, first: int, last: int, leading: int = 0) -> StoredRows:
    """Return the stored rows of a line from one position to another. Raises Damaged.

    The first ones may be ``leading``: read for the sake of the message that they begin.
    """
    is_newest = last == line.pointer.head and last - first < MAX_NEWEST_ROWS + leading
    load = load_newest_rows if is_newest else load_stored_rows
    stored = NO_STORED_ROWS
    for run in line.ranges(first, last):
        found = load(line.connection, run)
        stored = stored.followed_by(found) if stored.messages else found
    check_run_complete(len(stored.messages), line.pointer.tree_id, first, last)
    return stored


def load_message_rows(line: Line, first: int, last: int) -> FormattedRows:
    """Return the rows of a line from one position to another, each with its format.

    Raises Damaged where one is missing, or cannot be decoded because it was changed.
    """
    found: FormattedRows = ([], [])
    is_newest = last == line.pointer.head and last - first < MAX_NEWEST_ROWS
    load = load_newest_rows if is_newest else load_stored_rows
    for run in line.ranges(first, last):
        stored = load(line.connection, run)
        try:
            rows, formats = decode_stored_rows(stored)
        except StoreError:
            raise
        except Exception:
            check_digests(run, stored)
            raise
        found[0].extend(rows)
        found[1].extend(formats)
    check_run_complete(len(found[0]), line.pointer.tree_id, first, last)
    return found


def check_run_complete(rows: int, tree_id: int, first: int, last: int) -> None:
    """Raise Damaged where there are fewer rows than positions."""
    if rows <= last - first:
        problem = f"tree {tree_id} lacks messages of the positions {first} to {last}"
        raise Damaged(f"{problem}; {VERIFY_HINT}")


@contextmanager
def report_damage(
    connection: Connection, find_runs: Callable[[], Iterable[dict[str, int]]]
) -> Iterator[None]:
    """Raise Damaged where decoding messages fails and their digests do not match.

    If all digests match, the error is not caused by the rows, and is raised unchanged.
    """
    try:
        yield
    except StoreError:
        raise
    except Exception:
        for run in find_runs():
            check_digests(run, load_stored_rows(connection, run))
        raise


def check_digests(run: dict[str, int], stored: StoredRows) -> None:
    """Raise Damaged for the first message whose row was changed after it was stored."""
    calls: dict[int, list[StoredCall]] = {}
    for seq, *call in stored.calls:
        calls.setdefault(seq, []).append(StoredCall(*call))
    for seq, stored_at, digest, wire_format, *columns in stored.messages:
        said = tuple(calls.get(seq, ()))
        if not find_digest_version(Columns(*columns), said, digest, stored_at, wire_format):
            where = f"tree {run['tree_id']}, branch {run['branch']}, position {seq}"
            raise Damaged(f"{where}: the message is not what was stored; {VERIFY_HINT}")


def load_stored_rows(connection: Connection, run: dict[str, int]) -> StoredRows:
    """Return the stored rows of a run."""
    MESSAGES_IN_RUN.send(connection, **run)
    calls = CALLS_IN_RUN.rows(connection, **run)
    found = restore_messages(connection, run, MESSAGES_IN_RUN.rows(connection, **run))
    return StoredRows(found, restore_calls(connection, run, calls))


def decode_stored_rows(stored: StoredRows) -> FormattedRows:
    """Return stored rows as messages of a chat, with their formats."""
    rows = assemble_rows(stored.messages, group_calls(stored.calls))
    return [*map(make_stored_message, rows)], [row[3] for row in stored.messages]


def load_calls(
    connection: Connection,
    run: dict[str, int],
) -> dict[int, list[Any]]:
    """Return the tool calls of a run as they went in, by the position of their message."""
    return group_calls(restore_calls(connection, run, CALLS_IN_RUN.rows(connection, **run)))


def group_calls(rows: list[Row]) -> dict[int, list[Any]]:
    """Return decoded tool calls by the position of their message."""
    calls: dict[int, list[Any]] = {}
    for seq, call_id, name, form, arguments, extra in rows:
        if extra is None:  # as `join_call` returns it; there may be thousands
            function = {"name": name, "arguments": arguments}
            call: Any = {"id": call_id, "type": "function", "function": function}
        else:
            call = join_call(call_id, name, form, arguments, extra)
        calls.setdefault(seq, []).append(call)
    return calls


def iterate_pages(
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
    Raises the errors of `messages`, and StoreError after the iterator, or the store, was closed.
    """
    return MessagePages(_generate_pages(transactions, session_id, start, stop, at, size))


class MessagePages(Iterator[list[StoredMessage]]):
    """The pages of a line; after `close` they raise StoreError, and do not just end."""

    def __init__(self, pages: Generator[list[StoredMessage]]) -> None:
        self._pages, self._is_closed = pages, False

    def __next__(self) -> list[StoredMessage]:
        if self._is_closed:
            raise StoreError("these pages are closed; call `iterate_pages` again")
        return next(self._pages)

    def close(self) -> None:
        """Stop the iterator."""
        self._is_closed = True
        self._pages.close()


def _generate_pages(
    transactions: Transactions,
    session_id: str,
    start: int,
    stop: int | None,
    at: int | None,
    size: int,
) -> Generator[list[StoredMessage]]:
    if type(size) is not int or size < 1:
        raise InvalidValue(f"a page must have at least 1 message, not {quote_value(size)}")
    with transactions.reading() as connection:
        pointer = lines.load_pointer(connection, session_id)
        end = lines.resolve_position(pointer, at)
        start, last = lines.resolve_range(start, stop, end)
    for first in range(start, last + 1, size):
        final = min(first + size - 1, last)
        yield _load_page(transactions, session_id, first, final, last, pointer.branch)


def _load_page(
    transactions: Transactions, session_id: str, first: int, end: int, last: int, branch: int
) -> list[StoredMessage]:
    """Return a page that nothing else refers to, so its memory is freed before the next is read."""
    with transactions.reading() as connection:
        return load_session_messages(connection, session_id, first, end, last, branch=branch)
