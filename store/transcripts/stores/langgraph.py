"""Threads of LangGraph: messages of LangChain as those of the chat.

The line is that of the newest checkpoint; what other checkpoints say instead are branches.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from ...messages import Message
from ...text import Fields, as_list
from ..blocks import part_of
from ..events import (
    Event,
    Opened,
    SessionNames,
    call_of,
    fields_of,
    first_text,
    iso_milliseconds,
    joined,
    list_of,
    objects_of,
    simplest_content,
    split_metadata,
    telling,
    text_of,
    text_part,
    title_of,
    within,
    without,
)
from ..several import conversations
from ..source import Source, Value
from ..trees import Tree, parents_of, tree_events
from .checkpoints import LAYOUT

__all__ = ["LAYOUT", "looks", "parse"]

KEY = "langgraph"

ROLES = {
    "human": "user",
    "HumanMessageChunk": "user",
    "ai": "assistant",
    "AIMessageChunk": "assistant",
    "system": "system",
    "SystemMessageChunk": "system",
    "tool": "tool",
    "ToolMessageChunk": "tool",
    "function": "tool",
}
"""Type of a message → its role; one of another type tells its role."""

CALLS = ("tool_use", "tool_call", "tool_call_chunk", "function_call", "input_json_delta")
"""Types of blocks that say a call, which stands among the message's calls, too."""

CALLED = ("tool_calls", "invalid_tool_calls")

THOUGHTS = ("thinking", "redacted_thinking")

_SAID = ("type", "role", "content", "id", "name", "tool_calls", "invalid_tool_calls")
_RESULT = ("tool_call_id", "status")


def looks(value: Any) -> bool:
    """Tell whether a value is a thread of such a database."""
    return "langgraph_thread" in fields_of(value)


def parse(source: Source) -> Iterator[Event]:
    """Return a session for each thread, its branches after it."""
    return conversations(source, looks, "thread of checkpoints", _session)


def _session(item: Value, names: SessionNames) -> Iterator[Event]:
    fields = fields_of(item.value)
    nodes = fields_of(fields.get("nodes"))
    said = {name: _message(name, fields_of(node)) for name, node in nodes.items()}
    metadata, notes = split_metadata(fields_of(fields.get("metadata")))
    answers = (fields_of(message.get(KEY)) for message in reversed(said.values()))
    told = {"model": first_text(map(_model, answers)), KEY: metadata}
    name = names.name(text_of(fields.get("langgraph_thread")))
    began = iso_milliseconds(fields.get("created_at"))
    title, current = title_of(said.values()), text_of(fields.get("current"))
    opened = Opened(name, title, None, telling(told), created_at=began)
    tree = Tree(parents_of(nodes, "parent"), current, lambda node: [said[node]])
    yield from tree_events(tree, opened)
    yield from notes


def _model(extra: Fields) -> str | None:
    told = fields_of(extra.get("response_metadata"))
    return first_text((told.get("model_name"), told.get("model")))


def _message(name: str, node: Fields) -> Message:
    """Return a message of LangChain's as one of the chat."""
    told = fields_of(node.get("message"))
    known = ROLES.get(str(told.get("type")))
    role = first_text((known, told.get("role"))) or "user"
    moment = {"timestamp": iso_milliseconds(node.get("at"))}
    blocks = [_block(each) for each in as_list(told.get("content"))]
    beside = (*CALLS, *THOUGHTS, "reasoning")
    message: Message = {
        "role": role,
        "content": (
            simplest_content([each for each in blocks if within(each, "type") not in beside]) or ""
        ),
        "id": name,
    }
    message |= telling({**moment, "name": told.get("name")})
    more = _calls_of(told) if role == "assistant" else _result_of(told) if role == "tool" else {}
    extra = telling(without(told, *_SAID, *(_RESULT if role == "tool" else ())))
    return message | more | telling({KEY: extra})


def _block(block: Any) -> Any:
    """Return a block as a part of the chat's."""
    fields = fields_of(block)
    if not fields:
        return text_part(text_of(block) or "")
    if fields.get("type") == "text":
        return text_part(text_of(fields.get("text")) or "")
    return _picture(fields) if fields.get("type") == "image" else fields


def _picture(block: Fields) -> Fields:
    """Return a picture in the way of LangChain, else of Anthropic, as the chat has it."""
    data = first_text((block.get("base64"), block.get("data")))
    media = text_of(block.get("mime_type")) or "image/png"
    url = text_of(block.get("url")) or (data and f"data:{media};base64,{data}")
    return {"type": "image_url", "image_url": {"url": url}} if url else fields_of(part_of(block))


def _calls_of(told: Fields) -> Fields:
    """Return what an answer says beside its content: its calls, and what it thought."""
    calls = chain(*(map(_call, objects_of(told.get(key))) for key in CALLED))
    blocks = [fields_of(each) for each in list_of(told.get("content"))]
    thoughts = [block.get("reasoning") for block in blocks if block.get("type") == "reasoning"]
    thoughts.append(within(told, "additional_kwargs", "reasoning_content"))
    return telling(
        {
            "tool_calls": [*calls],
            "thinking_blocks": [block for block in blocks if block.get("type") in THOUGHTS],
            "reasoning_content": joined(thoughts),
        }
    )


def _call(told: Fields) -> Fields:
    return call_of(told.get("id"), told.get("name"), told.get("args"))


def _result_of(told: Fields) -> Fields:
    failed = told.get("status") == "error"
    link = {"tool_call_id": told.get("tool_call_id")}
    return telling(link) | ({"messageStatus": "error"} if failed else {})
