"""Append messages to a line. Nothing here ever changes a message.

Messages are parsed, hashed and measured (`prepare_batch`) before the transaction begins, so that
other writers do not wait.

Messages that are stored, but not wholly understood, cause warnings in the log.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from sqlalchemy import Connection, bindparam, select

from ..clock import Now, require_moment
from ..database import Insertion, Row, Statement, get_logger, json_sql, messages, tool_calls
from ..errors import (
    HeadMoved,
    InvalidMessage,
    InvalidValue,
    SessionNotFound,
    check_choice,
    quote_value,
)
from ..formats import CHAT, encode_message
from ..messages import (
    LEAST_ATTACHED_LENGTH,
    TIME_KEYS,
    Columns,
    GivenMessage,
    Message,
    PreparedMessage,
    StoredCall,
    detach_message,
    digest_row,
    dump_to_object,
    has_no_time,
    is_model,
    is_redacted,
    make_neutral_id,
    prepare_object,
    prepare_plain_message,
)
from ..records import StoredMessage, make_stored_message
from ..text import parse_object
from ..tokens import FRAMING_TOKENS, estimate_message_tokens, estimate_size
from ..tools import TOOL_KINDS
from . import facts, lines
from .attachments import insert_attachments
from .draft_leases import refuse_live_drafts
from .lines import PLACE, Line, Pointer
from .raw_messages import join_parts, load_chat_messages
from .row_templates import prepare_by_template
from .search_entries import write_message_entries
from .sessions import create_session, set_metadata

append_logger = get_logger(__name__)

FOREIGN_PARTS = {
    *("tool_use", "server_tool_use", "tool_result", "toolCall", "toolResult"),
    *("function_call", "function_call_output"),
    *("input_text", "output_text", "input_image", "input_file"),
}
"""Types of content parts in the requests of other providers."""

_GIVEN_WARNINGS: set[str] = set()
"""The warnings that this process has given: a host that causes one causes it with every message."""


def log_message_problems(session_id: str, batch: Iterable[PreparedMessage]) -> None:
    """Warn once about the parts of stored messages that the rules cannot use."""
    problems: list[str] = []
    for prepared in batch:
        if prepared.said and not prepared.calls:
            continue  # a plain message has neither problem
        message = prepared.message
        if prepared.columns.created_at is None and not has_no_time(message):
            problems += (
                f"the {key} of a message tells no moment (a {type(message[key]).__name__}): rules "
                "that go by time leave it alone; give ms, seconds, ISO 8601 with a zone, or "
                "a datetime with one"
                for key in TIME_KEYS
                if message.get(key) is not None
            )
        if prepared.wire_format is None and prepared.columns.content_form == "json":
            content = message["content"]
            parts = content if isinstance(content, list) else [content]
            kinds = [part.get("type") for part in parts if isinstance(part, dict)]
            problems += (
                f"a message has a content part {kind!r}, which is not of the chat shape: it "
                "is kept, but no rule knows it, and a view that sends it as its JSON text says "
                "so; give texts as text parts, calls as tool_calls, results as messages with "
                "the role tool"
                for kind in kinds
                if isinstance(kind, str) and kind in FOREIGN_PARTS
            )
        for call in prepared.calls:
            if TOOL_KINDS.get(call.name or "") == "file_read":
                arguments = (call.arguments or "{}").strip()
                if arguments != "{}" and not parse_object(arguments):
                    problems.append(
                        f"the arguments of a call to {call.name!r} are no JSON object: which files "
                        "it reads is not known, so the rule of old reads leaves its results alone"
                    )
    for problem in problems:
        if problem not in _GIVEN_WARNINGS:
            _GIVEN_WARNINGS.add(problem)
            append_logger.warning(problem, extra={"session_id": session_id})


INSERT_MESSAGES = Insertion(
    messages, *PLACE, *Columns._fields, "stored_at", "digest", "wire_format"
)
INSERT_CALLS = Insertion(tool_calls, *PLACE, "position", *StoredCall._fields)
MOVE_HEAD = Statement(lines.update_session(head=bindparam("to"), **lines.ACTIVITY))
MOVE_HEAD_WITHIN_SECOND = Statement(
    lines.update_session(head=bindparam("to"), updated_at=bindparam("now"))
)
"""Moves a head without a change of an indexed column."""
Dedupe = Literal["refuse", "ignore", "off"]
"""The treatment of a message whose id is already on the line.

