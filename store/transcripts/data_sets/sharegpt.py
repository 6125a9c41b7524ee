"""Conversations of ShareGPT and data sets like it: turns with ``from`` and ``value``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ...records import Message
from ...text import JsonFields, wrap_in_list
from ..parser_events import (
    Event,
    SessionEvent,
    SessionMessage,
    SessionNames,
    drop_empty_fields,
    drop_keys,
    find_first_text,
    find_title,
    get_fields,
    get_list,
    get_text,
    note_unread_value,
    split_metadata,
)
from ..source import SourceValue, TranscriptSource, parse_conversations

__all__ = ["has_sharegpt_conversation", "parse_sharegpt"]

SHAREGPT_CALL_SPEAKER = "function_call"

ROLE_BY_SPEAKER = {
    "system": "system",
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "assistant": "assistant",
    "bing": "assistant",
    "bard": "assistant",
    SHAREGPT_CALL_SPEAKER: "assistant",
    "observation": "tool",
    "tool": "tool",
}
"""Name of a speaker → role in the chat."""


def has_sharegpt_conversation(value: Any) -> bool:
    """Tell whether a JSON value is such a conversation, or a list of them."""
    return any(map(_is_sharegpt_conversation, wrap_in_list(value)))


def _is_sharegpt_conversation(value: Any) -> bool:
    return any(map(_is_sharegpt_turn, get_list(get_fields(value).get("conversations"))))


def _is_sharegpt_turn(value: Any) -> bool:
    fields = get_fields(value)
    return get_text(fields.get("from")) in ROLE_BY_SPEAKER and isinstance(fields.get("value"), str)


def parse_sharegpt(source: TranscriptSource) -> Iterator[Event]:
    """Return a session for each conversation, and a note for each thing that is none."""
    expected = "conversation with turns of 'from' and 'value'"
    return parse_conversations(
        source, _is_sharegpt_conversation, expected, _parse_sharegpt_conversation
    )


def _parse_sharegpt_conversation(item: SourceValue, names: SessionNames) -> Iterator[Event]:
    turns = item.value["conversations"]
    messages = _parse_sharegpt_turns(
        item.value.get("system"), list(filter(_is_sharegpt_turn, turns))
    )
    metadata, notes = split_metadata(drop_keys(item.value, "conversations", "system", "id"))
    name = names.name(get_text(item.value.get("id")))
    title = find_first_text((item.value.get("title"), find_title(messages)))
    yield SessionEvent(name, title, None, metadata)
    yield from map(SessionMessage, messages)
    yield from (
        note_unread_value(item.row, turn, "no turn of a conversation")
        for turn in turns
        if not _is_sharegpt_turn(turn)
    )
    yield from notes


def _parse_sharegpt_turns(system: Any, turns: list[JsonFields]) -> list[Message]:
    """Return the messages of turns; a result answers the last call."""
    made: list[Message] = []
    if get_text(system):
        made.append({"role": "system", "content": system})
    link: JsonFields = {}
    for number, turn in enumerate(turns, 1):
        message = _parse_sharegpt_turn(turn, f"call-{number}")
        for call in message.get("tool_calls", ()):
            link = {"tool_call_id": call["id"]}
        if message["role"] == "tool":
            message |= link
            link = {}
        made.append(message)
    return made


def _parse_sharegpt_turn(turn: JsonFields, name: str) -> Message:
    told = _parse_turn_json(turn["value"]) if turn["from"] == SHAREGPT_CALL_SPEAKER else {}
    if not get_text(told.get("name")):
        call = None
    else:
        arguments = json.dumps(told.get("arguments") or {}, ensure_ascii=False)
        function = {"name": told["name"], "arguments": arguments}
        call = {"id": name, "type": "function", "function": function}
    said = {"tool_calls": [call], "content": None} if call else {"content": turn["value"]}
    extra = drop_keys(turn, "from", "value")
    return {"role": ROLE_BY_SPEAKER[turn["from"]]} | said | drop_empty_fields({"sharegpt": extra})


def _parse_turn_json(text: str) -> JsonFields:
    try:
        return get_fields(json.loads(text))
    except (ValueError, RecursionError):
        return {}
