"""Results of tau2-bench: simulations in which the user is a model with tools of its own.

A simulation is the agent's session. The user's calls and their results were sent to no agent: they
are kept under ``tau2_bench`` of the user's next message.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...records import Message
from ...text import JsonFields, wrap_in_list
from ..parser_events import (
    Event,
    NoteEvent,
    SessionEvent,
    SessionMessage,
    SessionNames,
    build_chat_call,
    drop_empty_fields,
    drop_keys,
    find_title,
    get_fields,
    get_list,
    get_nested,
    get_objects,
    get_text,
    note_unread_value,
    parse_iso_milliseconds,
    split_metadata,
)
from ..source import TranscriptSource

__all__ = ["has_tau2_simulation", "parse_tau2_bench"]

SIMULATION_KEYS = ("termination_reason", "reward_info", "user_cost")
"""Keys beside the messages; a simulation has at least one of them."""

TAU2_KEY = "tau2_bench"

_TAU2_MESSAGE_KEYS = ("role", "content", "tool_calls", "reasoning", "timestamp", "raw_data", "id")
_TAU2_CALL_KEYS = ("id", "name", "arguments")


def has_tau2_simulation(value: Any) -> bool:
    """Tell whether a JSON value is a simulation, a list of them, or a file of results."""
    return any(map(_is_tau2_simulation, _list_simulations(value)))


def _is_tau2_simulation(value: Any) -> bool:
    fields = get_fields(value)
    has_messages = any(map(_is_tau2_message, get_list(fields.get("messages"))))
    return has_messages and not fields.keys().isdisjoint(SIMULATION_KEYS)


def _is_tau2_message(value: Any) -> bool:
    return bool(get_text(get_fields(value).get("role")))


def _list_simulations(value: Any) -> list[Any]:
    held = get_fields(value).get("simulations")
    return held if isinstance(held, list) else list(wrap_in_list(value))


def parse_tau2_bench(source: TranscriptSource) -> Iterator[Event]:
    """Return a session for each simulation, and a note for each value that is none."""
    names = SessionNames(source.stem)
    for item in source.values():
        if isinstance(item, NoteEvent):
            yield item
            continue
        model = get_text(get_nested(item.value, "info", "agent_info", "llm"))
        for each in _list_simulations(item.value):
            if _is_tau2_simulation(each):
                yield from _parse_tau2_simulation(each, model, names)
            else:
                yield note_unread_value(item.row, each, "no simulation")


def _parse_tau2_simulation(
    told: JsonFields, model: str | None, names: SessionNames
) -> Iterator[Event]:
    messages = _parse_tau2_messages([each for each in told["messages"] if _is_tau2_message(each)])
    metadata, notes = split_metadata(drop_keys(told, "messages", "id"))
    wanted = get_text(told.get("id")) or f"{names.stem}-{told.get('task_id')!s:.80}"
    name = names.name(wanted)
    yield SessionEvent(
        name, find_title(messages), None, drop_empty_fields({"model": model}) | metadata
    )
    yield from map(SessionMessage, messages)
    yield from notes


def _parse_tau2_messages(told: list[JsonFields]) -> list[Message]:
    made: list[Message] = []
    aside: list[JsonFields] = []
    for each in told:
        if (
            bool(each.get("tool_calls"))
            if each["role"] == "user"
            else each.get("requestor") == "user"
        ):
            aside.append(drop_keys(each, "raw_data"))
            continue
        message: Message = {"role": each["role"], "content": each.get("content")}
        if each["role"] == "tool":
            message |= {"tool_call_id": str(each.get("id"))}
        more = {
            "tool_calls": list(map(_parse_tau2_call, get_objects(each.get("tool_calls")))),
            "reasoning_content": get_text(each.get("reasoning")),
            "messageStatus": "error" if each.get("error") is True else None,
            "timestamp": parse_iso_milliseconds(each.get("timestamp")),
            TAU2_KEY: drop_empty_fields(drop_keys(each, *_TAU2_MESSAGE_KEYS)),
        }
        made.append(message | drop_empty_fields(more))
        if aside and each["role"] == "user":
            made[-1] = _add_user_tools(made[-1], aside)
            aside = []
    if aside and made:
        made[-1] = _add_user_tools(made[-1], aside)
    return made


def _add_user_tools(message: Message, aside: list[JsonFields]) -> Message:
    """Return a message with what the user called before it."""
    return message | {TAU2_KEY: {**message.get(TAU2_KEY, {}), "user_tools": aside}}


def _parse_tau2_call(told: JsonFields) -> JsonFields:
    return build_chat_call(told.get("id"), told.get("name"), told.get("arguments"))
