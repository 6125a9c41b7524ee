"""Translate entries of pi's sessions to messages of the chat.

The fields of an entry outside its message are kept under one extra key, ``pi``.
"""

from __future__ import annotations

import json
from typing import Any

from ...messages import Message
from ...text import Fields
from ..events import fields_of, list_of, simplest_content, telling, text_of, text_part, without

ROLES = {"user": "user", "custom": "user", "assistant": "assistant", "toolResult": "tool"}
"""Role of a message → role in the chat; the user's own commands and summaries are texts."""

TEXTS = {"branchSummary": "summary", "compactionSummary": "summary", "bashExecution": "output"}
"""Role of a message that is a text → the key of the text."""

_SAID = ("role", "content", "timestamp", "toolCallId", "toolName", "isError")


def told_by(entry: Fields) -> Fields:
    """Return the message of an entry, {} for an entry that was not sent to a model."""
    if entry.get("type") == "message":
        return fields_of(entry.get("message"))
    if entry.get("type") == "branch_summary":
        return {"role": "branchSummary", "summary": entry.get("summary")}
    if entry.get("type") == "custom_message":
        return {"role": "custom", **without(entry, "type", "id", "parentId", "timestamp")}
    return {}


def is_told(entry: Fields) -> bool:
    """Tell whether an entry is a message that can be read."""
    told = told_by(entry)
    role = text_of(told.get("role"))
    return (role in ROLES and "content" in told) or (
        role in TEXTS and told.get("excludeFromContext") is not True
    )


def message_of(entry: Fields) -> Message:
    """Return the message of an entry, without its id and time."""
    told = told_by(entry)
    if told["role"] in TEXTS:
        key = TEXTS[told["role"]]
        text = text_of(told.get(key)) or ""
        command = text_of(told.get("command"))
        said = f"Ran `{command}`\n{text}" if command else text
        return {"role": "user", "content": said, "pi": telling(without(told, key, "timestamp"))}
    blocks = _blocks(told.get("content"))
    content = simplest_content(
        [_part(block) for block in blocks if (block.get("type") not in ("thinking", "toolCall"))]
    )
    message = {"role": ROLES[told["role"]], "content": content} | _beside(told, blocks)
    if message["role"] != "assistant":
        message["content"] = content or ""
    extra = telling(without(told, *_SAID)) | telling(
        {"signatures": list(filter(None, map(_signature_of, blocks)))}
    )
    return message | telling({"pi": extra})


def _beside(told: Fields, blocks: list[Fields]) -> Fields:
    """Return a message's calls and thoughts, or the call that it answers."""
    thoughts = [block for block in blocks if block.get("type") == "thinking"]
    calls = [block for block in blocks if block.get("type") == "toolCall"]
    more = {
        "tool_calls": list(map(_call, calls)),
        "tool_call_id": text_of(told.get("toolCallId")),
        "name": text_of(told.get("toolName")),
        "messageStatus": "error" if told.get("isError") is True else None,
    }
    return telling(more | _reasoning(told, thoughts))


def _reasoning(told: Fields, thoughts: list[Fields]) -> Fields:
    """Return thoughts: as Anthropic's blocks if they are signed, else as text."""
    if told.get("api") == "anthropic-messages" and all(map(_signature_of, thoughts)):
        return {"thinking_blocks": list(map(_block, thoughts))}
    texts = (text_of(block.get("thinking")) for block in thoughts)
    return {"reasoning_content": "\n\n".join(filter(None, texts))}


def _signature_of(block: Fields) -> str | None:
    return text_of(block.get("thinkingSignature"))


def _block(block: Fields) -> Fields:
    thought = text_of(block.get("thinking")) or ""
    return {"type": "thinking", "thinking": thought, "signature": _signature_of(block)}


def _call(block: Fields) -> Fields:
    arguments = json.dumps(block.get("arguments") or {}, ensure_ascii=False)
    function = {"name": text_of(block.get("name")) or "", "arguments": arguments}
    return {"id": text_of(block.get("id")) or "", "type": "function", "function": function}


def _blocks(content: Any) -> list[Fields]:
    """Return a content as blocks: a text, or a list of them."""
    if isinstance(content, str):
        return [text_part(content)] if content else []
    return list(filter(None, map(fields_of, list_of(content))))


def _part(block: Fields) -> Fields:
    """Return a block as a part of the content: a text, a picture as ``image_url``."""
    match block:
        case {"type": "text", "text": str(text)}:
            return text_part(text)
        case {"type": "image", "mimeType": str(kind), "data": str(data)}:
            return {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{data}"}}
    return block
