"""Conversations of ShareGPT and data sets like it: turns with ``from`` and ``value``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ...messages import Message
from ...text import Fields, as_list
from ..events import (
    Event,
    Opened,
    Said,
    SessionNames,
    fields_of,
    first_text,
    list_of,
    split_metadata,
    telling,
    text_of,
    title_of,
    unread,
    without,
)
from ..several import conversations
from ..source import Source, Value

CALL = "function_call"

SPEAKERS = {
    "system": "system",
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "assistant": "assistant",
    "bing": "assistant",
    "bard": "assistant",
    CALL: "assistant",
    "observation": "tool",
    "tool": "tool",
}
"""Name of a speaker → role in the chat."""


def looks(value: Any) -> bool:
    """Tell whether a JSON value is such a conversation, or a list of them."""
    return any(map(_is_conversation, as_list(value)))


def _is_conversation(value: Any) -> bool:
    return any(map(_is_turn, list_of(fields_of(value).get("conversations"))))


def _is_turn(value: Any) -> bool:
    fields = fields_of(value)
    return text_of(fields.get("from")) in SPEAKERS and isinstance(fields.get("value"), str)


def parse(source: Source) -> Iterator[Event]:
    """Return a session for each conversation, and a note for each thing that is none."""
    expected = "conversation with turns of 'from' and 'value'"
    return conversations(source, _is_conversation, expected, _session)


def _session(item: Value, names: SessionNames) -> Iterator[Event]:
    turns = item.value["conversations"]
    messages = _messages(item.value.get("system"), list(filter(_is_turn, turns)))
    metadata, notes = split_metadata(without(item.value, "conversations", "system", "id"))
    name = names.name(text_of(item.value.get("id")))
    title = first_text((item.value.get("title"), title_of(messages)))
    yield Opened(name, title, None, metadata)
    yield from map(Said, messages)
    yield from (
        unread(item.row, turn, "no turn of a conversation") for turn in turns if not _is_turn(turn)
    )
    yield from notes


def _messages(system: Any, turns: list[Fields]) -> list[Message]:
    """Return the messages of turns; a result answers the last call."""
    made: list[Message] = []
    if text_of(system):
        made.append({"role": "system", "content": system})
    link: Fields = {}
    for number, turn in enumerate(turns, 1):
        message = _message(turn, f"call-{number}")
        for call in message.get("tool_calls", ()):
            link = {"tool_call_id": call["id"]}
        if message["role"] == "tool":
            message |= link
            link = {}
        made.append(message)
    return made


def _message(turn: Fields, name: str) -> Message:
    call = _call(turn, name)
    said = {"tool_calls": [call], "content": None} if call else {"content": turn["value"]}
    extra = without(turn, "from", "value")
    return {"role": SPEAKERS[turn["from"]]} | said | telling({"sharegpt": extra})


def _call(turn: Fields, name: str) -> Fields | None:
    """Return the call that a turn makes: JSON with a name and arguments; None for text."""
    told = _object_in(turn["value"]) if turn["from"] == CALL else {}
    if not text_of(told.get("name")):
        return None
    arguments = json.dumps(told.get("arguments") or {}, ensure_ascii=False)
    function = {"name": told["name"], "arguments": arguments}
    return {"id": name, "type": "function", "function": function}


def _object_in(text: str) -> Fields:
    try:
        return fields_of(json.loads(text))
    except (ValueError, RecursionError):
        return {}
