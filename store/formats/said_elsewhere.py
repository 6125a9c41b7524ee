"""Store messages of a chat that have values under keys that a row does not have.

A refusal and the transcript of a spoken answer come with an empty content. A call may belong to a
tool that takes free text, or be the single ``function_call`` of older programs, whose result has
the role ``function``. Each is stored where every rule and format looks for it: in the content,
among the calls, or as a tool's result. Other values and the order of the keys are kept beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..messages import WIRE_KEY, Message
from .openai import ANSWER_EXTENSIONS, CUSTOM_CALL, OPENAI_NAME, READER_MARK
from .rows import Problem, empty_keys, fill_keys, get_wire_values


class MovedKey(NamedTuple):
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


def _has_no_content(message: Message) -> bool:
    return not message.get("content")


def _is_refusal(message: Message) -> bool:
    return _has_no_content(message) and isinstance(message.get("refusal"), str)


def _is_spoken_answer(message: Message) -> bool:
    audio = message.get("audio")
    is_spoken = isinstance(audio, dict) and isinstance(audio.get("transcript"), str)
    return is_spoken and _has_no_content(message) and not _is_refusal(message)


def _has_function_call(message: Message) -> bool:
    function = message.get("function_call")
    is_named = isinstance(function, dict) and isinstance(function.get("name"), str)
    return is_named and not message.get("tool_calls")


def _convert_function_call(message: Message) -> Message:
    """Return an older call as one of a list; it has no id, so its result is known by its name."""
    function = message["function_call"]
    return {"tool_calls": [{"id": function["name"], "type": "function", "function": function}]}


def _is_custom_call(call: Any) -> bool:
    held = (
        call.get(CUSTOM_CALL)
        if isinstance(call, dict) and call.get("type") == CUSTOM_CALL
        else None
    )
    return isinstance(held, dict) and all(
        isinstance(held.get(key), str) for key in CUSTOM_CALL_KEYS
    )


CUSTOM_CALL_KEYS = ("name", "input")


def _has_custom_call(message: Message) -> bool:
    calls = message.get("tool_calls")
    return isinstance(calls, list) and any(map(_is_custom_call, calls))


def _convert_custom_calls(message: Message) -> Message:
    return {"tool_calls": [*map(_convert_custom_call, message["tool_calls"])]}


def _convert_custom_call(call: Any) -> Any:
    if not _is_custom_call(call):
        return call
    held = call[CUSTOM_CALL]
    function = {"name": held["name"], "arguments": {"input": held["input"]}}
    return {"id": call.get("id"), "type": "function", "function": function}


def _strip_custom_calls(calls: list[Any]) -> list[Message | None]:
    """Return the calls of free text in order, with null for the values that the row holds."""
    return [
        {**empty_keys(call, "id"), CUSTOM_CALL: empty_keys(call[CUSTOM_CALL], *CUSTOM_CALL_KEYS)}
        if _is_custom_call(call)
        else None
        for call in calls
    ]


def _restore_custom_calls(row: Message, left: list[Message | None]) -> list[Any]:
    pairs = zip(row["tool_calls"], left, strict=True)
    return [_restore_custom_call(call, held) if held else call for call, held in pairs]


def _restore_custom_call(call: Message, held: Message) -> Message:
    function = call["function"]
    said = {"name": function["name"], "input": function["arguments"]["input"]}
    return fill_keys(held, id=call["id"], custom=fill_keys(held[CUSTOM_CALL], **said))


def _is_function_result(message: Message) -> bool:
    return message.get("role") == "function" and isinstance(message.get("name"), str)


MOVED_KEYS = (
    MovedKey(
        "refusal",
        _is_refusal,
        lambda message: {"content": [{"type": "refusal", "refusal": message["refusal"]}]},
        lambda _: None,
        lambda row, _: row["content"][0]["refusal"],
    ),
    MovedKey(
        "audio",
        _is_spoken_answer,
        lambda message: {"content": message["audio"]["transcript"]},
        lambda audio: empty_keys(audio, "transcript"),
        lambda row, audio: fill_keys(audio, transcript=row["content"]),
    ),
    MovedKey(
        "function_call",
        _has_function_call,
        _convert_function_call,
        lambda _: None,
        lambda row, _: row["tool_calls"][0]["function"],
    ),
    MovedKey(
        "tool_calls",
        _has_custom_call,
        _convert_custom_calls,
        _strip_custom_calls,
        _restore_custom_calls,
    ),
    MovedKey(
        "role",
        _is_function_result,
        lambda message: {"role": "tool", "tool_call_id": message["name"]},
        lambda role: role,
        lambda _, role: role,
    ),
)
"""The keys; a message may have several of them."""
MOVED_KEY_NAMES = frozenset(each.key for each in MOVED_KEYS) - {"role"}


def has_moved_key(message: Message) -> bool:
    """Tell whether a message has such a key; most have none, and this is quick."""
    if MOVED_KEY_NAMES.isdisjoint(message) and message.get("role") != "function":
        return False
    return WIRE_KEY not in message and any(each.is_said(message) for each in MOVED_KEYS)


def find_chat_problem(_: Message) -> Problem | None:
    """Return None: any message may be of a chat."""
    return None


def build_chat_rows(message: Message) -> list[Message]:
    """Return the row of a message: the message itself if it has no such key."""
    if not has_moved_key(message):
        return [message]
    found = [each for each in MOVED_KEYS if each.is_said(message)]
    shown = {key: held for each in found for key, held in each.shown(message).items()}
    moved = {each.key: each.left(message[each.key]) for each in found}
    was = {key: message[key] for key in shown if key in message and key not in moved}
    rest = {key: held for key, held in message.items() if key not in moved}
    beside = {"format": OPENAI_NAME, "keys": [*message], "was": was, "moved": moved}
    return [{**rest, **shown, WIRE_KEY: beside}]


def build_parsed_rows(message: Message) -> list[Message]:
    """Return the row of a message that a reader of transcripts gives in the shape of a chat.

    The reasoning of a model is under a key that providers of a chat also use. It came from none of
    them, so it is sent to none.
    """
    (one,) = build_chat_rows(message)
    if WIRE_KEY in message or ANSWER_EXTENSIONS.keys().isdisjoint(message):
        return [one]
    new = {"format": OPENAI_NAME, "keys": [*message], "was": {}, "moved": {}}
    held = one.get(WIRE_KEY) or new
    return [{**one, WIRE_KEY: {**held, READER_MARK: True}}]


def restore_chat_message(rows: Sequence[Message]) -> Message:
    """Return the original message from its row."""
    (one,) = rows
    held = get_wire_values(one)
    left = ((each, held["moved"][each.key]) for each in MOVED_KEYS if each.key in held["moved"])
    moved = {each.key: each.given(one, was) for each, was in left}
    whole = {**one, **held["was"], **moved}
    return {key: whole[key] for key in held["keys"]}
