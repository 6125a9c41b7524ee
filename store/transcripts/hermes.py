"""Sessions of Hermes Agent, in its database: rows of a chat, with parts of a content as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from ..records import Message
from ..text import JsonFields
from .conversations import GatheredSession, build_chat_message, build_result_message, join_content
from .database import Layout, SqliteConnection, parse_json_cell
from .parser_events import (
    Event,
    SessionMessage,
    SessionNames,
    convert_to_milliseconds,
    drop_empty_fields,
    drop_keys,
    get_fields,
    get_list,
    get_text,
    list_omission_notes,
)
from .source import SourceValue, for_each_conversation

__all__ = ["HERMES_LAYOUT", "is_hermes_session", "parse_hermes"]

SELECT_HERMES_SESSIONS = "SELECT * FROM sessions ORDER BY started_at"
SELECT_HERMES_MESSAGES = "SELECT * FROM messages WHERE session_id = :name ORDER BY id"
JSON_MARK = "\0json:"
"""What a content begins with that is parts, and no text."""
HERMES_ROLES = ("system", "user", "assistant", "tool")
_HERMES_SESSION_KEYS = ("id", "title", "cwd", "model", "started_at", "hermes_messages")
_HERMES_MESSAGE_KEYS = (
    *("id", "session_id", "role", "content", "tool_calls", "tool_call_id", "tool_name"),
    *("reasoning", "reasoning_content", "timestamp", "active"),
)


def _load_hermes_sessions(rows: SqliteConnection) -> Iterator[Any]:
    for session in rows.execute(SELECT_HERMES_SESSIONS):
        found = rows.execute(SELECT_HERMES_MESSAGES, {"name": session["id"]})
        yield {**dict(session), "hermes_messages": list(map(dict, found))}


HERMES_LAYOUT = Layout(
    frozenset({"sessions.started_at", "messages.tool_call_id", "messages.finish_reason"}),
    _load_hermes_sessions,
)
"""How the database is laid out."""


def is_hermes_session(value: Any) -> bool:
    """Tell whether a value is a session of the database."""
    return isinstance(get_fields(value).get("hermes_messages"), list)


@for_each_conversation(is_hermes_session, "session of the database")
def parse_hermes(item: SourceValue, names: SessionNames) -> Iterator[Event]:
    """Yield a session, and the notes: of rows that were taken back, and of the program's own."""
    told, left = item.value, Counter[tuple[str, str]]()
    said: list[SessionMessage] = []
    for row in told["hermes_messages"]:
        role = get_text(row.get("role")) or ""
        if row.get("active") == 0:
            left["withdrawn", ""] += 1
        elif role not in HERMES_ROLES:
            left[role, ""] += 1
        else:
            said.append(SessionMessage(_parse_hermes_row(role, row)))
    yield from GatheredSession(
        "hermes",
        names.name(get_text(told.get("id"))),
        said,
        titles=[told.get("title")],
        root=told.get("cwd"),
        model=told.get("model"),
        parent=told.get("parent_session_id"),
        created=convert_to_milliseconds(told.get("started_at")),
        told=drop_keys(told, *_HERMES_SESSION_KEYS),
    ).events()
    yield from list_omission_notes(left, "row")


def _parse_hermes_row(role: str, row: JsonFields) -> Message:
    text = get_text(row.get("content"))
    content = text
    if text and text.startswith(JSON_MARK):
        content = join_content(parse_json_cell(text.removeprefix(JSON_MARK)))
    told = {
        "id": f"message-{row.get('id')}",
        "timestamp": convert_to_milliseconds(row.get("timestamp")),
        "hermes": drop_empty_fields(drop_keys(row, *_HERMES_MESSAGE_KEYS)),
    }
    if role == "tool":
        denied = row.get("effect_disposition") == "denied"
        name = get_text(row.get("tool_name"))
        call = row.get("tool_call_id")
        return build_result_message(call, content, failed=denied, name=name, **told)
    calls = [each for each in get_list(parse_json_cell(row.get("tool_calls"))) if get_fields(each)]
    thoughts = get_text(row.get("reasoning_content")) or get_text(row.get("reasoning"))
    return build_chat_message(role, content, tool_calls=calls, reasoning_content=thoughts, **told)
