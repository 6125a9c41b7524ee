"""goose's database (``sessions.db``): each session gathered as ``goose session export`` has it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

from ...text import Fields
from ..database import Layout, Rows, json_in

SESSIONS = "SELECT * FROM sessions ORDER BY rowid"

MESSAGES = "SELECT * FROM messages WHERE session_id = :name ORDER BY id"

JSON = "_json"
"""The end of the names of columns that hold JSON."""


def _sessions(rows: Rows) -> Iterator[Any]:
    for row in rows.execute(SESSIONS):
        found = rows.execute(MESSAGES, {"name": row["id"]})
        yield _fields(row) | {"conversation": list(map(_message, found))}


def _message(row: sqlite3.Row) -> Fields:
    fields = _fields(row)
    number, name = fields.pop("id", ""), fields.pop("message_id", None)
    created = fields.pop("created_timestamp", None)
    return {**fields, "id": name or f"message-{number}", "created": created}


def _fields(row: sqlite3.Row) -> Fields:
    """Return a row's cells, with JSON cells decoded."""
    cells = zip(row.keys(), row, strict=True)
    return {
        key.removesuffix(JSON): json_in(cell) if key.endswith(JSON) else cell
        for key, cell in cells
        if cell is not None
    }


LAYOUT = Layout(frozenset({"messages.content_json", "sessions.working_dir"}), _sessions)
"""How goose's database is laid out."""
