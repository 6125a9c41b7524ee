"""Sessions of the Claude Agent SDK: ``ClaudeAgentOptions(session_store=Sessions("chat.db"))``.

A transcript is a session of the store. Its entries with a message are messages of the format
``anthropic``; what an entry has beside lies under the key ``claude``. Other entries, such as titles
and progress, are items without a shape, which no view sends.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeAlias

from claude_agent_sdk import SessionStore, fold_session_summary

from .. import InvalidMessage, SessionNotFound
from ..records import Message, Session
from .stores import StoreSource, StoreUser, read_sessions

if TYPE_CHECKING:
    from claude_agent_sdk import (
        SessionKey,
        SessionListSubkeysKey,
        SessionStoreEntry,
        SessionStoreListEntry,
        SessionSummaryEntry,
    )

__all__ = ["Sessions"]

CLAUDE_KEY = "claude"
SPOKEN, UNSPOKEN = "anthropic", "responses"
"""The formats of entries with a message, and of those without one."""
ShapedEntry: TypeAlias = tuple[str, Message]
"""The format of an entry, and the message of that format."""


class Sessions(StoreUser, SessionStore):
    """The transcripts of a store, as the SDK's ``SessionStore`` has them.

    ``store`` is an open store, or the path or URL of one, which `close` gives back. An entry that
    is there already, by its uuid, is not stored again.
    """

    def __init__(self, store: StoreSource) -> None:
        super().__init__(store)

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Append entries, and fold them into the summary of the session, as one change."""
        if not entries:
            return
        shaped = [shape_entry(entry) for entry in entries]
        while True:
            try:
                await self.awaited.atomically(
                    lambda steps: store_entries(steps, key, entries, shaped)
                )
            except InvalidMessage as problem:
                place = problem.index
                if shaped[place][0] == UNSPOKEN:
                    raise
                shaped[place] = shape_unspoken_entry(entries[place])
            else:
                return

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """Return the entries of a transcript; None if it was never written."""
        with suppress(SessionNotFound):
            found = await self.awaited.messages(name_session(key))
            return [restore_entry(each.message) for each in found]
        return None

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """Return the sessions of a project with the times of their last writes (ms)."""
        found = await self._list_transcripts(project_key)
        return [
            {"session_id": name, "mtime": each.metadata["mtime"]} for name, each in found.items()
        ]

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        """Return the summaries of the sessions of a project."""
        found = await self._list_transcripts(project_key)
        return [
            {**json.loads(each.metadata["summary"]), "session_id": name}
            for name, each in found.items()
        ]

    async def _list_transcripts(self, project_key: str) -> dict[str, Session]:
        """Return the sessions of a project by their ids in the SDK, which forks have too."""
        beginning = f"{project_key}/"
        found = await self.list_sessions_where(describe_transcript(project_key))
        named = [each for each in found if each.id.startswith(beginning)]
        return {each.id.removeprefix(beginning): each for each in named}

    async def delete(self, key: SessionKey) -> None:
        """Erase a transcript; that of a session with those of its subagents."""

        def work(steps: Any) -> None:
            names = [name_session(key)]
            if key.get("subpath") is None:
                subpaths = list_subpaths(steps, key)
                names += [name_session({**key, "subpath": each}) for each in subpaths]
            steps.delete_session(names, missing="ignore")

        await self.awaited.atomically(work)

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        """Return the subpaths of a session: the transcripts of its subagents."""
        return await self.awaited.reading(lambda reads: list_subpaths(reads, key))


def list_subpaths(reads: Any, key: Mapping[str, Any]) -> list[str]:
    """Return the subpaths of the transcripts of a session's subagents."""
    where = describe_transcript(key["project_key"], key["session_id"], "sub")
    return [each.metadata["subpath"] for each in read_sessions(reads, where) if each.metadata]


def name_session(key: SessionKey) -> str:
    """Return the id of the session with a transcript."""
    return "/".join([key["project_key"], key["session_id"], *filter(None, [key.get("subpath")])])


def describe_transcript(
    project_key: str, session_id: str | None = None, part: str = "main"
) -> dict[str, Any]:
    """Return the metadata by which transcripts are found."""
    described = {"framework": "claude-agent-sdk", "project": project_key, "part": part}
    return described if session_id is None else {**described, "session": session_id}


def store_entries(
    steps: Any, key: SessionKey, entries: list[SessionStoreEntry], shaped: list[ShapedEntry]
) -> None:
    """Append entries as steps of a transaction, with the session's summary."""
    name, subpath = name_session(key), key.get("subpath")
    part = "main" if subpath is None else "sub"
    described = describe_transcript(key["project_key"], key["session_id"], part)
    session = steps.create_session(name, metadata=described, exist_ok=True)
    place = 0
    for format_name, run in groupby(shaped, lambda each: each[0]):
        messages = [message for _, message in run]
        try:
            steps.append(name, messages, dedupe="ignore", format=format_name)
        except InvalidMessage as problem:
            raise InvalidMessage(place + problem.index, problem.key, problem.problem) from problem
        place += len(messages)
    before = session.metadata or {}
    written = max(int(time.time() * 1000), before.get("mtime", 0) + 1)
    changed: dict[str, Any] = {"mtime": written}
    if subpath is None:
        summary = json.loads(before["summary"]) if "summary" in before else None
        folded = {**fold_session_summary(summary, key, entries), "mtime": written}
        changed["summary"] = json.dumps(folded)
    else:
        changed["subpath"] = subpath
    steps.set_metadata(name, changed, merge=True)


# --- entries as messages --------------------------------------------------------------------------


def shape_entry(entry: SessionStoreEntry) -> ShapedEntry:
    """Return an entry with a message in the format of that, any other as an item."""
    given: Any = entry.get("message")
    if entry.get("type") not in ("user", "assistant") or not isinstance(given, dict):
        return shape_unspoken_entry(entry)
    beside = {key: value for key, value in given.items() if key not in ("role", "content")}
    message: Message = {key: given[key] for key in ("role", "content") if key in given}
    message[CLAUDE_KEY] = {**entry, "message": beside}
    moment = entry.get("timestamp")
    with suppress(TypeError, ValueError):
        message["timestamp"] = int(datetime.fromisoformat(str(moment)).timestamp() * 1000)
    return SPOKEN, add_uuid(message, entry)


def shape_unspoken_entry(entry: SessionStoreEntry) -> ShapedEntry:
    """Return an entry as an item without a shape."""
    return UNSPOKEN, add_uuid({CLAUDE_KEY: entry}, entry)


def add_uuid(message: Message, entry: SessionStoreEntry) -> Message:
    """Return a message with the uuid of its entry, if it has one, as its id."""
    return {**message, "id": entry["uuid"]} if entry.get("uuid") else message


def restore_entry(message: Message) -> Any:
    """Return the entry of a message; of one that has none, such as a redacted one, a plain one."""
    entry = message.get(CLAUDE_KEY)
    said = {key: message[key] for key in ("role", "content") if key in message}
    if entry is None:
        plain = {"type": message.get("role", "system"), "uuid": message.get("id"), "message": said}
        return {key: value for key, value in plain.items() if value is not None}
    return {**entry, "message": {**entry["message"], **said}} if said else entry
