"""A conversation store for Pydantic AI: ``await Conversations("chat.db").save(result)``.

A conversation is a session, its entries are messages of a chat: each part of a request is one, and
so is a response. What a part has beside its words and calls lies under the key ``pydantic_ai``. A
history that a conversation leaves stays on a branch of the session, and a fork shares what is
before it.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from itertools import groupby, takewhile
from typing import Any

from pydantic import TypeAdapter
from pydantic_ai import ModelMessage, ModelMessagesTypeAdapter, RunContext
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    ConversationStore,
)

from .. import Conflict, MessageNotFound, Policy, SessionExists, SessionNotFound
from ..records import Message, Session
from .stores import StoreSource, StoreUser

__all__ = ["Conversations", "compacted"]

KEY = "pydantic_ai"
FRAMEWORK = {"framework": "pydantic-ai"}
RECORDS = TypeAdapter(ConversationRecord)
REQUEST_ROLES = {"system-prompt": "system", "user-prompt": "user", "tool-return": "tool"}
"""The roles of parts of requests; those that the framework alone reads are of the system."""
PLAIN_PARTS = {
    "system": {"part_kind": "system-prompt"},
    "developer": {"part_kind": "system-prompt"},
    "user": {"part_kind": "user-prompt"},
    "tool": {"part_kind": "tool-return", "tool_name": "tool", "tool_call_id": ""},
}
"""The parts of messages that another program stored, or that were redacted, by their roles."""


class Conversations(StoreUser, ConversationStore):
    """The conversations of a store, as Pydantic AI's ``ConversationStore`` has them.

    ``store`` is an open store, or the path or URL of one, which `close` gives back. A conversation
    is the session of its id. `delete` erases its messages for good, except those that forks share.
    """

    def __init__(self, store: StoreSource) -> None:
        super().__init__(store)

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        """Return the record of a conversation; None if the store does not have it."""
        try:
            return parse_record(await self.awaited.session(conversation_id))
        except SessionNotFound:
            return None

    async def read_records(
        self, *, scope: str | None = None, limit: int | None = None
    ) -> Sequence[ConversationRecord]:
        """Return the records, or those of a scope, that were saved last, the newest first."""
        where = FRAMEWORK if scope is None else {**FRAMEWORK, "scope": scope}
        sessions = await self.list_sessions_where(where)
        found = [record for each in sessions if (record := parse_record(each))]
        return sorted(found, key=lambda each: each.updated_at, reverse=True)[:limit]

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        """Store a record and its new entries as one change. Raises ConversationConflict."""
        base = new_entries[0].parent_id if new_entries else record.head_id
        metadata = dump_record(record)
        rows = [row for entry in new_entries for row in build_rows(entry)]

        def work(steps: Any) -> None:
            check_revision(steps, record.conversation_id, expected_revision)
            if expected_revision is None:
                begin_session(steps, record.conversation_id, base, metadata)
            else:
                move_head(steps, record.conversation_id, base)
                steps.set_metadata(record.conversation_id, metadata, merge=True)
            if rows:
                steps.append(record.conversation_id, rows)

        try:
            await self.awaited.atomically(work)
        except (Conflict, LookupError, SessionExists, SessionNotFound) as problem:
            raise ConversationConflict(record.conversation_id) from problem

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Erase a conversation; what forks share of it stays. Raises ConversationConflict."""

        def work(steps: Any) -> None:
            check_revision(steps, conversation_id, expected_revision)
            steps.delete_session(conversation_id)

        await self.awaited.atomically(work)

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        """Return an entry. Raises LookupError."""
        (entry,) = await self.read_history(entry_id, limit=1)
        return entry

    async def read_history(
        self, head_id: str | None, *, limit: int | None = None
    ) -> list[ConversationEntry]:
        """Return the entries up to one, or the last ``limit`` of them. Raises LookupError."""
        if head_id is None or limit == 0:
            return []

        def work(reads: Any) -> list[ConversationEntry]:
            place = find_entry(reads, head_id)
            width = None if limit is None else 8 * limit + 8
            while True:
                start = 1 if width is None else max(1, place.seq - width)
                found = reads.messages(place.session_id, start, place.seq, branch=place.branch)
                entries = join_entries(each.message | {"seq": each.seq} for each in found)
                if start == 1 or len(entries) > (limit or 0) + 1:
                    return entries if limit is None else entries[-limit:]
                width = None

        return await self.awaited.reading(work)


