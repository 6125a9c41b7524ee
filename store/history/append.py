"""Append to a line. Nothing here ever changes a message.

What an append needs no connection for is done first: the messages are taken apart, hashed and
weighed (`prepare_batch`) before the transaction holds up others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count, repeat
from operator import attrgetter
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from sqlalchemy import Connection, bindparam, exists, select

from ..clock import Now, given
from ..database import Insertion, Row, Statement, messages, redactions, tool_calls
from ..errors import HeadMoved, InvalidMessage, InvalidValue, SessionNotFound, one_of, quoted
from ..formats import taken
from ..messages import (
    Columns,
    GivenMessage,
    PreparedMessage,
    StoredCall,
    digest_row,
    is_model,
    is_redacted,
    neutral_id,
    prepare_object,
    to_object,
)
from ..records import StoredMessage, make_stored_message
from ..tokens import estimated_tokens
from . import append_warnings, facts, lines
from .joining import joined
from .lines import Line
from .places import PLACE, Pointer
from .raw_messages import load_chat_messages
from .sessions import create_session, set_metadata

INSERT_MESSAGES = Insertion(
    messages, *PLACE, *Columns._fields, "stored_at", "digest", "wire_format"
)
INSERT_CALLS = Insertion(tool_calls, *PLACE, "position", *StoredCall._fields)
MOVE_HEAD = Statement(lines.update_session(head=bindparam("to"), updated_at=bindparam("now")))
Dedupe = Literal["refuse", "ignore", "off"]
"""What is done with a message whose id is on the line already.

