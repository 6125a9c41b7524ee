"""Results of tau2-bench: simulations in which the user is a model with tools of its own.

A simulation is the agent's session. The user's calls and their results were sent to no agent: they
are kept under ``tau2_bench`` of the user's next message.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...messages import Message
from ...text import Fields, as_list
from ..events import (
    Event,
    Noted,
    Opened,
    Said,
    SessionNames,
    call_of,
    fields_of,
    iso_milliseconds,
    list_of,
    objects_of,
    split_metadata,
    telling,
    text_of,
    title_of,
    unread,
    within,
    without,
)
from ..source import Source

MARKS = ("termination_reason", "reward_info", "user_cost")
"""Keys beside the messages; a simulation has at least one of them."""

KEY = "tau2_bench"

_SAID = ("role", "content", "tool_calls", "reasoning", "timestamp", "raw_data", "id")
_CALL = ("id", "name", "arguments")


def looks(value: Any) -> bool:
    """Tell whether a JSON value is a simulation, a list of them, or a file of results."""
    return any(map(_is_simulation, _simulations(value)))


def _is_simulation(value: Any) -> bool:
    fields = fields_of(value)
    has_messages = any(map(_is_message, list_of(fields.get("messages"))))
    return has_messages and not fields.keys().isdisjoint(MARKS)


def _is_message(value: Any) -> bool:
    return bool(text_of(fields_of(value).get("role")))


def _simulations(value: Any) -> list[Any]:
    held = fields_of(value).get("simulations")
    return held if isinstance(held, list) else list(as_list(value))


def parse(source: Source) -> Iterator[Event]:
    """Return a session for each simulation, and a note for each value that is none."""
    names = SessionNames(source.stem)
    for item in source.values():
        if isinstance(item, Noted):
            yield item
            continue
        model = text_of(within(item.value, "info", "agent_info", "llm"))
        for each in _simulations(item.value):
            if _is_simulation(each):
                yield from _session(each, model, names)
            else:
                yield unread(item.row, each, "no simulation")


def _session(told: Fields, model: str | None, names: SessionNames) -> Iterator[Event]:
    messages = _messages([each for each in told["messages"] if _is_message(each)])
    metadata, notes = split_metadata(without(told, "messages", "id"))
    wanted = text_of(told.get("id")) or f"{names.stem}-{told.get('task_id')!s:.80}"
    name = names.name(wanted)
    yield Opened(name, title_of(messages), None, telling({"model": model}) | metadata)
    yield from map(Said, messages)
    yield from notes


def _messages(told: list[Fields]) -> list[Message]:
    made: list[Message] = []
    aside: list[Fields] = []
    for each in told:
        if (
            bool(each.get("tool_calls"))
            if each["role"] == "user"
            else each.get("requestor") == "user"
        ):
            aside.append(without(each, "raw_data"))
            continue
        made.append(_message(each))
        if aside and each["role"] == "user":
            made[-1] = _with(made[-1], aside)
            aside = []
    if aside and made:
        made[-1] = _with(made[-1], aside)
    return made


def _with(message: Message, aside: list[Fields]) -> Message:
    """Return a message with what the user called before it."""
    return message | {KEY: {**message.get(KEY, {}), "user_tools": aside}}


def _message(told: Fields) -> Message:
    message: Message = {"role": told["role"], "content": told.get("content")}
    if told["role"] == "tool":
        message |= {"tool_call_id": str(told.get("id"))}
    more = {
        "tool_calls": list(map(_call, objects_of(told.get("tool_calls")))),
        "reasoning_content": text_of(told.get("reasoning")),
        "messageStatus": "error" if told.get("error") is True else None,
        "timestamp": iso_milliseconds(told.get("timestamp")),
        KEY: telling(without(told, *_SAID)),
    }
    return message | telling(more)


def _call(told: Fields) -> Fields:
    return call_of(told.get("id"), told.get("name"), told.get("arguments"))