``refuse`` returns the stored message, and refuses a different message with the same id; ``ignore``
returns the stored message whatever is given; with ``off`` ids are not compared, and every message
is stored.
"""
DEDUPE_CHOICES = get_args(Dedupe)


class MessageLocation(NamedTuple):
    """The place of a message with some id in a tree, and its digest."""

    message_id: str
    branch: int
    seq: int
    digest: bytes
    stored_at: int


MESSAGE_LOCATIONS = Statement(
    select(*(messages.c[name] for name in MessageLocation._fields))
    .where(messages.c.tree_id == bindparam("tree_id"))
    .where(json_sql.IsAmongTexts(messages.c.message_id, bindparam("ids"))),
    row=MessageLocation,
)
MessageInput: TypeAlias = "GivenMessage | Iterable[GivenMessage]"
"""A message or several, as callers give them."""


class Batch(NamedTuple):
    """Messages that are prepared for storing at a moment, with their tokens and digests."""

    messages: list[PreparedMessage]
    tokens: list[int]
    digests: list[bytes]
    moment: int

    def select(self, indices: Sequence[int]) -> Batch:
        """Return the messages at some indices as a batch."""
        return Batch(
            [self.messages[index] for index in indices],
            [self.tokens[index] for index in indices],
            [self.digests[index] for index in indices],
            self.moment,
        )


def append_messages(
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
    alone: bool = False,
) -> list[StoredMessage]:
    """Append a message, or a batch as one, to a session's line, and return them as stored.

    They are returned in the given order. A message may be a pydantic object, such as a provider's
    client returns: it is stored as the JSON of the fields that are set. It may have any of the
    formats of a view: ``format`` names it, or each message's shape decides (None). A message that
    holds several results takes a position for each, and is returned with the last.

    A message whose ``id`` is on the line already is not stored again but returned, so a call whose
    outcome is unknown can be repeated; another message under that id is refused. With
    ``dedupe="ignore"`` it is left out whatever it holds, with ``"off"`` ids are no keys and every
    message is stored. ``create`` creates the session if there is none of that id. ``metadata`` are
    merged into the session's as `set_metadata` does, as part of the same change.

    With ``expected_head`` the batch is stored only if the head is there, with ``expected`` only if
    that is the session's revision, with ``alone`` only if no answer to the session is under way.
    Raises SessionNotFound, Conflict, HeadMoved, DraftBusy, InvalidValue, InvalidMessage (naming
    index and key); then nothing of the batch is stored.
    """
    batch = prepare_batch(messages, require_moment(now), format)
    if expected_head is not None and type(expected_head) is not int:
        raise InvalidValue(f"expected_head must be a position, not {quote_value(expected_head)}")
    check_choice(DEDUPE_CHOICES, "dedupe", dedupe)
    pointer = None
    try:
        pointer = lock_for_batch(connection, session_id, batch)
    except SessionNotFound:
        if not create or session_id is None:
            raise
    if pointer is None:
        create_session(connection, session_id, exist_ok=True, now=batch.moment)
        pointer = lock_for_batch(connection, session_id, batch)
    line = Line(connection, pointer)
    duplicates, new = split_duplicates(line, batch.messages, dedupe)
    if new or metadata:
        if expected is not None:
            lines.check_revision(pointer, expected)
        if expected_head is not None and expected_head != pointer.head:
            raise HeadMoved(pointer.session_id, expected_head, pointer.head)
        if alone:
            refuse_live_drafts(connection, pointer)
    stored = store_batch(line, batch, duplicates, new)
    if metadata is not None:
        set_metadata(connection, session_id, metadata, merge=True)
    return stored


def lock_for_batch(
    connection: Connection, session_id: str, batch: Batch, expected: str | None = None
) -> Pointer:
    """Return the pointer of a session to which a batch is appended, as `lines.lock_session` does.

    With attachments its tree is locked, too: no erasure deletes them as unused meanwhile.
    """
    has_attachments = any(each.detached for each in batch.messages)
    lock = lines.lock_tree if has_attachments else lines.lock_session
    return lock(connection, session_id, expected)


def append_batch(line: Line, batch: Batch) -> list[StoredMessage]:
    """Append the messages that a line does not have yet; return all as stored.

    Raises InvalidMessage.
    """
    return store_batch(line, batch, *split_duplicates(line, batch.messages, "refuse"))


def prepare_batch(
    messages: MessageInput | Batch,
    moment: int,
    format: str | None = None,  # noqa: A002 - the public name
) -> Batch:
    """Return messages prepared for storing, as a batch.

    Raises InvalidMessage, naming index and key, and InvalidValue for an unknown format.
    """
    if isinstance(messages, Batch):
        return messages
    if isinstance(messages, list):
        listed = messages
    elif isinstance(messages, Mapping) or is_model(messages):
        listed = [messages]
    elif isinstance(messages, Iterable):
        listed = [*messages]
    else:
        raise InvalidMessage(0, None, f"a message must be an object, not {type(messages).__name__}")
    prepared: list[PreparedMessage] = []
    for index, message in enumerate(listed):
        plain = prepare_plain_message(message) if format is None else None
        if plain is not None:
            prepared.append(plain)
            continue
        prepared += _prepare_rows(dump_to_object(message, index), format, index)
    return build_batch(prepared, moment)


def _prepare_rows(given: Message, name: str | None, index: int) -> list[PreparedMessage]:
    """Return the rows of a message of a format. Raises InvalidMessage, InvalidValue."""
    if name is None:
        is_chat = isinstance(given.get("content"), str) or "tool_calls" in given
    else:
        is_chat = not isinstance(name, str) or name == CHAT.name
    found = None if is_chat else prepare_by_template(given, name)
    if found:
        return found
    wire_format, rows = encode_message(given, name, index)
    if wire_format is None:
        return [prepare_object(rows[0], index)]
    prepared = [prepare_object(row, index)._replace(wire_format=wire_format) for row in rows]
    prepared[-1] = prepared[-1]._replace(came=given)
    return prepared


def build_batch(rows: list[PreparedMessage], moment: int) -> Batch:
    """Return prepared messages as a batch, which `append` accepts in place of messages."""
    tokens = [
        FRAMING_TOKENS + estimate_size(*each.said)
        if each.said
        else estimate_message_tokens(each.message, each.text_size)
        for each in rows
    ]
    digests = [digest_row(each.digest, moment, each.wire_format) for each in rows]
    kept = [*rows]
    for index, each in enumerate(rows):
        length = len(each.columns.content or "") + len(each.columns.extra or "")
        for call in each.calls:
            length += len(call.arguments or "")
        if length > LEAST_ATTACHED_LENGTH:
            kept[index] = detach_message(each)
    return Batch(kept, tokens, digests, moment)


def split_duplicates(
    line: Line, batch: list[PreparedMessage], dedupe: Dedupe
) -> tuple[dict[int, StoredMessage], Sequence[int]]:
    """Separate messages that are already stored from new ones, by message id.

    Returns the stored messages by their index in the batch, and the indices still to be inserted.
    Raises InvalidMessage where an id names two different messages and ``dedupe`` is "refuse".
    """
    ids = [each.columns.message_id for each in batch]
    if dedupe == "off" or not any(ids):
        return {}, range(len(batch))
    locations = find_messages(line, filter(None, ids))
    duplicates = {
        index: load_duplicate(line, locations[message_id], batch[index], index, dedupe)
        for index, message_id in enumerate(ids)
        if message_id in locations
    }
    new = []
    first_index: dict[str, int] = {}
    for index, message_id in enumerate(ids):
        earlier = index if message_id is None else first_index.setdefault(message_id, index)
        if earlier == index and index not in duplicates:
            new.append(index)
        if earlier != index and dedupe == "refuse":
            one, other = batch[earlier], batch[index]
            if one.digest != other.digest and one.message != other.message:
                raise build_id_conflict(index, other, f"index {earlier}")
    return duplicates, new


def find_messages(line: Line, message_ids: Iterable[str]) -> dict[str, MessageLocation]:
    """Return the places of the newest messages with some ids on a line, by these ids.

    A redacted message is found by the id that replaced its own.
    """
    names = {each: {each, make_neutral_id(each)} for each in message_ids}
    asked = json.dumps([*{*chain.from_iterable(names.values())}])
    tree_id = line.pointer.tree_id
    by_name: dict[str, list[MessageLocation]] = {}
    for location in MESSAGE_LOCATIONS.rows(line.connection, tree_id=tree_id, ids=asked):
        by_name.setdefault(location.message_id, []).append(location)
    found = {}
    for message_id in names if by_name else ():
        held = chain.from_iterable(by_name.get(name, ()) for name in names[message_id])
        for location in sorted(held, key=attrgetter("seq"), reverse=True):
            is_before_head = location.seq <= line.pointer.head
            if is_before_head and line.place(location.seq)["branch"] == location.branch:
                found[message_id] = location
                break
    return found


def load_duplicate(
    line: Line, location: MessageLocation, message: PreparedMessage, index: int, dedupe: Dedupe
) -> StoredMessage:
    """Return the stored message that has the id of a given one.

    With ``dedupe`` "refuse" it has to be the same message, else InvalidMessage is raised. A message
    whose keys come in another order has another digest, but is the same; so is one that an earlier
    release stored, or that was redacted.
    """
    if dedupe == "refuse":
        same_digest = digest_row(message.digest, location.stored_at, message.wire_format)
        if location.digest == same_digest:
            _, _, seq, digest, stored_at = location
            return StoredMessage(seq, message.message, stored_at, digest)
    (stored,) = load_chat_messages(line, location.seq, location.seq)
    is_compared = dedupe == "refuse" and not is_redacted(stored.message)
    if is_compared and stored.message != message.message:
        raise build_id_conflict(index, message, f"position {stored.seq}")
    return stored


def build_id_conflict(index: int, message: PreparedMessage, place: str) -> InvalidMessage:
    """Return the error for a message whose id belongs to a different one."""
    message_id = message.columns.message_id
    return InvalidMessage(index, "id", f"{message_id!r} is another message, at {place}")


def store_batch(
    line: Line, batch: Batch, duplicates: dict[int, StoredMessage], new: Sequence[int]
) -> list[StoredMessage]:
    """Insert the new messages of a batch, their derived rows and the new head of the line.

    Returns all messages of the batch as stored, those of other formats joined from their parts; a
    message that the batch holds twice is stored at its first index.
    """
    given_messages = batch.messages
    if not given_messages:
        return []
    if len(new) == len(given_messages):
        stored = insert_batch(line, batch)
    else:
        inserted = insert_batch(line, batch.select(new)) if new else []
        by_index = duplicates | dict(zip(new, inserted, strict=True))
        by_id = {given_messages[index].columns.message_id: by_index[index] for index in by_index}
        stored = [
            by_index[index] if index in by_index else by_id[each.columns.message_id]
            for index, each in enumerate(given_messages)
        ]
    formats = [each.wire_format for each in given_messages]
    if not any(formats):
        return stored
    if len(new) < len(given_messages) or not any(each.came for each in given_messages):
        return join_parts(stored, formats)
    pairs = zip(given_messages, stored, strict=True)
    return [
        each._replace(message=given.came) if given.came else each
        for given, each in pairs
        if given.came or given.wire_format is None
    ]


def insert_batch(line: Line, batch: Batch) -> list[StoredMessage]:
    """Write messages after a line's head, the rows derived from them, and the new head.

    Returns them as stored, each row by itself.
    """
    connection, pointer = line
    moment, start = batch.moment, pointer.head + 1
    rows: list[Row] = []
    calls: list[Row] = []
    stored: list[Row] = []
    for seq, (message, digest) in enumerate(zip(batch.messages, batch.digests, strict=True), start):
        place = (pointer.tree_id, pointer.branch, seq)
        rows.append((*place, *message.stored_columns, moment, digest, message.wire_format))
        calls += [(*place, number, *call) for number, call in enumerate(message.stored_calls)]
        stored.append((seq, message.message, moment, digest))
    INSERT_MESSAGES.insert_many(connection, rows)
    INSERT_CALLS.insert_many(connection, calls)
    insert_attachments(connection, pointer, start, batch.messages)
    roles = [each.columns.role for each in batch.messages]
    totals = facts.load_totals(line, pointer.head)
    fact_rows = facts.build_fact_rows(pointer, start, zip(roles, batch.tokens, strict=True), totals)
    facts.INSERT_FACTS.insert_many(connection, fact_rows)
    if "tool" in roles:
        facts.write_results(connection, facts.derive_results(line, start, batch.messages))
    write_message_entries(connection, place, stored)
    move_head = MOVE_HEAD_WITHIN_SECOND if moment // 1000 == pointer.updated_second else MOVE_HEAD
    move_head.run(connection, **pointer.changed(), to=pointer.head + len(rows), now=moment)
    log_message_problems(pointer.session_id, batch.messages)
    return [*map(make_stored_message, stored)]
