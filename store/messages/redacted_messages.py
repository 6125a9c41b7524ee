"""Redacted messages: values from a fixed list stay, everything else is removed.

A value stays only if it cannot be somebody's words: a role, a status or a tool that the store
knows, a time, an id that counts or is random. Any other value is removed, under whatever key. A
removed id is replaced by one made from its hash (`make_neutral_id`). So calls and results still
find each other when only one of them is redacted, and a message that is given again under its id is
recognised: code that compares two ids compares their neutral ids.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from hashlib import sha256
from typing import Any

from .columns import Message, StoredCall, join_call, prepare_message

REDACTED_TEXT = "[redacted]"
"""The content of a redacted message."""
REPLACED_MARK = "replaced"
"""The value of the key ``redacted`` where another text stands in place of the content."""
NO_ARGUMENTS = "{}"
"""The arguments of its calls."""
UNKNOWN_TOOL = "unknown_tool"
"""The name of a tool whose name is not known, or does not stay."""
UNKNOWN_ROLE = "other"
"""The role of a message whose own role does not stay."""
KEPT_ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})
"""The roles that stay."""
KEPT_STATUSES = frozenset({"pending", "success", "partial", "error"})
"""The words of ``messageStatus`` that stay."""
_NEUTRAL_PREFIX = "redacted_"
_NEUTRAL_ID_PATTERN = re.compile(
    r"""(?:
      [a-z]
    | (?:(?:[a-z]|call|tool|message|msg|user|assistant|result|turn|step|id)[-_]?)?\d{1,6}
    | call_\d{1,9}_\d{1,6}
    | [0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}
    | redacted_[0-9a-f]{24}
    )(?:/\d{1,6})?""",
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
"""The ids that stay: those that count, those that the store makes, UUIDs; of a part, its number."""


def is_redacted(message: Message) -> bool:
    """Tell whether a message is the result of a redaction."""
    mark = message.get("redacted")
    return mark == REPLACED_MARK or (mark is True and message.get("content") == REDACTED_TEXT)


def is_neutral_id(given: str) -> bool:
    """Tell whether an id was made by a redaction to replace another."""
    return given.startswith(_NEUTRAL_PREFIX) and _NEUTRAL_ID_PATTERN.fullmatch(given) is not None


def make_neutral_id(given: str) -> str:
    """Return the id that replaces an id in a redacted message: the same id if it may stay."""
    if _NEUTRAL_ID_PATTERN.fullmatch(given):
        return given
    return _NEUTRAL_PREFIX + sha256(given.encode()).hexdigest()[:24]


def redact_message(
    message: Message,
    calls: Iterable[StoredCall],
    answers: str | None,
    tools: Container[str],
    text: str | None = None,
) -> Message:
    """Return the redacted form of a message.

    ``calls`` are its calls as they are stored, ``answers`` is the id of the call that it answers,
    if it is a tool's result, ``tools`` are the names of tools that stay, ``text`` is its text
    from now on.
    """
    held = prepare_message(message).columns
    role = held.role if held.role in KEPT_ROLES else UNKNOWN_ROLE
    kept: dict[str, Any] = {"role": role, "content": REDACTED_TEXT, "redacted": True}
    if text is not None:
        kept |= {"content": text, "redacted": REPLACED_MARK}
    kept |= _drop_missing_values(
        {"id": _make_optional_neutral_id(held.message_id), "timestamp": held.created_at}
    )
    if role == "tool":
        status = held.status if held.status in KEPT_STATUSES else None
        name = held.name if held.name in tools else None
        result = {
            "tool_call_id": _make_optional_neutral_id(answers),
            "name": name,
            "messageStatus": status,
        }
        kept |= _drop_missing_values(result)
    listed = [_redact_call(call, tools) for call in calls]
    return {**kept, "tool_calls": listed} if listed else kept


def _redact_call(call: StoredCall, tools: Container[str]) -> Any:
    """Return the redacted form of a call: a fixed text for an entry that is not a call."""
    if not isinstance(join_call(*call), dict):
        return REDACTED_TEXT
    name = call.name if call.name is None or call.name in tools else UNKNOWN_TOOL
    function = _drop_missing_values({"name": name, "arguments": NO_ARGUMENTS})
    return _drop_missing_values(
        {"id": _make_optional_neutral_id(call.call_id), "type": "function", "function": function}
    )


def _make_optional_neutral_id(given: str | None) -> str | None:
    return None if given is None else make_neutral_id(given)


def _drop_missing_values(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}
