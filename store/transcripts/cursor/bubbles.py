"""A bubble of Cursor's chats as messages: a text, or a call and its result.

Other fields of a bubble are kept under one extra key, ``cursor``, except copies for the screen.
"""

from __future__ import annotations

import json
from typing import Any

from ...messages import Message
from ...text import JsonFields
from ..events import (
    build_chat_call,
    drop_empty_fields,
    drop_keys,
    find_first_text,
    get_fields,
    get_nested,
    get_text,
    parse_iso_milliseconds,
)

CURSOR_BUBBLE_ROLES = {1: "user", 2: "assistant", "user": "user", "ai": "assistant"}
"""Type of a bubble → who said it; the second pair is of the first versions."""

BUBBLE_TOOL_KEY = "toolFormerData"

_BUBBLE_KEYS = (
    *("_v", "type", "bubbleId", "id", "text", "rawText", "richText", "createdAt", "thinking"),
    *("allThinkingBlocks", BUBBLE_TOOL_KEY, "capabilities", "capabilityStatuses", "capabilityType"),
    *("supportedTools", "serverBubbleId", "isThought", "timingInfo", "delegate"),
)

_BUBBLE_CALL_KEYS = ("tool", "name", "rawArgs", "params", "result", "error", "status", "toolCallId")

ENDED_BUBBLE_STATES = ("completed", "error", "cancelled")


def find_bubble_id(bubble: JsonFields) -> str | None:
    """Return a bubble's id."""
    return find_first_text((bubble.get("bubbleId"), bubble.get("id")))


def is_bubble(value: object) -> bool:
    """Tell whether a value is a bubble that can be read."""
    kind = get_fields(value).get("type")
    return isinstance(kind, int | str) and kind in CURSOR_BUBBLE_ROLES


def parse_bubble(bubble: JsonFields) -> list[Message]:
    """Return the messages of a bubble; none where it says nothing."""
    call = get_fields(bubble.get(BUBBLE_TOOL_KEY))
    if call.get("name") or call.get("rawArgs"):
        return _parse_bubble_call(bubble, call)
    said = find_first_text((bubble.get("text"), bubble.get("rawText")))
    role = CURSOR_BUBBLE_ROLES[bubble["type"]]
    if not said and role == "assistant":
        return []
    return [{"role": role, "content": said or ""} | _collect_bubble_extra(bubble)]


def _parse_bubble_call(bubble: JsonFields, call: JsonFields) -> list[Message]:
    """Return a call, and its result where there is one."""
    name = get_text(call.get("toolCallId")) or f"call-{find_bubble_id(bubble)}"
    tool = get_text(call.get("name")) or f"tool_{call.get('tool')}"
    asked = build_chat_call(name, tool, _render_bubble_arguments(call))
    said = get_text(bubble.get("text"))
    message = {"role": "assistant", "content": said, "tool_calls": [asked]}
    return [message | _collect_bubble_extra(bubble), *_parse_bubble_result(name, tool, call)]


def _render_bubble_arguments(call: JsonFields) -> str:
    """Return what a call asks for as a JSON object: as the model wrote it, else as it was read."""
    for told in (call.get("rawArgs"), call.get("params")):
        if isinstance(told, str) and _is_json_object_text(told):
            return told
        if told and isinstance(told, dict):
            return _render_bubble_json(told)
    told = get_text(call.get("rawArgs"))
    return _render_bubble_json({"input": told} if told else {})


def _is_json_object_text(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _parse_bubble_result(name: str, tool: str, call: JsonFields) -> list[Message]:
    status, result = call.get("status"), call.get("result")
    if status not in ENDED_BUBBLE_STATES and result in (None, ""):
        return []
    said = _render_bubble_value(result) or _render_bubble_value(call.get("error"))
    failed = status == "error" or bool(call.get("error"))
    message: Message = {"role": "tool", "tool_call_id": name, "name": tool, "content": said}
    told = drop_empty_fields({"status": status, **drop_keys(call, *_BUBBLE_CALL_KEYS)})
    return [
        message | drop_empty_fields({"messageStatus": "error" if failed else "", "cursor": told})
    ]


def _render_bubble_value(value: Any) -> str:
    """Return a value as text: JSON where it is none."""
    return value if isinstance(value, str) else "" if value is None else _render_bubble_json(value)


def _collect_bubble_extra(bubble: JsonFields) -> JsonFields:
    """Return a bubble's id and time, and what else it says."""
    moment = parse_bubble_time(bubble)
    extra = drop_empty_fields(drop_keys(bubble, *_BUBBLE_KEYS))
    return drop_empty_fields({"id": find_bubble_id(bubble), "timestamp": moment, "cursor": extra})


def parse_bubble_time(bubble: JsonFields) -> int | None:
    """Return when a bubble came to be, in ms; None where it does not tell."""
    for told in (bubble.get("createdAt"), get_nested(bubble, "timingInfo", "clientStartTime")):
        moment = told if isinstance(told, int | float) else parse_iso_milliseconds(told)
        if moment and 10**12 < moment < 2**53:
            return int(moment)
    return None


def _render_bubble_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
