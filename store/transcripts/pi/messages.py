"""Translate entries of pi's sessions to messages of the chat.

The fields of an entry outside its message are kept under one extra key, ``pi``.
"""

from __future__ import annotations

import json
from typing import Any

from ...messages import Message
from ...text import JsonFields
from ..events import (
    build_text_part,
    drop_empty_fields,
    drop_keys,
    get_fields,
    get_list,
    get_text,
    simplify_content,
)

PI_ROLES = {"user": "user", "custom": "user", "assistant": "assistant", "toolResult": "tool"}
"""Role of a message → role in the chat; the user's own commands and summaries are texts."""

PI_TEXT_KEYS = {
    "branchSummary": "summary",
    "compactionSummary": "summary",
    "bashExecution": "output",
}
"""Role of a message that is a text → the key of the text."""

_PI_MESSAGE_KEYS = ("role", "content", "timestamp", "toolCallId", "toolName", "isError")


def find_entry_message(entry: JsonFields) -> JsonFields:
    """Return the message of an entry, {} for an entry that was not sent to a model."""
    if entry.get("type") == "message":
        return get_fields(entry.get("message"))
    if entry.get("type") == "branch_summary":
        return {"role": "branchSummary", "summary": entry.get("summary")}
    if entry.get("type") == "custom_message":
        return {"role": "custom", **drop_keys(entry, "type", "id", "parentId", "timestamp")}
    return {}


def is_message_entry(entry: JsonFields) -> bool:
    """Tell whether an entry is a message that can be read."""
    told = find_entry_message(entry)
    role = get_text(told.get("role"))
    return (role in PI_ROLES and "content" in told) or (
        role in PI_TEXT_KEYS and told.get("excludeFromContext") is not True
    )


def parse_pi_message(entry: JsonFields) -> Message:
    """Return the message of an entry, without its id and time."""
    told = find_entry_message(entry)
    if told["role"] in PI_TEXT_KEYS:
        key = PI_TEXT_KEYS[told["role"]]
        text = get_text(told.get(key)) or ""
        command = get_text(told.get("command"))
        said = f"Ran `{command}`\n{text}" if command else text
        return {
            "role": "user",
            "content": said,
            "pi": drop_empty_fields(drop_keys(told, key, "timestamp")),
        }
    blocks = _parse_pi_blocks(told.get("content"))
    content = simplify_content(
        [
            _parse_pi_part(block)
            for block in blocks
            if (block.get("type") not in ("thinking", "toolCall"))
        ]
    )
    message = {"role": PI_ROLES[told["role"]], "content": content} | _parse_calls_and_thoughts(
        told, blocks
    )
    if message["role"] != "assistant":
        message["content"] = content or ""
    extra = drop_empty_fields(drop_keys(told, *_PI_MESSAGE_KEYS)) | drop_empty_fields(
        {"signatures": list(filter(None, map(_find_thought_signature, blocks)))}
    )
    return message | drop_empty_fields({"pi": extra})


def _parse_calls_and_thoughts(told: JsonFields, blocks: list[JsonFields]) -> JsonFields:
    """Return a message's calls and thoughts, or the call that it answers."""
    thoughts = [block for block in blocks if block.get("type") == "thinking"]
    calls = [block for block in blocks if block.get("type") == "toolCall"]
    more = {
        "tool_calls": list(map(_parse_pi_call, calls)),
        "tool_call_id": get_text(told.get("toolCallId")),
        "name": get_text(told.get("toolName")),
        "messageStatus": "error" if told.get("isError") is True else None,
    }
    return drop_empty_fields(more | _parse_pi_thoughts(told, thoughts))


def _parse_pi_thoughts(told: JsonFields, thoughts: list[JsonFields]) -> JsonFields:
    """Return thoughts: as Anthropic's blocks if they are signed, else as text."""
    if told.get("api") == "anthropic-messages" and all(map(_find_thought_signature, thoughts)):
        return {"thinking_blocks": list(map(_build_thinking_block, thoughts))}
    texts = (get_text(block.get("thinking")) for block in thoughts)
    return {"reasoning_content": "\n\n".join(filter(None, texts))}


def _find_thought_signature(block: JsonFields) -> str | None:
    return get_text(block.get("thinkingSignature"))


def _build_thinking_block(block: JsonFields) -> JsonFields:
    thought = get_text(block.get("thinking")) or ""
    return {"type": "thinking", "thinking": thought, "signature": _find_thought_signature(block)}


def _parse_pi_call(block: JsonFields) -> JsonFields:
    arguments = json.dumps(block.get("arguments") or {}, ensure_ascii=False)
    function = {"name": get_text(block.get("name")) or "", "arguments": arguments}
    return {"id": get_text(block.get("id")) or "", "type": "function", "function": function}


def _parse_pi_blocks(content: Any) -> list[JsonFields]:
    """Return a content as blocks: a text, or a list of them."""
    if isinstance(content, str):
        return [build_text_part(content)] if content else []
    return list(filter(None, map(get_fields, get_list(content))))


def _parse_pi_part(block: JsonFields) -> JsonFields:
    """Return a block as a part of the content: a text, a picture as ``image_url``."""
    match block:
        case {"type": "text", "text": str(text)}:
            return build_text_part(text)
        case {"type": "image", "mimeType": str(kind), "data": str(data)}:
            return {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{data}"}}
    return block
