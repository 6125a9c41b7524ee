"""Sessions of Google's Agent Development Kit: events with a content.

Its ``SqliteSessionService`` and its ``DatabaseSessionService`` lay out the same tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...clock import SECONDS_LIMIT
from ...records import Message
from ...text import JsonFields
from ..database import Layout, SqliteConnection, parse_json_cell
from ..parser_events import (
    Event,
    NoteEvent,
    SessionEvent,
    SessionMessage,
    SessionNames,
    drop_empty_fields,
    drop_keys,
    find_title,
    get_fields,
    get_list,
    get_text,
    parse_iso_milliseconds,
    split_metadata,
)
from ..source import SourceValue, for_each_conversation
from .parts import (
    join_gemini_thoughts,
    list_gemini_responses,
    parse_gemini_calls,
    parse_gemini_content,
    parse_gemini_response,
)

__all__ = ["ADK_LAYOUT", "is_adk_session", "parse_adk"]

SELECT_ADK_SESSIONS = (
    "SELECT app_name, user_id, id, state, create_time FROM sessions ORDER BY rowid"
)
SELECT_ADK_EVENTS = """
    SELECT id, event_data, timestamp FROM events
    WHERE app_name = :app_name AND user_id = :user_id AND session_id = :id
    ORDER BY timestamp, rowid
"""
API_KEY_BY_ADK_KEY = {
    "function_call": "functionCall",
    "function_response": "functionResponse",
    "inline_data": "inlineData",
    "mime_type": "mimeType",
}
"""Keys of parts, and how the API writes them."""


def is_adk_session(value: Any) -> bool:
    """Tell whether a value is a session of such a database."""
    return {"app_name", "user_id", "events"} <= get_fields(value).keys()


@for_each_conversation(is_adk_session, "session of the database")
def parse_adk(item: SourceValue, names: SessionNames) -> Iterator[Event]:
    """Return a session and its messages; events that say nothing change the state alone."""
    fields = get_fields(item.value)
    messages = [
        message
        for each in get_list(fields.get("events"))
        if isinstance(each, dict)
        for message in _parse_adk_event(each)
    ]
    told = drop_empty_fields(drop_keys(fields, "id", "events", "user_id", "create_time"))
    metadata, notes = split_metadata(told)
    created = _parse_adk_time(fields.get("create_time"))
    name = names.name(get_text(fields.get("id")))
    owner = get_text(fields.get("user_id"))
    title = find_title(messages)
    yield SessionEvent(name, title, None, {"adk": metadata}, owner=owner, created_at=created)
    yield from map(SessionMessage, messages)
    yield from notes


def _parse_adk_event(event: JsonFields) -> Iterator[Message]:
    """Yield the messages of an event: the results of tools, then its content with its calls."""
    content = get_fields(event.get("content"))
    parts = [_convert_part_keys(part) for part in get_list(content.get("parts"))]
    moment = drop_empty_fields({"timestamp": _parse_adk_time(event.get("timestamp"))})
    extra = drop_empty_fields(drop_keys(event, "content", "id", "timestamp", "actions"))
    for response in list_gemini_responses(parts):
        yield parse_gemini_response(response) | moment
    said, calls = parse_gemini_content(parts), parse_gemini_calls(parts, str(event.get("id")))
    if said is None and not calls:
        return
    role = "user" if content.get("role") == "user" else "assistant"
    message: Message = {"role": role, "content": said, **moment, "adk": extra}
    if thoughts := join_gemini_thoughts(parts):
        message["reasoning_content"] = thoughts
    if get_text(event.get("id")):
        message["id"] = event["id"]
    yield message | ({"tool_calls": calls} if calls else {})


def _convert_part_keys(part: Any) -> Any:
    """Return a part with the keys of the API, whichever way it was written."""
    if not isinstance(part, dict):
        return part
    told = {key: held for key, held in part.items() if held is not None}
    named = {API_KEY_BY_ADK_KEY.get(key, key): held for key, held in told.items()}
    data = named.get("inlineData")
    return named | ({"inlineData": _convert_part_keys(data)} if isinstance(data, dict) else {})


def _parse_adk_time(told: Any) -> int | None:
    """Return a moment in seconds, or as ISO text, as ms; None for anything else."""
    is_moment = isinstance(told, int | float) and 0 < told < SECONDS_LIMIT
    return round(told * 1000) if is_moment else parse_iso_milliseconds(told)


def _load_adk_sessions(rows: SqliteConnection) -> Iterator[Any]:
    for row in rows.execute(SELECT_ADK_SESSIONS):
        known = dict(zip(row.keys(), row, strict=True))
        events: list[JsonFields] = []
        for number, text, moment in rows.execute(SELECT_ADK_EVENTS, known):
            event = parse_json_cell(text)
            if isinstance(event, dict):
                events.append({"timestamp": moment, **event})
            else:
                yield NoteEvent(None, f"event {number} of {row['id']} cannot be read", broken=True)
        yield {**known, "state": parse_json_cell(row["state"]), "events": events}


ADK_LAYOUT = Layout(
    frozenset({"events.event_data", "events.invocation_id", "sessions.app_name"}),
    _load_adk_sessions,
)
"""How the kit's database is laid out."""
