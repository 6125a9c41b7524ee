"""Exports of Open WebUI: chats whose ``history`` is a tree of messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...clock import SECONDS_LIMIT
from ...records import Message
from ...text import JsonFields, wrap_in_list
from ..parser_events import (
    Event,
    SessionEvent,
    SessionNames,
    drop_empty_fields,
    drop_keys,
    get_fields,
    get_list,
    get_text,
    render_first_title,
    split_metadata,
)
from ..source import SourceValue, for_each_conversation
from ..trees import Tree, build_tree_events, find_node_parents

__all__ = ["is_open_webui_chat", "parse_open_webui"]

OPEN_WEBUI_MESSAGE_KEYS = (
    "id",
    "parentId",
    "childrenIds",
    "role",
    "content",
    "timestamp",
    "output",
    "files",
)


def is_open_webui_chat(value: Any) -> bool:
    """Tell whether a JSON value is such a chat, or a list of them."""
    return any(_find_chat_history(each) for each in wrap_in_list(value))


def _find_chat_history(value: Any) -> JsonFields:
    """Return the messages of a chat, each under its id."""
    chat = get_fields(get_fields(value).get("chat"))
    nodes = get_fields(get_fields(chat.get("history")).get("messages"))
    return {
        name: node
        for name, node in nodes.items()
        if isinstance(get_fields(node).get("role"), str) and "content" in node
    }


@for_each_conversation(_find_chat_history, "chat with a history of messages")
def parse_open_webui(item: SourceValue, names: SessionNames) -> Iterator[Event]:
    """Return the session of a chat, its branches after it."""
    fields = get_fields(item.value)
    nodes = _find_chat_history(fields)
    chat = get_fields(fields.get("chat"))
    known = drop_empty_fields(drop_keys(fields, "id", "user_id", "title", "chat"))
    metadata, notes = split_metadata(known)
    title = render_first_title((fields.get("title"), chat.get("title")))
    owner, created = (
        get_text(fields.get("user_id")),
        _parse_open_webui_time(fields.get("created_at")),
    )
    name = names.name(get_text(fields.get("id")))
    told: JsonFields = {"open_webui": metadata}
    opened = SessionEvent(name, title, None, told, owner=owner, created_at=created)
    current = get_text(get_fields(chat.get("history")).get("currentId"))
    tree = Tree(
        find_node_parents(nodes, "parentId"),
        current,
        lambda node: _parse_open_webui_message(node, nodes[node]),
    )
    yield from build_tree_events(tree, opened)
    yield from notes


def _parse_open_webui_message(name: str, node: JsonFields) -> list[Message]:
    """Return what a node says: with its calls and their results, where it tells them."""
    extra = drop_empty_fields(drop_keys(node, *OPEN_WEBUI_MESSAGE_KEYS))
    beside = drop_empty_fields(
        {"timestamp": _parse_open_webui_time(node.get("timestamp")), "open_webui": extra}
    )
    items = [each for each in get_list(node.get("output")) if isinstance(each, dict)]
    calls: list[JsonFields] = []
    results: list[Message] = []
    for each in items:
        if each.get("type") == "function_call":
            function = {"name": each.get("name"), "arguments": each.get("arguments")}
            calls.append({"id": each.get("call_id"), "type": "function", "function": function})
        elif each.get("type") == "function_call_output":
            results.append(_parse_open_webui_result(each))
    said: Message = {
        "role": node["role"],
        "content": _parse_open_webui_content(node),
        "id": name,
        **beside,
    }
    if not calls:
        return [said]
    asking: Message = {"role": "assistant", "content": None, "tool_calls": calls}
    return [asking, *results, said]


def _parse_open_webui_result(item: JsonFields) -> Message:
    said = item.get("output")
    if isinstance(said, list):
        texts = (get_fields(part).get("text") for part in said)
        said = "".join(text for text in texts if isinstance(text, str))
    return {"role": "tool", "tool_call_id": item.get("call_id"), "content": said}


def _parse_open_webui_content(node: JsonFields) -> Any:
    """Return what a node says: its items' texts, else its content; pictures beside it."""
    texts = [
        text
        for item in map(get_fields, get_list(node.get("output")))
        if item.get("type") == "message"
        for part in get_list(item.get("content"))
        if (text := get_text(get_fields(part).get("text")))
    ]
    said = "".join(texts) or node["content"]
    files = map(get_fields, get_list(node.get("files")))
    pictured = (each.get("url") for each in files if each.get("type") == "image")
    urls = [url for url in pictured if get_text(url)]
    if not urls:
        return said
    pictures = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    return [{"type": "text", "text": said}, *pictures]


def _parse_open_webui_time(seconds: Any) -> int | None:
    """Return a moment in seconds as ms, None for anything else."""
    is_moment = isinstance(seconds, int | float) and 0 < seconds < SECONDS_LIMIT
    return round(seconds * 1000) if is_moment else None
