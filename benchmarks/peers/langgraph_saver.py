"""LangGraph: ``SqliteSaver``, the whole state again in each checkpoint.

An append is what a step of a graph does at least: read the newest checkpoint, write one with the
messages and the new ones. A graph writes more than one a turn.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.sqlite import SqliteSaver

from ..workload import Message
from . import lang_messages
from .peer import Peer


class LangGraph(Peer):
    """A thread for each session; an earlier checkpoint is the way back."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        connection = sqlite3.connect(path, check_same_thread=False)
        self._saver = SqliteSaver(connection)
        self._saver.setup()
        connection.execute("PRAGMA synchronous = NORMAL")
        self._made: dict[str, list[tuple[int, str]]] = {}

    def native(self, messages: list[Message]) -> list[BaseMessage]:
        """Make LangChain's objects."""
        return [*map(lang_messages.native, messages)]

    def plain(self, stored: list[BaseMessage]) -> list[Message]:
        """Make messages of them again."""
        return [*map(lang_messages.plain, stored)]

    async def create(self, session: str, at: int = 0) -> None:  # noqa: ARG002
        """Write an empty checkpoint."""
        self._put(session, [], {})

    async def append(self, session: str, messages: list[BaseMessage]) -> None:
        """Read the state, write it again with the new messages."""
        found = self._saver.get_tuple(_thread(session))
        assert found
        state = found.checkpoint["channel_values"]["messages"]
        self._put(session, [*state, *messages], found.config["configurable"])

    async def load(self, session: str) -> list[BaseMessage]:
        """Read the newest checkpoint."""
        return self._state(_thread(session))

    async def rewind(self, session: str, count: int) -> None:
        """Read the checkpoint of as many messages less, and write it as the newest one."""
        made = self._made[session]
        length = made[-1][0] - count
        earlier = next(name for size, name in reversed(made) if size == length)
        before = _thread(session, checkpoint_id=earlier)
        self._put(session, self._state(before), before["configurable"])

    async def sessions(self, limit: int) -> list[str]:
        """List the newest checkpoints of all threads: here each thread has one."""
        listed = self._saver.list(None, limit=limit)
        return [each.config["configurable"]["thread_id"] for each in listed]

    def _state(self, place: dict[str, Any]) -> list[BaseMessage]:
        found = self._saver.get_tuple(place)
        assert found
        return found.checkpoint["channel_values"]["messages"]

    def _put(self, session: str, state: list[BaseMessage], parent: dict[str, Any]) -> None:
        checkpoint = empty_checkpoint()
        checkpoint["channel_values"] = {"messages": state}
        place = _thread(session, **parent)
        self._saver.put(place, checkpoint, {"source": "loop", "step": 0}, {})
        self._made.setdefault(session, []).append((len(state), checkpoint["id"]))


def _thread(session: str, **more: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": session, "checkpoint_ns": "", **more}}
