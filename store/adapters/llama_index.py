"""Chat stores for LlamaIndex: ``ChatMemoryBuffer(chat_store=ChatStore("chat.db"))``.

A message is one of a chat. What it has beside its words, pictures and calls lies under the key
``llama_index``. Whatever LlamaIndex removes from a conversation stays on a branch that its line
leaves, except a conversation that is deleted whole: it is erased.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.storage.chat_store.base import BaseChatStore
from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore, MessageStatus

from .. import Policy, SessionNotFound
from ..records import Message, StoredMessage
from .blocks import BLOCK_SHAPES, restore_blocks, shape_blocks
from .stores import StoreSource, StoreUser, read_sessions

__all__ = ["ChatStore", "DBChatStore"]

LLAMA_KEY = "llama_index"
LLAMA_OPTIONS: dict[str, Any] = {"format": "openai"}
LLAMA_METADATA = {"framework": "llama-index"}
LLAMA_SHAPE = BLOCK_SHAPES[LLAMA_KEY]
LLAMA_ROLES = {"chatbot": "assistant", "model": "assistant", "function": "tool"}
"""The roles that a chat has for those that it does not know."""
ACTIVE = MessageStatus.ACTIVE


class ChatStore(StoreUser, BaseChatStore):
    """The conversations of a store by their keys, as LlamaIndex's ``BaseChatStore`` has them.

    ``store`` is an open store, or the path or URL of one, which `close` gives back. A key is the id
    of a session. With a ``policy`` the messages that are read are the view by that policy,
    compacted first if the policy says so; otherwise they are all.
    """

    def __init__(self, store: StoreSource, *, policy: Policy | None = None) -> None:
        BaseChatStore.__init__(self)
        StoreUser.__init__(self, store)
        self._policy = policy

    @classmethod
    def class_name(cls) -> str:
        """Return the name of the class in the framework."""
        return "ConvostoreChatStore"

    def set_messages(self, key: str, messages: list[ChatMessage]) -> None:
        """Replace the messages of a key; those that it begins with already are not stored again."""
        rows = [build_llama_row(each) for each in messages]
        self.store.atomically(lambda steps: replace_rows(steps, key, rows))

    def get_messages(self, key: str) -> list[ChatMessage]:
        """Return the messages of a key, the oldest first; none if there is no such key."""
        with suppress(SessionNotFound):
            if self._policy is not None:
                return restore_llama_messages(self.read_view(key, self._policy).entries)
            return restore_llama_messages(self.store.messages(key))
        return []

    def add_message(self, key: str, message: ChatMessage) -> None:
        """Append a message; the session begins with the first."""
        append_rows(self.store, key, [build_llama_row(message)])

    def delete_messages(self, key: str) -> list[ChatMessage] | None:
        """Erase a key for good, except what forks share, and return its messages; None if none."""

        def work(steps: Any) -> list[ChatMessage]:
            found = restore_llama_messages(steps.messages(key))
            steps.delete_session(key)
            return found

        with suppress(SessionNotFound):
            deleted: list[ChatMessage] = self.store.atomically(work)
            return deleted
        return None

    def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        """Remove a message by its place, from 0 on, and return it; None if there is none."""

        def work(steps: Any) -> ChatMessage | None:
            rows = [each.message for each in steps.messages(key)]
            if not -len(rows) <= idx < len(rows):
                return None
            removed = rows.pop(idx)
            replace_rows(steps, key, rows)
            return restore_llama_message(removed)

        with suppress(SessionNotFound):
            removed: ChatMessage | None = self.store.atomically(work)
            return removed
        return None

    def delete_last_message(self, key: str) -> ChatMessage | None:
        """Remove the last message and return it; None if there is none."""
        with suppress(SessionNotFound):
            popped = self.store.pop(key)
            return popped and restore_llama_message(popped.message)
        return None

    def get_keys(self) -> list[str]:
        """Return the keys, the one used last first."""
        sessions = self.store.reading(lambda reads: read_sessions(reads, LLAMA_METADATA))
        return [each.id for each in sessions]


class DBChatStore(StoreUser, AsyncDBChatStore):
    """The conversations of a store by their keys, as LlamaIndex's ``AsyncDBChatStore`` has them.

    ``store`` and ``policy`` are those of `ChatStore`; the view is given for all active messages,
    without a limit. The id of a message is its position in its session. One that is archived stays
    at its position, with a note.
    """

    def __init__(self, store: StoreSource, *, policy: Policy | None = None) -> None:
        AsyncDBChatStore.__init__(self)
        StoreUser.__init__(self, store)
        self._policy = policy

    @classmethod
    def class_name(cls) -> str:
        """Return the name of the class in the framework."""
        return "ConvostoreDBChatStore"

    async def get_messages(
        self,
        key: str,
        status: MessageStatus | None = ACTIVE,
        limit: int | None = None,
        offset: int | None = None,
    ) -> list[ChatMessage]:
        """Return the messages of a status (None: any), the oldest first, from ``offset`` on."""
        with suppress(SessionNotFound):
            if self._policy is not None and (status, limit, offset) == (ACTIVE, None, None):
                return await self._load_active(key, self._policy)
            found = await self.awaited.reading(lambda reads: read_rows(reads, key, status))
            stop = None if limit is None else (offset or 0) + limit
            return restore_llama_messages(found[offset or 0 : stop])
        return []

    async def _load_active(self, key: str, policy: Policy) -> list[ChatMessage]:
        view = await self.load_view(key, policy, "openai")
        gone = await self.awaited.reading(
            lambda reads: read_rows(reads, key, MessageStatus.ARCHIVED)
        )
        archived = {each.seq for each in gone}
        return restore_llama_messages(each for each in view.entries if each.seq not in archived)

    async def count_messages(self, key: str, status: MessageStatus | None = ACTIVE) -> int:
        """Return the number of messages of a status (None: any)."""
        with suppress(SessionNotFound):
            return len(await self.awaited.reading(lambda reads: read_rows(reads, key, status)))
        return 0

    async def add_message(
        self, key: str, message: ChatMessage, status: MessageStatus = ACTIVE
    ) -> None:
        """Append a message; the session begins with the first."""
        await self.add_messages(key, [message], status)

    async def add_messages(
        self, key: str, messages: list[ChatMessage], status: MessageStatus = ACTIVE
    ) -> None:
        """Append messages as one change."""
        rows = [build_llama_row(each, status) for each in messages]
        if rows:
            await self.awaited.atomically(lambda steps: append_rows(steps, key, rows))

    async def set_messages(
        self, key: str, messages: list[ChatMessage], status: MessageStatus = ACTIVE
    ) -> None:
        """Replace the messages of a key, of any status."""
        rows = [build_llama_row(each, status) for each in messages]
        await self.awaited.atomically(lambda steps: replace_rows(steps, key, rows))

    async def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        """Remove a message by its position, from 1 on, and return it; None if there is none."""

        def choose(found: list[StoredMessage]) -> list[StoredMessage]:
            return [each for each in found if each.seq == idx]

        removed = await self._remove(key, choose)
        return removed[0] if removed else None

    async def delete_messages(self, key: str, status: MessageStatus | None = None) -> None:
        """Remove the messages of a status; without one the key is erased for good."""
        if status is None:
            with suppress(SessionNotFound):
                await self.awaited.delete_session(key)
        else:
            await self._remove(key, lambda found: found, status)

    async def delete_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        """Remove the oldest ``n`` active messages and return them."""
        return await self._remove(key, lambda found: found[: max(n, 0)], ACTIVE)

    async def archive_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        """Archive the oldest ``n`` active messages and return them."""

        def work(steps: Any) -> list[ChatMessage]:
            oldest = read_rows(steps, key, ACTIVE)[: max(n, 0)]
            for each in oldest:
                steps.annotate(key, each.seq, LLAMA_KEY, {"status": MessageStatus.ARCHIVED.value})
            return restore_llama_messages(oldest)

        with suppress(SessionNotFound):
            archived: list[ChatMessage] = await self.awaited.atomically(work)
            return archived
        return []

    async def get_keys(self) -> list[str]:
        """Return the keys, the one used last first."""
        return [each.id for each in await self.list_sessions_where(LLAMA_METADATA)]

    async def _remove(
        self,
        key: str,
        choose: Callable[[list[StoredMessage]], list[StoredMessage]],
        status: MessageStatus | None = None,
    ) -> list[ChatMessage]:
        """Remove what is chosen of the messages of a status, and return it."""

        def work(steps: Any) -> list[ChatMessage]:
            chosen = choose(read_rows(steps, key, status))
            gone = {each.seq for each in chosen}
            replace_rows(steps, key, read_others(steps, key, gone))
            return restore_llama_messages(chosen)

        with suppress(SessionNotFound):
            removed: list[ChatMessage] = await self.awaited.atomically(work)
            return removed
        return []


def append_rows(steps: Any, key: str, rows: list[Message]) -> None:
    """Append messages; the session begins with the first."""
    steps.append(key, rows, create=True, metadata=LLAMA_METADATA, **LLAMA_OPTIONS)


def replace_rows(steps: Any, key: str, rows: list[Message]) -> None:
    """Make a session consist of messages; those that it begins with already stay."""
    try:
        stored = [each.message for each in steps.messages(key)]
    except SessionNotFound:
        steps.create_session(key, metadata=LLAMA_METADATA)
        stored = []
    same = 0
    for before, row in zip(stored, rows, strict=False):
        if before != row:
            break
        same += 1
    if rows[same:]:
        steps.replace(key, same, rows[same:], **LLAMA_OPTIONS)
    elif same < len(stored):
        steps.rewind(key, same)


def read_statuses(reads: Any, key: str) -> dict[int, str]:
    """Return the statuses that notes give to messages, by their positions."""
    notes = reads.annotations(key, key=LLAMA_KEY)
    return {note.seq: note.value["status"] for note in notes}


def get_status(stored: StoredMessage, noted: dict[int, str]) -> str:
    """Return the status of a message: what a note says, or what it began with."""
    begun = stored.message.get(LLAMA_KEY, {}).get("status", ACTIVE.value)
    return noted.get(stored.seq, str(begun))


def read_rows(reads: Any, key: str, status: MessageStatus | None) -> list[StoredMessage]:
    """Return the messages of a status (None: any). Raises SessionNotFound."""
    found: list[StoredMessage] = reads.messages(key)
    if status is None:
        return found
    noted = read_statuses(reads, key)
    return [each for each in found if get_status(each, noted) == status.value]


def read_others(reads: Any, key: str, gone: set[int]) -> list[Message]:
    """Return the messages at other positions; a note of one that moves is a part of it."""
    noted, first = read_statuses(reads, key), min(gone, default=0)
    rows = []
    for each in reads.messages(key):
        row = each.message
        if each.seq > first and each.seq in noted:
            held = {**row.get(LLAMA_KEY, {}), "status": noted[each.seq]}
            row = {**row, LLAMA_KEY: held}
        if each.seq not in gone:
            rows.append(row)
    return rows


# --- messages of LlamaIndex as messages of a chat -------------------------------------------------


def build_llama_row(message: ChatMessage, status: MessageStatus = ACTIVE) -> Message:
    """Return a message as one of a chat; what that cannot say is kept beside."""
    told = message.model_dump(mode="json")
    call_id = told["additional_kwargs"].get("tool_call_id")
    role = LLAMA_ROLES.get(told["role"], told["role"])
    if role == "tool" and not call_id:
        role = "user"
    said = shape_blocks(told.pop("blocks"), LLAMA_SHAPE, calls=role == "assistant")
    told["blocks"] = said.pop("rest")
    row: Message = {"role": role, LLAMA_KEY: told, **said}
    if role == "tool":
        row["tool_call_id"] = call_id
    asked = told["additional_kwargs"].get("tool_calls")
    if role == "assistant" and "tool_calls" not in row and are_chat_calls(asked):
        row["tool_calls"] = asked
    if status is not ACTIVE:
        row[LLAMA_KEY]["status"] = status.value
    return row


def are_chat_calls(asked: Any) -> bool:
    """Tell whether these are calls as OpenAI's client has them; older models give them beside."""
    return bool(asked) and all(
        isinstance(each, dict) and each.get("id") and isinstance(each.get("function"), dict)
        for each in asked
    )


def restore_llama_message(row: Message) -> ChatMessage:
    """Return the message of a row; what it says is that of the row, whoever replaced it."""
    held = row.get(LLAMA_KEY)
    fields = dict(held or {"role": row["role"], "additional_kwargs": {}})
    if held is None and row.get("tool_call_id"):
        fields["additional_kwargs"] = {"tool_call_id": row["tool_call_id"]}
    fields.pop("status", None)
    fields["blocks"] = restore_blocks(row, fields.get("blocks"), LLAMA_SHAPE)
    restored: ChatMessage = ChatMessage.model_validate(fields)
    return restored


def restore_llama_messages(found: Iterable[Any]) -> list[ChatMessage]:
    """Return the messages of stored ones, or of entries of a view."""
    return [restore_llama_message(each.message) for each in found]
