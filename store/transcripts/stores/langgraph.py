"""Threads of LangGraph: messages of LangChain as those of the chat.

The line is that of the newest checkpoint; what other checkpoints say instead are branches.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from ...messages import Message
from ...text import JsonFields, wrap_in_list
from ..blocks import convert_block_to_part
from ..events import (
    Event,
    SessionEvent,
    SessionNames,
    build_chat_call,
    build_text_part,
    drop_empty_fields,
    drop_keys,
    find_first_text,
    find_title,
    get_fields,
    get_list,
    get_nested,
    get_objects,
    get_text,
    join_texts,
    parse_iso_milliseconds,
    simplify_content,
    split_metadata,
)
from ..several import parse_conversations
from ..source import SourceValue, TranscriptSource
from ..trees import Tree, build_tree_events, find_node_parents
from .checkpoints import LANGGRAPH_LAYOUT

__all__ = ["LANGGRAPH_LAYOUT", "is_langgraph_thread", "parse_langgraph"]

LANGGRAPH_KEY = "langgraph"

LANGCHAIN_ROLES = {
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

LANGCHAIN_CALL_TYPES = (
    "tool_use",
    "tool_call",
    "tool_call_chunk",
    "function_call",
    "input_json_delta",
)
"""Types of blocks that say a call, which stands among the message's calls, too."""

LANGCHAIN_CALL_KEYS = ("tool_calls", "invalid_tool_calls")

LANGCHAIN_THOUGHT_TYPES = ("thinking", "redacted_thinking")

_LANGCHAIN_MESSAGE_KEYS = (
    "type",
    "role",
    "content",
    "id",
    "name",
    "tool_calls",
    "invalid_tool_calls",
)
_LANGCHAIN_RESULT_KEYS = ("tool_call_id", "status")


def is_langgraph_thread(value: Any) -> bool:
    """Tell whether a value is a thread of such a database."""
    return "langgraph_thread" in get_fields(value)


def parse_langgraph(source: TranscriptSource) -> Iterator[Event]:
    """Return a session for each thread, its branches after it."""
    return parse_conversations(
        source, is_langgraph_thread, "thread of checkpoints", _parse_langgraph_thread
    )


def _parse_langgraph_thread(item: SourceValue, names: SessionNames) -> Iterator[Event]:
    fields = get_fields(item.value)
    nodes = get_fields(fields.get("nodes"))
    said = {name: _parse_langchain_message(name, get_fields(node)) for name, node in nodes.items()}
    metadata, notes = split_metadata(get_fields(fields.get("metadata")))
    answers = (get_fields(message.get(LANGGRAPH_KEY)) for message in reversed(said.values()))
    told = {"model": find_first_text(map(_find_langgraph_model, answers)), LANGGRAPH_KEY: metadata}
    name = names.name(get_text(fields.get("langgraph_thread")))
    began = parse_iso_milliseconds(fields.get("created_at"))
    title, current = find_title(said.values()), get_text(fields.get("current"))
    opened = SessionEvent(name, title, None, drop_empty_fields(told), created_at=began)
    tree = Tree(find_node_parents(nodes, "parent"), current, lambda node: [said[node]])
    yield from build_tree_events(tree, opened)
    yield from notes


def _find_langgraph_model(extra: JsonFields) -> str | None:
    told = get_fields(extra.get("response_metadata"))
    return find_first_text((told.get("model_name"), told.get("model")))


def _parse_langchain_message(name: str, node: JsonFields) -> Message:
    """Return a message of LangChain's as one of the chat."""
    told = get_fields(node.get("message"))
    known = LANGCHAIN_ROLES.get(str(told.get("type")))
    role = find_first_text((known, told.get("role"))) or "user"
    moment = {"timestamp": parse_iso_milliseconds(node.get("at"))}
    blocks = [_parse_langchain_block(each) for each in wrap_in_list(told.get("content"))]
    beside = (*LANGCHAIN_CALL_TYPES, *LANGCHAIN_THOUGHT_TYPES, "reasoning")
    message: Message = {
        "role": role,
        "content": (
            simplify_content([each for each in blocks if get_nested(each, "type") not in beside])
            or ""
        ),
        "id": name,
    }
    message |= drop_empty_fields({**moment, "name": told.get("name")})
    more = (
        _parse_langchain_calls(told)
        if role == "assistant"
        else _parse_langchain_result(told)
        if role == "tool"
        else {}
    )
    extra = drop_empty_fields(
        drop_keys(
            told, *_LANGCHAIN_MESSAGE_KEYS, *(_LANGCHAIN_RESULT_KEYS if role == "tool" else ())
        )
    )
    return message | more | drop_empty_fields({LANGGRAPH_KEY: extra})


def _parse_langchain_block(block: Any) -> Any:
    """Return a block as a part of the chat's."""
    fields = get_fields(block)
    if not fields:
        return build_text_part(get_text(block) or "")
    if fields.get("type") == "text":
        return build_text_part(get_text(fields.get("text")) or "")
    return _parse_langchain_picture(fields) if fields.get("type") == "image" else fields


def _parse_langchain_picture(block: JsonFields) -> JsonFields:
    """Return a picture in the way of LangChain, else of Anthropic, as the chat has it."""
    data = find_first_text((block.get("base64"), block.get("data")))
    media = get_text(block.get("mime_type")) or "image/png"
    url = get_text(block.get("url")) or (data and f"data:{media};base64,{data}")
    return (
        {"type": "image_url", "image_url": {"url": url}}
        if url
        else get_fields(convert_block_to_part(block))
    )


def _parse_langchain_calls(told: JsonFields) -> JsonFields:
    """Return what an answer says beside its content: its calls, and what it thought."""
    calls = chain(
        *(map(_parse_langchain_call, get_objects(told.get(key))) for key in LANGCHAIN_CALL_KEYS)
    )
    blocks = [get_fields(each) for each in get_list(told.get("content"))]
    thoughts = [block.get("reasoning") for block in blocks if block.get("type") == "reasoning"]
    thoughts.append(get_nested(told, "additional_kwargs", "reasoning_content"))
    return drop_empty_fields(
        {
            "tool_calls": [*calls],
            "thinking_blocks": [
                block for block in blocks if block.get("type") in LANGCHAIN_THOUGHT_TYPES
            ],
            "reasoning_content": join_texts(thoughts),
        }
    )


def _parse_langchain_call(told: JsonFields) -> JsonFields:
    return build_chat_call(told.get("id"), told.get("name"), told.get("args"))


def _parse_langchain_result(told: JsonFields) -> JsonFields:
    failed = told.get("status") == "error"
    link = {"tool_call_id": told.get("tool_call_id")}
    return drop_empty_fields(link) | ({"messageStatus": "error"} if failed else {})
