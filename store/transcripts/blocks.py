"""Content blocks of the Anthropic API as messages of the OpenAI chat shape.

A pure translation that loses nothing. Text becomes content, tool use becomes tool calls, and tool
results become tool messages. Thinking stays as it is, because its signatures must be sent back
unchanged; and any block without a counterpart stays as a part of the content.
"""

from __future__ import annotations

import json
from itertools import chain, groupby
from typing import Any

from ..records import Message
from ..text import JsonFields, wrap_in_list
from .events import build_text_part, drop_keys, simplify_content

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
        (build_text_part(each) if isinstance(each, str) else each) for each in wrap_in_list(content)
    ]
    return blocks if all(isinstance(block, dict) for block in blocks) else None


def build_assistant_message(blocks: list[ContentBlock]) -> tuple[Message, list[str] | None]:
    """Return the message that an answer's blocks make.

    The second value is the keys in the order of the blocks, None where it is the usual order.
    """
    filed: dict[str, list[Any]] = {key: [] for key in ASSISTANT_KEY_ORDER}
    order = [find_block_key(block) for block in blocks]
    for key, block in zip(order, blocks, strict=True):
        filed[key].append(_build_tool_call(block) if key == "tool_calls" else block)
    parts = [convert_block_to_part(block) for block in filed["content"]]
    message: Message = {"role": "assistant", "content": simplify_content(parts)}
    message |= {key: filed[key] for key in ("tool_calls", "thinking_blocks") if filed[key]}
    is_usual = order == sorted(order, key=ASSISTANT_KEY_ORDER.index)
    return message, None if is_usual else order


def build_answer_messages(blocks: list[ContentBlock]) -> list[Message]:
    """Return the messages of an answer that holds results, too: each run of them ends one."""
    runs = groupby(blocks, key=lambda block: block.get("type") == "tool_result")
    made = (_build_run_messages(list(run), are_results) for are_results, run in runs)
    return list(chain.from_iterable(made))


def _build_run_messages(blocks: list[ContentBlock], are_results: bool) -> list[Message]:
    return (
        build_user_messages(blocks, blocks) if are_results else [build_assistant_message(blocks)[0]]
    )


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


def find_block_key(block: ContentBlock) -> str:
    """Return the key of an assistant message that holds a block."""
    kind = block.get("type")
    return KEY_BY_BLOCK_TYPE.get(kind, "content") if isinstance(kind, str) else "content"


def convert_block_to_part(block: Any) -> Any:
    """Return a block as a content part: an image as ``image_url``, anything else as it is."""
    if isinstance(block, dict) and block.get("type") == "image":
        url = _build_source_url(block.get("source"))
        if url is None:
            return block
        return {
            "type": "image_url",
            "image_url": {"url": url},
            **drop_keys(block, "type", "source"),
        }
    return block


def _build_source_url(source: object) -> str | None:
    """Return the URL that says all of an image's source, None where no URL can."""
    match source:
        case {"type": "url", "url": str(url), **rest} if not rest:
            return url
        case {"type": "base64", "media_type": str(media), "data": str(data), **rest} if not rest:
            return f"data:{media};base64,{data}"
    return None


def _build_tool_call(block: ContentBlock) -> JsonFields:
    function = {"name": block["name"]} if "name" in block else {}
    function["arguments"] = json.dumps(block.get("input", {}), ensure_ascii=False)
    return drop_keys(block, "name", "input") | {"type": "function", "function": function}


def _build_tool_message(block: ContentBlock) -> Message:
    """Return a tool result as a message; keys without a counterpart stay under ``claude_code``."""
    call_id = block.get("tool_use_id")
    message: Message = {"role": "tool", "content": _build_result_content(block.get("content"))}
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


def _build_result_content(content: object) -> object:
    if isinstance(content, list):
        return [convert_block_to_part(block) for block in content]
    return [convert_block_to_part(content)] if isinstance(content, dict) else content
