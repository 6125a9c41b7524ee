"""What items of OpenAI's Agents SDK tell about the turns of a history, and its tools."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from ..records import StoredMessage

MCP_TYPES = {"mcp_call", "mcp_approval_request"}
NAMELESS_TYPES = {
    *("computer_call", "file_search_call", "web_search_call", "code_interpreter_call"),
    *("shell_call", "apply_patch_call"),
}
"""Calls without a name, which are known by their type."""
SEARCH_TYPES = {"tool_search_call", "tool_search_output"}
CALL_TYPES = {
    *MCP_TYPES,
    *NAMELESS_TYPES,
    *("tool_call", "function_call", "tool_search_call", "custom_tool_call"),
}
ITEM_PREVIEW_LENGTH = 100
UNSENT_KEY = "openai-agents unsent"
"""The key of a message for an item that no model can be sent."""
SENT_CALL_KEYS = {
    "function_call": ("call_id", "name", "arguments"),
    "custom_tool_call": ("call_id", "name", "input"),
}
"""Types of calls, and the keys without which no model can be sent one."""


class TurnItem(NamedTuple):
    """An item, and the number of its turn on its branch (0: before the first)."""

    turn: int
    stored: StoredMessage

    @property
    def item(self) -> dict[str, Any]:
        """The item as it went in."""
        return {**restore_item(self.stored)}

    @property
    def begins_turn(self) -> bool:
        """Whether it is the user's."""
        return self.item.get("role") == "user"

    @property
    def kind(self) -> str:
        """Who said it, or else its type."""
        role = self.item.get("role")
        return role if role in ("user", "assistant") else str(self.item.get("type") or "other")

    @property
    def tool_name(self) -> str | None:
        """The name of the tool that it calls or that answered."""
        kind, name = self.item.get("type"), self.item.get("name")
        if kind in MCP_TYPES and "server_label" in self.item:
            parts = [part for part in (self.item["server_label"], name) if part]
            return ".".join(map(str, parts)) or None
        if kind in SEARCH_TYPES:
            return "tool_search"
        if kind in NAMELESS_TYPES:
            return str(kind)
        space = self.item.get("namespace")
        return f"{space}.{name}" if name and space and space != name else name and str(name)


def shape_items(items: Iterable[Any]) -> list[dict[str, Any]]:
    """Return items as they are stored: as they are, but incomplete calls under a key of their own.

    A model can be sent no call without its id or name: a history by a policy leaves these out.
    """
    return [*map(_shape_item, items)]


def _shape_item(item: Any) -> Any:
    if not isinstance(item, dict):
        return item
    keys = SENT_CALL_KEYS.get(str(item.get("type")), ())
    is_whole = all(isinstance(item.get(key), str) for key in keys)
    return item if is_whole else {UNSENT_KEY: item}


def restore_item(stored: StoredMessage) -> Any:
    """Return an item as it went in."""
    return stored.message.get(UNSENT_KEY, stored.message)


def number_turns(found: Iterable[StoredMessage]) -> list[TurnItem]:
    """Return the items of a line from its beginning, each with its turn."""
    numbered, turn = [], 0
    for stored in found:
        turn += stored.message.get("role") == "user"
        numbered.append(TurnItem(turn, stored))
    return numbered


def format_time(moment: int) -> str:
    """Return a moment (ms) as the SDK's tables have it: in UTC, to the second."""
    return f"{datetime.fromtimestamp(moment / 1000, UTC):%Y-%m-%d %H:%M:%S}"


def describe_turn(begun: TurnItem, length: int | None = None) -> dict[str, Any]:
    """Return a user's turn as the SDK tells it, with a preview of at most a length."""
    content = begun.item.get("content", "")
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    is_cut = length is not None and len(text) > length
    return {
        "turn": begun.turn,
        "content": f"{text[:length]}..." if is_cut else text,
        "full_content": content,
        "timestamp": format_time(begun.stored.stored_at),
        "can_branch": True,
    }


def has_words(begun: TurnItem, words: re.Pattern[str]) -> bool:
    """Tell whether a user's item says what a pattern asks for."""
    content = begun.item.get("content", "")
    parts = [content] if isinstance(content, str) else [part.get("text", "") for part in content]
    return any(words.search(part) for part in parts if isinstance(part, str))


def count_tools(items: Sequence[TurnItem]) -> list[tuple[str, int, int]]:
    """Return the tools of each turn: their names, how often, and the turn.

    A result of a search for tools counts if no such call is in its turn.
    """
    searched = {each.turn for each in items if each.kind == "tool_search_call"}
    used = Counter(
        (each.turn, each.tool_name or "")
        for each in items
        if each.kind in CALL_TYPES
        or (each.kind == "tool_search_output" and each.turn not in searched)
    )
    return [(name, count, turn) for (turn, name), count in sorted(used.items())]
