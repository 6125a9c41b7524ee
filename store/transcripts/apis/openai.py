"""Chat messages of the OpenAI shape, in any of the ways people keep them.

These are: a list of messages; an object with ``messages``; one message a row; one conversation a
row; a list of conversations. Every message passes through as it is. Rows are streamed, so a file of
any size takes the memory of its longest row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any

from ...text import Fields
from ..events import (
    Event,
    Noted,
    Opened,
    Said,
    SessionNames,
    as_message,
    as_messages,
    fields_of,
    split_metadata,
    title_of,
    unread,
    without,
)
from ..foreign import program_of_messages
from ..source import Source, Value

ROLES = ("system", "developer", "user", "assistant", "tool", "function")
SPEECH = {"content", "tool_calls", "function_call"}
"""Keys beside the role; a message has at least one of them."""

PROJECT_ROOT = "project_root"
OWNER = "owner"
BEFORE = {PROJECT_ROOT, OWNER}
"""Keys of a row before the messages, as an export has it: where the project is, whose session."""
SYSTEM = "system"
"""The role, and the one key of a row before the messages where an API takes it beside them."""
OWN_IDS = ("session_id", "sessionId", "conversation_id", "conversationId")
TITLES = ("title", "name")

LOOK_AHEAD = 20
"""Messages read before a streamed session is opened, to find its title."""


def looks(value: Any) -> bool:
    """Tell whether a JSON value holds messages of this shape."""
    if isinstance(value, dict) and not _is_conversation(value):
        return _is_message(value)
    return isinstance(value, dict | list) and _holds_messages(value)


def _holds_messages(value: Any) -> bool:
    """Tell a conversation, or a list of them, in which a message is of this shape."""
    messages = _messages(value)
    if messages is None:
        messages = _messages(value[0])
    if messages is None:
        return False
    return any(map(_is_message, messages)) or (isinstance(value, dict) and not messages)


def foreign(value: Any) -> str | None:
    """Return the program whose messages only look like these, None where they can be read."""
    conversations = [value]
    if isinstance(value, list) and _messages(value) is None:
        conversations = value
    return next(filter(None, map(_program_of, conversations)), None)


def _program_of(value: Any) -> str | None:
    """Return whose messages a message or a conversation has where they are not a chat's."""
    if isinstance(value, dict) and not _is_conversation(value):
        return program_of_messages([value])
    return program_of_messages(_messages(value) or [])


def parse(source: Source) -> Iterator[Event]:
    """Return the sessions and messages of a file, and a note for each thing that is no message."""
    return with_unread(told(source))


UNREAD = "what is kept as it is may be a call that no one sees"


def with_unread(events: Iterable[Event], own: str | None = None) -> Iterator[Event]:
    """Yield events, and a note after a session's first message of another program than ``own``."""
    session, is_noted = "", False
    for event in events:
        yield event
        if isinstance(event, Opened):
            session, is_noted = event.session_id, False
        elif isinstance(event, Said) and not is_noted:
            program = program_of_messages([event.message])
            is_noted = program not in (None, own)
            if is_noted:
                text = f"a message of {session} looks like {program}: {UNREAD}"
                yield Noted(None, text, broken=True)


def told(source: Source) -> Iterator[Event]:
    """Yield the sessions and messages of a file as they are, whosever they are."""
    names = SessionNames(source.stem)
    items = source.values()
    before: Fields = {}
    for item in items:
        if isinstance(item, Noted):
            yield item
        elif stands_before(item.value):
            before = item.value
        elif "role" in fields_of(spoken(item.value)) and not _is_conversation(item.value):
            yield from _streamed(names.name(source.stem), chain([item], items), before)
        else:
            conversations = [item.value]
            if isinstance(item.value, list) and _messages(item.value) is None:
                conversations = item.value
            for conversation in conversations:
                yield from _conversation(Value(item.row, conversation), source.stem, names)


def stands_before(value: object) -> bool:
    """Tell a row that says whose the session is whose messages follow, or where its project is."""
    fields = fields_of(value)
    are_texts = all(isinstance(each, str) for each in fields.values())
    return bool(fields) and are_texts and fields.keys() <= BEFORE


def spoken(value: Any) -> Any:
    """Return the system text that an export has before its messages as one, all else as it is."""
    if isinstance(value, dict) and value.keys() == {SYSTEM}:
        return {"role": SYSTEM, "content": value[SYSTEM]}
    return value


def _is_message(value: object) -> bool:
    return isinstance(value, dict) and value.get("role") in ROLES and not SPEECH.isdisjoint(value)


def _is_conversation(value: object) -> bool:
    return isinstance(value, list) or isinstance(fields_of(value).get("messages"), list)


def _messages(value: Any) -> list[Any] | None:
    """Return the messages of a conversation, None for any other value, such as a list of them."""
    if isinstance(value, dict):
        return value["messages"] if _is_conversation(value) else None
    if not isinstance(value, list) or (value and all(map(_is_conversation, value))):
        return None
    return value


def _conversation(item: Value, stem: str, names: SessionNames) -> Iterator[Event]:
    messages = _messages(item.value)
    if messages is None:
        yield unread(item.row, item.value, "neither a message nor a conversation")
        return
    fields = fields_of(item.value)
    session_id = names.name(_first_said(fields, OWN_IDS) or stem)
    metadata, notes = split_metadata(without(fields, "messages", PROJECT_ROOT))
    prompt = title_of(filter(fields_of, messages))
    title = _first_said(fields, TITLES) or prompt
    root = _first_said(fields, [PROJECT_ROOT])
    yield Opened(session_id, title, root, metadata, titles=(prompt,) if prompt else ())
    yield from as_messages(messages, session_id=session_id, row=item.row)
    yield from notes


def _streamed(
    session_id: str,
    items: Iterator[Value | Noted],
    before: Fields,
) -> Iterator[Event]:
    """Return the one session of a file that has a message a row."""
    events = _streamed_events(items)
    first = list(islice(events, LOOK_AHEAD))
    title = title_of(event.message for event in first if isinstance(event, Said))
    yield Opened(session_id, title, before.get(PROJECT_ROOT), {}, before.get(OWNER))
    yield from first
    yield from events


def _streamed_events(items: Iterable[Value | Noted]) -> Iterator[Said | Noted]:
    for item in items:
        if isinstance(item, Noted):
            yield item
        else:
            yield as_message(spoken(item.value), row=item.row, place=f"line {item.row}")


def _first_said(fields: Fields, keys: Iterable[str]) -> str | None:
    """Return the first of some fields that is a text with more than white space."""
    for text in map(fields.get, keys):
        if isinstance(text, str) and text.strip():
            return text
    return None
