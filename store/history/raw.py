"""What was said: append to a line, and read it. Nothing here ever changes a message."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from pydantic import BaseModel
from sqlalchemy import Connection, bindparam, select

from ..clock import Now, given
from ..database import (
    Insertion,
    Row,
    Statement,
    Transactions,
    messages,
    paused,
    tool_calls,
)
from ..errors import HeadMoved, InvalidMessage, InvalidValue
from ..messages import (
    Columns,
    Message,
    Prepared,
    StoredCall,
    assemble,
    dated_digest,
    join_call,
    prepare,
)
from ..records import StoredMessage
from ..tokens import estimated_tokens
from . import facts, lines, noted
from .lines import Line, run_of
from .places import PLACE, Pointer

INSERT_MESSAGES = Insertion(messages, *PLACE, *Columns._fields, "stored_at", "digest")
INSERT_CALLS = Insertion(tool_calls, *PLACE, "position", *StoredCall._fields)
MOVE_HEAD = lines.change(head=bindparam("to"), updated_at=bindparam("now"))


class Known(NamedTuple):
    """Where in a tree a message of some id stands."""

    branch: int
    seq: int
    digest: bytes
    stored_at: int


KNOWN = Statement(
    select(*(messages.c[name] for name in Known._fields))
    .where(messages.c.tree_id == bindparam("tree_id"))
    .where(messages.c.message_id == bindparam("message_id")),
    row=Known,
)
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


ByIndex = dict[int, StoredMessage]
"""Messages of a batch as they are stored, by their index in it."""


def append(
    connection: Connection,
    session_id: str,
    messages: Message | BaseModel | Iterable[Message | BaseModel],
    *,
    expected_head: int | None = None,
    expected: str | None = None,
    now: Now = None,
) -> list[StoredMessage]:
    """Append a message, or a batch as one, to a session's line, and return them as stored.

    They come back in the order given. A message may be a pydantic object, such as a provider's
    client returns: it is stored as its JSON, of the fields that are set.

    A message whose ``id`` is on the line already is not stored again but returned, so a call whose
    outcome is unknown can be repeated. With ``expected_head`` the batch is stored only if the head
    is there, with ``expected`` only if that is the session's revision. Raises SessionNotFound,
    Conflict, HeadMoved, InvalidMessage (naming index and key); then nothing of the batch is stored.
    """
    batch = [prepare(message, index) for index, message in enumerate(_listed(messages))]
    tokens = [estimated_tokens(each.message, each.text_size) for each in batch]
    moment = given(now)
    digests = [dated_digest(each.digest, moment) for each in batch]
    _check_expected(expected_head)
    line = Line(connection, lines.lock(connection, session_id))
    known = _known(line, batch)
    fresh = _fresh(batch, known)
    if fresh:
        _check_as_known(line.pointer, expected_head, expected)
    new = [batch[index] for index in fresh]
    weights = [tokens[index] for index in fresh]
    stored = _store(line, new, weights, [digests[index] for index in fresh], moment)
    noted.note(session_id, new)
    return _in_order(batch, known | dict(zip(fresh, stored, strict=True)))


def _check_expected(head: int | None) -> None:
    if head is not None and type(head) is not int:
        raise InvalidValue(f"expected_head is a position, not {head!r}")


def _check_as_known(pointer: Pointer, head: int | None, revision: str | None) -> None:
    """Refuse to append to a session that is not as the caller knows it."""
    lines.check_revision(pointer, revision)
    if head not in (None, pointer.head):
        raise HeadMoved(pointer.session_id, head, pointer.head)


def _in_order(batch: list[Prepared], by_index: ByIndex) -> list[StoredMessage]:
    """Return each message of a batch as stored; one given twice is stored at its first index."""
    if len(by_index) == len(batch):
        return [by_index[index] for index in range(len(batch))]
    by_id = {batch[index].columns.message_id: stored for index, stored in by_index.items()}
    return [
        by_index[index] if index in by_index else by_id[each.columns.message_id]
        for index, each in enumerate(batch)
    ]


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
    the newest 20, or all where there are fewer. ``branch`` names a line that the session left by a
    rewind. Raises SessionNotFound, InvalidValue, and PositionOutOfRange where ``at`` is not on the
    line; a range beyond it is just empty.
    """
    pointer = lines.find(connection, session_id, branch)
    first, last = lines.span(start, stop, lines.position(pointer, at))
    with paused(last - first):
        return messages_between(Line(connection, pointer), first, last)


