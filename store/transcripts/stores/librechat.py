"""Exports of LibreChat: a conversation's messages, nested by their ``children`` or in a list."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ...messages import Message
from ...text import Fields, items_of
from ..events import (
    Event,
    Opened,
    SessionNames,
    fields_of,
    iso_milliseconds,
    list_of,
    split_metadata,
    telling,
    text_of,
    text_part,
    title_in,
    without,
)
from ..several import conversations
from ..source import Source, Value
from ..trees import Tree, parents_of, tree_events

SAID = (
    "messageId",
    "parentMessageId",
    "text",
    "content",
    "isCreatedByUser",
    "children",
    "createdAt",
)
OPENED = ("conversationId", "title", "messages", "messagesTree")


def looks(value: Any) -> bool:
    """Tell whether a JSON value is such a conversation, or a list of them."""
    return any(map(_has_messages, items_of(value)))


def parse(source: Source) -> Iterator[Event]:
    """Return a session for each conversation, its branches after it."""
    return conversations(source, _has_messages, "conversation with messages", _session)


def _has_messages(value: Any) -> bool:
    return any(map(_is_message, _listed(value)))


def _session(item: Value, names: SessionNames) -> Iterator[Event]:
    fields = fields_of(item.value)
    nodes = {each["messageId"]: each for each in _flat(_listed(fields))}
    known = telling(without(fields, *OPENED))
    metadata, notes = split_metadata(known)
    title = title_in([fields.get("title")])
    name = names.name(text_of(fields.get("conversationId")))
    parents = parents_of(nodes, "parentMessageId")
    tree = Tree(parents, None, lambda node: _messages(nodes[node]))
    yield from tree_events(tree, Opened(name, title, None, {"librechat": metadata}))
    yield from notes


def _listed(value: Any) -> list[Any]:
    fields = fields_of(value)
    return list_of(fields.get("messages")) or list_of(fields.get("messagesTree"))


def _is_message(value: Any) -> bool:
    fields = fields_of(value)
    return isinstance(fields.get("isCreatedByUser"), bool) and bool(
        text_of(fields.get("messageId"))
    )


def _flat(messages: list[Any]) -> Iterator[Fields]:
    """Yield messages, each before those below it."""
    waiting = messages[::-1]
    while waiting:
        message = waiting.pop()
        if _is_message(message):
            yield message
            waiting += list_of(message.get("children"))[::-1]


def _messages(node: Fields) -> list[Message]:
    """Return what a message says; its calls and their results before it."""
    parts = [fields_of(each) for each in list_of(node.get("content"))]
    calls = [fields_of(part.get("tool_call")) for part in parts if part.get("type") == "tool_call"]
    extra = telling(without(node, *SAID))
    moment = telling({"timestamp": iso_milliseconds(node.get("createdAt"))})
    role = "user" if node["isCreatedByUser"] else "assistant"
    said: Message = {"role": role, "content": _content(node, parts), "id": node["messageId"]}
    said |= {**moment, "librechat": extra}
    if not calls:
        return [said]
    asking: Message = {"role": "assistant", "content": None, "tool_calls": list(map(_call, calls))}
    return [asking, *map(_result, calls), said]


def _content(node: Fields, parts: list[Fields]) -> Any:
    """Return what a message says: its text, else its parts, without calls."""
    if text_of(node.get("text")):
        return node["text"]
    said = [_part(part) for part in parts if part.get("type") != "tool_call"]
    return said or ""


def _part(part: Fields) -> Fields:
    """Return a part; a text may be an object with its value."""
    text = part.get("text")
    value = fields_of(text).get("value", text)
    return text_part(value) if part.get("type") == "text" and isinstance(value, str) else part


def _call(call: Fields) -> Fields:
    arguments = call.get("args")
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    function = {"name": text_of(call.get("name")) or "", "arguments": text}
    return {"id": text_of(call.get("id")) or "", "type": "function", "function": function}


def _result(call: Fields) -> Message:
    output = text_of(call.get("output")) or ""
    return {"role": "tool", "tool_call_id": text_of(call.get("id")) or "", "content": output}
