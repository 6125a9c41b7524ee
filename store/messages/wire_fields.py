"""Messages without chat content: another program's events, encrypted reasoning.

They are stored like any other, and left out of a request that is a chat.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .columns import Message

SEALED_KEY = "encrypted_content"
"""The key of content that only its provider can read."""
WIRE_KEY = "_wire"
"""The key under which a message keeps its original fields in the wire format of its source."""
CONTENT_KEYS = (
    *("tool_calls", "function_call", "refusal", "audio"),
    *("reasoning_content", "reasoning", "thinking"),
)
"""Keys by which a chat message says something, beside its content."""
CHAT_KEYS = frozenset(
    {"role", "name", "tool_call_id", "timestamp", "messageStatus", "id", *CONTENT_KEYS}
)
"""Keys of a chat message that say nothing by themselves, or if they are empty."""


def list_provider_data(message: Mapping[str, Any]) -> list[Any]:
    """Return the data of a message of another format beside its content: reasoning, signatures.

    Content that only its provider can read is included.
    """
    held = message.get(WIRE_KEY)
    if not isinstance(held, dict) or "content" not in message:
        return []
    blocks = [each for each in held.get("plan", ()) if isinstance(each, dict)]
    return [*blocks, *held.get("calls", {}).values(), *_list_sealed_texts(message["content"])]


def _list_sealed_texts(content: Any) -> Iterator[str]:
    """Yield the texts in a content that only its provider can read."""
    if isinstance(content, list):
        for each in content:
            yield from _list_sealed_texts(each)
    elif isinstance(content, dict):
        if isinstance(content.get(SEALED_KEY), str):
            yield content[SEALED_KEY]
        yield from _list_sealed_texts(content.get("content"))


def select_opaque_fields(message: Mapping[str, Any]) -> Message:
    """Return the fields of a message that no chat shows; an empty object if it has chat content."""
    if "content" in message or message.get("role") == "tool" or any(map(message.get, CONTENT_KEYS)):
        return {}
    return {key: value for key, value in message.items() if key not in CHAT_KEYS}
