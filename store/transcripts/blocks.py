"""Content blocks of the Anthropic API as messages of the OpenAI chat shape.

A pure translation that loses nothing. Text becomes content, tool use becomes tool calls, and tool
results become tool messages. Thinking stays as it is, because its signatures must be sent back
unchanged; and any block without a counterpart stays as a part of the content.
"""

from __future__ import annotations

import json
from itertools import groupby
from typing import Any

from ..records import Message
from ..text import JsonFields, wrap_in_list
from .parser_events import build_text_part, drop_keys, simplify_content

ContentBlock = JsonFields

KEY_BY_BLOCK_TYPE = {
    "thinking": "thinking_blocks",
    "redacted_thinking": "thinking_blocks",
    "tool_use": "tool_calls",
}
"""Block type → the key of an assistant message that holds it; every other type is content."""

ASSISTANT_KEY_ORDER = ("thinking_blocks", "content", "tool_calls")
"""The usual order of blocks; a message with another one says so under ``block_order``."""

_RESULT_KEY_TYPES = {"type": object, "content": object, "tool_use_id": str, "is_error": bool}
"""Key of a tool result → the type of values that its message says in its own way."""


def parse_blocks(content: object) -> list[ContentBlock] | None:
    """Return a message's content as blocks, strings as text blocks; None where it is no content."""
    if content is None:
        return []
    blocks = [
        build_text_part(each) if isinstance(each, str) else each for each in wrap_in_list(content)
    ]
    return blocks if all(isinstance(block, dict) for block in blocks) else None


def build_assistant_message(blocks: list[ContentBlock]) -> tuple[Message, list[str] | None]:
    """Return the message that an answer's blocks make.

    The second value is the keys in the order of the blocks, None where it is the usual order.
    """
    filed: dict[str, list[Any]] = {key: [] for key in ASSISTANT_KEY_ORDER}
    order = [KEY_BY_BLOCK_TYPE.get(str(block.get("type")), "content") for block in blocks]
    for key, block in zip(order, blocks, strict=True):
        filed[key].append(_build_tool_call(block) if key == "tool_calls" else block)
    parts = [convert_block_to_part(block) for block in filed["content"]]
    message: Message = {"role": "assistant", "content": simplify_content(parts)}
    message |= {key: filed[key] for key in ("tool_calls", "thinking_blocks") if filed[key]}
    is_usual = order == sorted(order, key=ASSISTANT_KEY_ORDER.index)
    return message, None if is_usual else order


def build_answer_messages(blocks: list[ContentBlock]) -> list[Message]:
    """Return the messages of an answer that holds results, too: each run of them ends one."""
    made: list[Message] = []
    for are_results, run in groupby(blocks, key=lambda block: block.get("type") == "tool_result"):
        held = list(run)
        if are_results:
            made += build_user_messages(held, held)
        else:
            made.append(build_assistant_message(held)[0])
    return made


def build_user_messages(content: object, blocks: list[ContentBlock]) -> list[Message]:
    """Return a user's content as messages: one for each tool result, then what the user said."""
    results = [_build_tool_message(block) for block in blocks if block.get("type") == "tool_result"]
    parts = [convert_block_to_part(block) for block in blocks if block.get("type") != "tool_result"]
    if results and not parts:
        return results
    plain = content is None or isinstance(content, str)
    return [*results, {"role": "user", "content": content if plain else parts}]


def count_user_messages(blocks: list[ContentBlock]) -> int:
    """Return how many messages a user's content makes."""
    results = [block for block in blocks if block.get("type") == "tool_result"]
    return len(results) if results and len(results) == len(blocks) else len(results) + 1


def convert_block_to_part(block: Any) -> Any:
    """Return a block as a content part: an image as ``image_url``, anything else as it is.

    An image whose source says more than a URL can stays as it is.
    """
    if not isinstance(block, dict) or block.get("type") != "image":
        return block
    match block.get("source"):
        case {"type": "url", "url": str(url), **rest} if not rest:
            pass
        case {"type": "base64", "media_type": str(media), "data": str(data), **rest} if not rest:
            url = f"data:{media};base64,{data}"
        case _:
            return block
    return {"type": "image_url", "image_url": {"url": url}, **drop_keys(block, "type", "source")}


def _build_tool_call(block: ContentBlock) -> JsonFields:
    function = {"name": block["name"]} if "name" in block else {}
    function["arguments"] = json.dumps(block.get("input", {}), ensure_ascii=False)
    return drop_keys(block, "name", "input") | {"type": "function", "function": function}


def _build_tool_message(block: ContentBlock) -> Message:
    """Return a tool result as a message; keys without a counterpart stay under ``claude_code``."""
    call_id, content = block.get("tool_use_id"), block.get("content")
    if isinstance(content, dict):
        content = [content]
    if isinstance(content, list):
        content = [convert_block_to_part(each) for each in content]
    message: Message = {"role": "tool", "content": content}
    if isinstance(call_id, str):
        message["tool_call_id"] = call_id
    if block.get("is_error") is True:
        message["messageStatus"] = "error"
    rest = {
        key: held
        for key, held in block.items()
        if not isinstance(held, _RESULT_KEY_TYPES.get(key, ()))
    }
    if rest:
        message["claude_code"] = {"tool_result": rest}
    return message
