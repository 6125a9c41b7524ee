"""The database of opencode and its forks: each session in the shape of their ``export``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...text import JsonFields
from ..database import Layout, SqliteConnection, parse_json_cell
from ..events import drop_empty_fields, get_fields

SELECT_OPENCODE_SESSIONS = "SELECT * FROM session ORDER BY time_created, id"

SELECT_OPENCODE_MESSAGES = """
    SELECT id, data FROM message
    WHERE session_id = :session
    ORDER BY time_created, id
"""

SELECT_OPENCODE_PARTS = """
    SELECT message_id, id, data FROM part
    WHERE session_id = :session
    ORDER BY id
"""

SESSION_COLUMN_KEYS = {"parent_id": "parentID", "project_id": "projectID"}
"""Columns of a session → keys of its export, where the names differ."""

TIME_COLUMN_PREFIX = "time_"


def _load_opencode_sessions(rows: SqliteConnection) -> Iterator[Any]:
    for session in rows.execute(SELECT_OPENCODE_SESSIONS):
        of = {"session": session["id"]}
        parts = _load_opencode_parts(rows, of)
        messages = [
            {"info": _parse_opencode_data(name, data), "parts": parts.pop(name, [])}
            for name, data in rows.execute(SELECT_OPENCODE_MESSAGES, of)
        ]
        info: JsonFields = {}
        times: JsonFields = {}
        for key, cell in zip(session.keys(), session, strict=True):
            if key.startswith(TIME_COLUMN_PREFIX):
                times[key.removeprefix(TIME_COLUMN_PREFIX)] = cell
            else:
                is_object = isinstance(cell, str) and cell.startswith(("{", "["))
                info[SESSION_COLUMN_KEYS.get(key, key)] = (
                    (parse_json_cell(cell) or cell) if is_object else cell
                )
        yield {
            "info": drop_empty_fields({**info, "time": drop_empty_fields(times)}),
            "messages": messages,
        }


def _load_opencode_parts(rows: SqliteConnection, of: JsonFields) -> dict[str, list[JsonFields]]:
    """Return the parts of a session's messages, by the ids of the messages."""
    found: dict[str, list[JsonFields]] = {}
    for message, name, data in rows.execute(SELECT_OPENCODE_PARTS, of):
        found.setdefault(message, []).append(_parse_opencode_data(name, data))
    return found


def _parse_opencode_data(name: str, data: object) -> JsonFields:
    return get_fields(parse_json_cell(data)) | {"id": name}


OPENCODE_LAYOUT = Layout(
    frozenset({"session.directory", "message.data", "part.message_id"}),
    _load_opencode_sessions,
)
"""The layout of the database."""
