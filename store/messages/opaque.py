"""Messages with nothing in them that a chat shows: another program's events, encrypted reasoning.

They are kept like any other, and left out where a request is a chat.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .columns import Message

WIRE = "_wire"
"""Where a message keeps what it was in the wire format in which it came."""
SAYING = (
    *("tool_calls", "function_call", "refusal", "audio"),
    *("reasoning_content", "reasoning", "thinking"),
)
"""Keys by which a message of a chat says something, beside its content."""
BESIDE = frozenset({"role", "name", "tool_call_id", "timestamp", "messageStatus", "id", *SAYING})
"""Keys of a chat that say nothing by themselves, or where they are empty."""


def opaque_fields(message: Mapping[str, Any]) -> Message:
    """Return what a message holds that no chat shows; nothing where it has chat content."""
    if "content" in message or message.get("role") == "tool" or any(map(message.get, SAYING)):
        return {}
    return {key: value for key, value in message.items() if key not in BESIDE}
