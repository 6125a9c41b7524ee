"""A bubble of Cursor's chats as messages: a text, or a call and its result.

Other fields of a bubble are kept under one extra key, ``cursor``, except copies for the screen.
"""

from __future__ import annotations

import json
from typing import Any

from ...messages import Message
from ...text import Fields
from ..events import (
    call_of,
    fields_of,
    first_text,
    iso_milliseconds,
    telling,
    text_of,
    within,
    without,
)

ROLES = {1: "user", 2: "assistant", "user": "user", "ai": "assistant"}
"""Type of a bubble → who said it; the second pair is of the first versions."""

TOOL = "toolFormerData"

_SAID = (
    *("_v", "type", "bubbleId", "id", "text", "rawText", "richText", "createdAt", "thinking"),
    *("allThinkingBlocks", TOOL, "capabilities", "capabilityStatuses", "capabilityType"),
    *("supportedTools", "serverBubbleId", "isThought", "timingInfo", "delegate"),
)

_CALL = ("tool", "name", "rawArgs", "params", "result", "error", "status", "toolCallId")

ENDED = ("completed", "error", "cancelled")


def name_of(bubble: Fields) -> str | None:
    """Return a bubble's id."""
    return first_text((bubble.get("bubbleId"), bubble.get("id")))


def is_bubble(value: object) -> bool:
    """Tell whether a value is a bubble that can be read."""
    kind = fields_of(value).get("type")
    return isinstance(kind, int | str) and kind in ROLES


def messages_of(bubble: Fields) -> list[Message]:
    """Return the messages of a bubble; none where it says nothing."""
    call = fields_of(bubble.get(TOOL))
    if call.get("name") or call.get("rawArgs"):
        return _called(bubble, call)
    said = first_text((bubble.get("text"), bubble.get("rawText")))
    role = ROLES[bubble["type"]]
    if not said and role == "assistant":
        return []
    return [{"role": role, "content": said or ""} | _known(bubble)]


def _called(bubble: Fields, call: Fields) -> list[Message]:
    """Return a call, and its result where there is one."""
    name = text_of(call.get("toolCallId")) or f"call-{name_of(bubble)}"
    tool = text_of(call.get("name")) or f"tool_{call.get('tool')}"
    asked = call_of(name, tool, _arguments(call))
    said = text_of(bubble.get("text"))
    message = {"role": "assistant", "content": said, "tool_calls": [asked]}
    return [message | _known(bubble), *_results(name, tool, call)]


def _arguments(call: Fields) -> str:
    """Return what a call asks for as a JSON object: as the model wrote it, else as it was read."""
    for told in (call.get("rawArgs"), call.get("params")):
        if isinstance(told, str) and _is_object(told):
            return told
        if told and isinstance(told, dict):
            return _json(told)
    told = text_of(call.get("rawArgs"))
    return _json({"input": told} if told else {})


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _results(name: str, tool: str, call: Fields) -> list[Message]:
    status, result = call.get("status"), call.get("result")
    if status not in ENDED and result in (None, ""):
        return []
    said = _text(result) or _text(call.get("error"))
    failed = status == "error" or bool(call.get("error"))
    message: Message = {"role": "tool", "tool_call_id": name, "name": tool, "content": said}
    told = telling({"status": status, **without(call, *_CALL)})
    return [message | telling({"messageStatus": "error" if failed else "", "cursor": told})]


def _text(value: Any) -> str:
    """Return a value as text: JSON where it is none."""
    return value if isinstance(value, str) else "" if value is None else _json(value)


def _known(bubble: Fields) -> Fields:
    """Return a bubble's id and time, and what else it says."""
    moment = moment_of(bubble)
    extra = telling(without(bubble, *_SAID))
    return telling({"id": name_of(bubble), "timestamp": moment, "cursor": extra})


def moment_of(bubble: Fields) -> int | None:
    """Return when a bubble came to be, in ms; None where it does not tell."""
    for told in (bubble.get("createdAt"), within(bubble, "timingInfo", "clientStartTime")):
        moment = told if isinstance(told, int | float) else iso_milliseconds(told)
        if moment and 10**12 < moment < 2**53:
            return int(moment)
    return None


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
