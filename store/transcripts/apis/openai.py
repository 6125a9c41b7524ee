"""Chat messages of the OpenAI shape, in any of the ways people keep them.

These are: a list of messages; an object with ``messages``; one message a row; one conversation a
row; a list of conversations. Every message passes through as it is. Rows are streamed, so a file of
any size takes the memory of its longest row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any

from ...text import JsonFields
from ..other_programs import find_messages_program
from ..parser_events import (
    Event,
    NoteEvent,
    SessionEvent,
    SessionMessage,
    SessionNames,
    drop_keys,
    find_title,
    get_fields,
    note_unread_value,
    split_metadata,
    wrap_raw_message,
    wrap_raw_messages,
)
from ..source import SourceValue, TranscriptSource
from .cline import add_cline_facts

__all__ = [
    "OWNER_KEY",
    "PROJECT_ROOT_KEY",
    "convert_system_row",
    "find_openai_lookalike",
    "has_openai_messages",
    "is_header_row",
    "parse_openai",
]

CHAT_ROLES = ("system", "developer", "user", "assistant", "tool", "function")
SPEECH_KEYS = {"content", "tool_calls", "function_call"}
"""Keys beside the role; a message has at least one of them."""

PROJECT_ROOT_KEY = "project_root"
"""The key of a row before the messages that holds the project's folder."""
OWNER_KEY = "owner"
"""The key of such a row that holds the owner of the session."""
HEADER_ROW_KEYS = {PROJECT_ROOT_KEY, OWNER_KEY}
"""Keys of a row before the messages, as an export has it: where the project is, whose session."""
SYSTEM_ROLE = "system"
"""The role, and the one key of a row before the messages where an API takes it beside them."""
SESSION_ID_KEYS = ("session_id", "sessionId", "conversation_id", "conversationId")
TITLE_KEYS = ("title", "name")

TITLE_LOOK_AHEAD = 20
"""Messages read before a streamed session is opened, to find its title."""


def has_openai_messages(value: Any) -> bool:
    """Tell whether a JSON value holds messages of this shape."""
    if isinstance(value, dict) and not _is_chat(value):
        return _is_chat_message(value)
    if not isinstance(value, dict | list):
        return False
    messages = _list_chat_messages(value)
    if messages is None:
        messages = _list_chat_messages(value[0])
    if messages is None:
        return False
    return any(map(_is_chat_message, messages)) or (isinstance(value, dict) and not messages)


def find_openai_lookalike(value: Any) -> str | None:
    """Return the program whose messages only look like these, None where they can be read."""
    conversations = [value]
    if isinstance(value, list) and _list_chat_messages(value) is None:
        conversations = value
    for each in conversations:
        is_message = isinstance(each, dict) and not _is_chat(each)
        messages = [each] if is_message else _list_chat_messages(each) or []
        program = find_messages_program(messages)
        if program:
            return program
    return None


def parse_openai(source: TranscriptSource) -> Iterator[Event]:
    """Return the sessions and messages of a file, and a note for each thing that is no message."""
    return add_unread_notes(parse_chat_file(source))


UNREAD_WARNING = "what is kept as it is may be a call that no one sees"


def add_unread_notes(events: Iterable[Event], own: str | None = None) -> Iterator[Event]:
    """Yield events, and a note after a session's first message of another program than ``own``."""
    session, is_noted = "", False
    for event in events:
        yield event
        if isinstance(event, SessionEvent):
            session, is_noted = event.session_id, False
        elif isinstance(event, SessionMessage) and not is_noted:
            program = find_messages_program([event.message])
            is_noted = program not in (None, own)
            if is_noted:
                text = f"a message of {session} looks like {program}: {UNREAD_WARNING}"
                yield NoteEvent(None, text, broken=True)


def parse_chat_file(source: TranscriptSource) -> Iterator[Event]:
    """Yield the sessions and messages of a file as they are, whosever they are."""
    return add_cline_facts(source, _parse_values(source))


