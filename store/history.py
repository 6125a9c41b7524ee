"""What was said: append to a line, and read it. Nothing here ever changes a message."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select, update

from . import lines
from .clock import Now, given
from .collector import paused
from .errors import HeadMoved, InvalidMessage, InvalidValue
from .facts import ResultRows, derive, measure, message_rows
from .lines import Pointer, Segment
from .messages import Message, Prepared, assemble, join_call, prepare
from .records import StoredMessage
from .schema import message_facts, messages, sessions, tool_calls, tool_result_paths, tool_results
from .statements import Row, Statement
from .tokens import estimated_tokens

INSERT_MESSAGES = Statement(insert(messages))
INSERT_FACTS = Statement(insert(message_facts))
INSERT_CALLS = Statement(insert(tool_calls))
INSERT_RESULTS = Statement(insert(tool_results))
INSERT_PATHS = Statement(insert(tool_result_paths))
MOVE_HEAD = Statement(
    update(sessions)
    .where(sessions.c.tree_id == bindparam("tree"), sessions.c.id == bindparam("session_id"))
    .values(head=bindparam("to"), updated_at=bindparam("now"))
)
KNOWN = Statement(
    select(messages.c.branch, messages.c.seq, messages.c.digest, messages.c.stored_at).where(
        messages.c.tree_id == bindparam("tree_id"), messages.c.message_id == bindparam("message_id")
    )
)
_RUN = (
    messages.c.tree_id == bindparam("tree_id"),
    messages.c.branch == bindparam("branch"),
    messages.c.seq.between(bindparam("first"), bindparam("last")),
)
MESSAGES = Statement(
    select(
        messages.c.seq,
        messages.c.stored_at,
        messages.c.digest,
        messages.c.role,
        messages.c.name,
        messages.c.status,
        messages.c.tool_call_id,
        messages.c.created_at,
        messages.c.message_id,
        messages.c.extra,
        messages.c.content_form,
        messages.c.content,
    )
    .where(*_RUN)
    .order_by(messages.c.seq)
)
CALLS = Statement(
    select(
        tool_calls.c.seq,
        tool_calls.c.call_id,
        tool_calls.c.name,
        tool_calls.c.arguments_form,
        tool_calls.c.arguments,
        tool_calls.c.extra,
    )
    .where(
        tool_calls.c.tree_id == bindparam("tree_id"),
        tool_calls.c.branch == bindparam("branch"),
        tool_calls.c.seq.between(bindparam("first"), bindparam("last")),
    )
    .order_by(tool_calls.c.seq, tool_calls.c.position)
)


def append(
    connection: Connection,
    session_id: str,
    messages: Message | Iterable[Message],
    *,
    expected_head: int | None = None,
    now: Now = None,
) -> list[StoredMessage]:
    """Append a message, or a batch as one, to a session's line; return them as stored, in the order given.

    A message whose ``id`` is on the line already is not stored again but returned, so a call whose outcome is unknown
    can be repeated. With ``expected_head`` the batch is stored only if the head is there. Raises SessionNotFound,
    HeadMoved, InvalidMessage (naming index and key); then nothing of the batch is stored.
    """
    batch = [prepare(message, index) for index, message in enumerate(_listed(messages))]
    if expected_head is not None and type(expected_head) is not int:
        raise InvalidValue(f"expected_head is a position, not {expected_head!r}")
    tokens = [estimated_tokens(each.message, each.text_size) for each in batch]
    moment = given(now)
    pointer = lines.lock(connection, session_id)
    known = _known(connection, pointer, batch)
    fresh = _fresh(batch, known)
    if fresh and expected_head is not None and expected_head != pointer.head:
        raise HeadMoved(session_id, expected_head, pointer.head)
    stored = _store(connection, pointer, [batch[index] for index in fresh], [tokens[index] for index in fresh], moment)
    by_index = {**known, **dict(zip(fresh, stored, strict=True))}
    by_id = {batch[index].message_id: by_index[index] for index in by_index}
    return [by_index[index] if index in by_index else by_id[each.message_id] for index, each in enumerate(batch)]


def read(
    connection: Connection,
    session_id: str,
    start: int = 1,
    stop: int | None = None,
    at: int | None = None,
    *,
    branch: int | None = None,
) -> list[StoredMessage]:
    """Return a line's raw messages from position ``start`` to ``stop``, both included, as of the position ``at``.

    A negative ``start`` counts from the end: -20 gives the newest 20, or all where there are fewer. ``branch`` names a
    line that the session left by a rewind. Raises SessionNotFound, InvalidValue, and PositionOutOfRange where ``at`` is
    not on the line; a range beyond it is just empty.
    """
    pointer = lines.find(connection, session_id, branch)
    first, last = lines.span(start, stop, lines.position(pointer, at))
    found: list[StoredMessage] = []
    with paused(last - first):
        for segment in lines.segments(connection, pointer, first, last):
            found += _read_segment(connection, pointer.tree_id, segment)
    return found


def stretch(
    connection: Connection, session_id: str, start: int, stop: int | None, at: int | None
) -> tuple[int, int, int]:
    """Return the head branch, the first and the last position of what `read` would return; raises what that does."""
    pointer = lines.find(connection, session_id)
    return pointer.branch, *lines.span(start, stop, lines.position(pointer, at))


def stored_calls(connection: Connection, tree_id: int, segment: Segment) -> dict[int, list[Any]]:
    """Return a segment's tool calls as they went in, by the position of their message."""
    calls: dict[int, list[Any]] = {}
    branch, first, last = segment
    rows = CALLS.rows(connection, tree_id=tree_id, branch=branch, first=first, last=last)
    for seq, call_id, name, form, arguments, extra in rows:
        calls.setdefault(seq, []).append(join_call(call_id, name, form, arguments, extra))
    return calls


