"""LangChain: ``SQLChatMessageHistory``, one row of JSON a message, by SQLAlchemy's ORM."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from langchain_community.chat_message_histories.sql import SQLChatMessageHistory
from langchain_core.messages import BaseMessage
from sqlalchemy import create_engine, event

from ..workload import Message
from . import lang_messages
from .peer import Peer


class LangChain(Peer):
    """A history object for each session; it has neither a list, nor a limit, nor a way back."""

    lacks = frozenset({"list"})

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._engine = create_engine(f"sqlite:///{path}")
        event.listen(self._engine, "connect", _settings)
        self._histories: dict[str, SQLChatMessageHistory] = {}

    def native(self, messages: list[Message]) -> list[BaseMessage]:
        """Make LangChain's objects."""
        return [*map(lang_messages.native, messages)]

    def plain(self, stored: list[BaseMessage]) -> list[Message]:
        """Make messages of them again."""
        return [*map(lang_messages.plain, stored)]

    async def create(self, session: str, at: int = 0) -> None:  # noqa: ARG002
        """Make the object; there are no rows of sessions."""
        self._histories[session] = SQLChatMessageHistory(session, connection=self._engine)

    async def append(self, session: str, messages: list[BaseMessage]) -> None:
        """Add messages in one transaction."""
        self._histories[session].add_messages(messages)

    async def load(self, session: str) -> list[BaseMessage]:
        """Read them all."""
        return self._histories[session].messages

    async def rewind(self, session: str, count: int) -> None:
        """Clear the session and write again what stays: it has nothing else that takes away."""
        history = self._histories[session]
        kept = history.messages[:-count]
        history.clear()
        history.add_messages(kept)


def _settings(connection: Any, _: object) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
