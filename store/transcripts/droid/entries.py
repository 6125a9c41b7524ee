"""An entry of Droid's sessions as messages of the chat.

What an entry says beyond its messages is kept under one extra key, ``droid``.
"""

from __future__ import annotations

from ...messages import Message
from ...text import JsonFields
from ..blocks import build_assistant_message, build_user_messages, parse_blocks
from ..events import drop_empty_fields, drop_keys, join_texts, parse_iso_milliseconds

DROID_ROLES = ("user", "assistant")

HIDDEN_VISIBILITY = "user_only"
"""The visibility of a message that was sent to no model."""

_DROID_ENTRY_KEYS = ("type", "id", "parentId", "timestamp", "message")


def parse_droid_entry(name: str, entry: JsonFields) -> list[Message]:
    """Return the messages of an entry; the first has its id."""
    said = entry["message"]
    blocks = parse_blocks(said.get("content")) or []
    made = (
        [_parse_droid_answer(blocks)]
        if said["role"] == "assistant"
        else _parse_droid_question(said, blocks)
    )
    for number, message in enumerate(made, 1):
        message["id"] = name if number == 1 else f"{name}-{number}"
    extra = {**drop_keys(entry, *_DROID_ENTRY_KEYS), **drop_keys(said, "role", "content")}
    known = {**made[0].get("droid", {}), **drop_empty_fields(extra)}
    made[0] |= drop_empty_fields({"droid": known})
    return [
        message | drop_empty_fields({"timestamp": parse_iso_milliseconds(entry.get("timestamp"))})
        for message in made
    ]


def _parse_droid_question(said: JsonFields, blocks: list[JsonFields]) -> list[Message]:
    """Return results and the user's message; other fields of a result are kept under ``droid``."""
    made = build_user_messages(said.get("content"), blocks)
    for message in made:
        if "claude_code" in message:
            message["droid"] = message.pop("claude_code")
    return made


def _parse_droid_answer(blocks: list[JsonFields]) -> Message:
    """Return an answer; thoughts that are not signed are text, as no API takes them back."""
    thoughts = [
        block
        for block in blocks
        if (block.get("type") == "thinking" and not block.get("signature"))
    ]
    message, _ = build_assistant_message([block for block in blocks if block not in thoughts])
    texts = join_texts(block.get("thinking") for block in thoughts)
    return message | drop_empty_fields({"reasoning_content": texts})
