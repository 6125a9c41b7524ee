"""Puts `store.adapters.openai_agents.BranchedSession` in the place of ``AdvancedSQLiteSession``."""

from __future__ import annotations

import logging
import multiprocessing
from pathlib import Path
from typing import Any

import agents.extensions.memory
import agents.extensions.memory.advanced_sqlite_session

from store import Store
from store.adapters.openai_agents import BranchedSession


class AdvancedSQLiteSession(BranchedSession):
    """Our session, made as theirs is; each one in memory is a store of its own."""

    def __init__(
        self,
        *,
        session_id: str,
        db_path: str | Path = ":memory:",
        create_tables: bool = False,
        logger: logging.Logger | None = None,
        session_settings: Any = None,
        sessions_table: str = "agent_sessions",
        messages_table: str = "agent_messages",
    ) -> None:
        is_private = str(db_path) == ":memory:"
        store = Store(":memory:", durability="normal") if is_private else str(db_path)
        super().__init__(session_id, store, settings=session_settings)

    @property
    def _current_branch_id(self) -> str:
        return self.branch_id


multiprocessing.set_forkserver_preload([__name__])  # processes of the suite have our class, too

for place in (agents.extensions.memory.advanced_sqlite_session, agents.extensions.memory):
    place.AdvancedSQLiteSession = AdvancedSQLiteSession  # type: ignore[misc, attr-defined]
