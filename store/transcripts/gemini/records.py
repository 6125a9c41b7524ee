"""A record of Gemini CLI as messages of the chat: its text, and the results of its calls."""

from __future__ import annotations

from collections.abc import Iterator

from ...messages import Message
from ...text import JsonFields
from ..events import (
    drop_empty_fields,
    drop_keys,
    get_fields,
    get_list,
    get_text,
    join_texts,
    parse_iso_milliseconds,
)
from .parts import (
    join_gemini_thoughts,
    list_gemini_parts,
    list_gemini_responses,
    parse_gemini_call,
    parse_gemini_calls,
    parse_gemini_content,
    parse_gemini_response,
)

GEMINI_RECORD_ROLES = {"user": "user", "gemini": "assistant"}
"""Type of a record that the model saw → role; others are notices of the program."""

FAILED_GEMINI_STATES = ("error", "cancelled")
"""States of a call that did not succeed."""

_GEMINI_RECORD_KEYS = ("id", "timestamp", "type", "content", "toolCalls")


def is_gemini_message(value: object) -> bool:
    """Tell whether a record is a message, and can be read."""
    fields = get_fields(value)
    return get_text(fields.get("type")) in GEMINI_RECORD_ROLES and "content" in fields


def find_record_model(record: JsonFields) -> str | None:
    """Return the model that answered."""
    return get_text(record.get("model"))


def parse_gemini_record(name: str, record: JsonFields) -> Iterator[Message]:
    """Yield a record's message, then the results of its calls."""
    parts = list_gemini_parts(record["content"])
    calls = list(map(get_fields, get_list(record.get("toolCalls"))))
    if record["type"] == "gemini":
        made = [
            parse_gemini_call(call, f"{name}-call-{number}") for number, call in enumerate(calls, 1)
        ]
        message: Message = {"role": "assistant", "content": parse_gemini_content(parts)}
        made = made or parse_gemini_calls(parts, name)
        thoughts = map(_render_gemini_thought, get_list(record.get("thoughts")))
        reasoning = join_texts((*thoughts, join_gemini_thoughts(parts)), "\n")
        if made:
            message["tool_calls"] = made
        if reasoning:
            message["reasoning_content"] = reasoning
        yield _add_record_fields(message, name, record)
    elif parse_gemini_content(parts) or not list_gemini_responses(parts):
        yield _add_record_fields(
            {"role": "user", "content": parse_gemini_content(parts) or ""}, name, record
        )
    for number, call in enumerate(calls, 1):
        yield from _parse_gemini_call_result(call, f"{name}-call-{number}")


def _render_gemini_thought(value: object) -> str:
    fields = get_fields(value)
    texts = (get_text(fields.get(key)) for key in ("subject", "description"))
    return ": ".join(filter(None, texts))


def _add_record_fields(message: Message, name: str, record: JsonFields) -> Message:
    """Return a message with its id, its time, and what else its record says."""
    extra = drop_empty_fields(drop_keys(record, *_GEMINI_RECORD_KEYS))
    more: JsonFields = {"gemini_cli": extra} if extra else {}
    return message | {"id": name} | _parse_gemini_time(record) | more


def _parse_gemini_call_result(call: JsonFields, fallback: str) -> Iterator[Message]:
    """Yield the result of a call, where it has one, and how the screen showed it."""
    if call.get("result") in (None, [], ""):
        return
    parts = list_gemini_parts(call["result"])
    beside = parse_gemini_content(parts)
    responses = list_gemini_responses(parts)
    if not responses:
        message = {"role": "tool", "content": beside}
    else:
        message = parse_gemini_response(responses[0])
        if beside:
            message["content"] = [
                *list_gemini_parts(message["content"]),
                *list_gemini_parts(beside),
            ]
    message["tool_call_id"] = get_text(call.get("id")) or fallback
    if call.get("status") in FAILED_GEMINI_STATES:
        message["messageStatus"] = "error"
    extra = drop_empty_fields(drop_keys(call, "id", "name", "args", "result", "timestamp"))
    yield message | _parse_gemini_time(call) | ({"gemini_cli": extra} if extra else {})


def _parse_gemini_time(fields: JsonFields) -> JsonFields:
    moment = parse_iso_milliseconds(fields.get("timestamp"))
    return {} if moment is None else {"timestamp": moment}
