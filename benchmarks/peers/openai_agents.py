"""openai-agents: ``SQLiteSession``, one row of JSON a message."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from agents.memory.sqlite_session import SQLiteSession

from ..workload import Message
from .peer import Peer


class Normal(SQLiteSession):
    """With the durability of all sides; it sets WAL by itself."""

    @staticmethod
    def _configure_connection(conn: sqlite3.Connection) -> None:
        SQLiteSession._configure_connection(conn)
        conn.execute("PRAGMA synchronous = NORMAL")


class Agents(Peer):
    """A session object for each session; it cannot list them."""

    lacks = frozenset({"list"})

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._sessions: dict[str, SQLiteSession] = {}

    async def create(self, session: str, at: int = 0) -> None:  # noqa: ARG002
        """Make the object; its row comes with the first message."""
        self._sessions[session] = Normal(session, self.path)

    async def append(self, session: str, messages: list[Message]) -> None:
        """Add items; a chat message is one as it is."""
        await self._sessions[session].add_items(messages)

    async def load(self, session: str) -> list[Message]:
        """Get all items."""
        return await self._sessions[session].get_items()

    async def newest(self, session: str, count: int) -> list[Message]:
        """Get the last ones."""
        return await self._sessions[session].get_items(limit=count)

    async def rewind(self, session: str, count: int) -> None:
        """Pop items, one transaction each: there is no other way."""
        for _ in range(count):
            await self._sessions[session].pop_item()
