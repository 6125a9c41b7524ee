"""A message of claude.ai as messages of the chat.

An answer of claude.ai holds calls, their results and the text after them; here a result is a
message of its own. Blocks are those of the Anthropic API, with keys unknown to that API. These
keys, and fields of a message outside the chat's shape, are kept under one extra key, ``claude_ai``.
"""

from __future__ import annotations

from typing import Any

from ...messages import Message
from ...text import Fields
from ..blocks import Block, answer_messages
from ..events import (
    fields_of,
    iso_milliseconds,
    list_of,
    simplest_content,
    telling,
    text_of,
    text_part,
    without,
)

ROLES = {"human": "user", "assistant": "assistant"}

BLOCK_KEYS = {
    "text": ("type", "text"),
    "thinking": ("type", "thinking", "signature"),
    "redacted_thinking": ("type", "data"),
    "tool_use": ("type", "id", "name", "input"),
    "tool_result": ("type", "tool_use_id", "content", "is_error"),
}
"""Type of a block → its keys that the API knows; blocks of other types stay as they are."""

_SAID = ("uuid", "sender", "text", "content", "created_at", "parent_message_uuid")


def is_message(value: object) -> bool:
    """Tell whether a message can be read: who said it, and what."""
    fields = fields_of(value)
    is_named = text_of(fields.get("sender")) in ROLES
    return is_named and not fields.keys().isdisjoint({"text", "content"})


def messages_of(name: str, fields: Fields) -> list[Message]:
    """Return the messages that one of claude.ai makes; the first has its id."""
    blocks = [each for each in list_of(fields.get("content")) if isinstance(each, dict)]
    text = text_of(fields.get("text"))
    blocks = [text_part(text)] if text and not blocks else blocks
    known = _linked(name, [_known(block) for block in blocks])
    if fields["sender"] == "human":
        messages = [_question(known, fields)]
    else:
        messages = answer_messages(known) or [{"role": "assistant", "content": None}]
    created = iso_milliseconds(fields.get("created_at"))
    moment = {} if created is None else {"timestamp": created}
    for number, message in enumerate(messages, 1):
        message["id"] = name if number == 1 else f"{name}-{number}"
        message.update(moment)
    messages[0]["claude_ai"] = _extra_of(fields, blocks)
    return messages


def _known(block: Block) -> Block:
    """Return what the API knows of a block."""
    keys = _keys_of(block)
    return {key: block[key] for key in keys if block.get(key) is not None}


def _keys_of(block: Block) -> tuple[str, ...]:
    kind = text_of(block.get("type"))
    return BLOCK_KEYS.get(kind or "", tuple(block))


def _linked(name: str, blocks: list[Block]) -> list[Block]:
    """Name calls that have no id, and let results without one answer the first open call."""
    calls = [block for block in blocks if block.get("type") == "tool_use"]
    for number, call in enumerate(calls, 1):
        call.setdefault("id", f"{name}-call-{number}")
    answered = {block.get("tool_use_id") for block in blocks}
    waiting = (call["id"] for call in calls if call["id"] not in answered)
    results = (block for block in blocks if block.get("type") == "tool_result")
    for result in results:
        if "tool_use_id" not in result:
            result["tool_use_id"] = next(waiting, None)
    return blocks


def _question(blocks: list[Block], fields: Fields) -> Message:
    """Return the user's message, followed by the extracted text of its attachments."""
    read = [each.get("extracted_content") for each in _attachments(fields)]
    parts = [*blocks, *map(text_part, filter(None, map(text_of, read)))]
    return {"role": "user", "content": simplest_content(parts) or ""}


def _extra_of(fields: Fields, blocks: list[Block]) -> Fields:
    """Return the fields of a message, its attachments and its blocks that have no other place."""
    extra = without(fields, *_SAID)
    extra["attachments"] = [without(each, "extracted_content") for each in _attachments(fields)]
    beside = [telling(without(block, *_keys_of(block))) for block in blocks]
    extra["blocks"] = beside if any(beside) else []
    return telling(extra)


def _attachments(fields: Fields) -> list[Any]:
    return [fields_of(each) for each in list_of(fields.get("attachments"))]
