"""Trajectories of mini-swe-agent: messages as they were sent, with what each cost beside them.

Those of version 2 may hold whole answers of the Responses API, and the outputs of their calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...records import Message
from ...text import JsonFields
from ..parser_events import (
    Event,
    SessionEvent,
    SessionMessage,
    SessionNames,
    build_chat_call,
    convert_to_milliseconds,
    drop_empty_fields,
    drop_keys,
    find_title,
    get_fields,
    get_nested,
    get_objects,
    get_text,
    join_texts,
    note_omission,
    split_metadata,
)
from ..source import SourceValue, for_each_conversation

__all__ = ["is_mini_swe_trajectory", "parse_mini_swe_agent"]

MINI_SWE_FORMAT = "mini-swe-agent"

EXIT_ROLE = "exit"
"""The role of a message that tells only how a run ended."""


def is_mini_swe_trajectory(value: Any) -> bool:
    """Tell whether a JSON value is such a trajectory."""
    fields = get_fields(value)
    named = (get_text(fields.get("trajectory_format")) or "").startswith(MINI_SWE_FORMAT)
    told = named or "mini_version" in get_fields(fields.get("info"))
    return told and isinstance(fields.get("messages"), list)


@for_each_conversation(is_mini_swe_trajectory, "trajectory")
def parse_mini_swe_agent(item: SourceValue, names: SessionNames) -> Iterator[Event]:
    """Return the session of a trajectory."""
    told = get_fields(item.value)
    wanted = get_text(told.get("instance_id")) or names.stem
    messages = [
        message
        for each in told["messages"]
        for message in _parse_mini_swe_message(get_fields(each))
    ]
    known = drop_keys(told, "messages", "instance_id")
    metadata, notes = split_metadata(known)
    model = get_text(get_nested(told, "info", "config", "model", "model_name"))
    name = names.name(wanted.removesuffix(".traj"))
    yield SessionEvent(
        name, find_title(messages), None, drop_empty_fields({"model": model}) | metadata
    )
    yield from map(SessionMessage, messages)
    ends = sum(get_nested(each, "role") == EXIT_ROLE for each in told["messages"])
    if ends:
        yield note_omission(ends, "message", " that told how the run ended")
    yield from notes


def _parse_mini_swe_message(told: JsonFields) -> list[Message]:
    """Return what one of a trajectory's messages amounts to."""
    if told.get("object") == "response":
        items = get_objects(told.get("output"))
        contents = (item.get("content") for item in _list_items_of_type(items, "message"))
        texts = [_join_part_texts(get_objects(content)) for content in contents]
        more = {
            "tool_calls": [
                build_chat_call(
                    get_text(item.get("call_id")) or item.get("id"),
                    item.get("name"),
                    item.get("arguments"),
                )
                for item in _list_items_of_type(items, "function_call")
            ],
            "reasoning_items": _list_items_of_type(items, "reasoning"),
            "id": get_text(told.get("id")),
        }
        response = drop_keys(told, "output", "extra")
        extra = {**get_fields(told.get("extra")), "response": response}
        said = join_texts(texts, "\n") or None
        return [
            ({"role": "assistant", "content": said, "extra": extra} | drop_empty_fields(more))
            | _parse_mini_swe_time(told)
        ]
    if told.get("type") == "function_call_output":
        result = {
            "role": "tool",
            "tool_call_id": told.get("call_id"),
            "content": told.get("output"),
        }
        return [
            (result | drop_empty_fields({"extra": told.get("extra")})) | _parse_mini_swe_time(told)
        ]
    if not get_text(told.get("role")) or told["role"] == EXIT_ROLE:
        return []
    # A message stays as it is; a text of the Responses API becomes one of the chat.
    message, parts = told, get_objects(told.get("content"))
    if _list_items_of_type(parts, "input_text"):
        message = {**drop_keys(told, "type"), "content": _join_part_texts(parts)}
    return [message | _parse_mini_swe_time(told)]


def _join_part_texts(parts: list[JsonFields]) -> str:
    return join_texts((part.get("text") for part in parts), "\n")


def _list_items_of_type(items: list[JsonFields], kind: str) -> list[JsonFields]:
    return [item for item in items if item.get("type") == kind]


def _parse_mini_swe_time(told: JsonFields) -> JsonFields:
    """Return when something was said, in ms, where it tells."""
    return drop_empty_fields(
        {"timestamp": convert_to_milliseconds(get_nested(told, "extra", "timestamp"))}
    )
