"""Chats of LibreChat: its exports, or the messages of its database.

An export has a conversation's messages, nested by their ``children`` or in a list; the database has
those of all conversations, in a list or one a line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ...records import Message
from ...text import JsonFields, wrap_in_list
from ..parser_events import (
    Event,
    NoteEvent,
    SessionEvent,
    SessionNames,
    build_text_part,
    drop_empty_fields,
    drop_keys,
    find_first_text,
    get_fields,
    get_list,
    get_nested,
    get_objects,
    get_text,
    join_texts,
    note_unread_value,
    parse_iso_milliseconds,
    render_first_title,
    simplify_content,
    split_metadata,
)
from ..source import TranscriptSource
from ..trees import Tree, build_tree_events, find_node_parents

__all__ = ["is_librechat_export", "parse_librechat"]

LIBRECHAT_MESSAGE_KEYS = (
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
LIBRECHAT_CONVERSATION_KEYS = ("conversationId", "title", "messages", "messagesTree", "user")

THOUGHT, CALL = "think", "tool_call"
"""Types of parts that are no content: what a model thought, and a call with its result."""


def is_librechat_export(value: Any) -> bool:
    """Tell whether a JSON value is such a conversation or message, or a list of them."""
    return any(
        _has_librechat_messages(each) or _is_librechat_message(each) for each in wrap_in_list(value)
    )


def parse_librechat(source: TranscriptSource) -> Iterator[Event]:
    """Return a session for each conversation, its branches after it."""
    names = SessionNames(source.stem)
    loose: dict[str, list[JsonFields]] = {}
    for item in source.values():
        if isinstance(item, NoteEvent):
            yield item
            continue
        for each in wrap_in_list(item.value):
            if _has_librechat_messages(each):
                yield from _parse_librechat_conversation(each, names)
            elif _is_librechat_message(each):
                loose.setdefault(str(each.get("conversationId")), []).append(each)
            else:
                yield note_unread_value(item.row, each, "no conversation with messages")
    for name, messages in loose.items():
        owner = find_first_text(message.get("user") for message in messages)
        told = {"conversationId": name, "messages": messages, "user": owner}
        yield from _parse_librechat_conversation(told, names)


def _has_librechat_messages(value: Any) -> bool:
    return any(map(_is_librechat_message, _list_librechat_messages(value)))


def _parse_librechat_conversation(fields: JsonFields, names: SessionNames) -> Iterator[Event]:
    nodes = {
        each["messageId"]: each for each in _flatten_message_tree(_list_librechat_messages(fields))
    }
    known = drop_empty_fields(drop_keys(fields, *LIBRECHAT_CONVERSATION_KEYS))
    metadata, notes = split_metadata(known)
    title = render_first_title([fields.get("title")])
    name = names.name(get_text(fields.get("conversationId")))
    parents = find_node_parents(nodes, "parentMessageId")
    tree = Tree(parents, None, lambda node: _parse_librechat_message(nodes[node]))
    told: JsonFields = {"librechat": metadata}
    yield from build_tree_events(
        tree, SessionEvent(name, title, None, told, get_text(fields.get("user")))
    )
    yield from notes


def _list_librechat_messages(value: Any) -> list[Any]:
    fields = get_fields(value)
    return get_list(fields.get("messages")) or get_list(fields.get("messagesTree"))


def _is_librechat_message(value: Any) -> bool:
    fields = get_fields(value)
    return isinstance(fields.get("isCreatedByUser"), bool) and bool(
        get_text(fields.get("messageId"))
    )


def _flatten_message_tree(messages: list[Any]) -> Iterator[JsonFields]:
    """Yield messages, each before those below it."""
    waiting = messages[::-1]
    while waiting:
        message = waiting.pop()
        if _is_librechat_message(message):
            yield message
            waiting += get_list(message.get("children"))[::-1]


def _parse_librechat_message(node: JsonFields) -> list[Message]:
    """Return what a message says; the last one has its id."""
    moment = drop_empty_fields({"timestamp": _parse_librechat_time(node.get("createdAt"))})
    extra = drop_empty_fields(drop_keys(node, *LIBRECHAT_MESSAGE_KEYS))
    made = (
        [_parse_librechat_question(node)]
        if node["isCreatedByUser"]
        else list(_parse_librechat_answer(node))
    )
    made[-1] |= {"id": node["messageId"], "librechat": extra}
    return [message | moment for message in made]


def _parse_librechat_question(node: JsonFields) -> Message:
    parts = list(map(_parse_librechat_part, get_objects(node.get("content"))))
    return {"role": "user", "content": get_text(node.get("text")) or parts or ""}


def _parse_librechat_answer(node: JsonFields) -> Iterator[Message]:
    """Yield the messages of an answer: a text with some calls, then their results."""
    text = get_text(node.get("text")) or ""
    parts = get_objects(node.get("content")) or [build_text_part(text)]
    step: list[JsonFields] = []
    for part in parts:
        if step and step[-1].get("type") == CALL and part.get("type") != CALL:
            yield from _parse_librechat_step(step)
            step = []
        step.append(part)
    yield from _parse_librechat_step(step)


def _parse_librechat_step(parts: list[JsonFields]) -> Iterator[Message]:
    calls = [get_fields(part.get("tool_call")) for part in parts if part.get("type") == CALL]
    thoughts = (part.get("think") for part in parts if part.get("type") == THOUGHT)
    said = [
        _parse_librechat_part(part) for part in parts if part.get("type") not in (THOUGHT, CALL)
    ]
    more = {
        "reasoning_content": join_texts(thoughts),
        "tool_calls": list(map(_parse_librechat_call, calls)),
    }
    content = simplify_content(said)
    yield {
        "role": "assistant",
        "content": content if calls else content or "",
        **drop_empty_fields(more),
    }
    yield from map(_parse_librechat_result, calls)


def _parse_librechat_time(told: Any) -> int | None:
    """Return a moment in ms, also one as a database writes it into JSON."""
    return parse_iso_milliseconds(get_nested(told, "$date") or told)


def _parse_librechat_part(part: JsonFields) -> JsonFields:
    """Return a part; a text may be an object with its value."""
    text = part.get("text")
    value = get_fields(text).get("value", text)
    return build_text_part(value) if part.get("type") == "text" and isinstance(value, str) else part


def _parse_librechat_call(call: JsonFields) -> JsonFields:
    arguments = call.get("args")
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    function = {"name": get_text(call.get("name")) or "", "arguments": text}
    return {"id": get_text(call.get("id")) or "", "type": "function", "function": function}


def _parse_librechat_result(call: JsonFields) -> Message:
    output = get_text(call.get("output")) or ""
    return {"role": "tool", "tool_call_id": get_text(call.get("id")) or "", "content": output}