def compacted(
    conversations: Conversations, policy: Policy
) -> Callable[[RunContext[Any], list[ModelMessage]], Awaitable[list[ModelMessage]]]:
    """Return a history processor that sends the view of what is stored, by a policy.

    The view is compacted first if the policy says so. Messages that are not stored yet follow as
    they are; what is stored stays.
    """

    async def process(context: RunContext[Any], messages: list[ModelMessage]) -> list[ModelMessage]:
        record = await conversations.read_record(context.conversation_id or "")
        if record is None or record.head_id is None:
            return messages
        stored = [each.message for each in await conversations.read_history(record.head_id)]
        new = takewhile(
            lambda each: each.run_id in (None, context.run_id) and each not in stored,
            reversed(messages),
        )
        view = await conversations.load_view(record.conversation_id, policy, "openai")
        shown = join_entries({"seq": each.seq, **each.message} for each in view.entries)
        return [*(each.message for each in shown), *reversed([*new])]

    return process


def parse_record(session: Session) -> ConversationRecord | None:
    """Return the record in the metadata of a session; None if another's, as a plain fork has it."""
    held = (session.metadata or {}).get(KEY)
    record = RECORDS.validate_json(held) if isinstance(held, str) else None
    return record if record and record.conversation_id == session.id else None


def dump_record(record: ConversationRecord) -> dict[str, Any]:
    """Return metadata with a record, as a text: a merge leaves nothing of the one before."""
    return {**FRAMEWORK, "scope": record.scope, KEY: RECORDS.dump_json(record).decode()}


def check_revision(reads: Any, conversation_id: str, expected: str | None) -> None:
    """Raise ConversationConflict unless a conversation has a revision (None: is not there)."""
    try:
        session: Session | None = reads.session(conversation_id)
    except SessionNotFound:
        session = None
    record = session and parse_record(session)
    if (session is not None and record is None) or (record and record.revision) != expected:
        raise ConversationConflict(conversation_id)


def find_entry(reads: Any, entry_id: str, session_id: str | None = None) -> Any:
    """Return the place of the last message of an entry. Raises LookupError."""
    found = reads.find(entry_id, session_id)
    if not found:
        raise LookupError(f"there is no entry {entry_id!r}")
    return found[0]


def begin_session(
    steps: Any, conversation_id: str, base: str | None, metadata: dict[str, Any]
) -> None:
    """Create a session that continues from an entry, or from nothing."""
    metadata = {key: value for key, value in metadata.items() if value is not None}
    if base is None:
        steps.create_session(conversation_id, metadata=metadata)
        return
    place = find_entry(steps, base)
    steps.fork(place.session_id, place.seq, conversation_id, branch=place.branch, metadata=metadata)


def move_head(steps: Any, conversation_id: str, base: str | None) -> None:
    """Move a session's head to an entry of its line, or of a branch that it left."""
    try:
        to = steps.message(conversation_id, base).seq if base is not None else 0
    except MessageNotFound:
        place = find_entry(steps, str(base), conversation_id)
        steps.switch(conversation_id, place.branch, to=place.seq)
    else:
        if to != steps.session(conversation_id).head:
            steps.rewind(conversation_id, to)


# --- entries as messages of a chat ----------------------------------------------------------------


def build_rows(entry: ConversationEntry) -> list[Message]:
    """Return the messages of an entry: the last has its id, those before it one with a number."""
    (dumped,) = ModelMessagesTypeAdapter.dump_python([entry.message], mode="json")
    if dumped["kind"] == "response":
        rows = [build_answer(dumped)]
    else:
        rows = [build_part_row(part) for part in dumped.pop("parts")]
        rows = rows or [{"role": "system", "content": "", KEY: {}}]
        rows[-1][KEY]["message"] = dumped
    for number, row in enumerate(rows, start=1):
        row["id"] = f"{entry.id}/{number}"
        moment = row.pop("time", None) or dumped.get("timestamp")
        if moment:
            row["timestamp"] = int(datetime.fromisoformat(moment).timestamp() * 1000)
    rows[-1]["id"] = entry.id
    return rows


