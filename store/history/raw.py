"""What was said: append to a line, and read it. Nothing here ever changes a message."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from pydantic import BaseModel
from sqlalchemy import Connection, bindparam, select, update

from ..clock import Now, given
from ..database import (
    Insertion,
    Row,
    Statement,
    Transactions,
    messages,
    paused,
    sessions,
    tool_calls,
)
from ..errors import HeadMoved, InvalidMessage, InvalidValue
from ..messages import Columns, Message, Prepared, StoredCall, assemble, join_call, prepare
from ..records import StoredMessage
from ..tokens import estimated_tokens
from . import facts, lines, noted
from .lines import PLACE, Pointer, Segment, run_of

INSERT_MESSAGES = Insertion(messages, *PLACE, *Columns._fields, "stored_at", "digest")
INSERT_CALLS = Insertion(tool_calls, *PLACE, "position", *StoredCall._fields)
MOVE_HEAD = Statement(
    update(sessions)
    .where(sessions.c.tree_id == bindparam("tree"), sessions.c.id == bindparam("session_id"))
    .values(head=bindparam("to"), updated_at=bindparam("now"))
)


class Known(NamedTuple):
    """Where in a tree a message of some id stands."""

    branch: int
    seq: int
    digest: bytes
    stored_at: int


KNOWN = Statement(
    select(*(messages.c[name] for name in Known._fields)).where(
        messages.c.tree_id == bindparam("tree_id"), messages.c.message_id == bindparam("message_id")
    ),
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


def append(
    connection: Connection,
    session_id: str,
    messages: Message | BaseModel | Iterable[Message | BaseModel],
    *,
    expected_head: int | None = None,
    now: Now = None,
) -> list[StoredMessage]:
    """Append a message, or a batch as one, to a session's line, and return them as stored.

    They come back in the order given. A message may be a pydantic object, such as a provider's
    client returns: it is stored as its JSON, of the fields that are set.

    A message whose ``id`` is on the line already is not stored again but returned, so a call whose
    outcome is unknown can be repeated. With ``expected_head`` the batch is stored only if the head
    is there. Raises SessionNotFound, HeadMoved, InvalidMessage (naming index and key); then nothing
    of the batch is stored.
    """
    batch = [prepare(message, index) for index, message in enumerate(_listed(messages))]
    tokens = [estimated_tokens(each.message, each.text_size) for each in batch]
    moment = given(now)
    _check_expected(expected_head)
    pointer = lines.lock(connection, session_id)
    known = _known(connection, pointer, batch)
    fresh = _fresh(batch, known)
    if fresh and expected_head not in (None, pointer.head):
        raise HeadMoved(session_id, expected_head, pointer.head)
    new = [batch[index] for index in fresh]
    stored = _store(connection, pointer, new, [tokens[index] for index in fresh], moment)
    noted.note(session_id, new)
    return _in_order(batch, known | dict(zip(fresh, stored, strict=True)))


def _check_expected(head: int | None) -> None:
    if head is not None and type(head) is not int:
        raise InvalidValue(f"expected_head is a position, not {head!r}")


def _in_order(batch: list[Prepared], by_index: dict[int, StoredMessage]) -> list[StoredMessage]:
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
    found: list[StoredMessage] = []
    with paused(last - first):
        for segment in lines.segments(connection, pointer, first, last):
            found += _read_segment(connection, pointer.tree_id, segment)
    return found


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
            page = read(connection, session_id, first, min(first + size - 1, last), branch=branch)
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


def stored_calls(connection: Connection, tree_id: int, segment: Segment) -> dict[int, list[Any]]:
    """Return a segment's tool calls as they went in, by the position of their message."""
    calls: dict[int, list[Any]] = {}
    rows = CALLS.rows(connection, **segment.within(tree_id))
    for seq, call_id, name, form, arguments, extra in rows:
        calls.setdefault(seq, []).append(join_call(call_id, name, form, arguments, extra))
    return calls


def _listed(
    given: Message | BaseModel | Iterable[Message | BaseModel],
) -> list[Message | BaseModel]:
    if isinstance(given, dict | BaseModel):
        return [given]
    if not isinstance(given, Iterable):
        raise InvalidMessage(0, None, f"a message is an object, this is {type(given).__name__}")
    return list(given)


