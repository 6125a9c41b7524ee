"""Histories of LangChain: ``History("chat-1", "chat.db").add_messages(messages)``.

A message is one of a chat. What it has beside its words and calls lies under the key ``langchain``,
such as its own id: LangChain gives an id to some messages only, so ids are no keys here.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import BaseMessage, messages_from_dict

from .. import Policy, SessionNotFound
from ..records import Message
from .stores import StoreSource, StoreUser

__all__ = ["History"]

LANGCHAIN_KEY = "langchain"
CHAT_FORMAT = "openai"
ROLES = {
    "human": "user",
    "HumanMessageChunk": "user",
    "ai": "assistant",
    "AIMessageChunk": "assistant",
    "system": "system",
    "SystemMessageChunk": "system",
    "tool": "tool",
    "ToolMessageChunk": "tool",
}
"""The roles of messages by their types; those of other types are a user's."""
TYPES = {"user": "human", "assistant": "ai", "tool": "tool"}
"""The types of messages that another program stored, or that were redacted, by their roles."""


class History(StoreUser, BaseChatMessageHistory):
    """The messages of a session of the store, as LangChain's ``BaseChatMessageHistory`` has them.

    ``store`` is an open store, or the path or URL of one, which `close` gives back. With a
    ``policy`` the messages that are read are the view by that policy, compacted first if the policy
    says so; otherwise they are all. `clear` erases the session for good.
    """

    def __init__(
        self, session_id: str, store: StoreSource, *, policy: Policy | None = None
    ) -> None:
        super().__init__(store)
        self.session_id = session_id
        self._policy = policy

    @property
    def messages(self) -> list[BaseMessage]:
        """The messages, the oldest first; none if there is no session yet."""
        with suppress(SessionNotFound):
            if self._policy is not None:
                view = self.read_view(self.session_id, self._policy)
                return [restore_message(each.message) for each in view.entries]
            return [restore_message(each.message) for each in self.store.messages(self.session_id)]
        return []

    async def aget_messages(self) -> list[BaseMessage]:
        """Return the messages, as `messages` has them."""
        with suppress(SessionNotFound):
            if self._policy is not None:
                view = await self.load_view(self.session_id, self._policy, CHAT_FORMAT)
                return [restore_message(each.message) for each in view.entries]
            found = await self.awaited.messages(self.session_id)
            return [restore_message(each.message) for each in found]
        return []

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Append messages as one change; the session begins with the first."""
        rows = [shape_message(each) for each in messages]
        if rows:
            self.store.append(self.session_id, rows, create=True, dedupe="off", format=CHAT_FORMAT)

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Append messages, as `add_messages` does."""
        rows = [shape_message(each) for each in messages]
        if rows:
            await self.awaited.append(
                self.session_id, rows, create=True, dedupe="off", format=CHAT_FORMAT
            )

    def clear(self) -> None:
        """Erase the messages for good, except those that forks share."""
        with suppress(SessionNotFound):
            self.store.delete_session(self.session_id)

    async def aclear(self) -> None:
        """Erase the messages, as `clear` does."""
        with suppress(SessionNotFound):
            await self.awaited.delete_session(self.session_id)


# --- messages of LangChain as messages of a chat --------------------------------------------------


def shape_message(message: BaseMessage) -> Message:
    """Return a message as one of a chat; what that cannot say is kept beside."""
    fields = message.model_dump(exclude_defaults=True)
    row: Message = {
        "role": ROLES.get(message.type, "user"),
        "content": shape_content(message.content),
    }
    if fields.get("tool_calls"):
        row["tool_calls"] = [shape_call(each) for each in fields["tool_calls"]]
        if restore_tool_calls(row["tool_calls"]) == fields["tool_calls"]:
            del fields["tool_calls"]
    if row["role"] == "tool":
        row["tool_call_id"] = fields.pop("tool_call_id")
        if fields.get("status") == "error":
            row["messageStatus"] = "error"
    if row["content"] == fields.get("content"):
        del fields["content"]
    row[LANGCHAIN_KEY] = {**fields, "type": message.type}
    return row


def shape_content(content: Any) -> Any:
    """Return a content as a chat has it: a text, or parts that are texts and pictures."""
    if isinstance(content, str):
        return content
    parts = []
    for each in content:
        part = {"type": "text", "text": each} if isinstance(each, str) else each
        if isinstance(part.get("text"), str) or isinstance(part.get("image_url"), dict):
            parts.append(part)
    if any("image_url" in each for each in parts):
        return parts
    return "\n\n".join(each["text"] for each in parts)


def shape_call(call: Message) -> Message:
    """Return a call of a tool as a chat has it."""
    called = {"name": call["name"], "arguments": json.dumps(call["args"])}
    told = {"id": call["id"]} if call.get("id") else {}
    return {**told, "type": "function", "function": called}


def restore_tool_calls(calls: list[Message]) -> list[Message]:
    """Return the calls of a message of a chat as LangChain has them."""
    return [
        {
            "name": each["function"]["name"],
            "args": json.loads(each["function"]["arguments"]),
            "id": each.get("id"),
            "type": "tool_call",
        }
        for each in calls
    ]


def restore_message(row: Message) -> BaseMessage:
    """Return the message of a row; its content may be that of a view."""
    kept = {**row.get(LANGCHAIN_KEY, {})}
    name = kept.pop("type", None) or TYPES.get(row["role"], "system")
    fields = {"content": row.get("content") or "", **kept}
    if "content" in kept and shape_content(kept["content"]) != row.get("content"):
        fields["content"] = row.get("content") or ""
    if "tool_calls" in row and "tool_calls" not in fields:
        fields["tool_calls"] = restore_tool_calls(row["tool_calls"])
    if "tool_call_id" in row:
        fields["tool_call_id"] = row["tool_call_id"]
    (message,) = messages_from_dict([{"type": name, "data": fields}])
    return message