``refuse`` returns the one that is there, and refuses another message under its id; ``ignore``
returns it, whatever is given; with ``off`` ids are no keys, and every message is stored.
"""
DEDUPES = get_args(Dedupe)


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
HAS_REDACTED = Statement(
    select(exists().where(redactions.c.tree_id == bindparam("tree_id"))),
)
MessageInput: TypeAlias = "GivenMessage | Iterable[GivenMessage]"
"""A message or several, as callers give them."""
ByIndex = dict[int, StoredMessage]
"""Messages of a batch as they are stored, by their index in it."""


class Batch(NamedTuple):
    """Messages that are ready to be stored at a moment, with their tokens and digests."""

    messages: list[PreparedMessage]
    tokens: list[int]
    digests: list[bytes]
    moment: int

    def of(self, indices: list[int]) -> Batch:
        """Return a part of the batch."""
        if len(indices) == len(self.messages):
            return self
        return Batch(
            [self.messages[index] for index in indices],
            [self.tokens[index] for index in indices],
            [self.digests[index] for index in indices],
            self.moment,
        )

    def given(self, stored: list[StoredMessage]) -> list[StoredMessage]:
        """Return all rows of the batch, as they are stored, as the messages that were given."""
        return joined(stored, [each.wire_format for each in self.messages])


def append(
    connection: Connection,
    session_id: str,
    messages: MessageInput,
    *,
    expected_head: int | None = None,
    expected: str | None = None,
    dedupe: Dedupe = "refuse",
    create: bool = False,
    metadata: dict[str, Any] | None = None,
    now: Now = None,
    format: str | None = None,  # noqa: A002 - the public name
) -> list[StoredMessage]:
    """Append a message, or a batch as one, to a session's line, and return them as stored.

    They come back in the order given. A message may be a pydantic object, such as a provider's
    client returns: it is stored as its JSON, of the fields that are set. It may be of any of the
    formats in which a view is written: ``format`` names it, or each message's shape tells it
    (None). One that holds several results takes a position for each, and comes back with the last.

    A message whose ``id`` is on the line already is not stored again but returned, so a call whose
    outcome is unknown can be repeated; another message under that id is refused. With
    ``dedupe="ignore"`` it is left out whatever it holds, with ``"off"`` ids are no keys and every
    message is stored. ``create`` makes a session where there is none of that id. ``metadata`` are
    merged into the session's as `set_metadata` does, as part of the same change.

    With ``expected_head`` the batch is stored only if the head is there, with ``expected`` only if
    that is the session's revision. Raises SessionNotFound, Conflict, HeadMoved, InvalidValue,
    InvalidMessage (naming index and key); then nothing of the batch is stored.
    """
    batch = prepare_batch(messages, given(now), format)
    _check_asked(expected_head, dedupe)
    pointer = _locked(connection, session_id, batch.moment if create else None)
    line = Line(connection, pointer)
    known, fresh = _told_apart(line, batch.messages, dedupe)
    if fresh or metadata:
        _check_as_known(pointer, expected_head, expected)
    stored = _store(line, batch.of(fresh))
    if metadata is not None:
        set_metadata(connection, session_id, metadata, merge=True)
    return batch.given(_in_order(batch.messages, known, dict(zip(fresh, stored, strict=True))))


def append_batch(line: Line, batch: Batch) -> list[StoredMessage]:
    """Append what a line does not have yet; return all as stored. Raises InvalidMessage."""
    known, fresh = _told_apart(line, batch.messages, "refuse")
    stored = _store(line, batch.of(fresh))
    return batch.given(_in_order(batch.messages, known, dict(zip(fresh, stored, strict=True))))


def prepare_batch(
    messages: MessageInput | Batch,
    moment: int,
    format: str | None = None,  # noqa: A002 - the public name
) -> Batch:
    """Return messages as they are to be stored.

    Raises InvalidMessage, naming index and key, and InvalidValue for an unknown format.
    """
    if isinstance(messages, Batch):
        return messages
    listed = enumerate(_listed(messages))
    return make_batch(
        [row for index, message in listed for row in _prepared(message, format, index)], moment
    )


def make_batch(rows: list[PreparedMessage], moment: int) -> Batch:
    """Return rows that are prepared as a batch, which `append` takes in place of messages."""
    tokens = [estimated_tokens(each.message, each.text_size) for each in rows]
    digests = [digest_row(each.digest, moment, each.wire_format) for each in rows]
    return Batch(rows, tokens, digests, moment)


def _prepared(message: object, name: str | None, index: int) -> Iterable[PreparedMessage]:
    """Return a message as the rows that it is stored as."""
    came_as, rows = taken(to_object(message, index), name, index)
    if came_as is None:
        return (prepare_object(rows[0], index),)
    return [prepare_object(row, index)._replace(wire_format=came_as) for row in rows]


def _check_asked(head: int | None, dedupe: str) -> None:
    if head is not None and type(head) is not int:
        raise InvalidValue(f"expected_head is a position, not {quoted(head)}")
    one_of(DEDUPES, "dedupe", dedupe)


def _locked(connection: Connection, session_id: str, created_at: int | None) -> Pointer:
    """Lock a session, made at a moment if it is not there (None: it has to be there)."""
    try:
        return lines.lock_session(connection, session_id)
    except SessionNotFound:
        if created_at is None or session_id is None:
            raise
    create_session(connection, session_id, exist_ok=True, now=created_at)
    return lines.lock_session(connection, session_id)


def _check_as_known(pointer: Pointer, head: int | None, revision: str | None) -> None:
    """Refuse to append to a session that is not as the caller knows it."""
    lines.check_revision(pointer, revision)
    if head is not None and head != pointer.head:
        raise HeadMoved(pointer.session_id, head, pointer.head)


def _in_order(batch: list[PreparedMessage], known: ByIndex, stored: ByIndex) -> list[StoredMessage]:
    """Return each message of a batch as stored; one given twice is stored at its first index."""
    if len(stored) == len(batch):
        return [*stored.values()]
    by_index = known | stored
    by_id = {batch[index].columns.message_id: each for index, each in by_index.items()}
    return [
        by_index[index] if index in by_index else by_id[each.columns.message_id]
        for index, each in enumerate(batch)
    ]


def _listed(given: MessageInput) -> list[GivenMessage]:
    if isinstance(given, list):
        return given
    if isinstance(given, Mapping) or is_model(given):
        return [given]
    if not isinstance(given, Iterable):
        raise InvalidMessage(0, None, f"a message is an object, this is {type(given).__name__}")
    return [*given]


def _told_apart(
    line: Line, batch: list[PreparedMessage], dedupe: Dedupe
) -> tuple[ByIndex, list[int]]:
    """Return the messages of the batch that the line has already, and the indices to store.

    Raises InvalidMessage for a changed one.
    """
    if dedupe == "off" or all(each.columns.message_id is None for each in batch):
        return {}, list(range(len(batch)))
    known = _known(line, batch, dedupe)
    return known, _fresh(batch, known, dedupe)


def _known(line: Line, batch: list[PreparedMessage], dedupe: Dedupe) -> ByIndex:
    """Return the messages of the batch that the line has already."""
    known: ByIndex = {}
    has_redacted = bool(HAS_REDACTED.value(line.connection, tree_id=line.pointer.tree_id))
    for index, prepared in enumerate(batch):
        message_id = prepared.columns.message_id
        if message_id is None:
            continue
        found = find_message(line, message_id, has_redacted=has_redacted)
        if found is not None:
            known[index] = _the_known(line, found, prepared, index, dedupe)
    return known


def _the_known(
    line: Line, found: Known, prepared: PreparedMessage, index: int, dedupe: Dedupe
) -> StoredMessage:
    """Return the message that the line has under a given one's id."""
    if dedupe == "refuse" and _is_same(found, prepared):
        return _as_stored(found, prepared)
    (stored,) = load_chat_messages(line, found.seq, found.seq)
    if dedupe == "refuse":
        _check_same(stored, prepared, index)
    return stored


