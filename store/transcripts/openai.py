"""Chat messages of the OpenAI shape, in any of the ways people keep them; every message passes through as it is.

A list of messages; an object with ``messages``; one message a line; one conversation a line; a list of
conversations. Lines are streamed, so a file of any size takes the memory of its longest line.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

from .events import Event, Noted, Opened, Said, SessionNames, said, said_or_noted, sketch, split_metadata, title_of
from .source import Source, Value

ROLES = ("system", "developer", "user", "assistant", "tool", "function")
SPEECH = {"content", "tool_calls", "function_call"}
"""A message has at least one of these beside its role."""

FOREIGN_PARTS = ("tool_use", "tool_result", "thinking", "redacted_thinking")
"""Content parts of another wire format: such messages would lose their tool calls if they were taken for these."""

OWN_IDS = ("session_id", "sessionId", "conversation_id", "conversationId")
TITLES = ("title", "name")

_LOOK_AHEAD = 20  # messages read before a streamed session is opened, to find its title


def looks(value: Any) -> bool:
    """Tell whether a JSON value holds messages of this shape."""
    if isinstance(value, dict) and not _is_conversation(value):
        return _is_message(value) and not _is_foreign(value)
    if not isinstance(value, dict | list):
        return False
    messages = _messages(value) if _messages(value) is not None else _messages(value[0])
    if messages is None or any(map(_is_foreign, messages)):
        return False
    return any(map(_is_message, messages)) or (isinstance(value, dict) and not messages)


def parse(source: Source) -> Iterator[Event]:
    """Return the sessions and messages of a file, and a note for each thing in it that is no message."""
    names, items = SessionNames(), source.values()
    for item in items:
        if isinstance(item, Noted):
            yield item
        elif isinstance(item.value, dict) and "role" in item.value and not _is_conversation(item.value):
            yield from _streamed(names.name(source.stem), chain([item], items))
        else:
            yield from _conversations(item, source.stem, names)


def _is_message(value: object) -> bool:
    return isinstance(value, dict) and value.get("role") in ROLES and not SPEECH.isdisjoint(value)


def _is_foreign(value: object) -> bool:
    parts = value.get("content") if isinstance(value, dict) else None
    return isinstance(parts, list) and any(
        isinstance(part, dict) and part.get("type") in FOREIGN_PARTS for part in parts
    )


def _is_conversation(value: object) -> bool:
    return isinstance(value, list) or (isinstance(value, dict) and isinstance(value.get("messages"), list))


def _messages(value: Any) -> list[Any] | None:
    """Return the messages of a conversation, None for what is none; a list of conversations is none."""
    if isinstance(value, dict):
        return value["messages"] if _is_conversation(value) else None
    if not isinstance(value, list) or (value and all(map(_is_conversation, value))):
        return None
    return value


def _conversations(item: Value, stem: str, names: SessionNames) -> Iterator[Event]:
    """Return the sessions of one value: a conversation, or a list of them."""
    if not isinstance(item.value, dict | list):
        yield Noted(item.line, f"{sketch(item.value)} is neither a message nor a conversation", True)
        return
    single = isinstance(item.value, dict) or _messages(item.value) is not None
    for conversation in [item.value] if single else item.value:
        yield from _conversation(conversation, item.line, stem, names)


def _conversation(value: Any, line: int | None, stem: str, names: SessionNames) -> Iterator[Event]:
    messages = _messages(value)
    if messages is None:
        yield Noted(line, f"{sketch(value)} is neither a message nor a conversation", True)
        return
    record = value if isinstance(value, dict) else {}
    session_id = names.name(_text_of(record, OWN_IDS) or stem)
    metadata, notes = split_metadata(record, without=["messages"])
    title = _text_of(record, TITLES) or title_of(each for each in messages if isinstance(each, dict))
    yield Opened(session_id, title, None, metadata)
    for event in said(messages, where=session_id):
        yield event._replace(line=line) if isinstance(event, Noted) else event
    yield from notes


def _streamed(session_id: str, items: Iterator[Value | Noted]) -> Iterator[Event]:
    """Return the one session of a file that has a message a line."""
    events = (_streamed_event(item) for item in items)
    head = list(islice(events, _LOOK_AHEAD))
    yield Opened(session_id, title_of(event.message for event in head if isinstance(event, Said)), None, {})
    yield from head
    yield from events


def _streamed_event(item: Value | Noted) -> Said | Noted:
    return item if isinstance(item, Noted) else said_or_noted(item.value, line=item.line, place=f"line {item.line}")


def _text_of(record: dict[str, Any], keys: tuple[str, ...]) -> str | None:
    texts = (record.get(key) for key in keys)
    return next((text for text in texts if isinstance(text, str) and text.strip()), None)
