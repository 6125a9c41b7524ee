"""Puts `store.adapters.openai_agents.Session` in the place of the SDK's ``SQLiteSession``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import agents
import agents.memory
import agents.memory.sqlite_session

from store import Store
from store.adapters.openai_agents import Session


class SQLiteSession(Session):
    """Our session, made as theirs is; each one in memory is a store of its own."""

    def __init__(
        self,
        session_id: str,
        db_path: str | Path = ":memory:",
        sessions_table: str = "agent_sessions",
        messages_table: str = "agent_messages",
        session_settings: Any = None,
    ) -> None:
        is_private = str(db_path) == ":memory:"
        store = Store(":memory:", durability="normal") if is_private else str(db_path)
        super().__init__(session_id, store, settings=session_settings)


for place in (agents.memory.sqlite_session, agents.memory, agents):
    place.SQLiteSession = SQLiteSession  # type: ignore[misc, attr-defined]
