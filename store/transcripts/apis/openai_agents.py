"""Sessions of OpenAI's Agents SDK (``SQLiteSession``): items of the Responses API, as they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...text import Fields
from ..database import Layout, Rows, json_in
from ..events import Noted, fields_of
from . import responses

SESSIONS = "SELECT session_id FROM agent_sessions ORDER BY rowid"
ITEMS = "SELECT id, message_data FROM agent_messages WHERE session_id = ? ORDER BY id"

parse = responses.parse


def looks(value: Any) -> bool:
    """Tell whether a value is a session of such a database."""
    return fields_of(value).get("store") == "openai_agents"


def _sessions(rows: Rows) -> Iterator[Any]:
    for (name,) in rows.execute(SESSIONS):
        items: list[Fields] = []
        for number, text in rows.execute(ITEMS, (name,)):
            item = json_in(text)
            if isinstance(item, dict):
                items.append(item)
            else:
                yield Noted(None, f"item {number} of {name} cannot be read", broken=True)
        if items:
            yield {"id": name, "store": "openai_agents", "items": items}


LAYOUT = Layout(frozenset({"agent_sessions.session_id", "agent_messages.message_data"}), _sessions)
"""How the SDK's database is laid out."""
