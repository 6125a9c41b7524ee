"""Exports of Open WebUI: chats whose ``history`` is a tree of messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...clock import SECONDS_BELOW
from ...messages import Message
from ...text import Fields, as_list
from ..events import (
    Event,
    Opened,
    SessionNames,
    fields_of,
    list_of,
    split_metadata,
    telling,
    text_of,
    title_in,
    without,
)
from ..several import conversations
from ..source import Source, Value
from ..trees import Tree, parents_of, tree_events

SAID = ("id", "parentId", "childrenIds", "role", "content", "timestamp", "output", "files")


def looks(value: Any) -> bool:
    """Tell whether a JSON value is such a chat, or a list of them."""
    return any(_history(each) for each in as_list(value))


def parse(source: Source) -> Iterator[Event]:
    """Return a session for each chat, its branches after it."""
    return conversations(source, _history, "chat with a history of messages", _session)


def _session(item: Value, names: SessionNames) -> Iterator[Event]:
    fields = fields_of(item.value)
    nodes = _history(fields)
    chat = fields_of(fields.get("chat"))
    known = telling(without(fields, "id", "user_id", "title", "chat"))
    metadata, notes = split_metadata(known)
    title = title_in((fields.get("title"), chat.get("title")))
    owner, created = text_of(fields.get("user_id")), _moment(fields.get("created_at"))
    name = names.name(text_of(fields.get("id")))
    told: Fields = {"open_webui": metadata}
    opened = Opened(name, title, None, told, owner=owner, created_at=created)
    current = text_of(fields_of(chat.get("history")).get("currentId"))
    tree = Tree(parents_of(nodes, "parentId"), current, lambda node: _messages(node, nodes[node]))
    yield from tree_events(tree, opened)
    yield from notes


def _history(value: Any) -> Fields:
    """Return the messages of a chat, each under its id."""
    chat = fields_of(fields_of(value).get("chat"))
    nodes = fields_of(fields_of(chat.get("history")).get("messages"))
    return {
        name: node
        for name, node in nodes.items()
        if (isinstance(fields_of(node).get("role"), str) and "content" in node)
    }


def _messages(name: str, node: Fields) -> list[Message]:
    """Return what a node says: with its calls and their results, where it tells them."""
    extra = telling(without(node, *SAID))
    beside = telling({"timestamp": _moment(node.get("timestamp")), "open_webui": extra})
    items = [each for each in list_of(node.get("output")) if isinstance(each, dict)]
    calls = [_call(each) for each in items if each.get("type") == "function_call"]
    said: Message = {"role": node["role"], "content": _content(node), "id": name, **beside}
    if not calls:
        return [said]
    results = [_result(each) for each in items if each.get("type") == "function_call_output"]
    asking: Message = {"role": "assistant", "content": None, "tool_calls": calls}
    return [asking, *results, said]


def _call(item: Fields) -> Fields:
    function = {"name": item.get("name"), "arguments": item.get("arguments")}
    return {"id": item.get("call_id"), "type": "function", "function": function}


def _result(item: Fields) -> Message:
    said = item.get("output")
    if isinstance(said, list):
        texts = (fields_of(part).get("text") for part in said)
        said = "".join(text for text in texts if isinstance(text, str))
    return {"role": "tool", "tool_call_id": item.get("call_id"), "content": said}


def _content(node: Fields) -> Any:
    """Return what a node says: its items' texts, else its content; pictures beside it."""
    texts = [
        text
        for item in map(fields_of, list_of(node.get("output")))
        if item.get("type") == "message"
        for part in list_of(item.get("content"))
        if (text := text_of(fields_of(part).get("text")))
    ]
    said = "".join(texts) or node["content"]
    files = map(fields_of, list_of(node.get("files")))
    pictured = (each.get("url") for each in files if each.get("type") == "image")
    urls = [url for url in pictured if text_of(url)]
    if not urls:
        return said
    pictures = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    return [{"type": "text", "text": said}, *pictures]


def _moment(seconds: Any) -> int | None:
    """Return a moment in seconds as ms, None for anything else."""
    is_moment = isinstance(seconds, int | float) and 0 < seconds < SECONDS_BELOW
    return round(seconds * 1000) if is_moment else None
