"""An entry of Droid's sessions as messages of the chat.

What an entry says beyond its messages is kept under one extra key, ``droid``.
"""

from __future__ import annotations

from ...messages import Message
from ...text import Fields
from ..blocks import assistant_message, blocks_of, user_messages
from ..events import fields_of, iso_milliseconds, joined, telling, without

ROLES = ("user", "assistant")

HIDDEN = "user_only"
"""The visibility of a message that was sent to no model."""

_SAID = ("type", "id", "parentId", "timestamp", "message")


def is_told(entry: Fields) -> bool:
    """Tell whether an entry is a message that can be read, and that went to a model."""
    said = fields_of(entry.get("message"))
    is_sent = said.get("role") in ROLES and said.get("visibility") != HIDDEN
    return is_sent and blocks_of(said.get("content")) is not None


def messages_of(name: str, entry: Fields) -> list[Message]:
    """Return the messages of an entry; the first has its id."""
    said = entry["message"]
    blocks = blocks_of(said.get("content")) or []
    made = [_answer(blocks)] if said["role"] == "assistant" else _asked(said, blocks)
    for number, message in enumerate(made, 1):
        message["id"] = name if number == 1 else f"{name}-{number}"
    extra = {**without(entry, *_SAID), **without(said, "role", "content")}
    known = {**made[0].get("droid", {}), **telling(extra)}
    made[0] |= telling({"droid": known})
    return [
        message | telling({"timestamp": iso_milliseconds(entry.get("timestamp"))})
        for message in made
    ]


def _asked(said: Fields, blocks: list[Fields]) -> list[Message]:
    """Return results and the user's message; other fields of a result are kept under ``droid``."""
    made = user_messages(said.get("content"), blocks)
    for message in made:
        if "claude_code" in message:
            message["droid"] = message.pop("claude_code")
    return made


def _answer(blocks: list[Fields]) -> Message:
    """Return an answer; thoughts that are not signed are text, as no API takes them back."""
    thoughts = [
        block
        for block in blocks
        if (block.get("type") == "thinking" and not block.get("signature"))
    ]
    message, _ = assistant_message([block for block in blocks if block not in thoughts])
    texts = joined(block.get("thinking") for block in thoughts)
    return message | telling({"reasoning_content": texts})
