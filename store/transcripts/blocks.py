"""Content blocks of the Anthropic API as messages of the OpenAI chat shape.

A pure translation that loses nothing. Text becomes content, tool use becomes tool calls, and tool
results become tool messages. Thinking stays as it is, because its signatures must be sent back
unchanged; and any block without a counterpart stays as a part of the content.
"""

from __future__ import annotations

import json
from itertools import chain, groupby
from typing import Any

from ..messages import Message
from ..text import Fields, as_list
from .events import simplest_content, text_part, without

Block = Fields

ASSISTANT_KEYS = {
    "thinking": "thinking_blocks",
    "redacted_thinking": "thinking_blocks",
    "tool_use": "tool_calls",
}
"""Block type → the key of an assistant message that holds it; every other type is content."""

KEY_ORDER = ("thinking_blocks", "content", "tool_calls")
"""The usual order of blocks; a message with another one says so under ``block_order``."""

_SAID = {"type": object, "content": object, "tool_use_id": str, "is_error": bool}
"""Key of a tool result → the type of values that its message says in its own way."""


def blocks_of(content: object) -> list[Block] | None:
    """Return a message's content as blocks, strings as text blocks; None where it is no content."""
    if content is None:
        return []
    blocks = [(text_part(each) if isinstance(each, str) else each) for each in as_list(content)]
    return blocks if all(isinstance(block, dict) for block in blocks) else None


def assistant_message(blocks: list[Block]) -> tuple[Message, list[str] | None]:
    """Return the message that an answer's blocks make.

    The second value is the keys in the order of the blocks, None where it is the usual order.
    """
    filed: dict[str, list[Any]] = {key: [] for key in KEY_ORDER}
    order = [key_of(block) for block in blocks]
    for key, block in zip(order, blocks, strict=True):
        filed[key].append(_call_of(block) if key == "tool_calls" else block)
    parts = [part_of(block) for block in filed["content"]]
    message: Message = {"role": "assistant", "content": simplest_content(parts)}
    message |= {key: filed[key] for key in ("tool_calls", "thinking_blocks") if filed[key]}
    is_usual = order == sorted(order, key=KEY_ORDER.index)
    return message, None if is_usual else order


def answer_messages(blocks: list[Block]) -> list[Message]:
    """Return the messages of an answer that holds results, too: each run of them ends one."""
    runs = groupby(blocks, key=lambda block: block.get("type") == "tool_result")
    made = (_run(list(run), are_results) for are_results, run in runs)
    return list(chain.from_iterable(made))


def _run(blocks: list[Block], are_results: bool) -> list[Message]:
    return user_messages(blocks, blocks) if are_results else [assistant_message(blocks)[0]]


def user_messages(content: object, blocks: list[Block]) -> list[Message]:
    """Return a user's content as messages: one for each tool result, then what the user said."""
    results = [_tool_message(block) for block in blocks if block.get("type") == "tool_result"]
    parts = [part_of(block) for block in blocks if block.get("type") != "tool_result"]
    if results and not parts:
        return results
    plain = content is None or isinstance(content, str)
    return [*results, {"role": "user", "content": content if plain else parts}]


def count_of_messages(blocks: list[Block]) -> int:
    """Return how many messages a user's content makes."""
    results = [block for block in blocks if block.get("type") == "tool_result"]
    return len(results) if results and len(results) == len(blocks) else len(results) + 1


def key_of(block: Block) -> str:
    """Return the key of an assistant message that holds a block."""
    kind = block.get("type")
    return ASSISTANT_KEYS.get(kind, "content") if isinstance(kind, str) else "content"


def part_of(block: Any) -> Any:
    """Return a block as a content part: an image as ``image_url``, anything else as it is."""
    if isinstance(block, dict) and block.get("type") == "image":
        url = _image_url(block.get("source"))
        if url is None:
            return block
        return {"type": "image_url", "image_url": {"url": url}, **without(block, "type", "source")}
    return block


def _image_url(source: object) -> str | None:
    """Return the URL that says all of an image's source, None where no URL can."""
    match source:
        case {"type": "url", "url": str(url), **rest} if not rest:
            return url
        case {"type": "base64", "media_type": str(media), "data": str(data), **rest} if not rest:
            return f"data:{media};base64,{data}"
    return None


def _call_of(block: Block) -> Fields:
    function = {"name": block["name"]} if "name" in block else {}
    function["arguments"] = json.dumps(block.get("input", {}), ensure_ascii=False)
    return without(block, "name", "input") | {"type": "function", "function": function}


def _tool_message(block: Block) -> Message:
    """Return a tool result as a message; keys without a counterpart stay under ``claude_code``."""
    call_id = block.get("tool_use_id")
    message: Message = {"role": "tool", "content": _result_content(block.get("content"))}
    if isinstance(call_id, str):
        message["tool_call_id"] = call_id
    if block.get("is_error") is True:
        message["messageStatus"] = "error"
    rest = _unsaid(block)
    if rest:
        message["claude_code"] = {"tool_result": rest}
    return message


def _unsaid(block: Block) -> Fields:
    """Return what a tool result says beyond its message."""
    return {key: held for key, held in block.items() if not _is_said(key, held)}


def _is_said(key: str, held: object) -> bool:
    return isinstance(held, _SAID.get(key, ()))


def _result_content(content: object) -> object:
    if isinstance(content, list):
        return [part_of(block) for block in content]
    return [part_of(content)] if isinstance(content, dict) else content