def build_part_row(part: dict[str, Any]) -> Message:
    """Return a part of a request as a message; words that are its content are stored once."""
    kind, content = part["part_kind"], part.get("content")
    role = REQUEST_ROLES.get(kind, "system")
    if kind == "retry-prompt":
        role = "tool" if part.get("tool_name") else "user"
    row: Message = {"role": role, "content": render_content(content), KEY: {"part": part}}
    if isinstance(content, str):
        row[KEY]["part"] = {key: value for key, value in part.items() if key != "content"}
    if role == "tool":
        row |= {"tool_call_id": part["tool_call_id"], "name": part["tool_name"]}
    return {**row, "time": part.get("timestamp")}


def render_content(content: Any) -> str:
    """Return a content as a text: words as they are, anything else as JSON."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content]
    if parts and all(isinstance(each, str) for each in parts):
        return "\n\n".join(parts)
    return "" if content is None else json.dumps(content, ensure_ascii=False)


def build_answer(dumped: dict[str, Any]) -> Message:
    """Return a response as a message with its texts and calls."""
    texts = [part["content"] for part in dumped["parts"] if part["part_kind"] == "text"]
    row: Message = {"role": "assistant", "content": "\n\n".join(texts) or None, KEY: dumped}
    calls = [part for part in dumped["parts"] if part["part_kind"] == "tool-call"]
    if calls:
        row["tool_calls"] = [
            {
                "id": part["tool_call_id"],
                "type": "function",
                "function": {
                    "name": part["tool_name"],
                    "arguments": part["args"]
                    if isinstance(part["args"], str)
                    else json.dumps(part["args"] or {}),
                },
            }
            for part in calls
        ]
    elif row["content"] is None:
        row["content"] = ""
    return row


def join_entries(rows: Iterable[Message]) -> list[ConversationEntry]:
    """Return the entries of messages, each after the one before it."""
    entries: list[ConversationEntry] = []
    for entry_id, group in groupby(rows, get_entry_id):
        message = restore_message([*group])
        before = entries[-1].id if entries else None
        entries.append(ConversationEntry(id=entry_id, parent_id=before, message=message))
    return entries


def get_entry_id(row: Message) -> str:
    """Return the id of the entry that a message is a part of."""
    own = str(row.get("id") or f"position-{row['seq']}")
    entry_id, _, number = own.rpartition("/")
    return entry_id if number.isdecimal() and entry_id else own


def restore_message(rows: list[Message]) -> ModelMessage:
    """Return the message of an entry; its texts are those of the rows, whoever replaced them."""
    if rows[0]["role"] == "assistant":
        dumped = restore_answer(rows[0])
    else:
        fields = rows[-1].get(KEY, {}).get("message") or {"kind": "request"}
        parts = [restore_part(row) for row in rows]
        dumped = {**fields, "parts": [part for part in parts if part.get("part_kind")]}
    (message,) = ModelMessagesTypeAdapter.validate_python([dumped])
    return message


def restore_part(row: Message) -> dict[str, Any]:
    """Return a part of a request from its message."""
    held = row.get(KEY)
    if held is not None and "part" not in held:
        return {}
    part: dict[str, Any] = dict(held["part"]) if held else dict(PLAIN_PARTS[row["role"]])
    if not held and row["role"] == "tool":
        part |= {"tool_name": row.get("name") or "tool", "tool_call_id": row["tool_call_id"]}
    if render_content(part.get("content")) != row["content"]:
        part["content"] = row["content"]
    return part


def restore_answer(row: Message) -> dict[str, Any]:
    """Return a response from its message."""
    if row.get(KEY):
        return dict(row[KEY])
    parts = [{"part_kind": "text", "content": row.get("content") or ""}]
    for call in row.get("tool_calls") or []:
        asked = {"tool_name": call["function"]["name"], "args": call["function"]["arguments"]}
        parts.append({"part_kind": "tool-call", "tool_call_id": call["id"], **asked})
    return {"kind": "response", "parts": parts}
