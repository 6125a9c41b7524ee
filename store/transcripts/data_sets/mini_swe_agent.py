"""Trajectories of mini-swe-agent: messages as they were sent, with what each cost beside them.

Those of version 2 may hold whole answers of the Responses API, and the outputs of their calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...messages import Message
from ...text import Fields
from ..events import (
    Event,
    Opened,
    Said,
    SessionNames,
    call_of,
    fields_of,
    first_text,
    joined,
    left_out,
    milliseconds_of,
    objects_of,
    split_metadata,
    telling,
    text_of,
    title_of,
    within,
    without,
)
from ..several import conversations
from ..source import Source, Value

PROGRAM = "mini-swe-agent"

EXIT = "exit"
"""The role of a message that tells only how a run ended."""


def looks(value: Any) -> bool:
    """Tell whether a JSON value is such a trajectory."""
    fields = fields_of(value)
    named = (text_of(fields.get("trajectory_format")) or "").startswith(PROGRAM)
    told = named or "mini_version" in fields_of(fields.get("info"))
    return told and isinstance(fields.get("messages"), list)


def parse(source: Source) -> Iterator[Event]:
    """Return the session of each trajectory."""
    return conversations(source, looks, "trajectory", _session)


def _session(item: Value, names: SessionNames) -> Iterator[Event]:
    told = fields_of(item.value)
    wanted = text_of(told.get("instance_id")) or names.stem
    messages = [message for each in told["messages"] for message in _messages(fields_of(each))]
    known = without(told, "messages", "instance_id")
    metadata, notes = split_metadata(known)
    model = text_of(within(told, "info", "config", "model", "model_name"))
    name = names.name(wanted.removesuffix(".traj"))
    yield Opened(name, title_of(messages), None, telling({"model": model}) | metadata)
    yield from map(Said, messages)
    ends = sum(within(each, "role") == EXIT for each in told["messages"])
    if ends:
        yield left_out(ends, "message", " that told how the run ended")
    yield from notes


def _messages(told: Fields) -> list[Message]:
    """Return what one of a trajectory's messages amounts to."""
    if told.get("object") == "response":
        return [_answer(told) | _moment(told)]
    if told.get("type") == "function_call_output":
        return [_result(told) | _moment(told)]
    if not text_of(told.get("role")) or told["role"] == EXIT:
        return []
    return [_plain(told) | _moment(told)]


def _plain(told: Fields) -> Message:
    """Return a message as it is; a text of the Responses API as the chat has it."""
    parts = objects_of(told.get("content"))
    if not _of(parts, "input_text"):
        return told
    return {**without(told, "type"), "content": _text(parts)}


def _text(parts: list[Fields]) -> str:
    return joined((part.get("text") for part in parts), "\n")


def _answer(told: Fields) -> Message:
    items = objects_of(told.get("output"))
    contents = (item.get("content") for item in _of(items, "message"))
    texts = [_text(objects_of(content)) for content in contents]
    more = {
        "tool_calls": list(map(_call, _of(items, "function_call"))),
        "reasoning_items": _of(items, "reasoning"),
        "id": text_of(told.get("id")),
    }
    response = without(told, "output", "extra")
    extra = {**fields_of(told.get("extra")), "response": response}
    said = joined(texts, "\n") or None
    return {"role": "assistant", "content": said, "extra": extra} | telling(more)


def _of(items: list[Fields], kind: str) -> list[Fields]:
    return [item for item in items if item.get("type") == kind]


def _call(item: Fields) -> Fields:
    name = first_text((item.get("call_id"), item.get("id")))
    return call_of(name, item.get("name"), item.get("arguments"))


def _result(told: Fields) -> Message:
    said = {"role": "tool", "tool_call_id": told.get("call_id"), "content": told.get("output")}
    return said | telling({"extra": told.get("extra")})


def _moment(told: Fields) -> Fields:
    """Return when something was said, in ms, where it tells."""
    return telling({"timestamp": milliseconds_of(within(told, "extra", "timestamp"))})
