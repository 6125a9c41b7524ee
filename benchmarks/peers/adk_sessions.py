"""Google's ADK: ``SqliteSessionService``, one row of JSON an event, a connection for each call."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from itertools import count as counted
from pathlib import Path
from typing import Any

from google.adk.events import Event, EventActions
from google.adk.events._rewind_events import _apply_rewinds
from google.adk.sessions import Session
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai.types import Content, FunctionCall, FunctionResponse, Part

from ..workload import Message
from .peer import Peer

APP, USER = "app", "user"
INSERT = "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)"
TOUCH = "UPDATE sessions SET update_time = ? WHERE id = ?"


class Normal(SqliteSessionService):
    """With the durability of all sides."""

    @asynccontextmanager
    async def _get_db_connection(self) -> AsyncIterator[Any]:
        async with super()._get_db_connection() as connection:
            await connection.execute("PRAGMA synchronous = NORMAL")
            yield connection


class Adk(Peer):
    """Each message an invocation of its own, so that any of them can be rewound to."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
        self._service = Normal(str(path))
        self._sessions: dict[str, Session] = {}
        self._numbers = counted()

    def native(self, messages: list[Message]) -> list[Event]:
        """Make events."""
        return [self._event(each) for each in messages]

    def plain(self, stored: list[Event]) -> list[Message]:
        """Make messages again, without what a later event rewound."""
        return [*map(_plain, _apply_rewinds(stored))]

    async def create(self, session: str, at: int = 0) -> None:  # noqa: ARG002
        """Create it; the object that comes back is what is appended to."""
        self._sessions[session] = await self._service.create_session(
            app_name=APP, user_id=USER, session_id=session
        )

    async def fill(self, session: str, messages: list[Event]) -> None:
        """Insert the rows that its appends would, which took minutes."""
        rows = (
            (each.id, APP, USER, session, each.invocation_id, each.timestamp, _json(each))
            for each in messages
        )
        with closing(sqlite3.connect(self.path)) as connection, connection:
            connection.executemany(INSERT, rows)
            connection.execute(TOUCH, (messages[-1].timestamp, session))
        self._sessions[session] = await self._get(session)

    async def append(self, session: str, messages: list[Event]) -> None:
        """Append events, one transaction each: it takes one at a time."""
        for each in messages:
            await self._service.append_event(self._sessions[session], each)

    async def load(self, session: str) -> list[Event]:
        """Get the session."""
        return (await self._get(session)).events

    async def newest(self, session: str, count: int) -> list[Event]:
        """Get it with its last events only."""
        return (await self._get(session, GetSessionConfig(num_recent_events=count))).events

    async def rewind(self, session: str, count: int) -> None:
        """Get the session and append the event that rewinds it, as its runner does."""
        found = await self._get(session)
        before = _apply_rewinds(found.events)[-count].invocation_id
        marker = Event(
            author="user",
            actions=EventActions(rewind_before_invocation_id=before),
            timestamp=found.last_update_time,  # events are read in the order of their moments
            invocation_id=f"i-{next(self._numbers)}",
        )
        await self._service.append_event(found, marker)
        self._sessions[session] = found

    async def sessions(self, limit: int) -> list[str]:
        """List them all, because there is no limit."""
        found = await self._service.list_sessions(app_name=APP, user_id=USER)
        return [each.id for each in found.sessions[-limit:]][::-1]

    async def _get(self, session: str, config: GetSessionConfig | None = None) -> Session:
        found = await self._service.get_session(
            app_name=APP, user_id=USER, session_id=session, config=config
        )
        assert found
        return found

    def _event(self, message: Message) -> Event:
        return Event(
            author="user" if message["role"] == "user" else "agent",
            content=Content(role=message["role"], parts=_parts(message)),
            timestamp=message["timestamp"] / 1000,
            invocation_id=f"i-{next(self._numbers)}",
        )


def _json(event: Event) -> str:
    return event.model_dump_json(exclude_none=True)


def _parts(message: Message) -> list[Part]:
    if message["role"] == "tool":
        answer = {"result": message["content"]}
        answered = FunctionResponse(id=message["tool_call_id"], name="tool", response=answer)
        return [Part(function_response=answered)]
    return [Part(text=message["content"]), *map(_call, message.get("tool_calls", ()))]


def _call(call: Message) -> Part:
    function = call["function"]
    arguments = json.loads(function["arguments"])
    return Part(function_call=FunctionCall(id=call["id"], name=function["name"], args=arguments))


def _plain(event: Event) -> Message:
    first, *rest = event.content.parts
    if answer := first.function_response:
        found = {"role": "tool", "content": answer.response["result"], "tool_call_id": answer.id}
    else:
        found = {"role": event.content.role, "content": first.text}
        if rest:
            found["tool_calls"] = [_plain_call(part.function_call) for part in rest]
    return {**found, "timestamp": round(event.timestamp * 1000)}


def _plain_call(call: FunctionCall) -> Message:
    arguments = json.dumps(call.args, ensure_ascii=False)
    function = {"name": call.name, "arguments": arguments}
    return {"id": call.id, "type": "function", "function": function}