def _is_same(found: Known, given: PreparedMessage) -> bool:
    return found.digest == digest_row(given.digest, found.stored_at, given.wire_format)


def find_message(line: Line, message_id: str, *, has_redacted: bool = True) -> Known | None:
    """Return where the newest message of an id stands on a line; None where there is none.

    One that is redacted is known by what stands for its id, if the tree has any such.
    """
    connection, tree_id = line.connection, line.pointer.tree_id
    found = KNOWN.rows(connection, tree_id=tree_id, message_id=message_id)
    neutral = neutral_id(message_id) if has_redacted else message_id
    if neutral != message_id:
        found = found + KNOWN.rows(connection, tree_id=tree_id, message_id=neutral)
    if len(found) > 1:
        found.sort(key=attrgetter("seq"), reverse=True)
    return next((each for each in found if _is_on(line, each)), None)


def _is_on(line: Line, found: Known) -> bool:
    if found.seq > line.pointer.head:
        return False
    return line.place(found.seq)["branch"] == found.branch


def _check_same(stored: StoredMessage, given: PreparedMessage, index: int) -> None:
    """Refuse another message of the same id.

    One whose keys come in another order has another digest, but is the same; so has one that an
    earlier release stored, or that was redacted.
    """
    if is_redacted(stored.message):
        return
    if stored.message != given.message:
        raise _another(index, given, f"position {stored.seq}")


def _as_stored(found: Known, given: PreparedMessage) -> StoredMessage:
    return StoredMessage(found.seq, given.message, found.stored_at, found.digest)


def _another(index: int, given: PreparedMessage, place: str) -> InvalidMessage:
    message_id = given.columns.message_id
    return InvalidMessage(index, "id", f"{message_id!r} is another message, at {place}")


def _fresh(batch: list[PreparedMessage], known: ByIndex, dedupe: Dedupe) -> list[int]:
    """Return the indices to store: neither on the line nor given twice."""
    first: dict[str, int] = {}
    fresh = []
    for index, prepared in enumerate(batch):
        message_id = prepared.columns.message_id
        earlier = index if message_id is None else first.setdefault(message_id, index)
        if earlier == index and index not in known:
            fresh.append(index)
        if earlier != index and dedupe == "refuse":
            _check_repeated(batch, earlier, index)
    return fresh


def _check_repeated(batch: list[PreparedMessage], earlier: int, index: int) -> None:
    """Refuse one id with two texts in a batch."""
    one, other = batch[earlier], batch[index]
    if one.digest != other.digest and one.message != other.message:
        raise _another(index, other, f"index {earlier}")


def _store(line: Line, batch: Batch) -> list[StoredMessage]:
    """Write messages, what follows from them and the new head; return them as stored."""
    if not batch.messages:
        return []
    start = line.pointer.head + 1
    _insert(line, start, batch)
    facts.write(line, start, batch.messages, batch.tokens)
    _move_head(line, start + len(batch.messages) - 1, batch.moment)
    append_warnings.note(line.pointer.session_id, batch.messages)
    given = [each.message for each in batch.messages]
    rows = zip(count(start), given, repeat(batch.moment), batch.digests)
    return [*map(make_stored_message, rows)]


def _move_head(line: Line, head: int, moment: int) -> None:
    MOVE_HEAD.run(line.connection, **line.pointer.changed(), to=head, now=moment)


def _insert(line: Line, start: int, batch: Batch) -> None:
    """Write the raw rows of messages that stand from position ``start`` on."""
    tree_id, branch = line.pointer.tree_id, line.pointer.branch
    rows: list[Row] = []
    calls: list[Row] = []
    pairs = zip(batch.messages, batch.digests, strict=True)
    for seq, (each, digest) in enumerate(pairs, start):
        place = (tree_id, branch, seq)
        rows.append((*place, *each.columns, batch.moment, digest, each.wire_format))
        for number, call in enumerate(each.calls):
            calls.append((*place, number, *call))
    INSERT_MESSAGES.insert_many(line.connection, rows)
    INSERT_CALLS.insert_many(line.connection, calls)
