"""Content blocks of the Anthropic API as OpenAI-chat-shaped messages: a pure translation that loses nothing.

Text becomes content, tool use tool calls, tool results tool messages, thinking stays verbatim (its signatures must
be sent back as they are); any block without a counterpart stays verbatim as a part of the content.
"""

from __future__ import annotations

import json
from typing import Any

Block = dict[str, Any]
Message = dict[str, Any]

ASSISTANT_KEYS = {"thinking": "thinking_blocks", "redacted_thinking": "thinking_blocks", "tool_use": "tool_calls"}
"""Block type → the key of an assistant message that holds it; every other type is content."""

KEY_ORDER = ("thinking_blocks", "content", "tool_calls")
"""The order in which blocks come nearly always; where they do not, a message says so under ``block_order``."""


def blocks_of(content: object) -> list[Block] | None:
    """Return a message's content as blocks, strings as text blocks; None where it is no content at all."""
    if content is None:
        return []
    blocks = content if isinstance(content, list) else [content]
    texts: list[Any] = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
    return texts if all(isinstance(block, dict) for block in texts) else None


def assistant_message(blocks: list[Block]) -> tuple[Message, list[str] | None]:
    """Return the message that an answer's blocks make, and the keys in block order where that is not the usual one."""
    filed: dict[str, list[Any]] = {key: [] for key in KEY_ORDER}
    order = [key_of(block) for block in blocks]
    for key, block in zip(order, blocks, strict=True):
        filed[key].append(_call_of(block) if key == "tool_calls" else block)
    message: Message = {"role": "assistant", "content": _plain_text(filed["content"])}
    message |= {key: filed[key] for key in ("tool_calls", "thinking_blocks") if filed[key]}
    return message, order if order != sorted(order, key=KEY_ORDER.index) else None


def user_messages(content: object, blocks: list[Block]) -> list[Message]:
    """Return the messages of what a user line holds: a tool message for each result, then what the user said."""
    results = [_tool_message(block) for block in blocks if block.get("type") == "tool_result"]
    parts = [part_of(block) for block in blocks if block.get("type") != "tool_result"]
    if results and not parts:
        return results
    plain = content is None or isinstance(content, str)
    return [*results, {"role": "user", "content": content if plain else parts}]


def key_of(block: Block) -> str:
    """Return the key of an assistant message that holds a block."""
    kind = block.get("type")
    return ASSISTANT_KEYS.get(kind, "content") if isinstance(kind, str) else "content"


def part_of(block: Any) -> Any:
    """Return a block as a content part: an image as ``image_url``, anything else as it is."""
    source = block.get("source") if isinstance(block, dict) and block.get("type") == "image" else None
    url = _image_url(source) if isinstance(source, dict) else None
    if url is None:
        return block
    return {"type": "image_url", "image_url": {"url": url}, **_without(block, "type", "source")}


def _image_url(source: dict[str, Any]) -> str | None:
    """Return the URL that says all of an image's source, None where no URL can."""
    kind, media, data = source.get("type"), source.get("media_type"), source.get("data")
    if kind == "url" and source.keys() == {"type", "url"} and isinstance(source["url"], str):
        return str(source["url"])
    if kind == "base64" and len(source) == 3 and isinstance(media, str) and isinstance(data, str):
        return f"data:{media};base64,{data}"
    return None


def _call_of(block: Block) -> dict[str, Any]:
    function = {"name": block["name"]} if "name" in block else {}
    function["arguments"] = json.dumps(block.get("input", {}), ensure_ascii=False)
    return _without(block, "name", "input") | {"type": "function", "function": function}


def _tool_message(block: Block) -> Message:
    """Return a tool result as a message; keys without a counterpart stay under ``claude_code``."""
    content, call_id = block.get("content"), block.get("tool_use_id")
    message: Message = {"role": "tool", "content": _result_content(content)}
    if isinstance(call_id, str):
        message["tool_call_id"] = call_id
    if block.get("is_error") is True:
        message["messageStatus"] = "error"
    rest = _without(block, "type", "content", *(("tool_use_id",) if isinstance(call_id, str) else ()))
    if isinstance(rest.get("is_error"), bool):
        del rest["is_error"]
    return {**message, "claude_code": {"tool_result": rest}} if rest else message


def _result_content(content: object) -> object:
    if isinstance(content, list):
        return [part_of(block) for block in content]
    return [part_of(content)] if isinstance(content, dict) else content


def _plain_text(parts: list[Block]) -> object:
    """Return content as simply as it can be: nothing, one text, or its parts."""
    if len(parts) == 1 and parts[0].keys() == {"type", "text"} and isinstance(parts[0]["text"], str):
        return parts[0]["text"]
    return [part_of(part) for part in parts] or None


def _without(block: Block, *keys: str) -> dict[str, Any]:
    return {key: value for key, value in block.items() if key not in keys}
