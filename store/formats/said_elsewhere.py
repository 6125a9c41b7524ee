"""Store messages of a chat that have values under keys that a row does not have.

A refusal and the transcript of a spoken answer come with an empty content. A call may belong to a
tool that takes free text, or be the single ``function_call`` of older programs, whose result has
the role ``function``. Each is stored where every rule and format looks for it: in the content,
among the calls, or as a tool's result. Other values and the order of the keys are kept beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..messages import WIRE, Message
from .openai import CUSTOM, EXTENSIONS, NAME, READ
from .rows import Problem, emptied, filled, wire_of


class Elsewhere(NamedTuple):
    """A key of a chat whose value a row holds elsewhere: one row of the table."""

    key: str
    is_said: Callable[[Message], bool]
    """Tells whether a message has a value there."""
    shown: Callable[[Message], Message]
    """Returns the keys of the row that hold the value."""
    left: Callable[[Any], Any]
    """Returns the rest of the value that is kept beside the row."""
    given: Callable[[Message, Any], Any]
    """Returns the original value from the row and the kept rest."""


def _is_mute(message: Message) -> bool:
    return not message.get("content")


def _refuses(message: Message) -> bool:
    return _is_mute(message) and isinstance(message.get("refusal"), str)


def _is_heard(message: Message) -> bool:
    audio = message.get("audio")
    is_spoken = isinstance(audio, dict) and isinstance(audio.get("transcript"), str)
    return is_spoken and _is_mute(message) and not _refuses(message)


def _calls_function(message: Message) -> bool:
    function = message.get("function_call")
    is_named = isinstance(function, dict) and isinstance(function.get("name"), str)
    return is_named and not message.get("tool_calls")


def _as_call(message: Message) -> Message:
    """Return an older call as one of a list; it has no id, so its result is known by its name."""
    function = message["function_call"]
    return {"tool_calls": [{"id": function["name"], "type": "function", "function": function}]}


def _is_custom(call: Any) -> bool:
    held = call.get(CUSTOM) if isinstance(call, dict) and call.get("type") == CUSTOM else None
    return isinstance(held, dict) and all(isinstance(held.get(key), str) for key in CUSTOM_KEYS)


CUSTOM_KEYS = ("name", "input")


def _calls_custom(message: Message) -> bool:
    calls = message.get("tool_calls")
    return isinstance(calls, list) and any(map(_is_custom, calls))


def _as_functions(message: Message) -> Message:
    return {"tool_calls": [*map(_as_function, message["tool_calls"])]}


def _as_function(call: Any) -> Any:
    if not _is_custom(call):
        return call
    held = call[CUSTOM]
    function = {"name": held["name"], "arguments": {"input": held["input"]}}
    return {"id": call.get("id"), "type": "function", "function": function}


def _customs_left(calls: list[Any]) -> list[Message | None]:
    """Return the calls of free text in order, with null for the values that the row holds."""
    return [
        {**emptied(call, "id"), CUSTOM: emptied(call[CUSTOM], *CUSTOM_KEYS)}
        if _is_custom(call)
        else None
        for call in calls
    ]


def _customs_given(row: Message, left: list[Message | None]) -> list[Any]:
    pairs = zip(row["tool_calls"], left, strict=True)
    return [_custom_given(call, held) if held else call for call, held in pairs]


def _custom_given(call: Message, held: Message) -> Message:
    function = call["function"]
    said = {"name": function["name"], "input": function["arguments"]["input"]}
    return filled(held, id=call["id"], custom=filled(held[CUSTOM], **said))


def _is_older_result(message: Message) -> bool:
    return message.get("role") == "function" and isinstance(message.get("name"), str)


ELSEWHERE = (
    Elsewhere(
        "refusal",
        _refuses,
        lambda message: {"content": [{"type": "refusal", "refusal": message["refusal"]}]},
        lambda _: None,
        lambda row, _: row["content"][0]["refusal"],
    ),
    Elsewhere(
        "audio",
        _is_heard,
        lambda message: {"content": message["audio"]["transcript"]},
        lambda audio: emptied(audio, "transcript"),
        lambda row, audio: filled(audio, transcript=row["content"]),
    ),
    Elsewhere(
        "function_call",
        _calls_function,
        _as_call,
        lambda _: None,
        lambda row, _: row["tool_calls"][0]["function"],
    ),
    Elsewhere("tool_calls", _calls_custom, _as_functions, _customs_left, _customs_given),
    Elsewhere(
        "role",
        _is_older_result,
        lambda message: {"role": "tool", "tool_call_id": message["name"]},
        lambda role: role,
        lambda _, role: role,
    ),
)
"""The keys; a message may have several of them."""
KEYS = frozenset(each.key for each in ELSEWHERE) - {"role"}


def is_told(message: Message) -> bool:
    """Tell whether a message has such a key; most have none, and this is quick."""
    if KEYS.isdisjoint(message) and message.get("role") != "function":
        return False
    return WIRE not in message and any(each.is_said(message) for each in ELSEWHERE)


def problem(_: Message) -> Problem | None:
    """Return None: any message may be of a chat."""
    return None


def rows(message: Message) -> list[Message]:
    """Return the row of a message: the message itself if it has no such key."""
    if not is_told(message):
        return [message]
    found = [each for each in ELSEWHERE if each.is_said(message)]
    shown = {key: held for each in found for key, held in each.shown(message).items()}
    moved = {each.key: each.left(message[each.key]) for each in found}
    was = {key: message[key] for key in shown if key in message and key not in moved}
    rest = {key: held for key, held in message.items() if key not in moved}
    beside = {"format": NAME, "keys": [*message], "was": was, "moved": moved}
    return [{**rest, **shown, WIRE: beside}]


def rows_read(message: Message) -> list[Message]:
    """Return the row of a message that a reader of transcripts gives in the shape of a chat.

    The reasoning of a model is under a key that providers of a chat also use. It came from none of
    them, so it is sent to none.
    """
    (one,) = rows(message)
    if WIRE in message or EXTENSIONS.keys().isdisjoint(message):
        return [one]
    new = {"format": NAME, "keys": [*message], "was": {}, "moved": {}}
    held = one.get(WIRE) or new
    return [{**one, WIRE: {**held, READ: True}}]


def given(rows: Sequence[Message]) -> Message:
    """Return the original message from its row."""
    (one,) = rows
    held = wire_of(one)
    left = ((each, held["moved"][each.key]) for each in ELSEWHERE if each.key in held["moved"])
    moved = {each.key: each.given(one, was) for each, was in left}
    whole = {**one, **held["was"], **moved}
    return {key: whole[key] for key in held["keys"]}