def _listed(given: Message | Iterable[Message]) -> list[Message]:
    if isinstance(given, dict):
        return [given]
    if not isinstance(given, Iterable):
        raise InvalidMessage(0, None, f"a message is an object, this is {type(given).__name__}")
    return list(given)


def _known(connection: Connection, pointer: Pointer, batch: list[Prepared]) -> dict[int, StoredMessage]:
    """Return the messages of the batch that the line has already, by index. Raises InvalidMessage for a changed one."""
    known: dict[int, StoredMessage] = {}
    for index, prepared in enumerate(batch):
        if prepared.message_id is None:
            continue
        rows = KNOWN.rows(connection, tree_id=pointer.tree_id, message_id=prepared.message_id)
        for branch, seq, digest, stored_at in rows:
            if not _on_line(connection, pointer, branch, seq):
                continue
            if digest != prepared.digest and _stored(connection, pointer, seq) != prepared.message:
                raise InvalidMessage(index, "id", f"{prepared.message_id!r} is another message, at position {seq}")
            known[index] = StoredMessage(seq, prepared.message, stored_at, digest)
    return known


def _stored(connection: Connection, pointer: Pointer, seq: int) -> Message:
    """Return the message at a position; one whose keys come in another order has another digest, but is the same."""
    return read(connection, pointer.session_id, seq, seq)[0].message


def _on_line(connection: Connection, pointer: Pointer, branch: int, seq: int) -> bool:
    return seq <= pointer.head and lines.segments(connection, pointer, seq, seq)[0].branch == branch


def _fresh(batch: list[Prepared], known: dict[int, StoredMessage]) -> list[int]:
    """Return the indices to store: neither on the line nor given twice. Raises InvalidMessage for one id, two texts."""
    first: dict[str, int] = {}
    fresh = []
    for index, prepared in enumerate(batch):
        if prepared.message_id is not None:
            earlier = first.setdefault(prepared.message_id, index)
            if batch[earlier].digest != prepared.digest and batch[earlier].message != prepared.message:
                raise InvalidMessage(index, "id", f"{prepared.message_id!r} is another message, at index {earlier}")
            if earlier != index:
                continue
        if index not in known:
            fresh.append(index)
    return fresh


def _store(
    connection: Connection, pointer: Pointer, batch: list[Prepared], tokens: list[int], moment: int
) -> list[StoredMessage]:
    if not batch:
        return []
    start = pointer.head + 1
    place = (pointer.tree_id, pointer.branch)
    INSERT_MESSAGES.run_many(connection, [_message_row(place, start + i, each, moment) for i, each in enumerate(batch)])
    INSERT_CALLS.run_many(
        connection,
        [
            (*place, start + i, position, *call)
            for i, each in enumerate(batch)
            for position, call in enumerate(each.calls)
        ],
    )
    before = measure(connection, pointer, pointer.head)
    weights = [(each.role, cost) for each, cost in zip(batch, tokens, strict=True)]
    INSERT_FACTS.run_many(connection, message_rows(pointer, start, weights, before))
    derived: ResultRows = derive(connection, pointer, start, batch)
    INSERT_RESULTS.run_many(connection, derived.results)
    INSERT_PATHS.run_many(connection, derived.paths)
    head = pointer.head + len(batch)
    MOVE_HEAD.run(connection, tree=pointer.tree_id, session_id=pointer.session_id, to=head, now=moment)
    return [StoredMessage(start + i, each.message, moment, each.digest) for i, each in enumerate(batch)]


def _message_row(place: tuple[int, int], seq: int, prepared: Prepared, moment: int) -> Row:
    return (*place, seq, *prepared[:4], None, prepared.created_at, moment, *prepared[5:10])


def _read_segment(connection: Connection, tree_id: int, segment: Segment) -> list[StoredMessage]:
    calls = stored_calls(connection, tree_id, segment)
    branch, first, last = segment
    rows = MESSAGES.scan(connection, tree_id=tree_id, branch=branch, first=first, last=last)
    return [StoredMessage(row[0], assemble(row[3:], calls.get(row[0])), row[1], row[2]) for row in rows]
