"""An event of Copilot CLI as a message of the chat; most events are no message.

What an event says beyond its message is kept under one extra key, ``copilot_cli``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ...messages import Message
from ...text import Fields
from ..events import fields_of, iso_milliseconds, list_of, telling, text_of, without

Made = Callable[[Fields], Message]


ENVELOPE = {"type", "id", "parentId"}
"""Keys of every event."""


def is_event(value: object) -> bool:
    """Tell whether a JSON value is an event of this program."""
    fields = fields_of(value)
    return isinstance(fields.get("data"), dict) and fields.keys() >= ENVELOPE


def agent_of(event: Fields) -> str | None:
    """Return whose event it is: a subagent's, by its call or its id; None for the session's own."""
    return text_of(event["data"].get("parentToolCallId")) or text_of(event.get("agentId"))


def message_of(name: str, event: Fields) -> Message | None:
    """Return an event as a message with this id, None where it is none."""
    kind = text_of(event["type"])
    if kind not in MADE:
        return None
    make, *said = MADE[kind]
    data = event["data"]
    message = make(data) | {"id": name} | _moment_of(event)
    extra = _unlike(message["content"], without(data, *said))
    if "result" in extra:
        extra["result"] = _unlike(message["content"], fields_of(extra["result"]))
    return message | telling({"copilot_cli": telling(extra)})


def _moment_of(event: Fields) -> Fields:
    moment = iso_milliseconds(event.get("timestamp"))
    return {} if moment is None else {"timestamp": moment}


def _unlike(content: object, fields: Fields) -> Fields:
    """Return the fields that say something, and not the same as the content."""
    return {key: held for key, held in telling(fields).items() if held != content}


def _system(data: Fields) -> Message:
    return {"role": "system", "content": text_of(data.get("content")) or ""}


def _asked(data: Fields) -> Message:
    return {"role": "user", "content": text_of(data.get("content")) or ""}


def _answer(data: Fields) -> Message:
    calls = [_call(fields_of(each)) for each in list_of(data.get("toolRequests"))]
    thought = text_of(data.get("reasoningText"))
    more = telling({"tool_calls": calls, "reasoning_content": thought})
    return {"role": "assistant", "content": text_of(data.get("content"))} | more


def _call(request: Fields) -> Fields:
    """Return a call; its description for people (``intentionSummary``) is kept beside it."""
    function = {"name": text_of(request.get("name")) or "", "arguments": _arguments(request)}
    extra = telling(without(request, "toolCallId", "name", "arguments", "type"))
    call = {"id": text_of(request.get("toolCallId")) or "", "type": "function"}
    return call | {"function": function} | telling({"copilot_cli": extra})


def _arguments(request: Fields) -> str:
    """Return arguments as JSON text; a text that is no JSON object is the argument ``input``."""
    asked = request.get("arguments")
    if not isinstance(asked, str):
        return _json(asked or {})
    return asked if asked.lstrip().startswith("{") else _json({"input": asked})


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _result(data: Fields) -> Message:
    told = (
        fields_of(data.get("result")).get("content"),
        fields_of(data.get("error")).get("message"),
    )
    content = next(filter(None, map(text_of, told)), "")
    link = telling({"tool_call_id": text_of(data.get("toolCallId"))})
    failed = {"messageStatus": "error"} if data.get("success") is False else {}
    return {"role": "tool", "content": content} | link | failed


MADE: dict[str, tuple[Made, *tuple[str, ...]]] = {
    "system.message": (_system, "content", "role"),
    "user.message": (_asked, "content"),
    "system.notification": (_asked, "content"),
    "assistant.message": (_answer, "content", "toolRequests", "reasoningText"),
    "tool.execution_complete": (_result, "toolCallId", "success"),
}
"""Type of an event → what makes a message of it, and the keys that this says."""
