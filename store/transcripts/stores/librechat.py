"""Chats of LibreChat: its exports, or the messages of its database.

An export has a conversation's messages, nested by their ``children`` or in a list; the database has
those of all conversations, in a list or one a line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ...messages import Message
from ...text import Fields, as_list
from ..events import (
    Event,
    Noted,
    Opened,
    SessionNames,
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
    title_in,
    unread,
    within,
    without,
)
from ..source import Source
from ..trees import Tree, parents_of, tree_events

SAID = (
    "messageId",
    "parentMessageId",
    "text",
    "content",
    "isCreatedByUser",
    "children",
    "createdAt",
    "conversationId",
    "user",
)
OPENED = ("conversationId", "title", "messages", "messagesTree", "user")

THOUGHT, CALL = "think", "tool_call"
"""Types of parts that are no content: what a model thought, and a call with its result."""


def looks(value: Any) -> bool:
    """Tell whether a JSON value is such a conversation or message, or a list of them."""
    return any(_has_messages(each) or _is_message(each) for each in as_list(value))


def parse(source: Source) -> Iterator[Event]:
    """Return a session for each conversation, its branches after it."""
    names = SessionNames(source.stem)
    loose: dict[str, list[Fields]] = {}
    for item in source.values():
        if isinstance(item, Noted):
            yield item
            continue
        for each in as_list(item.value):
            if _has_messages(each):
                yield from _session(each, names)
            elif _is_message(each):
                loose.setdefault(str(each.get("conversationId")), []).append(each)
            else:
                yield unread(item.row, each, "no conversation with messages")
    for name, messages in loose.items():
        owner = first_text(message.get("user") for message in messages)
        told = {"conversationId": name, "messages": messages, "user": owner}
        yield from _session(told, names)


def _has_messages(value: Any) -> bool:
    return any(map(_is_message, _listed(value)))


def _session(fields: Fields, names: SessionNames) -> Iterator[Event]:
    nodes = {each["messageId"]: each for each in _flat(_listed(fields))}
    known = telling(without(fields, *OPENED))
    metadata, notes = split_metadata(known)
    title = title_in([fields.get("title")])
    name = names.name(text_of(fields.get("conversationId")))
    parents = parents_of(nodes, "parentMessageId")
    tree = Tree(parents, None, lambda node: _messages(nodes[node]))
    told: Fields = {"librechat": metadata}
    yield from tree_events(tree, Opened(name, title, None, told, text_of(fields.get("user"))))
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
    """Return what a message says; the last one has its id."""
    moment = telling({"timestamp": _moment(node.get("createdAt"))})
    extra = telling(without(node, *SAID))
    made = [_asked(node)] if node["isCreatedByUser"] else list(_answer(node))
    made[-1] |= {"id": node["messageId"], "librechat": extra}
    return [message | moment for message in made]


def _asked(node: Fields) -> Message:
    parts = list(map(_part, objects_of(node.get("content"))))
    return {"role": "user", "content": text_of(node.get("text")) or parts or ""}


def _answer(node: Fields) -> Iterator[Message]:
    """Yield the messages of an answer: what was said with some calls, then their results."""
    text = text_of(node.get("text")) or ""
    parts = objects_of(node.get("content")) or [text_part(text)]
    step: list[Fields] = []
    for part in parts:
        if step and step[-1].get("type") == CALL and part.get("type") != CALL:
            yield from _step(step)
            step = []
        step.append(part)
    yield from _step(step)


def _step(parts: list[Fields]) -> Iterator[Message]:
    calls = [fields_of(part.get("tool_call")) for part in parts if part.get("type") == CALL]
    thoughts = (part.get("think") for part in parts if part.get("type") == THOUGHT)
    said = [_part(part) for part in parts if part.get("type") not in (THOUGHT, CALL)]
    more = {"reasoning_content": joined(thoughts), "tool_calls": list(map(_call, calls))}
    content = simplest_content(said)
    yield {"role": "assistant", "content": content if calls else content or "", **telling(more)}
    yield from map(_result, calls)


def _moment(told: Any) -> int | None:
    """Return a moment in ms, also one as a database writes it into JSON."""
    return iso_milliseconds(within(told, "$date") or told)


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
