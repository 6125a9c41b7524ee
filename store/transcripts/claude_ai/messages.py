"""A message of claude.ai as messages of the chat.

An answer of claude.ai holds calls, their results and the text after them; here a result is a
message of its own. Blocks are those of the Anthropic API, with keys unknown to that API. These
keys, and fields of a message outside the chat's shape, are kept under one extra key, ``claude_ai``.
"""

from __future__ import annotations

from typing import Any

from ...messages import Message
from ...text import JsonFields
from ..blocks import ContentBlock, build_answer_messages
from ..events import (
    build_text_part,
    drop_empty_fields,
    drop_keys,
    get_fields,
    get_list,
    get_text,
    parse_iso_milliseconds,
    simplify_content,
)

ROLE_BY_SENDER = {"human": "user", "assistant": "assistant"}

API_BLOCK_KEYS = {
    "text": ("type", "text"),
    "thinking": ("type", "thinking", "signature"),
    "redacted_thinking": ("type", "data"),
    "tool_use": ("type", "id", "name", "input"),
    "tool_result": ("type", "tool_use_id", "content", "is_error"),
}
"""Type of a block → its keys that the API knows; blocks of other types stay as they are."""

_SENT_MESSAGE_KEYS = ("uuid", "sender", "text", "content", "created_at", "parent_message_uuid")


def is_claude_ai_message(value: object) -> bool:
    """Tell whether a message can be read: who said it, and what."""
    fields = get_fields(value)
    is_named = get_text(fields.get("sender")) in ROLE_BY_SENDER
    return is_named and not fields.keys().isdisjoint({"text", "content"})


def parse_claude_ai_message(name: str, fields: JsonFields) -> list[Message]:
    """Return the messages that one of claude.ai makes; the first has its id."""
    blocks = [each for each in get_list(fields.get("content")) if isinstance(each, dict)]
    text = get_text(fields.get("text"))
    blocks = [build_text_part(text)] if text and not blocks else blocks
    known = _link_calls_and_results(name, [_pick_api_keys(block) for block in blocks])
    messages: list[Message]
    if fields["sender"] == "human":
        read = [each.get("extracted_content") for each in _list_attachments(fields)]
        parts = [*known, *map(build_text_part, filter(None, map(get_text, read)))]
        messages = [{"role": "user", "content": simplify_content(parts) or ""}]
    else:
        messages = build_answer_messages(known) or [{"role": "assistant", "content": None}]
    created = parse_iso_milliseconds(fields.get("created_at"))
    moment = {} if created is None else {"timestamp": created}
    for number, message in enumerate(messages, 1):
        message["id"] = name if number == 1 else f"{name}-{number}"
        message.update(moment)
    messages[0]["claude_ai"] = _collect_claude_ai_extra(fields, blocks)
    return messages


def _pick_api_keys(block: ContentBlock) -> ContentBlock:
    """Return what the API knows of a block."""
    keys = _list_api_keys(block)
    return {key: block[key] for key in keys if block.get(key) is not None}


def _list_api_keys(block: ContentBlock) -> tuple[str, ...]:
    kind = get_text(block.get("type"))
    return API_BLOCK_KEYS.get(kind or "", tuple(block))


def _link_calls_and_results(name: str, blocks: list[ContentBlock]) -> list[ContentBlock]:
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


def _collect_claude_ai_extra(fields: JsonFields, blocks: list[ContentBlock]) -> JsonFields:
    """Return the fields of a message, its attachments and its blocks that have no other place."""
    extra = drop_keys(fields, *_SENT_MESSAGE_KEYS)
    extra["attachments"] = [
        drop_keys(each, "extracted_content") for each in _list_attachments(fields)
    ]
    beside = [drop_empty_fields(drop_keys(block, *_list_api_keys(block))) for block in blocks]
    extra["blocks"] = beside if any(beside) else []
    return drop_empty_fields(extra)


def _list_attachments(fields: JsonFields) -> list[Any]:
    return [get_fields(each) for each in get_list(fields.get("attachments"))]
