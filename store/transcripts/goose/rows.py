"""goose's database (``sessions.db``): each session gathered as ``goose session export`` has it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

from ...text import JsonFields
from ..database import Layout, SqliteConnection, parse_json_cell

SELECT_GOOSE_SESSIONS = "SELECT * FROM sessions ORDER BY rowid"

SELECT_GOOSE_MESSAGES = "SELECT * FROM messages WHERE session_id = :name ORDER BY id"

JSON_COLUMN_ENDING = "_json"
"""The end of the names of columns that hold JSON."""


def _load_goose_sessions(rows: SqliteConnection) -> Iterator[Any]:
    for row in rows.execute(SELECT_GOOSE_SESSIONS):
        found = rows.execute(SELECT_GOOSE_MESSAGES, {"name": row["id"]})
        yield _decode_goose_row(row) | {"conversation": list(map(_build_goose_message, found))}


def _build_goose_message(row: sqlite3.Row) -> JsonFields:
    fields = _decode_goose_row(row)
    number, name = fields.pop("id", ""), fields.pop("message_id", None)
    created = fields.pop("created_timestamp", None)
    return {**fields, "id": name or f"message-{number}", "created": created}


def _decode_goose_row(row: sqlite3.Row) -> JsonFields:
    """Return a row's cells, with JSON cells decoded."""
    cells = zip(row.keys(), row, strict=True)
    return {
        key.removesuffix(JSON_COLUMN_ENDING): parse_json_cell(cell)
        if key.endswith(JSON_COLUMN_ENDING)
        else cell
        for key, cell in cells
        if cell is not None
    }


GOOSE_LAYOUT = Layout(
    frozenset({"messages.content_json", "sessions.working_dir"}), _load_goose_sessions
)
"""How goose's database is laid out."""
