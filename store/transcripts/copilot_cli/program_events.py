"""An event of Copilot CLI as a message of the chat; most events are no message.

What an event says beyond its message is kept under one extra key, ``copilot_cli``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ...messages import Message
from ...text import JsonFields
from ..events import (
    drop_empty_fields,
    drop_keys,
    get_fields,
    get_list,
    get_text,
    parse_iso_milliseconds,
)

MessageParser = Callable[[JsonFields], Message]


COPILOT_EVENT_KEYS = {"type", "id", "parentId"}
"""Keys of every event."""


def is_copilot_event(value: object) -> bool:
    """Tell whether a JSON value is an event of this program."""
    fields = get_fields(value)
    return isinstance(fields.get("data"), dict) and fields.keys() >= COPILOT_EVENT_KEYS


def find_event_agent(event: JsonFields) -> str | None:
    """Return whose event it is: a subagent's, by its call or its id; None for the session's own."""
    return get_text(event["data"].get("parentToolCallId")) or get_text(event.get("agentId"))


def parse_copilot_event(name: str, event: JsonFields) -> Message | None:
    """Return an event as a message with this id, None where it is none."""
    kind = get_text(event["type"])
    if kind not in MESSAGE_PARSERS:
        return None
    make, *said = MESSAGE_PARSERS[kind]
    data = event["data"]
    message = make(data) | {"id": name} | _parse_event_timestamp(event)
    extra = _drop_repeated_content(message["content"], drop_keys(data, *said))
    if "result" in extra:
        extra["result"] = _drop_repeated_content(message["content"], get_fields(extra["result"]))
    return message | drop_empty_fields({"copilot_cli": drop_empty_fields(extra)})


def _parse_event_timestamp(event: JsonFields) -> JsonFields:
    moment = parse_iso_milliseconds(event.get("timestamp"))
    return {} if moment is None else {"timestamp": moment}


def _drop_repeated_content(content: object, fields: JsonFields) -> JsonFields:
    """Return the fields that say something, and not the same as the content."""
    return {key: held for key, held in drop_empty_fields(fields).items() if held != content}


def _parse_system_event(data: JsonFields) -> Message:
    return {"role": "system", "content": get_text(data.get("content")) or ""}


def _parse_user_event(data: JsonFields) -> Message:
    return {"role": "user", "content": get_text(data.get("content")) or ""}


def _parse_assistant_event(data: JsonFields) -> Message:
    calls = [_parse_tool_request(get_fields(each)) for each in get_list(data.get("toolRequests"))]
    thought = get_text(data.get("reasoningText"))
    more = drop_empty_fields({"tool_calls": calls, "reasoning_content": thought})
    return {"role": "assistant", "content": get_text(data.get("content"))} | more


def _parse_tool_request(request: JsonFields) -> JsonFields:
    """Return a call; its description for people (``intentionSummary``) is kept beside it."""
    function = {
        "name": get_text(request.get("name")) or "",
        "arguments": _render_request_arguments(request),
    }
    extra = drop_empty_fields(drop_keys(request, "toolCallId", "name", "arguments", "type"))
    call = {"id": get_text(request.get("toolCallId")) or "", "type": "function"}
    return call | {"function": function} | drop_empty_fields({"copilot_cli": extra})


def _render_request_arguments(request: JsonFields) -> str:
    """Return arguments as JSON text; a text that is no JSON object is the argument ``input``."""
    asked = request.get("arguments")
    if not isinstance(asked, str):
        return _render_event_json(asked or {})
    return asked if asked.lstrip().startswith("{") else _render_event_json({"input": asked})


def _render_event_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _parse_tool_completion(data: JsonFields) -> Message:
    told = (
        get_fields(data.get("result")).get("content"),
        get_fields(data.get("error")).get("message"),
    )
    content = next(filter(None, map(get_text, told)), "")
    link = drop_empty_fields({"tool_call_id": get_text(data.get("toolCallId"))})
    failed = {"messageStatus": "error"} if data.get("success") is False else {}
    return {"role": "tool", "content": content} | link | failed


MESSAGE_PARSERS: dict[str, tuple[MessageParser, *tuple[str, ...]]] = {
    "system.message": (_parse_system_event, "content", "role"),
    "user.message": (_parse_user_event, "content"),
    "system.notification": (_parse_user_event, "content"),
    "assistant.message": (_parse_assistant_event, "content", "toolRequests", "reasoningText"),
    "tool.execution_complete": (_parse_tool_completion, "toolCallId", "success"),
}
"""Type of an event → what makes a message of it, and the keys that this says."""
