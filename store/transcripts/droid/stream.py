"""What ``droid exec --output-format stream-json`` prints, as messages.

An answer is a row, and a row for each call in it; one that only calls has no row of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from ...messages import Message
from ...text import JsonFields
from ..events import build_chat_call, drop_empty_fields, drop_keys, get_fields, get_text

INIT, SAID, CALLED, RETURNED = "system", "message", "tool_call", "tool_result"

FOREIGN_INIT_KEYS = {"mcp_servers", "apiKeySource", "permissionMode", "uuid"}
"""Keys by which the first row of a program that prints much the same is told."""

_DROID_MESSAGE_KEYS = ("type", "role", "id", "text", "timestamp", "session_id")
_DROID_CALL_KEYS = ("type", "id", "messageId", "toolName", "parameters", "timestamp", "session_id")
_DROID_RESULT_KEYS = (
    *("type", "id", "messageId", "isError", "value", "error"),
    "timestamp",
    "session_id",
)


def is_droid_row(value: object) -> bool:
    """Tell whether a value is a row that can be read."""
    fields = get_fields(value)
    if not get_text(fields.get("session_id")):
        return False
    match fields.get("type"):
        case "system":
            return fields.get("subtype") == "init" and (
                {"tools", "model"} <= fields.keys() and not FOREIGN_INIT_KEYS & fields.keys()
            )
        case "message":
            return fields.get("role") in ("user", "assistant", "system") and "text" in fields
        case "tool_call":
            return "toolName" in fields
        case "tool_result":
            return not {"value", "error"}.isdisjoint(fields)
    return False


def parse_droid_rows(rows: Iterable[JsonFields]) -> list[Message]:
    """Return the messages of a session's rows; calls are with the answer that they belong to."""
    made: list[Message] = []
    answers: dict[Any, Message] = {}
    for row in rows:
        if row["type"] == CALLED:
            name = row.get("messageId")
            if name not in answers:
                answers[name] = {"role": "assistant", "content": None} | _collect_droid_extra(
                    row, row.get("messageId"), row
                )
                made.append(answers[name])
            answers[name].setdefault("tool_calls", []).append(
                build_chat_call(row.get("id"), row["toolName"], row.get("parameters"))
            )
        elif row["type"] == RETURNED:
            made.append(_parse_droid_result(row))
        elif row["type"] == SAID:
            said: Message = {"role": row["role"], "content": get_text(row["text"]) or ""}
            made.append(said | _collect_droid_extra(row, row.get("id"), _DROID_MESSAGE_KEYS))
            answers[row.get("id")] = made[-1]
    return made


def _parse_droid_result(row: JsonFields) -> Message:
    value = row.get("value", row.get("error"))
    said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    status = "error" if row.get("isError") is True else ""
    told = drop_empty_fields({"tool_call_id": row.get("id"), "messageStatus": status})
    return (
        {"role": "tool", "content": said}
        | told
        | _collect_droid_extra(row, None, _DROID_RESULT_KEYS)
    )


def _collect_droid_extra(row: JsonFields, name: Any, said: Iterable[str]) -> JsonFields:
    """Return a row's id and time, and what else it says."""
    moment = row.get("timestamp")
    at = moment if type(moment) is int else None
    rest = drop_empty_fields(drop_keys(row, *said))
    return drop_empty_fields({"id": get_text(name), "timestamp": at, "droid": rest})