def _known(
    connection: Connection, pointer: Pointer, batch: list[Prepared]
) -> dict[int, StoredMessage]:
    """Return the messages of the batch that the line has already, by index.

    Raises InvalidMessage for a changed one.
    """
    known: dict[int, StoredMessage] = {}
    for index, prepared in enumerate(batch):
        message_id = prepared.columns.message_id
        if message_id is None:
            continue
        for found in KNOWN.rows(connection, tree_id=pointer.tree_id, message_id=message_id):
            if not _on_line(connection, pointer, found):
                continue
            if not _is_same(connection, pointer, found, prepared):
                raise _another(index, message_id, f"position {found.seq}")
            known[index] = StoredMessage(found.seq, prepared.message, found.stored_at, found.digest)
    return known


def _on_line(connection: Connection, pointer: Pointer, found: Known) -> bool:
    if found.seq > pointer.head:
        return False
    return lines.place(connection, pointer, found.seq)["branch"] == found.branch


def _is_same(connection: Connection, pointer: Pointer, found: Known, given: Prepared) -> bool:
    """Tell whether a message is the stored one.

    One whose keys come in another order has another digest, but is the same.
    """
    if found.digest == given.digest:
        return True
    (stored,) = read(connection, pointer.session_id, found.seq, found.seq)
    return stored.message == given.message


def _another(index: int, message_id: str, place: str) -> InvalidMessage:
    return InvalidMessage(index, "id", f"{message_id!r} is another message, at {place}")


def _fresh(batch: list[Prepared], known: dict[int, StoredMessage]) -> list[int]:
    """Return the indices to store: neither on the line nor given twice.

    Raises InvalidMessage for one id, two texts.
    """
    first: dict[str, int] = {}
    fresh = []
    for index, prepared in enumerate(batch):
        message_id = prepared.columns.message_id
        if message_id is not None:
            earlier = first.setdefault(message_id, index)
            other = batch[earlier]
            if other.digest != prepared.digest and other.message != prepared.message:
                raise _another(index, message_id, f"index {earlier}")
            if earlier != index:
                continue
        if index not in known:
            fresh.append(index)
    return fresh


def _store(
    connection: Connection, pointer: Pointer, batch: list[Prepared], tokens: list[int], moment: int
) -> list[StoredMessage]:
    """Write messages, what follows from them and the new head; return them as stored."""
    if not batch:
        return []
    start = pointer.head + 1
    _insert(connection, pointer, start, batch, moment)
    facts.write(connection, pointer, start, batch, tokens)
    _move_head(connection, pointer, pointer.head + len(batch), moment)
    return [
        StoredMessage(seq, each.message, moment, each.digest)
        for seq, each in enumerate(batch, start)
    ]


def _move_head(connection: Connection, pointer: Pointer, head: int, moment: int) -> None:
    session = {"tree": pointer.tree_id, "session_id": pointer.session_id}
    MOVE_HEAD.run(connection, **session, to=head, now=moment)


def _insert(
    connection: Connection, pointer: Pointer, start: int, batch: list[Prepared], moment: int
) -> None:
    """Write the raw rows of messages that stand from position ``start`` on."""
    tree_id, branch = pointer.tree_id, pointer.branch
    rows: list[Row] = []
    calls: list[Row] = []
    for seq, each in enumerate(batch, start):
        rows.append((tree_id, branch, seq, *each.columns, moment, each.digest))
        for position, call in enumerate(each.calls):
            calls.append((tree_id, branch, seq, position, *call))
    INSERT_MESSAGES.insert_many(connection, rows)
    INSERT_CALLS.insert_many(connection, calls)


def _read_segment(connection: Connection, tree_id: int, segment: Segment) -> list[StoredMessage]:
    calls = stored_calls(connection, tree_id, segment)
    rows = MESSAGES.scan(connection, **segment.within(tree_id))
    return [
        StoredMessage(seq, assemble(columns, calls.get(seq)), stored_at, digest)
        for seq, stored_at, digest, *columns in rows
    ]
