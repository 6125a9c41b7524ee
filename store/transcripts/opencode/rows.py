"""The database of opencode and its forks: each session in the shape of their ``export``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...text import Fields
from ..database import Layout, Rows, json_in
from ..events import fields_of, telling

SESSIONS = "SELECT * FROM session ORDER BY time_created, id"

MESSAGES = """
    SELECT id, data FROM message
    WHERE session_id = :session
    ORDER BY time_created, id
"""

PARTS = """
    SELECT message_id, id, data FROM part
    WHERE session_id = :session
    ORDER BY id
"""

KEYS = {"parent_id": "parentID", "project_id": "projectID"}
"""Columns of a session → keys of its export, where the names differ."""

TIMES = "time_"


def _sessions(rows: Rows) -> Iterator[Any]:
    for session in rows.execute(SESSIONS):
        of = {"session": session["id"]}
        parts = _parts(rows, of)
        messages = [
            {"info": _told(name, data), "parts": parts.pop(name, [])}
            for name, data in rows.execute(MESSAGES, of)
        ]
        info: Fields = {}
        times: Fields = {}
        for key, cell in zip(session.keys(), session, strict=True):
            if key.startswith(TIMES):
                times[key.removeprefix(TIMES)] = cell
            else:
                is_object = isinstance(cell, str) and cell.startswith(("{", "["))
                info[KEYS.get(key, key)] = (json_in(cell) or cell) if is_object else cell
        yield {"info": telling({**info, "time": telling(times)}), "messages": messages}


def _parts(rows: Rows, of: Fields) -> dict[str, list[Fields]]:
    """Return the parts of a session's messages, by the ids of the messages."""
    found: dict[str, list[Fields]] = {}
    for message, name, data in rows.execute(PARTS, of):
        found.setdefault(message, []).append(_told(name, data))
    return found


def _told(name: str, data: object) -> Fields:
    return fields_of(json_in(data)) | {"id": name}


LAYOUT = Layout(
    frozenset({"session.directory", "message.data", "part.message_id"}),
    _sessions,
)
"""The layout of the database."""
