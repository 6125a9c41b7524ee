"""Messages with nothing in them that a chat shows: another program's events, encrypted reasoning.

They are kept like any other, and left out where a request is a chat.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .columns import Message

SEALED = "encrypted_content"
"""Where a part has what only its provider can read."""
WIRE = "_wire"
"""Where a message keeps what it was in the wire format in which it came."""
SAYING = (
    *("tool_calls", "function_call", "refusal", "audio"),
    *("reasoning_content", "reasoning", "thinking"),
)
"""Keys by which a message of a chat says something, beside its content."""
BESIDE = frozenset({"role", "name", "tool_call_id", "timestamp", "messageStatus", "id", *SAYING})
"""Keys of a chat that say nothing by themselves, or where they are empty."""


def list_provider_data(message: Mapping[str, Any]) -> list[Any]:
    """Return what a message of another format keeps beside its content: reasoning, signatures.

    What only its provider can read in the content is of it, too.
    """
    held = message.get(WIRE)
    if not isinstance(held, dict) or "content" not in message:
        return []
    blocks = [each for each in held.get("plan", ()) if isinstance(each, dict)]
    return [*blocks, *held.get("calls", {}).values(), *_sealed(message["content"])]


def _sealed(content: Any) -> Iterator[str]:
    """Yield the texts in a content that only its provider can read."""
    if isinstance(content, list):
        for each in content:
            yield from _sealed(each)
    elif isinstance(content, dict):
        if isinstance(content.get(SEALED), str):
            yield content[SEALED]
        yield from _sealed(content.get("content"))


def opaque_fields(message: Mapping[str, Any]) -> Message:
    """Return what a message holds that no chat shows; nothing where it has chat content."""
    if "content" in message or message.get("role") == "tool" or any(map(message.get, SAYING)):
        return {}
    return {key: value for key, value in message.items() if key not in BESIDE}
