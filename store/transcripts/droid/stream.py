"""What ``droid exec --output-format stream-json`` prints, as messages.

An answer is a row, and a row for each call in it; one that only calls has no row of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from ...messages import Message
from ...text import Fields
from ..events import call_of, fields_of, telling, text_of, without

INIT, SAID, CALLED, RETURNED = "system", "message", "tool_call", "tool_result"

OTHERS_KEYS = {"mcp_servers", "apiKeySource", "permissionMode", "uuid"}
"""Keys by which the first row of a program that prints much the same is told."""

_SAID = ("type", "role", "id", "text", "timestamp", "session_id")
_CALL = ("type", "id", "messageId", "toolName", "parameters", "timestamp", "session_id")
_RESULT = (*("type", "id", "messageId", "isError", "value", "error"), "timestamp", "session_id")


def is_row(value: object) -> bool:
    """Tell whether a value is a row that can be read."""
    fields = fields_of(value)
    if not text_of(fields.get("session_id")):
        return False
    match fields.get("type"):
        case "system":
            return fields.get("subtype") == "init" and (
                {"tools", "model"} <= fields.keys() and not OTHERS_KEYS & fields.keys()
            )
        case "message":
            return fields.get("role") in ("user", "assistant", "system") and "text" in fields
        case "tool_call":
            return "toolName" in fields
        case "tool_result":
            return not {"value", "error"}.isdisjoint(fields)
    return False


def messages_of(rows: Iterable[Fields]) -> list[Message]:
    """Return the messages of a session's rows; calls are with the answer that they belong to."""
    made: list[Message] = []
    answers: dict[Any, Message] = {}
    for row in rows:
        if row["type"] == CALLED:
            name = row.get("messageId")
            if name not in answers:
                answers[name] = {"role": "assistant", "content": None} | _known(
                    row, row.get("messageId"), row
                )
                made.append(answers[name])
            answers[name].setdefault("tool_calls", []).append(_call(row))
        elif row["type"] == RETURNED:
            made.append(_result(row))
        elif row["type"] == SAID:
            said: Message = {"role": row["role"], "content": text_of(row["text"]) or ""}
            made.append(said | _known(row, row.get("id"), _SAID))
            answers[row.get("id")] = made[-1]
    return made


def _call(row: Fields) -> Fields:
    return call_of(row.get("id"), row["toolName"], row.get("parameters"))


def _result(row: Fields) -> Message:
    value = row.get("value", row.get("error"))
    said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    status = "error" if row.get("isError") is True else ""
    told = telling({"tool_call_id": row.get("id"), "messageStatus": status})
    return {"role": "tool", "content": said} | told | _known(row, None, _RESULT)


def _known(row: Fields, name: Any, said: Iterable[str]) -> Fields:
    """Return a row's id and time, and what else it says."""
    moment = row.get("timestamp")
    at = moment if type(moment) is int else None
    rest = telling(without(row, *said))
    return telling({"id": text_of(name), "timestamp": at, "droid": rest})