def _parse_values(source: TranscriptSource) -> Iterator[Event]:
    names = SessionNames(source.stem)
    items = source.values()
    before: JsonFields = {}
    for item in items:
        if isinstance(item, NoteEvent):
            yield item
            continue
        value = item.value
        if is_header_row(value):
            before = value
        elif "role" in get_fields(convert_system_row(value)) and not _is_chat(value):
            yield from _parse_chat_rows(names.name(source.stem), chain([item], items), before)
        else:
            conversations = [value]
            if isinstance(value, list) and _list_chat_messages(value) is None:
                conversations = value
            for conversation in conversations:
                yield from _parse_chat(SourceValue(item.row, conversation), source.stem, names)


def is_header_row(value: object) -> bool:
    """Tell a row that says whose the session is whose messages follow, or where its project is."""
    fields = get_fields(value)
    are_texts = all(isinstance(each, str) for each in fields.values())
    return bool(fields) and are_texts and fields.keys() <= HEADER_ROW_KEYS


def convert_system_row(value: Any) -> Any:
    """Return the system text that an export has before its messages as one, all else as it is."""
    if isinstance(value, dict) and value.keys() == {SYSTEM_ROLE}:
        return {"role": SYSTEM_ROLE, "content": value[SYSTEM_ROLE]}
    return value


def _is_chat_message(value: object) -> bool:
    return (
        isinstance(value, dict)
        and value.get("role") in CHAT_ROLES
        and not SPEECH_KEYS.isdisjoint(value)
    )


def _is_chat(value: object) -> bool:
    return isinstance(value, list) or isinstance(get_fields(value).get("messages"), list)


def _list_chat_messages(value: Any) -> list[Any] | None:
    """Return the messages of a conversation, None for any other value, such as a list of them."""
    if isinstance(value, dict):
        return value["messages"] if _is_chat(value) else None
    if not isinstance(value, list) or (value and all(map(_is_chat, value))):
        return None
    return value


def _parse_chat(item: SourceValue, stem: str, names: SessionNames) -> Iterator[Event]:
    messages = _list_chat_messages(item.value)
    if messages is None:
        yield note_unread_value(item.row, item.value, "neither a message nor a conversation")
        return
    fields = get_fields(item.value)
    session_id = names.name(_find_filled_text(fields, SESSION_ID_KEYS) or stem)
    metadata, notes = split_metadata(drop_keys(fields, "messages", PROJECT_ROOT_KEY))
    prompt = find_title(filter(get_fields, messages))
    title = _find_filled_text(fields, TITLE_KEYS) or prompt
    root = _find_filled_text(fields, [PROJECT_ROOT_KEY])
    yield SessionEvent(session_id, title, root, metadata, titles=(prompt,) if prompt else ())
    yield from wrap_raw_messages(messages, session_id=session_id, row=item.row)
    yield from notes


def _parse_chat_rows(
    session_id: str,
    items: Iterator[SourceValue | NoteEvent],
    before: JsonFields,
) -> Iterator[Event]:
    """Return the one session of a file that has a message a row."""
    events = _parse_message_rows(items)
    first = list(islice(events, TITLE_LOOK_AHEAD))
    title = find_title(event.message for event in first if isinstance(event, SessionMessage))
    yield SessionEvent(session_id, title, before.get(PROJECT_ROOT_KEY), {}, before.get(OWNER_KEY))
    yield from first
    yield from events


def _parse_message_rows(
    items: Iterable[SourceValue | NoteEvent],
) -> Iterator[SessionMessage | NoteEvent]:
    for item in items:
        if isinstance(item, NoteEvent):
            yield item
        else:
            yield wrap_raw_message(
                convert_system_row(item.value), row=item.row, place=f"line {item.row}"
            )


def _find_filled_text(fields: JsonFields, keys: Iterable[str]) -> str | None:
    """Return the first of some fields that is a text with more than white space."""
    for text in map(fields.get, keys):
        if isinstance(text, str) and text.strip():
            return text
    return None