def messages_between(line: Line, first: int, last: int) -> list[StoredMessage]:
    """Return the messages of a line from one position to another, both included."""
    found: list[StoredMessage] = []
    for run in line.ranges(first, last):
        found += _read_run(line.connection, run)
    return found


def _read_run(connection: Connection, run: dict[str, int]) -> list[StoredMessage]:
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


def _listed(
    given: Message | BaseModel | Iterable[Message | BaseModel],
) -> list[Message | BaseModel]:
    if isinstance(given, dict | BaseModel):
        return [given]
    if not isinstance(given, Iterable):
        raise InvalidMessage(0, None, f"a message is an object, this is {type(given).__name__}")
    return list(given)


def _known(line: Line, batch: list[Prepared]) -> ByIndex:
    """Return the messages of the batch that the line has already.

    Raises InvalidMessage for a changed one.
    """
    known: ByIndex = {}
    for index, prepared in enumerate(batch):
        message_id = prepared.columns.message_id
        found = None if message_id is None else _find_on(line, message_id)
        if found is not None:
            _check_same(line, found, prepared, index)
            known[index] = _as_stored(found, prepared)
    return known


def _find_on(line: Line, message_id: str) -> Known | None:
    """Return where the message of an id stands on a line; None where it is on none or another."""
    tree_id = line.pointer.tree_id
    for found in KNOWN.rows(line.connection, tree_id=tree_id, message_id=message_id):
        if _is_on(line, found):
            return found
    return None


def _is_on(line: Line, found: Known) -> bool:
    if found.seq > line.pointer.head:
        return False
    return line.place(found.seq)["branch"] == found.branch


def _check_same(line: Line, found: Known, given: Prepared, index: int) -> None:
    """Refuse another message of the same id.

    One whose keys come in another order has another digest, but is the same; so has one that an
    earlier release stored.
    """
    if found.digest != dated_digest(given.digest, found.stored_at):
        (stored,) = messages_between(line, found.seq, found.seq)
        if stored.message != given.message:
            raise _another(index, given, f"position {found.seq}")


def _as_stored(found: Known, given: Prepared) -> StoredMessage:
    return StoredMessage(found.seq, given.message, found.stored_at, found.digest)


def _another(index: int, given: Prepared, place: str) -> InvalidMessage:
    message_id = given.columns.message_id
    return InvalidMessage(index, "id", f"{message_id!r} is another message, at {place}")


def _fresh(batch: list[Prepared], known: ByIndex) -> list[int]:
    """Return the indices to store: neither on the line nor given twice."""
    first: dict[str, int] = {}
    fresh = []
    for index, prepared in enumerate(batch):
        message_id = prepared.columns.message_id
        earlier = index if message_id is None else first.setdefault(message_id, index)
        if earlier != index:
            _check_repeated(batch, earlier, index)
        elif index not in known:
            fresh.append(index)
    return fresh


def _check_repeated(batch: list[Prepared], earlier: int, index: int) -> None:
    """Refuse one id with two texts in a batch."""
    one, other = batch[earlier], batch[index]
    if one.digest != other.digest and one.message != other.message:
        raise _another(index, other, f"index {earlier}")


def _store(
    line: Line,
    batch: list[Prepared],
    tokens: list[int],
    digests: list[bytes],
    moment: int,
) -> list[StoredMessage]:
    """Write messages, what follows from them and the new head; return them as stored."""
    if not batch:
        return []
    start = line.pointer.head + 1
    _insert(line, start, batch, digests, moment)
    facts.write(line, start, batch, tokens)
    _move_head(line, start + len(batch) - 1, moment)
    return [
        StoredMessage(seq, each.message, moment, digest)
        for seq, (each, digest) in enumerate(zip(batch, digests, strict=True), start)
    ]


def _move_head(line: Line, head: int, moment: int) -> None:
    MOVE_HEAD.run(line.connection, **line.pointer.changed(), to=head, now=moment)


def _insert(
    line: Line,
    start: int,
    batch: list[Prepared],
    digests: list[bytes],
    moment: int,
) -> None:
    """Write the raw rows of messages that stand from position ``start`` on."""
    tree_id, branch = line.pointer.tree_id, line.pointer.branch
    rows: list[Row] = []
    calls: list[Row] = []
    for seq, (each, digest) in enumerate(zip(batch, digests, strict=True), start):
        place = (tree_id, branch, seq)
        rows.append((*place, *each.columns, moment, digest))
        for number, call in enumerate(each.calls):
            calls.append((*place, number, *call))
    INSERT_MESSAGES.insert_many(line.connection, rows)
    INSERT_CALLS.insert_many(line.connection, calls)
