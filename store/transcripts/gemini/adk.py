"""Sessions of Google's Agent Development Kit: events with a content.

Its ``SqliteSessionService`` and its ``DatabaseSessionService`` lay out the same tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...clock import SECONDS_BELOW
from ...messages import Message
from ...text import Fields
from ..database import Layout, Rows, json_in
from ..events import (
    Event,
    Noted,
    Opened,
    Said,
    SessionNames,
    fields_of,
    iso_milliseconds,
    list_of,
    split_metadata,
    telling,
    text_of,
    title_of,
    without,
)
from ..several import conversations
from ..source import Source, Value
from .parts import calls_in, content_of, responses_in, result_of, thoughts_in

SESSIONS = "SELECT app_name, user_id, id, state, create_time FROM sessions ORDER BY rowid"
EVENTS = """
    SELECT id, event_data, timestamp FROM events
    WHERE app_name = :app_name AND user_id = :user_id AND session_id = :id
    ORDER BY timestamp, rowid
"""
NAMES = {
    "function_call": "functionCall",
    "function_response": "functionResponse",
    "inline_data": "inlineData",
    "mime_type": "mimeType",
}
"""Keys of parts, and how the API writes them."""


def looks(value: Any) -> bool:
    """Tell whether a value is a session of such a database."""
    return {"app_name", "user_id", "events"} <= fields_of(value).keys()


def parse(source: Source) -> Iterator[Event]:
    """Return each session, and its messages; events that say nothing change the state alone."""
    return conversations(source, looks, "session of the database", _session)


def _session(item: Value, names: SessionNames) -> Iterator[Event]:
    fields = fields_of(item.value)
    messages = [
        message
        for each in [each for each in list_of(fields.get("events")) if isinstance(each, dict)]
        for message in _messages(each)
    ]
    told = telling(without(fields, "id", "events", "user_id", "create_time"))
    metadata, notes = split_metadata(told)
    created = _moment(fields.get("create_time"))
    name = names.name(text_of(fields.get("id")))
    owner = text_of(fields.get("user_id"))
    title = title_of(messages)
    yield Opened(name, title, None, {"adk": metadata}, owner=owner, created_at=created)
    yield from map(Said, messages)
    yield from notes


def _messages(event: Fields) -> Iterator[Message]:
    """Yield the messages of an event: the results of tools, then its content with its calls."""
    content = fields_of(event.get("content"))
    parts = [_as_api(part) for part in list_of(content.get("parts"))]
    moment = telling({"timestamp": _moment(event.get("timestamp"))})
    extra = telling(without(event, "content", "id", "timestamp", "actions"))
    for response in responses_in(parts):
        yield result_of(response) | moment
    said, calls = content_of(parts), calls_in(parts, str(event.get("id")))
    if said is None and not calls:
        return
    role = "user" if content.get("role") == "user" else "assistant"
    message: Message = {"role": role, "content": said, **moment, "adk": extra}
    if thoughts := thoughts_in(parts):
        message["reasoning_content"] = thoughts
    if text_of(event.get("id")):
        message["id"] = event["id"]
    yield message | ({"tool_calls": calls} if calls else {})


def _as_api(part: Any) -> Any:
    """Return a part with the keys of the API, whichever way it was written."""
    if not isinstance(part, dict):
        return part
    told = {key: held for key, held in part.items() if held is not None}
    named = {NAMES.get(key, key): held for key, held in told.items()}
    data = named.get("inlineData")
    return named | ({"inlineData": _as_api(data)} if isinstance(data, dict) else {})


def _moment(told: Any) -> int | None:
    """Return a moment in seconds, or as ISO text, as ms; None for anything else."""
    is_moment = isinstance(told, int | float) and 0 < told < SECONDS_BELOW
    return round(told * 1000) if is_moment else iso_milliseconds(told)


def _sessions(rows: Rows) -> Iterator[Any]:
    for row in rows.execute(SESSIONS):
        known = dict(zip(row.keys(), row, strict=True))
        events: list[Fields] = []
        for number, text, moment in rows.execute(EVENTS, known):
            event = json_in(text)
            if isinstance(event, dict):
                events.append({"timestamp": moment, **event})
            else:
                yield Noted(None, f"event {number} of {row['id']} cannot be read", broken=True)
        yield {**known, "state": json_in(row["state"]), "events": events}


LAYOUT = Layout(
    frozenset({"events.event_data", "events.invocation_id", "sessions.app_name"}),
    _sessions,
)
"""How the kit's database is laid out."""
