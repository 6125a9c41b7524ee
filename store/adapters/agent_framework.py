"""A history for Agent Framework: ``Agent(client, context_providers=[Provider("chat.db")])``.

A message is one or more of a chat: each result of a tool is one, and so is what else it says in a
row. What it has beside its words, pictures and calls lies under the key ``agent_framework``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from agent_framework import HistoryProvider
from agent_framework import Message as AgentMessage

from .. import Policy, SessionNotFound
from ..records import Message
from .blocks import BLOCK_SHAPES, restore_blocks, shape_blocks
from .stores import StoreSource, StoreUser

__all__ = ["Provider"]

AGENT_KEY = "agent_framework"
AGENT_FORMAT = "openai"
AGENT_METADATA = {"framework": "agent-framework"}
AGENT_SHAPE = BLOCK_SHAPES[AGENT_KEY]
UNNAMED = "default"
"""The session of messages that are saved without the id of one, as in the framework's own files."""


class Provider(StoreUser, HistoryProvider):
    """The history of an agent's sessions, as Agent Framework's ``HistoryProvider`` has it.

    ``store`` is an open store, or the path or URL of one, which `close` gives back. A session of
    the framework is the session of its id. With a ``policy`` the history of a run is the view by
    that policy, compacted first if the policy says so. ``options`` are those of the framework's
    class, which say what is loaded and stored.
    """

    def __init__(
        self,
        store: StoreSource,
        source_id: str = "convostore",
        *,
        policy: Policy | None = None,
        **options: Any,
    ) -> None:
        StoreUser.__init__(self, store)
        HistoryProvider.__init__(self, source_id, **options)
        self._policy = policy

    async def get_messages(
        self,
        session_id: str | None,
        *,
        state: dict[str, Any] | None = None,  # noqa: ARG002 - their name
        **_: Any,
    ) -> list[AgentMessage]:
        """Return the messages of a session, the oldest first; none if there is no such session."""
        name = session_id or UNNAMED
        try:
            if self._policy is not None:
                view = await self.load_view(name, self._policy, AGENT_FORMAT)
                return join_contents(each.message for each in view.entries)
            found = await self.awaited.messages(name)
        except SessionNotFound:
            return []
        return join_contents(each.message for each in found)

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[AgentMessage],
        *,
        state: dict[str, Any] | None = None,  # noqa: ARG002 - their name
        **_: Any,
    ) -> None:
        """Append messages as one change; the session begins with the first.

        Those at the beginning that are the newest stored ones, by their ids, are not stored again:
        some callers give the whole history with each run.
        """
        name = session_id or UNNAMED
        width = sum(len(build_agent_rows(each)) for each in messages) + 1

        def work(steps: Any) -> None:
            try:
                stored = [each.message for each in steps.messages(name, last=width)]
            except SessionNotFound:
                stored = []
            new = messages[count_replayed(join_contents(stored), messages) :]
            rows = [row for each in new for row in build_agent_rows(each)]
            if rows:
                options = {"dedupe": "off", "format": AGENT_FORMAT, "metadata": AGENT_METADATA}
                steps.append(name, rows, create=True, **options)

        if messages:
            await self.awaited.atomically(work)


def count_replayed(stored: Sequence[AgentMessage], given: Sequence[AgentMessage]) -> int:
    """Return how many of the first given messages are the newest stored ones.

    One of them has an id: the same words may well be said again.
    """
    old, new = [[identify_message(each) for each in some] for some in (stored, given)]
    for count in range(min(len(old), len(new)), 0, -1):
        same = new[:count]
        if old[-count:] == same and any(isinstance(name, str) for name in same):
            return count
    return 0


def identify_message(message: AgentMessage) -> Any:
    """Return the id of a message, or what it says."""
    return message.message_id or [message.role, [each.to_dict() for each in message.contents]]


# --- messages of the framework as messages of a chat ----------------------------------------------


def build_agent_rows(message: AgentMessage) -> list[Message]:
    """Return the rows of a message; the last has its id, and what is not in its contents."""
    told = message.to_dict()
    rows: list[Message] = []
    for is_result, run in groupby(told.pop("contents"), is_agent_result):
        if is_result:
            rows += [build_agent_result(content) for content in run]
        else:
            rows.append(build_agent_words(message.role, [*run]))
    rows = rows or [build_agent_words(message.role, [])]
    rows[-1][AGENT_KEY]["message"] = told
    if message.message_id:
        rows[-1]["id"] = message.message_id
    return rows


def is_agent_result(content: Message) -> bool:
    """Tell whether a content is the result of a call."""
    return bool(content["type"] == "function_result" and content.get("call_id"))


def build_agent_words(role: str, contents: list[Message]) -> Message:
    """Return what is said in a row of contents as a message."""
    known = role if role in ("system", "developer", "assistant") else "user"
    said = shape_blocks(contents, AGENT_SHAPE, calls=known == "assistant")
    return {"role": known, AGENT_KEY: {"contents": said.pop("rest")}, **said}


def build_agent_result(content: Message) -> Message:
    """Return the result of a tool as a message."""
    rest = dict(content)
    row: Message = {"role": "tool", "tool_call_id": rest.pop("call_id"), AGENT_KEY: {}}
    items = rest.pop("items", None)
    if items is None:
        row["content"] = render_agent_result(rest.get("result"))
    else:
        said = shape_blocks(items, AGENT_SHAPE)
        row |= {"content": said["content"]}
        rest["items"] = said["rest"]
        if rest.get("result") == join_agent_texts(items):
            del rest["result"]
    row[AGENT_KEY]["result"] = rest
    if "exception" in rest:
        row["messageStatus"] = "error"
    return row


def render_agent_result(result: Any) -> str:
    """Return a result as a text."""
    if isinstance(result, str):
        return result
    return "" if result is None else json.dumps(result, ensure_ascii=False)


def join_agent_texts(items: list[Message]) -> str:
    """Return the texts of a result, joined as the framework does it."""
    texts = [item["text"] for item in items if item["type"] == "text"]
    return "\n".join(filter(None, texts))


def join_contents(rows: Iterable[Message]) -> list[AgentMessage]:
    """Return the messages of rows; the last row of each, and one of another program, ends it."""
    groups: list[list[Message]] = [[]]
    for row in rows:
        held = row.get(AGENT_KEY)
        if held is None and groups[-1]:
            groups.append([])
        groups[-1].append(row)
        if held is None or "message" in held:
            groups.append([])
    return [restore_agent_message(group) for group in groups if group]


def restore_agent_message(rows: list[Message]) -> AgentMessage:
    """Return a message from its rows; what it says is theirs, whoever replaced it."""
    last = rows[-1]
    fields = last.get(AGENT_KEY, {}).get("message") or {"role": last["role"]}
    contents: list[Message] = []
    for row in rows:
        held = row.get(AGENT_KEY, {})
        if row["role"] == "tool":
            contents.append(restore_agent_result(row, held.get("result")))
        else:
            contents += restore_blocks(row, held.get("contents"), AGENT_SHAPE)
    restored: AgentMessage = AgentMessage.from_dict({**fields, "contents": contents})
    return restored


def restore_agent_result(row: Message, held: Message | None) -> Message:
    """Return the result of a tool from its message."""
    rest = {"type": "function_result", "items": None, **(held or {})}
    content = {**rest, "call_id": row["tool_call_id"]}
    if held and "items" not in held and render_agent_result(held.get("result")) == row["content"]:
        return {key: value for key, value in content.items() if key != "items"}
    items = restore_blocks(row, rest["items"], AGENT_SHAPE)
    return {"result": join_agent_texts(items), **content, "items": items}
