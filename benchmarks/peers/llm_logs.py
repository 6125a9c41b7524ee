"""llm: ``LogStore`` over ``logs.db``, a chain of messages by their hashes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import sqlite_utils
from llm.logs import LogStore
from llm.parts import Message as Said
from llm.parts import TextPart, ToolCallPart, ToolResultPart

from ..workload import Message
from .peer import Peer

LIST = "SELECT id FROM threads ORDER BY datetime_utc DESC, id DESC LIMIT ?"
PARENT = "SELECT parent_hash FROM messages WHERE hash = ?"


class Logs(Peer):
    """A thread for each session, which points at the newest message of its chain."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._database = sqlite_utils.Database(path)
        self._database.enable_wal()
        self._database.execute("PRAGMA synchronous = NORMAL")
        self._store = LogStore(self._database)

    def native(self, messages: list[Message]) -> list[Said]:
        """Make messages of parts; their moment goes with what a provider adds."""
        return [Said(each["role"], _parts(each), {"at": each["timestamp"]}) for each in messages]

    def plain(self, stored: list[Said]) -> list[Message]:
        """Make messages of them again."""
        return [*map(_plain, stored)]

    async def create(self, session: str, at: int = 0) -> None:  # noqa: ARG002
        """Create a thread."""
        self._store.create_thread(id=session)

    async def append(self, session: str, messages: list[Said]) -> None:
        """Append in one transaction, as its own log does."""
        with self._database.atomic():
            self._store.append(session, messages)

    async def load(self, session: str) -> list[Said]:
        """Walk the chain, one query a message, then read the parts."""
        return self._store.thread_messages(session)

    async def rewind(self, session: str, count: int) -> None:
        """Walk up the chain and let the thread point there; it has no verb for it."""
        tip = self._store.thread_tip(session)
        for _ in range(count):
            (tip,) = self._database.execute(PARENT, [tip]).fetchone()
        with self._database.atomic():
            self._database["threads"].update(session, {"tip_message_hash": tip})

    async def sessions(self, limit: int) -> list[str]:
        """Read the table of threads; the library has no function for it."""
        return [row[0] for row in self._database.execute(LIST, [limit])]


def _parts(message: Message) -> list[Any]:
    if message["role"] == "tool":
        return [ToolResultPart("", message["content"], message["tool_call_id"])]
    return [TextPart(message["content"]), *map(_call, message.get("tool_calls", ()))]


def _call(call: Message) -> ToolCallPart:
    function = call["function"]
    return ToolCallPart(function["name"], json.loads(function["arguments"]), call["id"])


def _plain(said: Said) -> Message:
    first, *rest = said.parts
    if isinstance(first, ToolResultPart):
        found = {"role": said.role, "content": first.output, "tool_call_id": first.tool_call_id}
    else:
        assert isinstance(first, TextPart)
        found = {"role": said.role, "content": first.text}
        if rest:
            found["tool_calls"] = [*map(_plain_call, rest)]
    assert said.provider_metadata
    return {**found, "timestamp": said.provider_metadata["at"]}


def _plain_call(part: Any) -> Message:
    arguments = json.dumps(part.arguments, ensure_ascii=False)
    function = {"name": part.name, "arguments": arguments}
    return {"id": part.tool_call_id, "type": "function", "function": function}
