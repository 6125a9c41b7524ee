"""What stays of a message whose words are taken out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .columns import Message, StoredCall, join_call
from .preparing import prepare

REDACTED = "[redacted]"
"""What a redacted message says."""
NO_ARGUMENTS = "{}"
"""What its calls were given."""


def is_redacted(message: Message) -> bool:
    """Tell whether a message is what a redaction leaves."""
    return message.get("redacted") is True and message.get("content") == REDACTED


def without_words(message: Message, calls: Iterable[StoredCall], answers: str | None) -> Message:
    """Return what stays of a message.

    ``calls`` are its calls as they are stored, ``answers`` is the id of the call that it answers,
    if it is a tool's result. Its role and ids stay, and its time; of a result and of calls the
    names of tools, too, of a result whether it failed.
    """
    held = prepare(message).columns
    kept: dict[str, Any] = {"role": held.role, "content": REDACTED, "redacted": True}
    kept |= _told({"id": held.message_id, "timestamp": held.created_at})
    if held.role == "tool":
        result = {"tool_call_id": answers, "name": held.name, "messageStatus": held.status}
        kept |= _told(result)
    listed = [*map(_call_without_words, calls)]
    return {**kept, "tool_calls": listed} if listed else kept


def _call_without_words(call: StoredCall) -> Any:
    """Return what stays of a call: nothing of an entry that is none."""
    if not isinstance(join_call(*call), dict):
        return REDACTED
    function = _told({"name": call.name, "arguments": NO_ARGUMENTS})
    return _told({"id": call.call_id, "type": "function", "function": function})


def _told(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}
