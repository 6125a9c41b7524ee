"""A record of Gemini CLI as messages of the chat: its text, and the results of its calls."""

from __future__ import annotations

from collections.abc import Iterator

from ...messages import Message
from ...text import Fields
from ..events import fields_of, iso_milliseconds, joined, list_of, telling, text_of, without
from .parts import (
    call_of,
    calls_in,
    content_of,
    parts_in,
    responses_in,
    result_of,
    thoughts_in,
)

ROLES = {"user": "user", "gemini": "assistant"}
"""Type of a record that the model saw → role; others are notices of the program."""

FAILED = ("error", "cancelled")
"""States of a call that did not succeed."""

_SAID = ("id", "timestamp", "type", "content", "toolCalls")


def is_said(value: object) -> bool:
    """Tell whether a record is a message, and can be read."""
    fields = fields_of(value)
    return text_of(fields.get("type")) in ROLES and "content" in fields


def model_of(record: Fields) -> str | None:
    """Return the model that answered."""
    return text_of(record.get("model"))


def messages_of(name: str, record: Fields) -> Iterator[Message]:
    """Yield a record's message, then the results of its calls."""
    parts = parts_in(record["content"])
    calls = list(map(fields_of, list_of(record.get("toolCalls"))))
    if record["type"] == "gemini":
        made = [call_of(call, f"{name}-call-{number}") for number, call in enumerate(calls, 1)]
        message: Message = {"role": "assistant", "content": content_of(parts)}
        made = made or calls_in(parts, name)
        thoughts = map(_thought, list_of(record.get("thoughts")))
        reasoning = joined((*thoughts, thoughts_in(parts)), "\n")
        if made:
            message["tool_calls"] = made
        if reasoning:
            message["reasoning_content"] = reasoning
        yield _finished(message, name, record)
    elif content_of(parts) or not responses_in(parts):
        yield _finished({"role": "user", "content": content_of(parts) or ""}, name, record)
    for number, call in enumerate(calls, 1):
        yield from _results(call, f"{name}-call-{number}")


def _thought(value: object) -> str:
    fields = fields_of(value)
    texts = (text_of(fields.get(key)) for key in ("subject", "description"))
    return ": ".join(filter(None, texts))


def _finished(message: Message, name: str, record: Fields) -> Message:
    """Return a message with its id, its time, and what else its record says."""
    extra = telling(without(record, *_SAID))
    more: Fields = {"gemini_cli": extra} if extra else {}
    return message | {"id": name} | _moment_of(record) | more


def _results(call: Fields, fallback: str) -> Iterator[Message]:
    """Yield the result of a call, where it has one, and how the screen showed it."""
    if call.get("result") in (None, [], ""):
        return
    message = _result(parts_in(call["result"]))
    message["tool_call_id"] = text_of(call.get("id")) or fallback
    if call.get("status") in FAILED:
        message["messageStatus"] = "error"
    extra = telling(without(call, "id", "name", "args", "result", "timestamp"))
    yield message | _moment_of(call) | ({"gemini_cli": extra} if extra else {})


def _result(parts: list[object]) -> Message:
    """Return the message of a response and the parts beside it, or of parts alone."""
    beside = content_of(parts)
    responses = responses_in(parts)
    if not responses:
        return {"role": "tool", "content": beside}
    message = result_of(responses[0])
    if beside:
        message["content"] = [*parts_in(message["content"]), *parts_in(beside)]
    return message


def _moment_of(fields: Fields) -> Fields:
    moment = iso_milliseconds(fields.get("timestamp"))
    return {} if moment is None else {"timestamp": moment}
